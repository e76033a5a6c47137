//! Judges what clients were told, against what the log says: each is answered once; what was
//! answered is what was executed, or was there; nothing is older than what had been told before it
//! was asked; each session's own is in its order; and who follows something is told of each change
//! once, before anything shows it.

use super::customers::{Asked, Customers};
use super::followers::Follower;
use super::replay::{Reads, Replay};
use crate::coordination::tests::world::World;
use crate::coordination::tree::{Answer, Command, Question, Who};
use bytes::Bytes;
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::time::{Span, Time};
use quorate_kernel::tree::{Act, Failure, Item, SessionEvent, TreeReply};
use quorate_kernel::watch::Event;
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

/// What was judged.
#[derive(Debug, Default)]
pub struct Judged {
    pub reads: usize,
    pub writes: usize,
    pub events: usize,
    /// Reads of sessions that their hosts have answered at once, and those that show less than was
    /// known when they were asked.
    pub here: usize,
    pub older: usize,
}

/// The place in all that was told, and what was told there.
type Answers<'a> = BTreeMap<Ticket, Vec<(usize, &'a Outcome)>>;

/// What of an operation the tree has answered.
fn reply<'a>(answers: &Answers<'a>, ticket: Ticket) -> Option<(usize, &'a TreeReply)> {
    let [(place, outcome)] = answers.get(&ticket)?[..] else { return None };
    match outcome {
        Outcome::Tree(reply) => Some((place, reply)),
        _ => None,
    }
}

/// Whether the host answers it by itself.
fn is_local(act: &Act) -> bool {
    matches!(act, Act::Ping | Act::WhoAmI | Act::Authenticate { .. })
}

/// What was asked of whoever leads, if it changes nothing.
fn question(asked: &Asked) -> Option<Question> {
    let Asked { gateway, session, act, .. } = asked;
    let who = Who { gateway: *gateway, session: *session, ids: Vec::new(), peer: None };
    match act {
        _ if act.is_write() => None,
        Act::One(item) => Some(Question::One(who, item.clone())),
        Act::Each(items) => Some(Question::Each(who, items.clone())),
        Act::Sync { .. } | Act::Follow { .. } | Act::Unfollow { .. } => Some(Question::Sync(who)),
        _ => None,
    }
}

/// Judges all that clients of a world were told, when all is over.
pub fn judge(world: &World, customers: &Customers) -> Judged {
    let mut answers = Answers::new();
    for (place, (_, ticket, outcome)) in world.answers.iter().enumerate() {
        answers.entry(*ticket).or_default().push((place, outcome));
    }
    are_answered_once(&answers, customers);
    let (here, older) = are_not_older(world, &answers, customers);
    are_in_order(&answers, customers);
    let mut reads = Reads::new();
    let mut judged = Judged { here, older, ..Judged::default() };
    for asked in &customers.asked {
        let told = reply(&answers, asked.ticket).map(|(_, reply)| reply);
        // That nothing is followed the host knows by itself.
        let told = told.filter(|it| it.told != Err(Failure::NotFollowed));
        if let (Some(question), Some(told)) = (question(asked), told) {
            judged.reads += 1;
            let one = (asked.ticket, question, told.clone());
            reads.entry(told.zxid.0).or_default().push(one);
        }
    }
    let replay = Replay::of(world, reads);
    judged.writes = are_executed(&answers, customers, &replay);
    end_in_time(customers, &replay);
    judged.events = are_told_what_they_follow(&answers, customers, &replay);
    judged
}

fn are_answered_once(answers: &Answers<'_>, customers: &Customers) {
    for asked in &customers.asked {
        let count = answers.get(&asked.ticket).map_or(0, Vec::len);
        let fits = count == 1 || (count == 0 && asked.is_lost);
        assert!(fits, "{:?} of {:?} is answered {count} times", asked.ticket, asked.act);
    }
    for connection in &customers.connections {
        let told = answers.get(&connection.ticket).map_or(&[][..], |told| &told[..]);
        let is_more = |(_, outcome): &(usize, &Outcome)| matches!(outcome, Outcome::More(_));
        let before = told.iter().take_while(|told| is_more(told)).count();
        assert!(before + 1 >= told.len(), "a connection ends once: {told:?}");
        let is_settled = connection.over.is_some() || connection.session.is_some();
        assert!(is_settled, "{:?} is given a session, or sent away", connection.ticket);
    }
}

