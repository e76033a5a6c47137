//! One order of changes, for everybody and for each session.

use super::*;
use alloc::vec;

/// Two clients, of whom the first makes a node and sets it.
fn begun() -> (Story, Client, Client) {
    let mut story = Story::default();
    let one = story.open(1, 1);
    let other = story.open(2, 2);
    story.tell(one, create("/a", "x"), 3, created("/a", made(3, "x")));
    story.tell(one, set("/a", "y"), 4, Ok(Told::Stat(changed(made(3, "y"), 4, 1))));
    (story, one, other)
}

#[test]
fn what_writes_have_left_is_read() {
    let (mut story, one, other) = begun();
    story.tell(other, get("/a", false), 4, data("y", changed(made(3, "y"), 4, 1)));
    story.tell(other, get("/b", false), 4, Err(Failure::NoNode));
    story.tell(one, create("/a", "z"), 4, Err(Failure::Exists));
    story.tell(one, delete("/a"), 5, Ok(Told::Done));
    story.tell(other, exists("/a", false), 5, Err(Failure::NoNode));
    story.tell(other, Act::Close, 6, Ok(Told::Done));
    story.holds();
}

#[test]
fn a_read_of_an_older_state_than_was_known_is_wrong() {
    let (mut story, _, other) = begun();
    story.tell(other, get("/a", false), 3, data("x", made(3, "x")));
    story.is_wrong("though change 4 was known before it asked");
}

#[test]
fn a_read_shows_what_was_there_at_its_zxid() {
    let (mut story, _, other) = begun();
    story.tell(other, get("/a", false), 4, data("x", made(3, "x")));
    story.is_wrong("must have been told");
}

#[test]
fn after_a_loss_any_tree_may_be_left_but_time_goes_on() {
    let mut story = Story { record: Record::of_rest(), ..Story::default() };
    let one = story.open(1, 50);
    story.tell(one, get("/b", false), 60, data("x", made(3, "x")));
    story.holds();
    story.tell(one, get("/b", false), 59, data("x", made(3, "x")));
    story.is_wrong("though change 60 was known before it asked");
}

#[test]
fn of_a_tree_that_is_lost_nothing_is_left_but_what_was_under_way() {
    // Changes of the new tree are of another life.
    const LIFE: u64 = 1 << 44;
    let put = |key: &str| Operation::put(bytes(key), bytes("x"));
    let next = |key: &str| {
        let (mut before, ..) = begun();
        before.plain(3, put("/old"), Completion::Unknown);
        let since = before.now();
        before.plain(3, put("/done"), Completion::Written);
        before.plain(3, put("/b"), Completion::Unknown);
        let now = before.now();
        let record = before.record.anew(since, now);
        let mut story = Story { record, now: before.now };
        let one = story.open(1, LIFE + 1);
        story.tell(one, get("/a", false), LIFE + 1, Err(Failure::NoNode));
        story.holds();
        story.tell(one, get(key, false), LIFE + 2, data("x", made(LIFE + 2, "x")));
        story
    };
    next("/b").holds();
    for key in ["/a", "/old", "/done"] {
        next(key).is_wrong("which no write of anybody can have been");
    }
}

#[test]
fn a_node_that_nobody_made_is_wrong() {
    let (mut story, _, other) = begun();
    story.tell(other, get("/b", false), 5, data("x", made(5, "x")));
    story.is_wrong("which no write of anybody can have been");
}

#[test]
fn two_changes_with_one_zxid_are_wrong() {
    let (mut story, _, other) = begun();
    story.tell(other, create("/b", "x"), 4, created("/b", made(4, "x")));
    story.is_wrong("two changes have the zxid 4");
}

