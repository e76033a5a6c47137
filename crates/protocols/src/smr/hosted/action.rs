//! What a host's part of a machine over partitions may see, and asks of its lane.

use super::message::Message;
use crate::smr::partitioned::{Answered, Machine};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::effects::{Effects, Recipients, Release};
use quorate_kernel::ids::Incarnation;
use quorate_kernel::process::{Process, Table};
use quorate_kernel::storage::Class;
use quorate_kernel::time::Time;

/// One thing that is asked for.
#[derive(Debug)]
pub enum Action<M: Machine> {
    /// Writes (`Some`) or deletes (`None`) a key of the lane.
    Write {
        /// Protocol state or data.
        class: Class,
        /// The key within the class.
        key: Bytes,
        /// The new value.
        value: Option<Bytes>,
    },
    /// Sends a message; to the host itself too, if it is a recipient.
    Send {
        /// Who shall receive it.
        to: Recipients,
        /// The message.
        message: Message<M>,
        /// When it may leave.
        release: Release,
    },
    /// A command of this host is answered; each once.
    Answer {
        /// What [`super::Hosted::ask`] has named it.
        number: u64,
        /// What of.
        answer: Answered<M>,
    },
    /// More is to be done than one turn should: [`super::Hosted::resume`] in a later one.
    Resume,
    /// A message said what no correct peer says; nothing was changed.
    Refuse(&'static str),
}

/// All that may be seen and touched. Built anew for each call.
pub struct Context<'a, M: Machine> {
    /// Who this node is, in this start.
    pub me: Incarnation,
    /// Monotonic time.
    pub now: Time,
    /// The lane's bytes.
    pub table: &'a dyn Table,
    /// What is asked for, in order.
    pub out: &'a mut Vec<Action<M>>,
}

impl<M: Machine> Context<'_, M> {
    pub(super) fn write(&mut self, key: Bytes, value: Option<Bytes>) {
        self.out.push(Action::Write { class: Class::Data, key, value });
    }

    /// Sends what promises nothing that is stored here.
    pub(super) fn send_early(&mut self, to: impl Into<Recipients>, message: Message<M>) {
        self.out.push(Action::Send { to: to.into(), message, release: Release::Early });
    }

    /// Sends what rests on all that was written before.
    pub(super) fn send(&mut self, to: impl Into<Recipients>, message: Message<M>) {
        self.out.push(Action::Send { to: to.into(), message, release: Release::Lane });
    }
}

/// What is left for a lane when the rest was handed to its effects.
#[derive(Debug)]
pub struct Left<M: Machine> {
    /// Commands that are answered.
    pub answers: Vec<(u64, Answered<M>)>,
    /// Whether there is more to be done in a later turn.
    pub goes_on: bool,
}

/// Hands what is asked for to the effects of a lane, in order.
pub fn carry_out<M: Machine, P: Process>(
    actions: &mut Vec<Action<M>>,
    fx: &mut Effects<P>,
    wrap: impl Fn(Message<M>) -> P::Message,
) -> Left<M> {
    let mut left = Left { answers: Vec::new(), goes_on: false };
    for action in actions.drain(..) {
        match action {
            Action::Write { class, key, value } => fx.write(class, key, value),
            Action::Send { to, message, release } => match release {
                // Where it is asked for it says why it promises nothing.
                Release::Early => fx.send_early(to, wrap(message)),
                Release::State => fx.send_after_state(to, wrap(message)),
                _ => fx.send(to, wrap(message)),
            },
            Action::Answer { number, answer } => left.answers.push((number, answer)),
            Action::Resume => left.goes_on = true,
            Action::Refuse(what) => fx.refuse(what),
        }
    }
    left
}
