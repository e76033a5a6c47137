//! Each command of a client takes effect once, in the order of its numbers.

use super::member::{Member, client, entry, from};
use super::numbers::{Command, Numbers, add, key};
use crate::smr::{COMMANDS_MAX, Entry, Executed, Origin, Part};
use crate::vsr::Machine as _;
use bytes::Bytes;
use std::vec;
use std::vec::Vec;

fn number(member: &Member<Numbers>, name: &str) -> u64 {
    member.machine.objects().get(&key(name)).copied().unwrap_or_default()
}

#[test]
fn a_command_that_comes_again_is_answered_the_same_and_not_executed() {
    let (mut member, one) = (Member::<Numbers>::new(), client(1, 1));
    assert_eq!(member.ask(1, from(one, 1), &[add("a", 5), add("a", 6)]), [5, 11]);
    assert_eq!(member.ask(2, from(one, 1), &[add("a", 5), add("a", 6)]), [5, 11]);
    assert_eq!(member.ask(3, from(one, 2), &[add("a", 6), add("a", 7)]), [11, 18]);
    assert_eq!((number(&member, "a"), member.changes().last()), (18, 3));
    let executed = |number| Executed { client: one, number };
    assert_eq!(member.executed(), [1, 2, 1, 2, 2, 3].map(executed));
    assert_eq!(member.executed(), []);
}

#[test]
fn answers_come_with_the_last_change_before_them() {
    let (mut member, one) = (Member::<Numbers>::new(), client(1, 1));
    member.ask(1, from(one, 1), &[add("a", 5), Command::Waver("a".into()), add("b", 1)]);
    let replies = &member.client(one).replies;
    assert_eq!(*replies, [(1, 5), (1, u64::MAX), (2, 1)]);
}

#[test]
fn what_a_client_has_is_forgotten_and_nothing_else() {
    let (mut member, one) = (Member::<Numbers>::new(), client(1, 1));
    member.ask(1, from(one, 1), &[add("a", 1), add("a", 2), add("a", 3)]);
    let acked = |acked, first| Origin { client: one, first, acked };
    assert_eq!(member.ask(1, acked(2, 4), &[add("a", 4)]), [10]);
    assert_eq!(
        [1, 2, 3, 4].map(|at| member.client(one).reply(at).map(|it| it.1)),
        [None, None, Some(6), Some(10)]
    );
    // It comes late, and says less than is known.
    member.execute(&entry::<Numbers>(1, acked(1, 3), &[add("a", 3)]));
    assert_eq!((member.client(one).replies.len(), number(&member, "a")), (2, 10));
    // It has all, and says so with what it was executed for before.
    member.execute(&entry::<Numbers>(1, acked(9, 4), &[add("a", 4)]));
    assert_eq!((member.client(one).replies.len(), number(&member, "a")), (0, 10));
    assert_eq!(member.ask(1, acked(4, 5), &[add("a", 5)]), [15]);
}

#[test]
fn a_part_without_commands_says_which_answers_nobody_waits_for() {
    let (mut member, one) = (Member::<Numbers>::new(), client(1, 1));
    member.ask(1, from(one, 1), &[add("a", 1), add("a", 2), add("a", 3)]);
    let kept = |member: &Member<Numbers>| member.machine.unacknowledged().collect::<Vec<_>>();
    assert_eq!(kept(&member), [(one, 3)]);
    for (client, acked, left) in [(client(1, 2), 3, 3), (client(2, 1), 3, 3), (one, 2, 1)] {
        member.execute(&entry::<Numbers>(1, Origin { client, first: 4, acked }, &[]));
        assert_eq!(member.client(one).replies.len(), left);
    }
    member.execute(&entry::<Numbers>(1, Origin { client: one, first: 4, acked: 3 }, &[]));
    assert_eq!(kept(&member), []);
    assert_eq!(member.ask(1, from(one, 4), &[add("a", 4)]), [10], "it goes on where it was");
}

