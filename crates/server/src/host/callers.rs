//! What other threads ask for, on the core thread: who waits for what, and what was asked before.
//!
//! Calls are taken only while the disk keeps up, as clients on the core thread are read. However
//! many come, only so many are in hand at once; one more is refused at once as overload.

use super::calls::{Asked, Call, Called, CallsInbox, Named, Told};
use super::core::TEND_EVERY;
use super::keyspaces::{Served, Table, ended_by_drop};
use super::remembered::{Known, Name, Remembered};
use super::watches::Watches;
use crate::metrics::{Ending, Kind};
use quorate_doors::Clock;
use quorate_kernel::ids::{Incarnation, LaneId, Ticket};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::process::Request;
use quorate_kernel::time::Time;
use quorate_node::pump::Input;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Tickets from here on, up to those of operators, are a caller's.
const TICKET_FIRST: u64 = 1 << 62;
/// The most calls in hand.
const IN_HAND_MAX: usize = 8192;
/// The most calls taken in one turn.
const TAKEN_MAX: usize = 256;

/// An operation that was handed to the node.
struct InHand {
    replies: Vec<oneshot::Sender<Told>>,
    keyspace: Arc<Served>,
    kind: Kind,
    began: Time,
    name: Option<Name>,
}

/// What is to be done about a call.
enum Decision {
    Begin,
    /// The same request is in hand.
    Join(u64),
    Tell(Told),
}

/// The core thread's side: hands operations to the node, and remembers who waits for what.
pub(super) struct Callers {
    inbox: CallsInbox,
    /// By numbers that are never used again: an answer may still come for what has ended.
    in_hand: HashMap<u64, InHand>,
    last_number: u64,
    pub watches: Watches,
    remembered: Remembered,
    me: Incarnation,
    has_more: bool,
    is_stopping: bool,
}

impl Callers {
    /// Nobody has called yet.
    pub fn new(
        inbox: CallsInbox,
        me: Incarnation,
        wake: impl Fn() + Send + Sync + 'static,
    ) -> Callers {
        inbox.calls.set_wake(wake);
        Callers {
            inbox,
            in_hand: HashMap::new(),
            last_number: 0,
            watches: Watches::default(),
            remembered: Remembered::default(),
            me,
            has_more: false,
            is_stopping: false,
        }
    }

    /// Takes some of the calls that have arrived. `epoch` is when the clock stood at zero.
    pub fn take(&mut self, clock: Clock, epoch: Instant, inputs: &mut Vec<Input>) {
        self.inbox.calls.on_look();
        for _ in 0..TAKEN_MAX {
            match self.inbox.receiver.try_recv() {
                Ok(Asked::Call(called)) => self.begin(called, clock.now, epoch, inputs),
                Ok(Asked::Watch(watching)) => {
                    self.last_number += 1;
                    let ticket = Ticket(TICKET_FIRST + self.last_number);
                    self.watches.begin(ticket, watching, inputs);
                }
                Err(_) => return self.has_more = false,
            }
        }
        self.has_more = true;
    }

    /// Whether calls are left that [`Callers::take`] had no turn for.
    pub fn has_more(&self) -> bool {
        self.has_more
    }

    fn begin(&mut self, called: Called, now: Time, epoch: Instant, inputs: &mut Vec<Input>) {
        let Called { call, at, reply } = called;
        // Whoever asked may have gone, here and below.
        if reply.is_closed() {
            return;
        }
        match self.consider(&call) {
            Decision::Begin => {}
            Decision::Join(number) => {
                let first = self.in_hand.get_mut(&number).expect("it has not ended");
                return first.replies.push(reply);
            }
            Decision::Tell(told) => return drop(reply.send(told)),
        }
        let time = |at: Instant| {
            let nanos = at.saturating_duration_since(epoch).as_nanos();
            Time(u64::try_from(nanos).unwrap_or(u64::MAX))
        };
        let lane = call.keyspace.keyspace().lane;
        let begun = InHand {
            replies: vec![reply],
            keyspace: call.keyspace,
            kind: Kind::of(&call.operation),
            began: time(at).min(now),
            name: call.named.map(|named| (lane, named.id)),
        };
        self.last_number += 1;
        self.in_hand.insert(self.last_number, begun);
        let request = Request { operation: call.operation, deadline: time(call.deadline) };
        let ticket = Ticket(TICKET_FIRST + self.last_number);
        inputs.push(Input::Request { lane, ticket, request });
    }

