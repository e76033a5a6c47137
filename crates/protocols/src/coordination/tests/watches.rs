//! What clients follow: once or until told otherwise, before what shows it, whoever leads, and
//! never missed.

use super::order::place;
use super::world::{Client, SOON, World, led, settings, three};
use crate::coordination::tree::tests::world::{create, delete, exists, get, set};
use quorate_kernel::ids::Ticket;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::tree::{
    Act, Failure, Followed, Item, Refollow, SessionEvent, Told, What, Zxid,
};
use quorate_kernel::watch::Event;
use std::format;
use std::string::String;
use std::vec::Vec;

fn watched(mut item: Item) -> Item {
    let (Item::Get { watch, .. } | Item::Exists { watch, .. } | Item::Children { watch, .. }) =
        &mut item
    else {
        panic!("nothing is followed by {item:?}")
    };
    *watch = true;
    item
}

fn watch_children(path: &str) -> Item {
    Item::Children { path: path.into(), watch: true }
}

fn follow(world: &mut World, client: &Client, path: &str, recursive: bool) {
    let act = Act::Follow { path: path.into(), recursive };
    assert_eq!(world.act(client, act), Ok(Told::Done));
}

fn unfollow(path: &str, kind: Followed, only_check: bool) -> Act {
    Act::Unfollow { path: path.into(), kind, only_check }
}

/// Somebody does something elsewhere, and a client has been told of all that it follows of it.
fn done(world: &mut World, client: &Client, at: usize, items: &[Item]) {
    for item in items {
        assert!(world.anyone(at, item.clone()).is_ok(), "{item:?}");
    }
    assert_eq!(world.act(client, Act::Sync { path: "/".into() }), Ok(Told::Done));
}

fn told(all: &[(&str, What)]) -> Vec<(String, What)> {
    all.iter().map(|(path, what)| (String::from(*path), *what)).collect()
}

/// Where in all that was told an event was, counted from the first of its client.
fn event(world: &World, client: &Client, number: usize) -> usize {
    let is_change = |event: &Event| matches!(event, Event::Session(SessionEvent::Changed(_)));
    let answers = world.answers.iter().enumerate();
    let mut places = answers.filter(|(_, (_, ticket, outcome))| {
        *ticket == client.ticket
            && matches!(outcome, Outcome::More(events) if events.iter().any(is_change))
    });
    places.nth(number).expect("it was told").0
}

#[test]
fn who_asks_to_be_told_once_is_told_once() {
    let (mut world, leader, other) = three();
    let [one, two] = [world.open(other), world.open(other)];
    assert!(world.one(&one, watched(exists("/a"))).is_err(), "it is not there");
    assert!(world.one(&two, watched(get("/a"))).is_err(), "nothing that is not there is followed");
    done(&mut world, &one, leader, &[create("/a", ""), set("/a", "x", None)]);
    assert_eq!(world.changes(&one), told(&[("/a", What::Created)]));
    for (item, what) in [(set("/a", "y", None), What::Data), (delete("/a", None), What::Deleted)] {
        assert!(world.one(&one, watched(get("/a"))).is_ok());
        assert!(world.one(&one, watched(get("/a"))).is_ok(), "twice is once");
        done(&mut world, &one, leader, &[item]);
        assert_eq!(world.changes(&one).last(), told(&[("/a", what)]).last());
    }
    done(&mut world, &one, leader, &[create("/a", ""), set("/a", "z", None)]);
    assert_eq!(world.changes(&one).len(), 3);
    assert_eq!(world.changes(&two), []);
}

#[test]
fn who_follows_children_is_told_of_theirs_alone() {
    let (mut world, leader, other) = three();
    let one = world.open(other);
    done(&mut world, &one, leader, &[create("/p", ""), create("/p/c", "")]);
    assert!(world.one(&one, watch_children("/p")).is_ok());
    let deeper = [set("/p", "x", None), set("/p/c", "x", None), create("/p/c/d", "")];
    done(&mut world, &one, leader, &deeper);
    assert_eq!(world.changes(&one), []);
    done(&mut world, &one, leader, &[create("/p/e", ""), delete("/p/e", None)]);
    assert_eq!(world.changes(&one), told(&[("/p", What::Children)]));
    for path in ["/p/c/d", "/p/c"] {
        done(&mut world, &one, leader, &[delete(path, None)]);
    }
    assert!(world.one(&one, watch_children("/p")).is_ok());
    done(&mut world, &one, leader, &[delete("/p", None)]);
    assert_eq!(world.changes(&one), told(&[("/p", What::Children), ("/p", What::Deleted)]));
}