#[test]
fn what_a_change_made_may_have_been_removed_by_an_open_one_before_it() {
    let (mut story, one, other) = begun();
    let put = |value: &str| Operation::put(bytes("/a"), bytes(value));
    story.plain(3, put("z"), Completion::Written);
    let gone = Completion::Deleted { existed: true };
    story.plain(3, Operation::delete(bytes("/a")), gone);
    story.plain(3, put("w"), Completion::Written);
    story.tell(other, get("/a", false), 7, data("w", made(7, "w")));
    story.tell(one, set("/a", "v"), 8, Ok(Told::Stat(changed(made(7, "v"), 8, 1))));
    story.holds();
}

#[test]
fn what_was_made_and_removed_unseen_counts_for_the_numbers_of_names() {
    let (mut story, one, other) = begun();
    let key = || bytes("/a/b");
    story.plain(3, Operation::put(key(), bytes("x")), Completion::Written);
    let gone = Completion::Deleted { existed: true };
    story.plain(3, Operation::delete(key()), gone);
    let asked = story.ask(one, sequential("/a/s-"));
    story.unknown(asked);
    story.tell(other, exists("/a/s-0000000001", false), 7, Ok(Told::Stat(made(7, ""))));
    story.holds();
    story.tell(other, exists("/a/s-0000000000", false), 7, Ok(Told::Stat(made(7, ""))));
    story.is_wrong("which no write of anybody can have been");
}

#[test]
fn who_counts_nodes_counts_those_of_unknown_writes_deep_below() {
    let (mut story, one, other) = begun();
    let asked = story.ask(one, create("/a/b", "x"));
    story.unknown(asked);
    let count =
        |of: u64| (Act::One(Item::CountBelow { path: "/".to_string() }), Ok(Told::Count(of)));
    let (act, told) = count(5);
    story.tell(other, act, 5, told);
    story.holds();
    let (act, told) = count(6);
    story.tell(other, act, 5, told);
    story.is_wrong("must have been told");
}

#[test]
fn a_change_that_began_later_has_a_higher_zxid() {
    let mut story = Story::default();
    let one = story.open(1, 1);
    let other = story.open(2, 2);
    story.tell(one, create("/a", "x"), 4, created("/a", made(4, "x")));
    story.tell(other, create("/b", "x"), 3, created("/b", made(3, "x")));
    story.is_wrong("was answered with change 3");
}

#[test]
fn more_changes_than_anybody_can_have_made_are_wrong() {
    let mut story = Story::default();
    let one = story.open(1, 1);
    story.tell(one, sync(), 2, Ok(Told::Done));
    story.holds();
    story.tell(one, create("/a", "x"), 9, created("/a", made(9, "x")));
    story.is_wrong("at most by then");
}

#[test]
fn a_write_of_unknown_outcome_may_have_happened_or_not() {
    let (mut story, one, other) = begun();
    let asked = story.ask(one, set("/a", "z"));
    story.unknown(asked);
    let mut without = Story { record: story.record.clone(), now: story.now };
    story.tell(other, get("/a", false), 5, data("z", changed(made(3, "z"), 5, 2)));
    story.holds();
    without.tell(other, get("/a", false), 4, data("y", changed(made(3, "y"), 4, 1)));
    without.holds();
}

#[test]
fn a_write_of_unknown_outcome_that_nobody_saw_is_found_by_its_traces() {
    let (mut story, one, other) = begun();
    let first = story.ask(one, set("/a", "z"));
    story.unknown(first);
    let second = story.ask(one, delete("/a"));
    story.unknown(second);
    story.tell(other, create("/a", "n"), 7, created("/a", made(7, "n")));
    story.tell(other, set("/a", "m"), 8, Ok(Told::Stat(changed(made(7, "m"), 8, 1))));
    story.holds();
}

#[test]
fn a_write_that_was_done_twice_is_wrong() {
    let (mut story, _, other) = begun();
    story.tell(other, get("/a", false), 5, data("y", changed(made(3, "y"), 5, 2)));
    story.is_wrong("which no write of anybody can have been");
}

