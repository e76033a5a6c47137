//! Clients that were told that nobody knows yet how a transaction ended ask with their tokens.

use super::promises::{SOON, bytes, three, transact};
use super::traps::leader_and_other;
use super::world::World;
use crate::serializable::lane::Message;
use crate::serializable::lane::groups::gone::GONE;
use crate::serializable::{Client, TxId};
use bytes::Bytes;
use quorate_kernel::change::Change;
use quorate_kernel::expiry::Expiry;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::process::Process;
use quorate_kernel::receipt::TokenError;
use quorate_kernel::refusal::Ended;
use quorate_kernel::ring::Standing;
use quorate_kernel::time::Span;
use quorate_kernel::transaction::Item;

const COMMITTED: Outcome = Outcome::Ended(Ended::Committed);
const ABORTED: Outcome = Outcome::Ended(Ended::Aborted);
const FORGOTTEN: Outcome = Outcome::Refused(Refusal::OutcomeForgotten);

fn how_ended(token: &Bytes) -> Operation {
    Operation::HowEnded { token: token.clone() }
}

fn token_of(told: &Outcome) -> Bytes {
    match told {
        Outcome::Refused(Refusal::OutcomeOpen { token }) => token.clone(),
        other => panic!("it has no token: {other:?}"),
    }
}

impl World {
    /// A put at a host that reaches the leader, which is heard no more: what its client is told.
    fn put_unheard(&mut self, host: usize, leader: usize) -> Bytes {
        self.ask_unheard((host, leader), Operation::put(bytes("k"), bytes("v")))
    }

    /// The same of something else.
    fn ask_unheard(&mut self, (host, leader): (usize, usize), operation: Operation) -> Bytes {
        self.cut.insert((leader, host));
        let told = self.ask(host, operation, Span::millis(700));
        token_of(&told)
    }

    /// A put at a host whose words reach nobody.
    fn put_unsaid(&mut self, host: usize) -> Bytes {
        self.isolate(host);
        let told = self.ask(host, Operation::put(bytes("k"), bytes("v")), Span::millis(700));
        token_of(&told)
    }

    /// Until a host knows how all ended that it has asked for.
    fn await_end(&mut self, host: usize) {
        let is_known =
            |world: &mut World| world.hosts[host].process.as_ref().unwrap().clients.len() == 0;
        assert!(self.run_until(SOON, is_known), "the host learns how it ended");
    }
}

#[test]
fn what_was_done_unheard_is_told_at_every_host() {
    let mut world = three(1);
    let (leader, host) = leader_and_other(&world, 1);
    let token = world.put_unheard(host, leader);
    // The host itself does not know yet: the group tells who asks elsewhere.
    assert_eq!(world.ask(leader, how_ended(&token), SOON), COMMITTED);
    let told = world.ask(host, how_ended(&token), Span::millis(700));
    assert_eq!(token_of(&told), token, "nothing is lost by asking too early");
    world.cut.clear();
    world.await_end(host);
    // The group may forget it now.
    assert_eq!(world.ask(host, Operation::put(bytes("l"), bytes("v")), SOON), Outcome::written());
    world.run(Span::secs(1));
    for asked in 0..3 {
        assert_eq!(world.ask(asked, how_ended(&token), SOON), COMMITTED, "at host {asked}");
    }
}

#[test]
fn what_nobody_has_heard_ends_by_the_question() {
    let mut world = three(1);
    let (leader, host) = leader_and_other(&world, 1);
    let token = world.put_unsaid(host);
    assert_eq!(world.ask(leader, how_ended(&token), SOON), ABORTED);
    world.cut.clear();
    world.await_end(host);
    for asked in 0..3 {
        assert_eq!(world.ask(asked, how_ended(&token), SOON), ABORTED, "at host {asked}");
    }
    let told = world.ask(leader, Operation::get(bytes("k")), SOON);
    assert_eq!(told, Outcome::value(None), "it is not done later");
}

