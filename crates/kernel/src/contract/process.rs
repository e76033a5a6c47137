//! What a protocol is: a deterministic state machine.

use crate::effects::Effects;
use crate::ids::{Incarnation, LaneId, Ticket};
use crate::news::{News, Topic};
use crate::operation::{Control, Operation, Outcome, Refusal};
use crate::part::Part;
use crate::rng::Rng;
use crate::storage::{Class, ValueHead};
use crate::time::{Time, WallTime};
use crate::watch::Watch;
use crate::wire::Wire;
use alloc::vec::Vec;
use bytes::Bytes;
use core::fmt::{Debug, Display};

/// What the node's directory still knows of a lane when the node starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Everything the lane ever promised is there.
    Intact,
    /// The lane may have lost writes it acknowledged: a `memory` lane after any restart, a
    /// `periodic` one after the machine stopped uncleanly. It must refill before it answers.
    Forgot,
}

/// A client operation with the time by which it must be answered.
#[derive(Clone, Debug)]
pub struct Request {
    /// What is asked.
    pub operation: Operation,
    /// When it must have been answered.
    pub deadline: Time,
}

/// A protocol. Deterministic: the same inputs in the same order give the same effects. It owns its
/// state, performs no IO and never fails: bad input is refused or dropped, a broken invariant
/// panics.
pub trait Process {
    /// What it sends to its peers.
    type Message: Wire + Debug;
    /// What it has to be woken for; each has one deadline at most.
    type Timer: Timer;
    /// What it wants to be told of.
    const HEARS: &'static [Topic] = &[];

    /// Runs once, before anything else; rebuilds the state from the stored bytes.
    fn start(&mut self, recovery: Recovery, cx: &mut Context<'_, Self>);

    /// A message of a peer, or of itself.
    fn on_message(&mut self, from: Incarnation, message: Self::Message, cx: &mut Context<'_, Self>);

    /// A client asks.
    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_, Self>);

    /// An operator asks; the deadline is the answer's. A process that does not know a control
    /// refuses it.
    fn on_control(
        &mut self,
        ticket: Ticket,
        control: Control,
        _deadline: Time,
        cx: &mut Context<'_, Self>,
    ) {
        match control {
            Control::Examine { .. } => cx.fx.answer(ticket, Outcome::parts(self.parts())),
            // Nothing was done, so nothing need be durable.
            _ => cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Unsupported)),
        }
    }

    /// A client follows something: answered with [`Outcome::More`] any number of times, until
    /// another outcome ends it. A process that has nothing to follow refuses it.
    fn on_watch(&mut self, ticket: Ticket, _watch: Watch, cx: &mut Context<'_, Self>) {
        // Nothing was done, so nothing need be durable.
        cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Unsupported));
    }

    /// A watch has ended on the client's side; what is still answered goes nowhere. It may come for
    /// one that the process has ended already.
    fn on_unwatch(&mut self, _ticket: Ticket, _cx: &mut Context<'_, Self>) {}

    /// A timer fired. It may fire late, and once after it was disarmed.
    fn on_timer(&mut self, timer: Self::Timer, cx: &mut Context<'_, Self>);

    /// The node has news of a topic that it hears.
    fn on_news(&mut self, _news: News<'_>, _cx: &mut Context<'_, Self>) {}

    /// The parts of its data that this node knows, with what it owes of them itself; none of a
    /// process that places nothing. It can serve clients if it owes nothing.
    fn parts(&self) -> Vec<Part> {
        Vec::new()
    }

    /// Shows its state to the console, the metrics and the simulator.
    fn inspect(&self, _into: &mut dyn Inspect) {}

    /// Asserts everything that must hold between two inputs.
    fn check(&self) {}
}

/// A timer is a small value; each value has at most one deadline.
pub trait Timer: Copy + Debug + PartialEq {
    /// A number that names it.
    fn code(self) -> u32;
    /// The timer of a number.
    fn from_code(code: u32) -> Option<Self>;
}

/// The timer of a process that has one alone, or none.
impl Timer for () {
    fn code(self) -> u32 {
        0
    }

    fn from_code(code: u32) -> Option<()> {
        (code == 0).then_some(())
    }
}

/// Reads of the lane's own bytes: everything it wrote up to its previous input, durable or not.
pub trait Table {
    /// The value of a key.
    fn get(&self, class: Class, key: &Bytes) -> Option<Bytes>;

    /// The first bytes of the value of a data key; where the value itself is not at hand they may
    /// still be.
    fn head(&self, key: &Bytes) -> Option<ValueHead> {
        self.get(Class::Data, key).map(|value| ValueHead::of(&value))
    }

    /// Calls `each` with every pair from `from` on, ascending, until it returns false.
    fn scan(&self, class: Class, from: &[u8], each: &mut dyn FnMut(&[u8], &Bytes) -> bool);

    /// The pairs from `from` on, ascending, until their keys and values have `bytes_min` bytes, and
    /// the key that follows them; none at the end.
    fn page(&self, class: Class, from: &[u8], bytes_min: usize) -> Page {
        let (mut pairs, mut bytes, mut next) = (Vec::new(), 0, None);
        self.scan(class, from, &mut |key, value| {
            if bytes >= bytes_min {
                next = Some(Bytes::copy_from_slice(key));
                return false;
            }
            bytes += key.len() + value.len();
            pairs.push((Bytes::copy_from_slice(key), value.clone()));
            true
        });
        (pairs, next)
    }
}

/// Pairs of a lane's bytes, and the key that follows them.
pub type Page = (Vec<(Bytes, Bytes)>, Option<Bytes>);

/// How the names of fields begin that count rounds of messages: the kind of round follows. They are
/// shown as the metric `quorate_quorum_rounds_total`, whatever engine it is.
pub const ROUNDS: &str = "rounds_";

/// Takes the fields of an inspected state.
pub trait Inspect {
    /// Takes a name and what stands under it.
    fn field(&mut self, name: &'static str, value: &dyn Display);

    /// One row of a table, cell by cell; every row of a table has the same cells. Shown on request
    /// only, so a taker may ignore it.
    fn row(&mut self, _table: &'static str, _cells: &[(&'static str, &dyn Display)]) {}
}

/// All that a handler may see and touch. Built anew for each call, so nothing can be kept.
pub struct Context<'a, P: Process + ?Sized> {
    /// Who this node is, in this start.
    pub me: Incarnation,
    /// Which lane this process is.
    pub lane: LaneId,
    /// Monotonic time.
    pub now: Time,
    /// The wall clock. Never for ordering.
    pub wall: WallTime,
    /// The lane's own stream of randomness.
    pub rng: &'a mut Rng,
    /// The lane's bytes.
    pub table: &'a dyn Table,
    /// What the process asks for.
    pub fx: &'a mut Effects<P>,
}