    fn consider(&mut self, call: &Call) -> Decision {
        let refused = |refusal| {
            let outcome = Outcome::Refused(refusal);
            Decision::Tell(Told::Ended { outcome, is_repeated: false })
        };
        let known = match call.named {
            Some(Named { repeat: Some((first, _)), .. }) if first != self.me => {
                return Decision::Tell(Told::Elsewhere);
            }
            _ if self.is_stopping => return refused(Refusal::Stopping),
            _ if self.in_hand.len() >= IN_HAND_MAX => return refused(Refusal::Overloaded),
            Some(Named { id, digest, repeat }) => {
                let (name, key) = ((call.keyspace.keyspace().lane, id), self.last_number + 1);
                let age = repeat.map(|(_, age)| age);
                self.remembered.arrive(name, digest, key, age, TEND_EVERY)
            }
            None => Known::New,
        };
        match known {
            Known::New => Decision::Begin,
            // It has not ended, so it is still there.
            Known::InHand(key) => Decision::Join(key),
            Known::Done(outcome) => Decision::Tell(Told::Ended { outcome, is_repeated: true }),
            Known::Reused => Decision::Tell(Told::Reused),
            Known::Forgotten => Decision::Tell(Told::Forgotten),
        }
    }

    /// An operation has ended; gives the outcome back if the ticket is no caller's.
    pub fn complete(&mut self, ticket: Ticket, outcome: Outcome, now: Time) -> Option<Outcome> {
        let Some(key) = ticket.0.checked_sub(TICKET_FIRST) else { return Some(outcome) };
        let outcome = self.watches.complete(ticket, outcome)?;
        let ended = self.in_hand.remove(&key)?;
        self.end(ended, &outcome, now);
        None
    }

    fn end(&mut self, ended: InHand, outcome: &Outcome, now: Time) {
        if let Some(name) = ended.name {
            self.remembered.end(name, outcome);
        }
        let took = Duration::from_nanos((now - ended.began).0);
        ended.keyspace.cells.answered(ended.kind, Ending::of(outcome), took);
        for (index, reply) in ended.replies.into_iter().enumerate() {
            let told = Told::Ended { outcome: outcome.clone(), is_repeated: index > 0 };
            drop(reply.send(told));
        }
    }

    /// Keyspaces came or went.
    pub fn set_keyspaces(&mut self, table: &Table) {
        self.inbox.calls.set_keyspaces(table.served.iter().cloned().collect());
    }

    /// Ends what is in hand for keyspaces that went.
    pub fn end_dropped(&mut self, now: Time) {
        let served = self.inbox.calls.keyspaces().unwrap_or_default();
        let is_served =
            |lane: LaneId| served.iter().any(|keyspace| keyspace.keyspace().lane == lane);
        self.watches.end_dropped(|lane| lane < LaneId::KEYSPACES || is_served(lane));
        let gone = |_: &u64, hand: &mut InHand| !is_served(hand.keyspace.keyspace().lane);
        let ended: Vec<InHand> = self.in_hand.extract_if(gone).map(|(_, hand)| hand).collect();
        for ended in ended {
            let outcome = ended_by_drop(Some(ended.kind));
            self.end(ended, &outcome, now);
        }
    }

    /// How many operations on the keyspace of this lane are in hand.
    pub fn in_hand(&self, lane: LaneId) -> u64 {
        self.in_hand.values().filter(|hand| hand.keyspace.keyspace().lane == lane).count() as u64
    }

    /// A tick has passed.
    pub fn tick(&mut self) {
        self.watches.tend();
        self.remembered.tick();
    }

    /// Takes no further calls.
    pub fn finish(&mut self) {
        self.is_stopping = true;
        self.watches.finish();
    }

