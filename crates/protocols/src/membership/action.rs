//! What a roll asks of its lane.

use super::configuration::{Configuration, Member};
use super::message::{Message, Refusal};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::effects::{Effects, Recipients, Release};
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::process::{Process, Table};
use quorate_kernel::time::Time;

/// What a lane is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// All have agreed on this configuration, and this node is in it. Configurations come in order;
    /// a node that was far behind is not told of each.
    Configuration(Arc<Configuration>),
    /// This node is no member any more, because others said so; with the newest configuration that
    /// it knows. It is alive: what it holds stays, and it goes on serving it to whoever needs it.
    Kicked(Arc<Configuration>),
    /// This node is no member any more, as it wished.
    Left,
    /// This node's join goes by these: where they were found last.
    Observers(Vec<Arc<Member>>),
    /// This node cannot join; it does not try any more.
    Refused(Refusal),
}

/// One thing that a roll asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Writes a key of the lane, as protocol state.
    Write {
        /// The key.
        key: Bytes,
        /// The new value.
        value: Bytes,
    },
    /// Sends a message; to the node itself too, if it is a recipient.
    Send {
        /// Who shall receive it.
        to: Recipients,
        /// The message.
        message: Message,
        /// When it may leave.
        release: Release,
    },
    /// Tells the lane something.
    Tell(Event),
    /// A message said what no correct peer says; nothing was changed.
    Refuse(&'static str),
}

/// All that a roll may see and touch. Built anew for each call.
pub struct Context<'a> {
    /// Who this node is, in this start.
    pub me: Incarnation,
    /// Monotonic time.
    pub now: Time,
    /// The lane's bytes.
    pub table: &'a dyn Table,
    /// What the roll asks for, in order.
    pub out: &'a mut Vec<Action>,
}

impl Context<'_> {
    pub(super) fn send(&mut self, to: impl Into<Recipients>, message: Message, release: Release) {
        self.out.push(Action::Send { to: to.into(), message, release });
    }

    pub(super) fn tell(&mut self, event: Event) {
        self.out.push(Action::Tell(event));
    }

    pub(super) fn refuse(&mut self, what: &'static str) {
        self.out.push(Action::Refuse(what));
    }
}

/// Hands what a roll asks for to its lane's effects; what the lane is told is answered, in order.
pub fn carry_out<P: Process>(
    actions: &mut Vec<Action>,
    fx: &mut Effects<P>,
    wrap: impl Fn(Message) -> P::Message,
) -> Vec<Event> {
    let mut events = Vec::new();
    for action in actions.drain(..) {
        match action {
            Action::Write { key, value } => fx.put_state(key, value),
            Action::Send { to, message, release } => match release {
                // The roll says at each message why it promises nothing.
                Release::Early => fx.send_early(to, wrap(message)),
                // A roll has nothing but protocol state.
                _ => fx.send_after_state(to, wrap(message)),
            },
            Action::Tell(event) => events.push(event),
            Action::Refuse(what) => fx.refuse(what),
        }
    }
    events
}

/// Why a node does not do what it is told. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Denied {
    /// It is no member.
    NotMember,
    /// It is a member, joins already, or was one.
    HasJoined,
    /// It does not try to become one.
    NotJoining,
    /// This node is no member.
    Unknown(NodeId),
    /// It is the only member, and somebody must stay.
    Last,
    /// There is nobody to ask, or too many.
    Contacts,
    /// It has too much to do of this kind already.
    Busy,
}