#[test]
fn the_group_tells_when_the_host_has_started_anew() {
    let mut world = three(1);
    let (leader, host) = leader_and_other(&world, 1);
    let token = world.put_unheard(host, leader);
    world.crash(host);
    world.cut.clear();
    world.restart(host);
    for asked in [leader, host] {
        assert_eq!(world.ask(asked, how_ended(&token), SOON), COMMITTED, "at host {asked}");
    }
}

#[test]
fn who_asks_when_nobody_remembers_is_told_so() {
    let mut world = three(1);
    let (leader, host) = leader_and_other(&world, 1);
    let token = world.put_unheard(host, leader);
    world.crash(host);
    world.run(GONE);
    world.run(Span::secs(3));
    world.cut.clear();
    // The host might know.
    let told = world.ask(leader, how_ended(&token), Span::secs(1));
    assert_eq!(token_of(&told), token);
    world.restart(host);
    for asked in [leader, host] {
        let told = world.ask(asked, how_ended(&token), SOON);
        assert_eq!(told, FORGOTTEN, "at host {asked}: it was done, and nobody guesses");
    }
}

#[test]
fn tokens_that_were_not_given_are_refused_by_name() {
    let mut world = three(1);
    let (leader, host) = leader_and_other(&world, 1);
    let token = world.put_unsaid(host);
    let refused = |error| Outcome::Refused(Refusal::Token(error));
    let mut changed = token.to_vec();
    changed[7] ^= 1;
    let changed = Bytes::from(changed);
    assert_eq!(world.ask(leader, how_ended(&changed), SOON), refused(TokenError::Forged));
    assert_eq!(world.ask(leader, how_ended(&bytes("k")), SOON), refused(TokenError::Damaged));
}

#[test]
fn what_is_told_of_another_transaction_is_not_believed() {
    let mut world = three(1);
    let (leader, host) = leader_and_other(&world, 1);
    let other = (0..3).find(|it| *it != leader && *it != host).expect("there are three");
    let token = world.put_unheard(host, leader);
    world.cut.clear();
    // The one who asks hears of neither.
    world.cut.extend([(leader, other), (host, other)]);
    let ticket = world.request(other, how_ended(&token), Span::secs(60));
    world.run(Span::millis(100));
    let questions = &world.hosts[other].process.as_ref().expect("it is up").clients;
    let question = questions.questions().next().expect("it asks");
    let tx = TxId { counter: 1, client: Client(1) };
    let lie = Message::Recalled { question, tx, ended: Some(Ended::Aborted) };
    let from = world.hosts[host].me;
    world.turn(other, |process, cx| process.on_message(from, lie, cx));
    assert_eq!(world.answer(ticket), None, "it is of another transaction");
    world.cut.clear();
    assert_eq!(world.await_answer(ticket), COMMITTED);
}

#[test]
fn changes_that_could_not_be_done_are_not_told_as_done() {
    let mut world = three(1);
    let (leader, host) = leader_and_other(&world, 1);
    assert_eq!(world.ask(host, Operation::put(bytes("k"), bytes("v")), SOON), Outcome::written());
    let put_if = |exists| Item::Change {
        key: bytes("k"),
        change: Change::PutIf { exists, value: bytes("w"), expiry: Expiry::Never },
    };
    for (items, ended) in [
        (std::vec![put_if(false)], Ended::Aborted),
        (std::vec![put_if(false), put_if(true)], Ended::Partial),
        (std::vec![put_if(true)], Ended::Committed),
    ] {
        let token = world.ask_unheard((host, leader), transact(items));
        assert_eq!(world.ask(leader, how_ended(&token), SOON), Outcome::Ended(ended));
        world.cut.clear();
        world.await_end(host);
    }
}

#[test]
fn nobody_waits_for_a_host_that_has_left() {
    let mut world = three(1);
    world.gather(1..4);
    let (leader, host) = leader_and_other(&world, 1);
    let token = world.put_unheard(host, leader);
    world.crash(host);
    world.run(GONE);
    world.run(Span::secs(3));
    world.cut.clear();
    world.stand(host, Standing::Left);
    assert_eq!(world.ask(leader, how_ended(&token), SOON), FORGOTTEN);
}