#[test]
fn what_lacks_a_command_before_it_is_not_executed() {
    let (mut member, one) = (Member::<Numbers>::new(), client(1, 1));
    member.execute(&entry::<Numbers>(1, from(one, 2), &[add("a", 2)]));
    assert_eq!((number(&member, "a"), member.client(one).done), (0, 0));
    assert_eq!(member.ask(1, from(one, 1), &[add("a", 1), add("a", 2)]), [1, 3]);
}

#[test]
fn a_later_start_takes_the_place_of_an_earlier_one() {
    let mut member = Member::<Numbers>::new();
    let (old, new, other) = (client(1, 1), client(1, 2), client(2, 1));
    assert_eq!(member.ask(1, from(old, 1), &[add("a", 1)]), [1]);
    assert_eq!(member.ask(1, from(other, 1), &[add("a", 1)]), [2]);
    assert!(!member.machine.has_ended(old));
    assert_eq!(member.ask(1, from(new, 1), &[add("a", 10)]), [12]);
    // These were on their way.
    member.execute(&entry::<Numbers>(1, Origin { acked: 9, ..from(old, 2) }, &[add("a", 100)]));
    member.execute(&entry::<Numbers>(1, Origin { acked: 9, ..from(old, 1) }, &[add("a", 1)]));
    assert_eq!((number(&member, "a"), member.client(new).replies.len()), (12, 1));
    assert!(member.machine.has_ended(old) && !member.machine.has_ended(new));
    assert!(member.machine.client(old).is_none());
    assert_eq!(member.ask(1, from(new, 2), &[add("a", 1)]), [13]);
    assert_eq!(member.client(other).done, 1);
}

#[test]
fn what_a_primary_asks_for_itself_is_executed_each_time() {
    let mut member = Member::<Numbers>::new();
    let part = |from, command| Part { from, commands: vec![command] };
    let parts = vec![part(None, add("a", 1)), part(Some(from(client(1, 1), 1)), add("a", 1))];
    let entry = Entry::<Numbers> { at_ms: 1, parts }.bytes();
    member.execute(&entry);
    member.execute(&entry);
    assert_eq!((number(&member, "a"), member.executed().len()), (3, 2));
}

#[test]
fn a_command_that_thinks_better_of_it_leaves_nothing() {
    let (mut member, one) = (Member::<Numbers>::new(), client(1, 1));
    member.ask(1, from(one, 1), &[add("a", 5), Command::Waver("a".into())]);
    assert_eq!((number(&member, "a"), member.changes().last()), (5, 1));
}

#[test]
fn time_never_runs_back() {
    let (mut member, one) = (Member::<Numbers>::new(), client(1, 1));
    let time = [Command::Time("t".into())];
    assert_eq!(member.ask(10, from(one, 1), &time), [10]);
    assert_eq!(member.ask(5, from(one, 2), &time), [10]);
    assert_eq!(member.ask(20, from(one, 3), &time), [20]);
    assert_eq!(member.machine.look(|on| on.now_ms()), 20);
}

#[test]
fn what_is_no_entry_is_not_put_into_a_log() {
    let mut member = Member::<Numbers>::new();
    let good = entry::<Numbers>(1, from(client(1, 1), 1), &[add("a", 1)]);
    let mut is_command = |bytes: &[u8]| member.machine.is_command(&Bytes::copy_from_slice(bytes));
    assert!(is_command(&good) && !is_command(&[]));
    assert!((0..good.len()).all(|end| !is_command(&good[..end])), "its begin is none");
    assert!(!is_command(&[&good[..], &[0]].concat()), "more than it is none");
    assert!(!is_command(&[&[2], &good[1..]].concat()), "another version's is none");
    let of = |commands: Vec<Command>| entry::<Numbers>(1, from(client(1, 1), 1), &commands);
    assert!(!is_command(&of(vec![add("a", 1), Command::Nonsense])));
    assert!(is_command(&of(vec![add("a", 1); COMMANDS_MAX])));
    assert!(!is_command(&of(vec![add("a", 1); COMMANDS_MAX + 1])));
}
