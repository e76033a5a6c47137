//! Who follows a node is told of each change before anything that shows it, and of nothing else.

use super::*;
use alloc::vec;
use quorate_kernel::tree::{Followed, Refollow};

/// Two clients; the second follows the data of a node that the first has made.
fn begun() -> (Story, Client, Client) {
    let mut story = Story::default();
    let one = story.open(1, 1);
    let other = story.open(2, 2);
    story.tell(one, create("/a", "x"), 3, created("/a", made(3, "x")));
    story.tell(other, get("/a", true), 3, data("x", made(3, "x")));
    (story, one, other)
}

fn set_to_y(story: &mut Story, one: Client) {
    story.tell(one, set("/a", "y"), 4, Ok(Told::Stat(changed(made(3, "y"), 4, 1))));
}

#[test]
fn an_event_comes_before_the_answer_that_shows_its_change() {
    let (mut story, one, other) = begun();
    set_to_y(&mut story, one);
    let mut late = Story { record: story.record.clone(), now: story.now };
    story.event(other, 4, "/a", What::Data);
    story.tell(other, sync(), 4, Ok(Told::Done));
    story.holds();
    late.tell(other, sync(), 4, Ok(Told::Done));
    late.is_wrong("follows it and was not told before an answer that shows change 4");
    late.event(other, 4, "/a", What::Data);
    late.tell(other, sync(), 4, Ok(Told::Done));
    late.is_wrong("follows it and was not told before an answer that shows change 4");
}

#[test]
fn the_end_of_a_connection_may_take_the_last_events() {
    let (mut story, one, other) = begun();
    set_to_y(&mut story, one);
    let other = story.again(other);
    story.tell(other, sync(), 5, Ok(Told::Done));
    story.holds();
}

#[test]
fn what_is_followed_once_is_told_once() {
    let (mut story, one, other) = begun();
    set_to_y(&mut story, one);
    story.event(other, 4, "/a", What::Data);
    story.tell(one, set("/a", "z"), 5, Ok(Told::Stat(changed(made(3, "z"), 5, 2))));
    let mut twice = Story { record: story.record.clone(), now: story.now };
    let mut same = Story { record: story.record.clone(), now: story.now };
    story.tell(other, sync(), 5, Ok(Told::Done));
    story.holds();
    twice.event(other, 5, "/a", What::Data);
    twice.is_wrong("does not follow it, or was told twice");
    same.event(other, 4, "/a", What::Data);
    same.tell(other, sync(), 5, Ok(Told::Done));
    same.is_wrong("does not follow it, or was told twice");
}

#[test]
fn nobody_is_told_of_what_did_not_happen() {
    let (mut story, _, other) = begun();
    story.event(other, 4, "/a", What::Data);
    story.is_wrong("which no write of anybody can have been");
}

#[test]
fn children_are_followed_by_their_parents() {
    let (mut story, one, other) = begun();
    let stat = Stat { children: 2, cversion: 0, pzxid: Zxid(3), ..Stat::default() };
    story.tell(other, children("/", true), 3, names(&["a", "zookeeper"], stat));
    set_to_y(&mut story, one);
    story.event(other, 4, "/a", What::Data);
    story.tell(one, create("/b", ""), 5, created("/b", made(5, "")));
    let mut silent = Story { record: story.record.clone(), now: story.now };
    story.event(other, 5, "/", What::Children);
    story.tell(one, delete("/b"), 6, Ok(Told::Done));
    story.tell(other, sync(), 6, Ok(Told::Done));
    story.holds();
    silent.tell(other, sync(), 5, Ok(Told::Done));
    silent.is_wrong("/ was children by change 5");
}

#[test]
fn who_follows_all_below_a_node_gets_every_change_in_order() {
    let mut story = Story::default();
    let one = story.open(1, 1);
    let other = story.open(2, 2);
    let path = String::from("/");
    story.tell(other, Act::Follow { path, recursive: true }, 2, Ok(Told::Done));
    story.tell(one, create("/a", "x"), 3, created("/a", made(3, "x")));
    story.tell(one, create("/a/b", ""), 4, created("/a/b", made(4, "")));
    story.tell(one, delete("/a/b"), 5, Ok(Told::Done));
    let mut gap = Story { record: story.record.clone(), now: story.now };
    let mut order = Story { record: story.record.clone(), now: story.now };
    story.event(other, 3, "/a", What::Created);
    story.event(other, 4, "/a/b", What::Created);
    story.event(other, 5, "/a/b", What::Deleted);
    let unfollow = |kind| Act::Unfollow { path: String::from("/"), kind, only_check: false };
    story.tell(other, unfollow(Followed::Data), 5, Err(Failure::NotFollowed));
    story.tell(other, unfollow(Followed::Any), 5, Ok(Told::Done));
    story.tell(one, delete("/a"), 6, Ok(Told::Done));
    story.tell(other, sync(), 6, Ok(Told::Done));
    story.holds();
    gap.event(other, 3, "/a", What::Created);
    gap.event(other, 5, "/a/b", What::Deleted);
    gap.is_wrong("/a/b was created by change 4");
    order.event(other, 4, "/a/b", What::Created);
    order.event(other, 3, "/a", What::Created);
    order.tell(other, sync(), 5, Ok(Told::Done));
    order.is_wrong("was told of change 4 before change 3");
}

#[test]
fn what_follows_again_is_told_of_all_it_missed() {
    let (mut story, one, other) = begun();
    story.tell(other, exists("/b", true), 3, Err(Failure::NoNode));
    set_to_y(&mut story, one);
    story.tell(one, create("/b", ""), 5, created("/b", made(5, "")));
    let other = story.again(other);
    let refollow = Refollow {
        seen: Zxid(3),
        data: vec![String::from("/a")],
        absent: vec![String::from("/b")],
        ..Refollow::default()
    };
    let asked = story.ask(other, Act::Refollow(refollow));
    let mut less = Story { record: story.record.clone(), now: story.now };
    story.event(other, 6, "/a", What::Data);
    story.event(other, 6, "/b", What::Created);
    story.answer(asked, 6, Ok(Told::Done));
    story.tell(one, delete("/b"), 7, Ok(Told::Done));
    story.tell(other, sync(), 7, Ok(Told::Done));
    story.holds();
    less.event(other, 6, "/b", What::Created);
    less.answer(asked, 6, Ok(Told::Done));
    less.is_wrong("must be told");
}
