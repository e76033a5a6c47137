//! Calls that are begun, joined and turned away.

use super::*;
use crate::calls::queues::{CallsInbox, Watching, calls};
use crate::samples;
use bytes::Bytes;
use quorate_kernel::ids::{LaneId, NodeId, Start};
use quorate_kernel::time::Span;
use quorate_kernel::transaction::Item;
use quorate_kernel::tree::{Act, Ask, Connect, Item as Node, SessionId, Zxid};
use quorate_kernel::watch::Watch;
use quorate_node::pump::Input;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

const ME: Incarnation = Incarnation { node: NodeId(1), start: Start(4) };

const LANE: LaneId = LaneId(LaneId::KEYSPACES.0 + 4);

/// The table of a host that serves this one keyspace, if any.
fn table(lane: Option<LaneId>) -> Table {
    let keyspace = |lane| Arc::new(samples::served("default", "linearizable", &[], lane));
    Table { served: lane.into_iter().map(keyspace).collect(), ..Table::default() }
}

fn call(operation: Operation, named: Option<Named>) -> Call {
    let deadline = Instant::now() + Duration::from_secs(5);
    let keyspace = Arc::clone(&table(Some(LANE)).served[0]);
    Call { keyspace, operation, deadline, named }
}

fn put(named: Option<Named>) -> Call {
    let (key, value) = (Bytes::from_static(b"k"), Bytes::from_static(b"v"));
    call(Operation::put(key, value), named)
}

fn ping(session: u64) -> Call {
    let ask = Ask { session: Some(SessionId(session)), opening: None, act: Act::Ping };
    call(Operation::Tree(Box::new(ask)), None)
}

fn named(repeat: Option<Incarnation>) -> Option<Named> {
    let repeat = repeat.map(|first| (first, Duration::ZERO));
    Some(Named { id: [1; 16], digest: 7, repeat })
}

struct World {
    calls: Arc<Calls>,
    callers: Callers,
    pending: PendingRequests,
    wakes: Arc<AtomicUsize>,
}

fn world() -> World {
    let (calls, CallsInbox { clients, .. }) = calls();
    let wakes = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&wakes);
    let wake = move || {
        counted.fetch_add(1, Ordering::Relaxed);
    };
    calls.set_wake(wake);
    let callers = Callers::new(clients, Arc::clone(&calls), ME);
    let mut pending = PendingRequests::new(Instant::now(), Span::secs(5));
    pending.set_keyspaces(&table(Some(LANE)));
    World { calls, callers, pending, wakes }
}

impl World {
    fn send(&self, call: Call) -> oneshot::Receiver<CallEnd> {
        let (reply, told) = oneshot::channel();
        let called = Called { call, at: Instant::now(), reply };
        assert!(self.calls.send(ClientCall::Call(called)).is_ok(), "there is room");
        told
    }

    fn take(&mut self) -> usize {
        self.pending.inputs.clear();
        self.callers.take(Time(0), &mut self.pending);
        self.pending.inputs.len()
    }

    fn end(&mut self, outcome: Outcome) {
        let Some(Input::Request { ticket, .. }) = self.pending.inputs.pop() else {
            panic!("an operation was begun")
        };
        let Some(Waiter::Caller(caller)) = self.pending.answered(ticket, &outcome, Time(9)) else {
            panic!("a caller waits")
        };
        self.callers.end(caller, &outcome);
    }

    fn is_empty(&self) -> bool {
        self.pending.called() == 0
    }
}

fn ended(outcome: Outcome, is_repeated: bool) -> CallEnd {
    CallEnd::Ended { outcome, is_repeated }
}

#[test]
fn one_wake_serves_many_calls() {
    let mut world = world();
    let mut waiting = [world.send(put(None)), world.send(put(None))];
    assert_eq!(world.wakes.load(Ordering::Relaxed), 1);
    assert_eq!(world.take(), 2);
    assert_eq!(world.pending.in_hand(LANE), 2);
    world.end(Outcome::written());
    world.end(Outcome::written());
    assert!(world.is_empty());
    for told in &mut waiting {
        assert_eq!(told.try_recv(), Ok(ended(Outcome::written(), false)));
    }
    drop(world.send(put(None)));
    assert_eq!(world.wakes.load(Ordering::Relaxed), 2, "it may sleep again");
    assert_eq!(world.take(), 0, "nobody waits for it any more");
}

#[test]
fn where_nothing_else_has_room_clients_say_that_they_are_there() {
    let mut world = world();
    let mut waiting = Vec::new();
    while waiting.len() < IN_HAND_MAX {
        waiting.extend((0..TAKEN_MAX).map(|_| world.send(put(None))));
        assert_eq!(world.take(), TAKEN_MAX);
    }
    let mut refused = world.send(put(None));
    let mut heard = world.send(ping(1));
    assert_eq!(world.take(), 1);
    world.end(Outcome::Noted);
    assert_eq!(heard.try_recv(), Ok(ended(Outcome::Noted, false)));
    let overloaded = Outcome::Refused(Refusal::Overloaded);
    assert_eq!(refused.try_recv(), Ok(ended(overloaded, false)));
}

