//! What comes late: messages, attaches, ticks, and words of who leads no more.

use super::sessions::keep;
use super::world::{Client, SOON, TIMEOUT, World, hosts, three};
use crate::coordination::message::{GatewayNews, Message, News};
use crate::coordination::tree::tests::world::{create, delete, ephemeral};
use quorate_kernel::ids::Ticket;
use quorate_kernel::news::News as Heard;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::process::{Process, Request};
use quorate_kernel::ring::Standing;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::tree::{Act, Ask, Connect, Item, Told as Reply, Zxid};
use std::format;

#[test]
fn a_gateway_that_missed_what_nobody_remembers_sends_its_clients_away() {
    let mut world = hosts(4);
    world.run(Span::secs(2));
    let one = world.open_with(3, Span::secs(60));
    world.isolate(3);
    let moved = world.attach(&one, 0);
    assert_eq!(world.act(&moved, Act::Close), Ok(Reply::Done));
    // Whoever restarts does not remember what has happened before what it has stored.
    for name in 0..60 {
        assert!(world.anyone(0, create(&format!("/{name}"), "")).is_ok());
    }
    for at in 0..3 {
        world.crash(at);
        world.unlink(at);
        world.run(Span::secs(1));
        world.restart(at);
        world.run(Span::secs(1));
    }
    assert!(world.run_until(SOON, |world| world.leader().is_some()));
    assert!(world.ended(&one).is_none(), "it knows nothing of it");
    world.mend();
    assert!(world.run_until(SOON, |world| world.ended(&one).is_some()), "it looks elsewhere");
}

#[test]
fn a_session_is_not_taken_away_by_who_asked_for_it_long_ago() {
    let (mut world, leader, other) = three();
    let third = 3 - leader - other;
    let one = world.open_with(leader, Span::secs(20));
    world.leave(&one);
    // Its client comes to a host that is cut off, and goes on to another one.
    world.isolate(other);
    let waits = world.go_on(&one, other);
    world.run(Span::millis(300));
    world.leave(&Client { at: other, ticket: waits, ..one });
    let new = world.attach(&one, third);
    world.mend();
    let until = world.now + Span::secs(3);
    while world.now < until {
        assert_eq!(world.act(&new, Act::Ping), Ok(Reply::Done));
        world.run(Span::millis(100));
    }
    assert!(world.ended(&new).is_none() && world.told(waits).is_empty());
    assert!(world.anyone(other, create("/a", "")).is_ok(), "the host is there again");
    assert!(world.one(&new, create("/b", "")).is_ok());
}

#[test]
fn who_waits_for_a_session_is_sent_elsewhere_at_last() {
    let (mut world, leader, other) = three();
    let one = world.open_with(leader, Span::secs(20));
    world.isolate(other);
    let connect = Connect { session: None, timeout_ms: 3000, seen: Zxid(0), peer: None };
    let tickets = [world.connect(other, connect), world.go_on(&one, other)];
    world.run(Span::millis(3100));
    for ticket in tickets {
        assert_eq!(world.opened(other, ticket), None);
    }
    world.mend();
    world.run(Span::secs(3));
    assert!(tickets.iter().all(|ticket| world.told(*ticket).len() == 1), "it is told once");
    assert!(world.ended(&one).is_none(), "its session is where it was");
    assert_eq!(world.act(&one, Act::Ping), Ok(Reply::Done));
}

#[test]
fn who_has_seen_a_later_state_leaves_nothing_of_its_session_behind() {
    let (mut world, _, other) = three();
    let one = world.open(other);
    let session = Some((one.session, one.password));
    let connect = Connect { session, timeout_ms: 3000, seen: Zxid(1 << 40), peer: None };
    let ticket = world.connect(other, connect);
    assert_eq!(world.opened(other, ticket), None);
    assert_eq!(world.ended(&one), Some(Refusal::NoSession), "its client has come anew");
    let ask = Ask { session: Some(one.session), opening: None, act: Act::Ping };
    let ticket = world.request(other, Operation::Tree(ask.into()), SOON);
    assert_eq!(world.answer(ticket), Outcome::Refused(Refusal::NoSession), "nobody has it");
    let again = world.attach(&one, other);
    assert_eq!(world.act(&again, Act::Ping), Ok(Reply::Done));
}

#[test]
fn a_host_that_was_halted_hears_its_clients_before_it_judges_them() {
    let (mut world, leader, other) = three();
    let third = 3 - leader - other;
    let one = world.open(other);
    assert!(world.one(&one, ephemeral("/one")).is_ok());
    let halts = Span::millis(200);
    world.run(Span(TIMEOUT.0 - Span::millis(100).0));
    // What its client says comes in the meantime, and is read behind the tick that is due.
    world.now = world.now + halts;
    world.run(Span(0));
    world.send(&one, Act::Ping);
    world.run(Span::millis(500));
    assert!(!world.is_expired(&one), "it was there");
    assert!(world.is_there(third, "/one"));
    world.run(Span(2 * TIMEOUT.0));
    assert!(!world.is_there(third, "/one"), "who says nothing is judged all the same");
}