/// Nothing is older than what anybody had been told before it was asked. If hosts answer what
/// sessions read, that is no older than what its own session had been told: how many were answered
/// at once, and how many are older than what others had been told.
fn are_not_older(world: &World, answers: &Answers<'_>, customers: &Customers) -> (usize, usize) {
    let mut newest = Vec::from([0]);
    for (_, _, outcome) in &world.answers {
        let zxid = match outcome {
            Outcome::Tree(reply) => reply.zxid.0,
            _ => 0,
        };
        newest.push(zxid.max(*newest.last().expect("it is not empty")));
    }
    let (mut here, mut older) = (0, 0);
    for asked in customers.asked.iter().filter(|asked| !is_local(&asked.act)) {
        let Some((place, reply)) = reply(answers, asked.ticket) else { continue };
        let (zxid, all) = (reply.zxid.0, newest[asked.place]);
        let is_of_session = world.settings.session_reads && may_be_old(asked);
        let known = if is_of_session { known_to(asked, answers, customers) } else { all };
        assert!(zxid >= known, "{:?}: {reply:?}, and {known} was told", asked.act);
        here += usize::from(is_of_session && place == asked.place);
        older += usize::from(zxid < all);
    }
    (here, older)
}

/// Whether it is a read that the session's host may answer by itself.
fn may_be_old(asked: &Asked) -> bool {
    let is_read = |item: &Item| !item.is_write() && !matches!(item, Item::Check { .. });
    let are_reads = match &asked.act {
        Act::One(item) => is_read(item),
        Act::Each(items) => items.iter().all(is_read),
        _ => false,
    };
    are_reads && asked.session.is_some()
}

/// The newest change that a session had been told of before it asked something, on this connection
/// or on those before.
fn known_to(asked: &Asked, answers: &Answers<'_>, customers: &Customers) -> u64 {
    let of = |connection: usize| &customers.connections[connection];
    let is_heard = |connection: usize, place: usize| {
        place < asked.place && of(connection).over.is_none_or(|over| place < over)
    };
    let own = customers.asked.iter().filter(|other| other.session == asked.session);
    let told = own.filter_map(|other| {
        let (place, reply) = reply(answers, other.ticket)?;
        let is_over = matches!(reply.told, Err(Failure::SessionMoved | Failure::SessionExpired));
        (is_heard(other.connection?, place) && !is_over).then_some(reply.zxid.0)
    });
    let mut newest = told.max().unwrap_or_default();
    for (index, connection) in customers.connections.iter().enumerate() {
        let all = answers.get(&connection.ticket).into_iter().flatten();
        let is_its = connection.session == asked.session;
        for (_, outcome) in all.filter(|(place, _)| is_its && is_heard(index, *place)) {
            let Outcome::More(events) = outcome else { continue };
            let zxid = |event: &Event| match event {
                Event::Session(SessionEvent::Changed(changed)) => changed.zxid.0,
                _ => 0,
            };
            newest = newest.max(events.iter().map(zxid).max().unwrap_or_default());
        }
    }
    newest
}

/// What one session asks is answered in its order, and shows nothing of what it asks behind it.
fn are_in_order(answers: &Answers<'_>, customers: &Customers) {
    let mut last: BTreeMap<usize, (usize, u64)> = BTreeMap::new();
    for asked in customers.asked.iter().filter(|asked| !is_local(&asked.act)) {
        let Some(connection) = asked.connection else { continue };
        let Some((place, reply)) = reply(answers, asked.ticket) else { continue };
        if customers.connections[connection].over.is_some_and(|over| place >= over) {
            // Nobody hears it.
            continue;
        }
        let zxid = reply.zxid.0;
        let (before, shown) = last.insert(connection, (place, zxid)).unwrap_or_default();
        assert!(place >= before, "{:?} is answered too early", asked.act);
        assert!(zxid >= shown, "{:?}: {reply:?} behind {shown}", asked.act);
        let is_change = asked.act.is_write() && reply.told.is_ok() && !is_failed(reply);
        assert!(!is_change || zxid > shown, "{:?} was shown before it was done", asked.act);
    }
}

/// Whether all or nothing was asked, and nothing was done.
fn is_failed(reply: &TreeReply) -> bool {
    use quorate_kernel::tree::Told;
    matches!(&reply.told, Ok(Told::Many(many)) if many.iter().any(Result::is_err))
}

/// The values that are in what is asked: each is given once.
fn values(act: &Act) -> Vec<Bytes> {
    let items = match act {
        Act::One(item) => core::slice::from_ref(item),
        Act::All(items) => &items[..],
        _ => &[],
    };
    let value = |item: &Item| match item {
        Item::Create { data, .. } | Item::Set { data, .. } => data.clone(),
        _ => None,
    };
    items.iter().filter_map(value).filter(|value| !value.is_empty()).collect()
}