#[test]
fn where_many_say_that_they_are_there_others_find_room() {
    let mut world = world();
    let mut heard = Vec::new();
    while heard.len() <= IN_HAND_MAX {
        heard.extend((0..TAKEN_MAX).map(|_| world.send(ping(1))));
        assert_eq!(world.take(), TAKEN_MAX);
    }
    let mut told = world.send(put(None));
    assert_eq!(world.take(), 1);
    world.end(Outcome::written());
    assert_eq!(told.try_recv(), Ok(ended(Outcome::written(), false)));
    assert_eq!(world.pending.called(), heard.len());
}

#[test]
fn where_the_queue_is_full_sessions_go_on() {
    let mut world = world();
    let waiting: Vec<_> = (0..QUEUED_MAX).map(|_| world.send(put(None))).collect();
    let send = |world: &World, asked| {
        let (reply, told) = oneshot::channel();
        let called = Called { call: asked, at: Instant::now(), reply };
        world.calls.send(ClientCall::Call(called)).map(|()| told)
    };
    let go_on = |world: &World, session: Option<u64>| {
        let (to, happened) = mpsc::channel(2);
        let session = session.map(|session| (SessionId(session), [1; 16]));
        let connect = Connect { session, timeout_ms: 1, seen: Zxid(0), peer: None };
        let watch = Watch::Session(connect);
        let watching = Watching { lane: LANE, watch, to };
        world.calls.send(ClientCall::Watch(watching)).map(|()| happened)
    };
    assert_eq!(send(&world, put(None)).err(), Some(Refusal::Overloaded));
    assert_eq!(go_on(&world, None).err(), Some(Refusal::Overloaded), "it has no session to lose");
    let one = (send(&world, ping(1)), go_on(&world, Some(1)));
    let other = (send(&world, ping(2)), go_on(&world, Some(2)));
    assert!(one.0.is_ok() && one.1.is_ok() && other.0.is_ok() && other.1.is_ok());
    assert_eq!(send(&world, ping(1)).err(), Some(Refusal::Overloaded), "one is on its way");
    assert_eq!(go_on(&world, Some(2)).err(), Some(Refusal::Overloaded));
    assert_eq!(world.take(), TAKEN_MAX + 4);
    // They were taken, so the next ones pass.
    let again: Vec<_> = (0..TAKEN_MAX).map(|_| world.send(put(None))).collect();
    assert!(send(&world, ping(1)).is_ok() && go_on(&world, Some(2)).is_ok());
    while world.callers.has_more() {
        world.take();
    }
    assert_eq!(world.pending.called(), waiting.len() + again.len() + 2, "who is gone asks nothing");
}

#[test]
fn a_write_sent_again_waits_for_the_first_and_is_told_its_outcome() {
    let mut world = world();
    let mut first = world.send(put(named(None)));
    let mut again = world.send(put(named(Some(ME))));
    assert_eq!(world.take(), 1, "it is done once");
    world.end(Outcome::written());
    assert_eq!(first.try_recv(), Ok(ended(Outcome::written(), false)));
    assert_eq!(again.try_recv(), Ok(ended(Outcome::written(), true)));
    let mut late = world.send(put(named(Some(ME))));
    assert_eq!(world.take(), 0);
    assert_eq!(late.try_recv(), Ok(ended(Outcome::written(), true)));
}

#[test]
fn a_write_that_went_to_another_start_is_not_done() {
    let mut world = world();
    let earlier = Incarnation { start: Start(3), ..ME };
    let mut told = world.send(put(named(Some(earlier))));
    assert_eq!(world.take(), 0);
    assert_eq!(told.try_recv(), Ok(CallEnd::Elsewhere));
    let mut here = world.send(put(named(Some(ME))));
    assert_eq!(world.take(), 1, "it surely never arrived");
    world.end(Outcome::written());
    assert_eq!(here.try_recv(), Ok(ended(Outcome::written(), false)));
}