#[test]
fn who_follows_until_told_otherwise_is_told_of_each_change_once() {
    let (mut world, leader, other) = three();
    let [node, all] = [world.open(other), world.open(other)];
    follow(&mut world, &node, "/p", false);
    follow(&mut world, &all, "/p", true);
    follow(&mut world, &all, "/p/c", true);
    // Once beside it is no more.
    assert!(world.one(&all, watched(exists("/p"))).is_err());
    let all_of_it = [
        create("/p", ""),
        create("/p/c", ""),
        set("/p/c", "x", None),
        create("/p/c/d", ""),
        set("/p", "x", None),
        create("/pc", ""),
        delete("/p/c/d", None),
        delete("/p/c", None),
        delete("/p", None),
    ];
    done(&mut world, &node, leader, &all_of_it);
    done(&mut world, &all, leader, &[]);
    let of_node = [
        ("/p", What::Created),
        ("/p", What::Children),
        ("/p", What::Data),
        ("/p", What::Children),
        ("/p", What::Deleted),
    ];
    assert_eq!(world.changes(&node), told(&of_node));
    let of_all = [
        ("/p", What::Created),
        ("/p/c", What::Created),
        ("/p/c", What::Data),
        ("/p/c/d", What::Created),
        ("/p", What::Data),
        ("/p/c/d", What::Deleted),
        ("/p/c", What::Deleted),
        ("/p", What::Deleted),
    ];
    assert_eq!(world.changes(&all), told(&of_all));
}

#[test]
fn who_follows_no_more_is_told_nothing_and_only_of_that_kind() {
    let (mut world, leader, other) = three();
    let one = world.open(other);
    done(&mut world, &one, leader, &[create("/a", "")]);
    assert!(world.one(&one, watched(get("/a"))).is_ok());
    assert!(world.one(&one, watch_children("/a")).is_ok());
    follow(&mut world, &one, "/a", false);
    let not_followed = Err(Failure::NotFollowed);
    assert_eq!(world.act(&one, unfollow("/a", Followed::Children, true)), Ok(Told::Done));
    assert_eq!(world.act(&one, unfollow("/a", Followed::Children, false)), Ok(Told::Done));
    assert_eq!(world.act(&one, unfollow("/a", Followed::Children, false)), not_followed);
    assert_eq!(world.act(&one, unfollow("/b", Followed::Any, false)), not_followed);
    follow(&mut world, &one, "/a", true);
    assert_eq!(world.act(&one, unfollow("/a", Followed::Recursive, false)), Ok(Told::Done));
    assert_eq!(world.act(&one, unfollow("/a", Followed::Recursive, false)), not_followed);
    assert_eq!(world.act(&one, unfollow("/a", Followed::Persistent, true)), Ok(Told::Done));
    done(&mut world, &one, leader, &[set("/a", "x", None)]);
    assert_eq!(world.changes(&one), told(&[("/a", What::Data)]));
    assert_eq!(world.act(&one, unfollow("/a", Followed::Any, false)), Ok(Told::Done));
    done(&mut world, &one, leader, &[set("/a", "y", None), delete("/a", None)]);
    assert_eq!(world.changes(&one).len(), 1);
}

