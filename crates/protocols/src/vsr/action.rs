//! What a replica asks of its lane.

use super::configuration::Configuration;
use super::machine::{Machine, Store};
use super::message::Message;
use super::number::Op;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::effects::{Effects, Recipients, Release};
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::process::{Process, Table};
use quorate_kernel::storage::Class;
use quorate_kernel::time::Time;

/// What a lane is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// This node is the primary, and has executed all that earlier views have committed: it can
    /// propose and read.
    Serving,
    /// This node is the primary no more. What it has proposed and not executed may be committed or
    /// not; reads in hand are not answered.
    Deposed,
    /// The state as it is now may be shown to who asked for this read.
    Readable(Ticket),
    /// A later epoch has begun.
    Members(Configuration),
    /// This node is no member, and a majority of the members has what it held: it may drop it.
    Released,
    /// Too many members have lost data, and all go on with what is left. What was acknowledged may
    /// be gone.
    Lost,
}

/// One thing that a replica asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Writes (`Some`) or deletes (`None`) a key of the lane.
    Write {
        /// Protocol state or data.
        class: Class,
        /// The key within the class.
        key: Bytes,
        /// The new value.
        value: Option<Bytes>,
    },
    /// Sends a message of this group; to the node itself too, if it is a recipient.
    Send {
        /// Who shall receive it.
        to: Recipients,
        /// The message. Those that [`Message::is_beat`] says may share a frame with other groups'.
        message: Message,
        /// When it may leave.
        release: Release,
    },
    /// Tells the lane something.
    Tell(Event),
    /// More is to be executed than one turn should: call [`super::Replica::resume`] in a later one.
    Resume,
    /// A message said what no correct peer says; nothing was changed.
    Refuse(&'static str),
}

/// All that a replica may see and touch. Built anew for each call.
pub struct Context<'a> {
    /// Who this node is, in this start.
    pub me: Incarnation,
    /// Monotonic time.
    pub now: Time,
    /// The lane's bytes.
    pub table: &'a dyn Table,
    /// The state machine of the group.
    pub machine: &'a mut dyn Machine,
    /// What the replica asks for, in order.
    pub out: &'a mut Vec<Action>,
}

impl Context<'_> {
    /// The machine with its store.
    pub(super) fn machine(&mut self) -> (&mut dyn Machine, Store<'_>) {
        (self.machine, Store { table: self.table, out: self.out })
    }

    pub(super) fn send(&mut self, to: impl Into<Recipients>, message: Message, release: Release) {
        self.out.push(Action::Send { to: to.into(), message, release });
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.out.push(Action::Tell(event));
    }
}

/// Hands what a replica asks for to its lane's effects; what is left for the lane is answered, in
/// order: what it is told, and whether a replica wants to go on.
pub fn carry_out<P: Process>(
    actions: &mut Vec<Action>,
    fx: &mut Effects<P>,
    wrap: impl Fn(Message) -> P::Message,
) -> (Vec<Event>, bool) {
    let (mut events, mut goes_on) = (Vec::new(), false);
    for action in actions.drain(..) {
        match action {
            Action::Write { class, key, value } => fx.write(class, key, value),
            Action::Send { to, message, release } => match release {
                // The replica says at each message why it promises nothing.
                Release::Early => fx.send_early(to, wrap(message)),
                // The log is protocol state; the machine's data may come later.
                Release::State => fx.send_after_state(to, wrap(message)),
                _ => fx.send(to, wrap(message)),
            },
            Action::Tell(event) => events.push(event),
            Action::Resume => goes_on = true,
            Action::Refuse(what) => fx.refuse(what),
        }
    }
    (events, goes_on)
}

/// Why a primary takes no proposal or read. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Another member is the primary, as far as is known.
    NotPrimary,
    /// It is the primary, but has not executed yet what earlier views have committed, or copies the
    /// state of a later epoch.
    NotReady,
    /// The members are about to change.
    Closing,
    /// Too much waits to be committed.
    Full,
}

/// Where a proposal stands if it is committed.
pub type Proposed = Result<Op, Refused>;