#[test]
fn what_is_in_hand_for_a_dropped_keyspace_ends_with_it() {
    let mut world = world();
    let get = call(Operation::get(Bytes::from_static(b"k")), None);
    let (mut read, mut write) = (world.send(get), world.send(put(named(None))));
    assert_eq!(world.take(), 2);
    world.pending.set_keyspaces(&table(Some(LANE)));
    assert!(world.pending.take_dropped().is_empty(), "it is still there");
    world.pending.set_keyspaces(&table(None));
    for dropped in world.pending.take_dropped() {
        let outcome = dropped.ended_by_drop();
        let Waiter::Caller(caller) = dropped.waiter else { panic!("a caller waits") };
        world.callers.end(caller, &outcome);
    }
    assert!(world.is_empty());
    assert_eq!(read.try_recv(), Ok(ended(Outcome::Refused(Refusal::NotOpen), false)));
    let unknown = Outcome::Refused(Refusal::OutcomeUnknown);
    assert_eq!(write.try_recv(), Ok(ended(unknown.clone(), false)));
    let mut again = world.send(put(named(Some(ME))));
    let late = std::mem::take(&mut world.pending.inputs);
    assert_eq!(world.take(), 0);
    assert_eq!(again.try_recv(), Ok(ended(unknown, true)), "it is not done now");
    // What the lane had said before comes for nobody, also if others are in hand by now.
    let mut next = world.send(put(None));
    assert_eq!(world.take(), 1);
    for input in late {
        let Input::Request { ticket, .. } = input else { panic!("an operation was begun") };
        assert!(world.pending.answered(ticket, &Outcome::written(), Time(9)).is_none());
    }
    assert!(next.try_recv().is_err());
}

/// A transaction and a call on a tree may only read: of these everything is known.
#[test]
fn at_a_drop_only_the_outcome_of_what_may_write_is_unknown() {
    let key = || Bytes::from_static(b"k");
    let (get, delete) = (Item::Get { key: key() }, Item::Delete { key: key() });
    let transact = |items: &[Item]| Operation::Transact { items: items.to_vec(), name: None };
    let tree =
        |act| Operation::Tree(Box::new(Ask { opening: None, session: Some(SessionId(7)), act }));
    let path = || String::from("/a");
    let read = Node::Get { path: path(), watch: false };
    let removed = Node::Delete { path: path(), version: None };
    let (known, unknown) = (Refusal::NotOpen, Refusal::OutcomeUnknown);
    for (operation, expected) in [
        (transact(&[get.clone(), get.clone()]), &known),
        (transact(&[get, delete]), &unknown),
        (tree(Act::One(read.clone())), &known),
        (tree(Act::Ping), &known),
        (tree(Act::All(vec![read, removed])), &unknown),
        (tree(Act::Close), &unknown),
    ] {
        let mut world = world();
        let shown = format!("{operation:?}");
        let mut told = world.send(call(operation, None));
        assert_eq!(world.take(), 1, "{shown}");
        world.pending.set_keyspaces(&table(None));
        for dropped in world.pending.take_dropped() {
            let outcome = dropped.ended_by_drop();
            let Waiter::Caller(caller) = dropped.waiter else { panic!("a caller waits") };
            world.callers.end(caller, &outcome);
        }
        let expected = ended(Outcome::Refused(expected.clone()), false);
        assert_eq!(told.try_recv(), Ok(expected), "{shown}");
    }
}

#[test]
fn calls_are_taken_up_to_when_as_many_have_come_as_can_wait() {
    let mut world = world();
    let mut waiting: Vec<_> = (0..QUEUED_MAX).map(|_| world.send(put(None))).collect();
    let mut at = |world: &mut World, now| {
        world.callers.take(Time(now), &mut world.pending);
        // As many come again: they are never all taken.
        waiting.extend((0..TAKEN_MAX).map(|_| world.send(put(None))));
        world.callers.taken_upto()
    };
    let upto: Vec<Time> = (1..=6).map(|now| at(&mut world, 10 * now)).collect();
    assert_eq!(upto, [0, 0, 0, 10, 20, 30].map(Time));
    while world.take() > 0 {}
    world.callers.take(Time(99), &mut world.pending);
    assert_eq!((world.callers.taken_upto(), world.callers.has_more()), (Time(99), false));
}

#[test]
fn too_much_in_hand_and_a_stopping_host_refuse() {
    let mut world = world();
    let waiting: Vec<_> = (0..QUEUED_MAX).map(|_| world.send(put(None))).collect();
    for turn in 1..=QUEUED_MAX / TAKEN_MAX {
        assert_eq!(world.take(), TAKEN_MAX);
        assert!(world.callers.has_more(), "turn {turn} was full");
    }
    assert_eq!((world.take(), world.callers.has_more()), (0, false));
    drop(waiting);
    world.callers.finish(&mut world.pending);
    let mut told = world.send(put(None));
    assert_eq!(world.take(), 0);
    let stopping = Outcome::Refused(Refusal::Stopping);
    assert_eq!(told.try_recv(), Ok(ended(stopping, false)));
    let (to, mut happened) = mpsc::channel(2);
    let watching = Watching { lane: LaneId::EVENTS, watch: Watch::Cluster, to };
    assert!(world.calls.send(ClientCall::Watch(watching)).is_ok(), "there is room");
    assert_eq!(world.take(), 0);
    assert_eq!(happened.try_recv(), Ok(Err(Refusal::Stopping)));
    assert!(!world.is_empty(), "it finishes what is in hand");
}