#[test]
fn an_event_comes_before_all_that_shows_the_change_and_behind_the_answer_that_begins_it() {
    for seed in 0..10 {
        let mut world = led(World::new(seed, 4, settings(3, Durability::Sync)));
        let [one, writer] = [3, (seed % 3) as usize].map(|at| world.open_with(at, Span::secs(60)));
        assert!(world.one(&writer, create("/a", "0")).is_ok());
        if seed >= 3 {
            (world.loss_percent, world.double_percent) = (8, 8);
        }
        let (mut events, mut begun) = (0, Vec::new());
        for round in 1..10 {
            begun.push(world.send_one(&one, watched(get("/a"))));
            assert!(world.reply(begun[begun.len() - 1]).is_ok());
            let write = world.send_one(&writer, set("/a", &format!("{round}"), None));
            // Some of them see the change, and some do not.
            let reads: Vec<Ticket> = (0..5)
                .map(|_| {
                    world.run(Span::micros(700));
                    world.send_one(&one, get("/a"))
                })
                .collect();
            assert!(world.reply(write).is_ok());
            let last = world.send_one(&one, get("/a"));
            for ticket in reads.into_iter().chain([last]) {
                let Ok(Told::Data { data, .. }) = world.reply(ticket) else { panic!("a value") };
                if data == Some(format!("{round}").into()) {
                    let at = event(&world, &one, events);
                    assert!(at < place(&world, ticket), "seed {seed}: it is shown first");
                    assert!(at > place(&world, begun[events]), "it is followed first");
                }
            }
            events += 1;
            assert_eq!(world.changes(&one).len(), events, "seed {seed}, round {round}");
        }
    }
}

#[test]
fn nothing_is_missed_or_told_twice_though_another_host_leads() {
    for wait in [0, 1, 2, 3, 5, 8] {
        let (mut world, leader, other) = three();
        let third = 3 - leader - other;
        let [all, once, writer] = [world.open(other), world.open(other), world.open(third)];
        follow(&mut world, &all, "/", true);
        assert!(world.one(&writer, create("/a", "")).is_ok());
        assert!(world.one(&once, watched(get("/a"))).is_ok());
        // Some are done and some are on their way when the primary stops.
        let mut tickets = Vec::new();
        for number in 0..6 {
            tickets.push(world.send_one(&writer, create(&format!("/a/{number}"), "")));
            world.run(Span::millis(wait));
        }
        world.crash(leader);
        for number in 6..12 {
            tickets.push(world.send_one(&writer, create(&format!("/a/{number}"), "")));
        }
        tickets.push(world.send_one(&writer, set("/a", "x", None)));
        let zxids: Vec<Zxid> = tickets
            .into_iter()
            .map(|ticket| match world.answer(ticket) {
                Outcome::Tree(reply) => reply.zxid,
                told => panic!("it is done, and not {told:?}"),
            })
            .collect();
        for client in [&all, &once] {
            assert_eq!(world.act(client, Act::Sync { path: "/".into() }), Ok(Told::Done));
        }
        let changed = world.changed(&all);
        let made: Vec<Zxid> = changed.iter().map(|it| it.zxid).skip(1).collect();
        assert_eq!(made, zxids, "after {wait} ms");
        assert_eq!(world.changes(&once), told(&[("/a", What::Data)]));
        assert_eq!(world.ended(&all), None);
    }
}

#[test]
fn what_changes_while_nobody_leads_and_a_host_is_away_is_told_later() {
    let (mut world, leader, other) = three();
    let third = 3 - leader - other;
    let one = world.open_with(other, Span::secs(60));
    follow(&mut world, &one, "/", true);
    for round in 0..4 {
        let at = [leader, third][round % 2];
        world.isolate(other);
        assert!(world.anyone(at, create(&format!("/{round}"), "")).is_ok());
        world.run(Span::millis(300 * round as u64));
        world.mend();
    }
    let is_told = |world: &mut World| world.changes(&one).len() >= 4;
    assert!(world.run_until(SOON, is_told));
    let made = ["/0", "/1", "/2", "/3"].map(|path| (path, What::Created));
    assert_eq!(world.changes(&one), told(&made));
}