    /// Whether nothing is in hand.
    pub fn is_empty(&self) -> bool {
        self.in_hand.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::calls::{Calls, QUEUED_MAX, calls};
    use super::*;
    use bytes::Bytes;
    use quorate_kernel::ids::{NodeId, Start};
    use quorate_kernel::operation::Operation;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const ME: Incarnation = Incarnation { node: NodeId(1), start: Start(4) };

    const LANE: LaneId = LaneId(4);

    /// The table of a host that serves this one keyspace, if any.
    fn table(lane: Option<LaneId>) -> Table {
        let keyspace = |lane| Arc::new(Served::sample("default", "linearizable", &[], lane));
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

    fn named(repeat: Option<Incarnation>) -> Option<Named> {
        let repeat = repeat.map(|first| (first, Duration::ZERO));
        Some(Named { id: [1; 16], digest: 7, repeat })
    }

    struct World {
        calls: Arc<Calls>,
        callers: Callers,
        inputs: Vec<Input>,
        wakes: Arc<AtomicUsize>,
    }

    fn world() -> World {
        let (calls, inbox) = calls();
        let wakes = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&wakes);
        let wake = move || {
            counted.fetch_add(1, Ordering::Relaxed);
        };
        let mut callers = Callers::new(inbox, ME, wake);
        callers.set_keyspaces(&table(Some(LANE)));
        World { calls, callers, inputs: Vec::new(), wakes }
    }

    impl World {
        fn send(&self, call: Call) -> oneshot::Receiver<Told> {
            let (reply, told) = oneshot::channel();
            let called = Called { call, at: Instant::now(), reply };
            assert!(self.calls.send(Asked::Call(called)).is_ok(), "there is room");
            told
        }

        fn take(&mut self) -> usize {
            self.inputs.clear();
            self.callers.take(Clock::default(), Instant::now(), &mut self.inputs);
            self.inputs.len()
        }

        fn end(&mut self, outcome: Outcome) {
            let Some(Input::Request { ticket, .. }) = self.inputs.pop() else {
                panic!("an operation was begun")
            };
            assert_eq!(self.callers.complete(ticket, outcome, Time(9)), None);
        }
    }

    fn ended(outcome: Outcome, is_repeated: bool) -> Told {
        Told::Ended { outcome, is_repeated }
    }

    #[test]
    fn one_wake_serves_many_calls() {
        let mut world = world();
        let mut waiting = [world.send(put(None)), world.send(put(None))];
        assert_eq!(world.wakes.load(Ordering::Relaxed), 1);
        assert_eq!(world.take(), 2);
        assert_eq!(world.callers.in_hand(LANE), 2);
        world.end(Outcome::written());
        world.end(Outcome::written());
        assert!(world.callers.is_empty());
        for told in &mut waiting {
            assert_eq!(told.try_recv(), Ok(ended(Outcome::written(), false)));
        }
        drop(world.send(put(None)));
        assert_eq!(world.wakes.load(Ordering::Relaxed), 2, "it may sleep again");
        assert_eq!(world.take(), 0, "nobody waits for it any more");
        let others = Ticket(7);
        assert!(world.callers.complete(others, Outcome::written(), Time(0)).is_some());
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
        assert_eq!(told.try_recv(), Ok(Told::Elsewhere));
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
        world.callers.set_keyspaces(&table(Some(LANE)));
        world.callers.end_dropped(Time(9));
        assert_eq!(world.callers.in_hand(LANE), 2, "it is still there");
        world.callers.set_keyspaces(&table(Some(LaneId(5))));
        world.callers.end_dropped(Time(9));
        assert!(world.callers.is_empty());
        assert_eq!(read.try_recv(), Ok(ended(Outcome::Refused(Refusal::NotOpen), false)));
        let unknown = Outcome::Refused(Refusal::OutcomeUnknown);
        assert_eq!(write.try_recv(), Ok(ended(unknown.clone(), false)));
        let mut again = world.send(put(named(Some(ME))));
        let late = std::mem::take(&mut world.inputs);
        assert_eq!(world.take(), 0);
        assert_eq!(again.try_recv(), Ok(ended(unknown, true)), "it is not done now");
        // What the lane had said before comes for nobody, also if others are in hand by now.
        let mut next = world.send(put(None));
        assert_eq!(world.take(), 1);
        for input in late {
            let Input::Request { ticket, .. } = input else { panic!("an operation was begun") };
            assert_eq!(world.callers.complete(ticket, Outcome::written(), Time(9)), None);
        }
        assert!(next.try_recv().is_err());
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
        world.callers.finish();
        let mut told = world.send(put(None));
        assert_eq!(world.take(), 0);
        let stopping = Outcome::Refused(Refusal::Stopping);
        assert_eq!(told.try_recv(), Ok(ended(stopping, false)));
        assert!(!world.callers.is_empty(), "it finishes what is in hand");
    }
}