#[test]
fn what_a_session_asked_first_shows_in_what_it_asks_then() {
    let (mut story, one, other) = begun();
    let first = story.ask(one, sync());
    let second = story.ask(one, get("/a", false));
    story.tell(other, set("/a", "z"), 5, Ok(Told::Stat(changed(made(3, "z"), 5, 2))));
    story.answer(first, 5, Ok(Told::Done));
    story.answer(second, 4, data("y", changed(made(3, "y"), 4, 1)));
    story.is_wrong("asked for session 1 first what was answered with change 5");
}

#[test]
fn the_number_of_a_sequential_node_is_never_given_twice() {
    let (mut story, one, other) = begun();
    story.tell(one, sequential("/a/s-"), 5, created("/a/s-0000000000", made(5, "")));
    story.tell(one, delete("/a/s-0000000000"), 6, Ok(Told::Done));
    let mut again = Story { record: story.record.clone(), now: story.now };
    story.tell(other, sequential("/a/s-"), 7, created("/a/s-0000000001", made(7, "")));
    story.holds();
    again.tell(other, sequential("/a/s-"), 7, created("/a/s-0000000000", made(7, "")));
    again.is_wrong("s-0000000001");
}

#[test]
fn of_several_things_all_are_done_or_none() {
    let (mut story, one, other) = begun();
    let all = Act::All(vec![
        item("/a/b", "x", Kind::Persistent, false),
        Item::Delete { path: String::from("/c"), version: None },
    ]);
    let told = Told::Many(vec![Err(Failure::NotDone), Err(Failure::NoNode)]);
    story.tell(one, all, 4, Ok(told));
    let mut half = Story { record: story.record.clone(), now: story.now };
    story.tell(other, exists("/a/b", false), 4, Err(Failure::NoNode));
    story.holds();
    half.tell(other, exists("/a/b", false), 5, Ok(Told::Stat(made(5, "x"))));
    half.is_wrong("which no write of anybody can have been");
}

#[test]
fn plain_writes_are_found_by_what_shows_them() {
    let (mut story, one, other) = begun();
    let (key, value) = (bytes("p/q"), bytes("v"));
    story.plain(3, Operation::put(key.clone(), value.clone()), Completion::Written);
    story.plain(3, Operation::get(key.clone()), Completion::Value(Some(value)));
    story.tell(other, children("/p", false), 5, {
        let stat = Stat { cversion: 1, children: 1, ..made(5, "") };
        names(&["q"], stat)
    });
    story.plain(3, Operation::delete(key.clone()), Completion::Deleted { existed: true });
    story.plain(3, Operation::get(key), Completion::Value(None));
    story.tell(one, exists("/p/q", false), 6, Err(Failure::NoNode));
    story.holds();
}

#[test]
fn a_plain_write_that_is_lost_is_wrong() {
    let (mut story, one, _) = begun();
    story.plain(3, Operation::put(bytes("p"), bytes("v")), Completion::Written);
    story.tell(one, exists("/p", false), 5, Err(Failure::NoNode));
    story.is_wrong("must have been told");
}

#[test]
fn a_plain_read_shows_what_was_there_while_it_was_under_way() {
    let (mut story, one, other) = begun();
    story.plain(3, Operation::get(bytes("a")), Completion::Value(Some(bytes("y"))));
    story.tell(one, set("/a", "z"), 5, Ok(Told::Stat(changed(made(3, "z"), 5, 2))));
    let mut late = Story { record: story.record.clone(), now: story.now };
    story.plain(3, Operation::get(bytes("a")), Completion::Value(Some(bytes("z"))));
    story.tell(other, sync(), 5, Ok(Told::Done));
    story.holds();
    late.plain(3, Operation::get(bytes("a")), Completion::Value(Some(bytes("y"))));
    late.tell(other, sync(), 5, Ok(Told::Done));
    late.is_wrong("found y in /a, which it had not at any time");
}