#[test]
fn what_was_followed_ends_with_the_connection_and_is_followed_again_elsewhere() {
    let (mut world, leader, other) = three();
    let third = 3 - leader - other;
    let one = world.open(other);
    done(&mut world, &one, leader, &[create("/a", ""), create("/b", "")]);
    assert!(world.one(&one, watched(get("/a"))).is_ok());
    assert!(world.one(&one, watched(get("/b"))).is_ok());
    assert!(world.one(&one, watched(exists("/c"))).is_err());
    let ticket = world.send(&one, Act::Sync { path: "/".into() });
    let Outcome::Tree(reply) = world.answer(ticket) else { panic!("it is answered") };
    let new = world.attach(&one, third);
    assert!(world.anyone(leader, set("/a", "unseen", None)).is_ok());
    assert!(world.run_until(SOON, |world| world.ended(&one) == Some(Refusal::NoSession)));
    assert_eq!(world.changes(&one), []);
    let refollow = Refollow {
        seen: reply.zxid,
        data: ["/a".into(), "/b".into()].into(),
        absent: ["/c".into()].into(),
        ..Refollow::default()
    };
    assert_eq!(world.act(&new, Act::Refollow(refollow)), Ok(Told::Done));
    assert_eq!(world.changes(&new), told(&[("/a", What::Data)]), "it has changed meanwhile");
    let all = [set("/a", "x", None), set("/b", "x", None), create("/c", "")];
    done(&mut world, &new, leader, &all);
    let rest = [("/a", What::Data), ("/b", What::Data), ("/c", What::Created)];
    assert_eq!(world.changes(&new), told(&rest));
}

/// It would wait for what is never told: clients look at no error of that request.
#[test]
fn who_cannot_follow_all_again_is_told_nothing_but_that_it_is_over() {
    let (mut world, leader, other) = three();
    let one = world.open(other);
    done(&mut world, &one, leader, &[create("/a", ""), create("/b", "")]);
    let [two, third] = [world.open(other), world.open(other)];
    let process = world.hosts[other].process.as_mut().expect("it is up");
    process.gateway.allow_watches(2);
    assert!(world.one(&third, watched(get("/a"))).is_ok());
    let ticket = world.send(&two, Act::Sync { path: "/".into() });
    let Outcome::Tree(reply) = world.answer(ticket) else { panic!("it is answered") };
    let data = ["/a".into(), "/b".into()].into();
    let refollow = Refollow { seen: reply.zxid, data, ..Refollow::default() };
    let asked = world.send(&two, Act::Refollow(refollow));
    assert_eq!(world.answer(asked), Outcome::Refused(Refusal::Overloaded));
    assert_eq!(world.ended(&two), Some(Refusal::Overloaded));
    assert_eq!(world.changes(&two), []);
    assert!(world.one(&one, watched(get("/b"))).is_ok(), "its room is free again");
    assert_eq!(world.one(&one, watched(get("/a"))), Err(Failure::Quota));
}

#[test]
fn what_was_done_at_one_moment_is_told_at_once_and_before_the_answer() {
    let (mut world, leader, other) = three();
    let (actor, watcher) = (world.open(other), world.open(leader));
    for client in [&actor, &watcher] {
        follow(&mut world, client, "/", true);
    }
    let paths: Vec<String> = (0..200).map(|number| format!("/{number:03}")).collect();
    let items = paths.iter().map(|path| create(path, "")).collect();
    let asked = world.send(&actor, Act::All(items));
    assert!(world.run_to(SOON, |world| !world.told(asked).is_empty()), "it is answered");
    done(&mut world, &watcher, leader, &[]);
    let all: Vec<_> = paths.into_iter().map(|path| (path, What::Created)).collect();
    for client in [&actor, &watcher] {
        assert_eq!(world.changes(client), all, "all of them, in their order");
        let events =
            |outcome: &&Outcome| matches!(outcome, Outcome::More(events) if events.len() == 200);
        assert_eq!(world.told(client.ticket).into_iter().filter(events).count(), 1);
    }
    assert!(event(&world, &actor, 0) < place(&world, asked), "before the answer that shows them");
}

#[test]
fn who_is_gone_follows_nothing() {
    let (mut world, leader, other) = three();
    let [one, two] = [world.open(other), world.open(other)];
    for client in [&one, &two] {
        follow(&mut world, client, "/", true);
    }
    // Its answer is on the way when it goes.
    world.send(&one, Act::Follow { path: "/a".into(), recursive: false });
    world.leave(&one);
    done(&mut world, &two, leader, &[create("/a", "")]);
    assert_eq!(world.changes(&one), []);
    assert_eq!(world.changes(&two), told(&[("/a", What::Created)]));
}