/// What was answered was executed, as it was answered, and once; what was refused was not.
fn are_executed(answers: &Answers<'_>, customers: &Customers, replay: &Replay) -> usize {
    let act = |command: &Command| match command {
        Command::One(_, item) => Some(Act::One(item.clone())),
        Command::All(_, items) => Some(Act::All(items.clone())),
        Command::Close(_) => Some(Act::Close),
        _ => None,
    };
    let mut left: Vec<(Who, Act, &Answer)> = Vec::new();
    let mut given = BTreeSet::new();
    for (command, answer) in &replay.executed {
        let (Some(who), Some(act)) = (command.who(), act(command)) else { continue };
        for value in values(&act) {
            let is_new = given.insert((value.clone(), act.is_write()));
            assert!(is_new || matches!(act, Act::All(_)), "{value:?} is given once");
        }
        left.push((who.clone(), act, answer));
    }
    let mut judged = 0;
    for asked in customers.asked.iter().filter(|asked| asked.act.is_write()) {
        let Some((_, reply)) = reply(answers, asked.ticket) else {
            let told = answers.get(&asked.ticket).map(|told| told[0].1);
            let is_known = |refusal: &Refusal| *refusal != Refusal::OutcomeUnknown;
            if matches!(told, Some(Outcome::Refused(refusal)) if is_known(refusal)) {
                let done = values(&asked.act).into_iter().any(|it| given.contains(&(it, true)));
                assert!(!done, "{:?} is done, though {told:?} was told", asked.act);
            }
            continue;
        };
        let answer = Answer::Told(reply.clone());
        let place = left.iter().position(|(who, act, of)| {
            (who.gateway, who.session) == (asked.gateway, asked.session)
                && *act == asked.act
                && **of == answer
        });
        let place = place.unwrap_or_else(|| panic!("nobody did {:?}: {reply:?}", asked.act));
        left.swap_remove(place);
        judged += 1;
    }
    judged
}

/// Nobody's session ends who is connected, and has not been silent for its time-out: who is at a
/// host that is cut off has been sent away before.
fn end_in_time(customers: &Customers, replay: &Replay) {
    for (session, at_ms) in &replay.ends {
        let end = Time(at_ms * 1_000_000);
        for (index, connection) in customers.connections.iter().enumerate() {
            let is_there = connection.opened <= end && connection.ended.is_none_or(|it| it > end);
            if connection.session != Some(*session) || !is_there {
                continue;
            }
            let own = customers.asked.iter().filter(|asked| asked.connection == Some(index));
            let heard = own.map(|asked| asked.at).filter(|at| *at <= end).max();
            let silent = end - heard.unwrap_or(connection.opened);
            // That it is connected it has heard some milliseconds later.
            let least = u64::from(connection.timeout_ms).saturating_sub(200);
            let is_silent = silent >= Span::millis(least);
            assert!(is_silent, "{session:?} of {least} ms has ended after {silent:?}");
        }
    }
}

/// Whoever follows something is told of each change once, in order, and before what shows it.
fn are_told_what_they_follow(
    answers: &Answers<'_>,
    customers: &Customers,
    replay: &Replay,
) -> usize {
    let acts: BTreeMap<Ticket, &Asked> = customers.asked.iter().map(|it| (it.ticket, it)).collect();
    let last = replay.changes.last().map_or(0, |(zxid, ..)| *zxid);
    let mut events = 0;
    for (index, connection) in customers.connections.iter().enumerate() {
        let own = acts.values().filter(|asked| asked.connection == Some(index));
        let mut told: Vec<(usize, Ticket, &Outcome)> = Vec::new();
        for ticket in own.map(|asked| asked.ticket).chain([connection.ticket]) {
            let of = answers.get(&ticket).into_iter().flatten();
            told.extend(of.map(|(place, outcome)| (*place, ticket, *outcome)));
        }
        told.retain(|(place, ..)| connection.over.is_none_or(|over| *place < over));
        told.sort_unstable_by_key(|(place, ..)| *place);
        let mut follower = Follower::new(&replay.changes);
        let mut is_closed = false;
        for (_, ticket, outcome) in told {
            if is_closed {
                // Nobody hears it.
                break;
            }
            let right = match outcome {
                Outcome::More(more) => more.iter().try_for_each(|event| match event {
                    Event::Session(SessionEvent::Changed(changed)) => follower.event(changed),
                    _ => Ok(()),
                }),
                Outcome::Tree(reply) => {
                    let act = &acts[&ticket].act;
                    is_closed = *act == Act::Close && reply.told.is_ok();
                    follower.answer(act, reply)
                }
                _ => Ok(()),
            };
            right.unwrap_or_else(|why| panic!("connection {index}: {why}"));
        }
        if connection.over.is_none() && connection.session.is_some() && !is_closed {
            let right = follower.is_told_up_to(last);
            right.unwrap_or_else(|why| panic!("connection {index}, in the end: {why}"));
        }
        events += follower.told;
    }
    events
}