#[test]
fn time_in_which_a_host_reads_nobody_does_not_count() {
    let (mut world, leader, other) = three();
    let third = 3 - leader - other;
    let one = world.open(other);
    assert!(world.one(&one, ephemeral("/one")).is_ok());
    world.run(Span(TIMEOUT.0 - Span::secs(1).0));
    let (since, end) = (world.now, world.now + Span(2 * TIMEOUT.0));
    while world.now < end {
        world.turn(other, |lane, cx| lane.on_news(Heard::Unread(since), cx));
        world.run(Span::millis(10));
    }
    // What its client has said meanwhile found no room, and it comes again.
    world.run(Span::millis(500));
    assert!(!world.is_expired(&one) && world.ended(&one).is_none(), "nobody heard it");
    assert!(world.is_there(third, "/one"));
    assert_eq!(world.act(&one, Act::Ping), Ok(Reply::Done));
    world.run(Span(TIMEOUT.0 - Span::millis(200).0));
    assert!(world.is_there(third, "/one"));
    world.run(Span::secs(2));
    assert!(world.is_expired(&one) && !world.is_there(third, "/one"), "it is silent now");
}

#[test]
fn a_host_that_was_halted_reads_all_clients_before_it_judges_them() {
    let (mut world, leader, other) = three();
    let third = 3 - leader - other;
    let one = world.open(other);
    assert!(world.one(&one, ephemeral("/one")).is_ok());
    // So many come at once that its client is read late, and the link is a new one.
    world.now = world.now + Span(2 * TIMEOUT.0);
    world.run(Span::millis(500));
    assert_eq!(world.ended(&one), Some(Refusal::NoRoute), "its host may have been cut off");
    assert!(world.is_there(third, "/one"));
    let one = world.attach(&one, other);
    assert_eq!(world.act(&one, Act::Ping), Ok(Reply::Done));
}

#[test]
fn a_host_that_is_never_done_with_reading_judges_who_is_silent_all_the_same() {
    let (mut world, _, other) = three();
    let one = world.open(other);
    let end = world.now + Span(TIMEOUT.0 + Span::secs(1).0);
    while world.now < end {
        assert!(!world.is_expired(&one) || end - world.now < Span::secs(1));
        let since = Time(world.now.0 - Span::millis(400).0);
        world.turn(other, |lane, cx| lane.on_news(Heard::Unread(since), cx));
        world.run(Span::millis(10));
    }
    assert!(world.is_expired(&one));
}

#[test]
fn who_leads_no_more_is_left_though_it_speaks() {
    let mut world = hosts(4);
    let old = world.leader().expect("somebody leads");
    world.run(Span::secs(2));
    // It knows nobody but the gateway, and the gateway hears nobody else.
    for at in (0..3).filter(|at| *at != old) {
        world.part(old, at);
        world.cut.insert((at, 3));
    }
    let is_other = |world: &mut World| world.leader().is_some_and(|leader| leader != old);
    assert!(world.run_until(SOON, is_other), "the others go on");
    let new = world.leader().expect("somebody leads");
    let put = Operation::put("a".into(), "".into());
    world.request(3, put, SOON);
    let is_done = |world: &mut World| world.has_node(new, "/a");
    assert!(world.run_until(Span::secs(4), is_done), "who leads is asked, though it is not heard");
}

#[test]
fn answers_of_a_host_that_has_left_are_kept_no_longer() {
    let mut world = hosts(4);
    world.gather(1..5);
    world.run(Span::secs(2));
    let one = world.open(3);
    assert!(world.one(&one, create("/a", "")).is_ok());
    let client = world.hosts[3].me;
    let kept = |world: &World| {
        let hosted = world.hosts[0].process.as_ref().and_then(|it| it.hosted.as_ref());
        let client = hosted.and_then(|it| it.machine.client(client));
        client.map_or(0, |it| it.replies.len())
    };
    world.run(Span::secs(3));
    assert!(kept(&world) > 0, "it may ask for them yet");
    world.crash(3);
    world.stand(3, Standing::Left);
    assert!(world.run_until(SOON, |world| kept(world) == 0), "nobody does");
    world.hosts.pop();
    world.agree();
}

#[test]
fn a_session_lasts_its_time_out_after_the_last_word_to_its_client() {
    // Silent hosts are looked for each second, and say each half of one that they are there.
    for phase in 0..12 {
        let (mut world, leader, other) = three();
        let watcher = world.open(3 - leader - other);
        // The primary has led for longer than any time-out.
        keep(&mut world, &watcher, Span(2 * TIMEOUT.0));
        let stays = world.open(other);
        world.run(Span::millis(80 * phase));
        assert!(world.one(&stays, ephemeral("/stays")).is_ok());
        world.run(Span::millis(430));
        assert_eq!(world.act(&stays, Act::Ping), Ok(Reply::Done));
        let answered = world.now;
        world.crash(other);
        while world.now - answered < Span(TIMEOUT.0 - Span::millis(60).0) {
            assert!(world.is_there(leader, "/stays"), "{:?} of its time-out", world.now - answered);
            assert_eq!(world.act(&watcher, Act::Ping), Ok(Reply::Done));
            world.run(Span::millis(50));
        }
        keep(&mut world, &watcher, TIMEOUT);
        assert!(!world.is_there(leader, "/stays"), "nobody has heard its client for so long");
    }
}