#[test]
fn the_time_of_changes_does_not_run_back() {
    let mut story = Story::default();
    let one = story.open(1, 1);
    let of = |zxid, ms| Stat { ctime: ms, mtime: ms, ..made(zxid, "x") };
    story.tell(one, create("/a", "x"), 2, created("/a", of(2, 70)));
    let mut back = Story { record: story.record.clone(), now: story.now };
    story.tell(one, create("/b", "x"), 3, created("/b", of(3, 70)));
    story.holds();
    back.tell(one, create("/b", "x"), 3, created("/b", of(3, 69)));
    back.is_wrong("change 3 is of 69 ms, and change 2 of 70 ms");
}

/// The same as [`begun`], where hosts answer what sessions read.
fn begun_with_session_reads() -> (Story, Client, Client) {
    let (mut story, one, other) = begun();
    story.read_here(true);
    (story, one, other)
}

#[test]
fn what_a_session_reads_at_its_host_may_be_older_than_what_others_know() {
    let (mut story, one, other) = begun_with_session_reads();
    story.tell(other, get("/a", false), 3, data("x", made(3, "x")));
    story.tell(other, get("/a", false), 4, data("y", changed(made(3, "y"), 4, 1)));
    story.tell(other, delete("/a"), 5, Ok(Told::Done));
    story.tell(one, get("/a", false), 4, data("y", changed(made(3, "y"), 4, 1)));
    story.holds();
}

#[test]
fn what_a_session_reads_at_its_host_is_not_old_for_long() {
    for (ms, is_right) in [(2000, true), (3000, false)] {
        let (mut story, _, other) = begun_with_session_reads();
        story.wait(ms);
        story.tell(other, get("/a", false), 3, data("x", made(3, "x")));
        if is_right {
            story.holds();
        } else {
            story.is_wrong("though change 4 was known before it asked");
        }
    }
}

#[test]
fn no_session_reads_what_is_older_than_its_own_writes() {
    let (mut story, one, _) = begun_with_session_reads();
    story.tell(one, get("/a", false), 3, data("x", made(3, "x")));
    story.is_wrong("first what was answered with change 4");
}

#[test]
fn no_session_reads_backwards_also_at_another_host() {
    let (mut story, _, other) = begun_with_session_reads();
    story.tell(other, get("/a", false), 4, data("y", changed(made(3, "y"), 4, 1)));
    let again = story.again(other);
    story.tell(again, get("/a", false), 3, data("x", made(3, "x")));
    story.is_wrong("first what was answered with change 4");
}

#[test]
fn a_session_reads_what_was_there_and_nothing_uncommitted() {
    let (mut story, _, other) = begun_with_session_reads();
    story.tell(other, get("/a", false), 3, data("y", made(3, "y")));
    story.is_wrong("must have been told");
}

#[test]
fn behind_a_sync_a_session_reads_what_was_known_before_it() {
    let (mut story, _, other) = begun_with_session_reads();
    story.tell(other, sync(), 4, Ok(Told::Done));
    story.tell(other, get("/a", false), 3, data("x", made(3, "x")));
    story.is_wrong("first what was answered with change 4");
    let (mut story, _, other) = begun_with_session_reads();
    story.tell(other, sync(), 3, Ok(Told::Done));
    story.is_wrong("though change 4 was known before it asked");
}

#[test]
fn who_was_told_of_a_change_reads_nothing_older() {
    let (mut story, one, other) = begun_with_session_reads();
    story.tell(other, get("/a", true), 4, data("y", changed(made(3, "y"), 4, 1)));
    story.tell(one, set("/a", "z"), 5, Ok(Told::Stat(changed(made(3, "z"), 5, 2))));
    story.event(other, 5, "/a", What::Data);
    story.tell(other, get("/a", false), 4, data("y", changed(made(3, "y"), 4, 1)));
    story.is_wrong("was told that /a was");
}