#[test]
fn what_an_earlier_connection_asks_in_the_turn_in_which_another_takes_its_place_is_refused() {
    let (mut world, leader, other) = three();
    let old = world.open(other);
    assert!(world.one(&old, create("/a", "")).is_ok());
    let ticket = world.go_on(&old, other);
    world.take(move |from, to, message| {
        let opens = |told: &GatewayNews| told.news.iter().any(|it| matches!(it, News::Done(..)));
        (from, to) == (leader, other) && matches!(message, Message::Told(it) if opens(it))
    });
    world.run_to_taken(1, SOON);
    let taken = world.taken().remove(0);
    let ask = |path| {
        Operation::Tree(
            Ask { session: Some(old.session), opening: None, act: Act::One(create(path, "")) }
                .into(),
        )
    };
    let [before, late, ping] = [(); 3].map(|()| {
        world.tickets += 1;
        Ticket(world.tickets)
    });
    let deadline = world.now + SOON;
    // All of it has come by the time of this turn.
    world.turn(other, |process, cx| {
        let request = |operation| Request { operation, deadline };
        process.on_request(before, request(ask("/before")), cx);
        process.on_message(taken.from, taken.message.clone(), cx);
        process.on_request(late, request(ask("/late")), cx);
        let there = Ask { session: Some(old.session), opening: None, act: Act::Ping };
        process.on_request(ping, request(Operation::Tree(there.into())), cx);
    });
    assert_eq!(world.reply(ping), Ok(Reply::Done), "it is there, whoever says so");
    assert_eq!(world.ended(&old), Some(Refusal::NoSession));
    assert_eq!(world.answer(late), Outcome::Refused(Refusal::NoSession), "its client is here anew");
    let new = world.opened(other, ticket).expect("its session is there");
    // What it reads comes behind all that it has asked before, by whichever connection.
    world.take(move |from, _, message| {
        from == other && matches!(message, Message::Ask(it) if !it.questions.is_empty())
    });
    let read = world.send_one(&new, Item::Get { path: "/before".into(), watch: false });
    world.run_to_taken(1, SOON);
    let taken = world.taken().remove(0);
    let Message::Ask(asked) = &taken.message else { panic!("a question was taken") };
    assert!(asked.questions[0].after > 0, "{:?}", asked.questions);
    assert!(world.reply(read).is_ok(), "it is there");
    assert!(world.one(&new, create("/new", "")).is_ok(), "and asks from the next turn on");
    assert!(world.is_there(other, "/before") && !world.is_there(other, "/late"));
}

#[test]
fn what_was_asked_in_an_earlier_opening_of_a_session_and_comes_later_is_refused() {
    let (mut world, _, other) = three();
    let old = world.open(other);
    let new = world.attach(&old, other);
    assert!(old.opening < new.opening);
    let ask = |world: &mut World, opening, act| {
        let ask = Ask { session: Some(new.session), opening: Some(opening), act };
        world.request(other, Operation::Tree(ask.into()), SOON)
    };
    let one = |path| Act::One(create(path, ""));
    let late = ask(&mut world, old.opening, one("/late"));
    assert_eq!(world.answer(late), Outcome::Refused(Refusal::NoSession), "it was given up");
    let ping = ask(&mut world, old.opening, Act::Ping);
    assert_eq!(world.reply(ping), Ok(Reply::Done));
    let now = ask(&mut world, new.opening, one("/now"));
    assert!(world.reply(now).is_ok());
    assert!(world.is_there(other, "/now") && !world.is_there(other, "/late"));
    assert!(world.ended(&new).is_none());
}

#[test]
fn a_host_that_copies_removes_what_it_had_little_by_little_and_crashes_meanwhile() {
    let (mut world, leader, other) = three();
    let third = 3 - leader - other;
    for name in 0..60 {
        assert!(world.anyone(leader, create(&format!("/{name}"), "")).is_ok());
    }
    world.run(Span::secs(2));
    world.crash(third);
    for name in 0..60 {
        assert!(world.anyone(leader, delete(&format!("/{name}"), None)).is_ok());
    }
    for wait in [1, 2, 3, 5, 8, 13, 21] {
        world.restart(third);
        world.run(Span::millis(wait));
        world.crash(third);
    }
    world.restart(third);
    assert!(world.run_until(SOON, |world| !world.has_node(third, "/59")));
    world.agree();
    world.crash(third);
    world.restart(third);
    world.run(Span::secs(1));
    assert!(!world.has_node(third, "/7"), "nothing of it is on its disk");
    world.agree();
}
