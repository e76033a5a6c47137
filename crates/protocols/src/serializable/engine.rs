//! One group at one node: what is asked of it, and the only match on inputs.
//!
//! The lane that comes with the engine keeps one of these beside each [`crate::vsr::Replica`], and
//! hands it what that tells.

use super::commit::optimizations::Optimizations;
use super::execute::act::WallMs;
use super::execute::apply::Executed;
use super::message::{Message, Refused, Reply, Request};
use super::primary::in_hand::Primary;
use super::state::State;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{GroupId, NodeId, Ticket};
use quorate_kernel::mutant;
use quorate_kernel::process::Table;
use quorate_kernel::time::Time;

/// What happens to a group at a node.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The replica leads, and has executed what earlier views have committed
    /// ([`crate::vsr::Event::Serving`]). What was executed until then is not handed on.
    Serving,
    /// It leads no more ([`crate::vsr::Event::Deposed`]). Handed on before what was executed in the
    /// same call: that may be of another primary.
    Deposed,
    /// The replica has refused an [`Action::Propose`]. It and those behind it, of the same answer,
    /// were not put into the log: so many. They are asked for again, in their order. Handed on
    /// before any other input of this group: the next one may propose more, and it is the last ones
    /// proposed that are meant.
    NotTaken(usize),
    /// The replica has refused an [`Action::Confirm`]: the read is not answered here.
    NotConfirmed(Ticket),
    /// Entries were executed ([`State::take_executed`]).
    Executed(Vec<Executed>),
    /// What [`Action::Confirm`] asked for ([`crate::vsr::Event::Readable`]); handed on in the very
    /// call that tells it.
    Readable(Ticket),
    /// Another group says something.
    Message(Message),
    /// A client asks something.
    Request {
        /// Where the answer goes.
        ticket: Ticket,
        /// What it asks.
        request: Request,
    },
    /// Time has passed; every 50 ms or so.
    Tick,
    /// Some keys are looked at for what has expired and for old tombstones.
    Sweep {
        /// Where to begin; the answer is an [`Action::Swept`].
        from: Bytes,
        /// Tombstones of entries up to here are dropped.
        purge: crate::vsr::Op,
    },
    /// A bucket should be here. Said again as long as it is so.
    Want {
        /// The bucket.
        bucket: u8,
        /// How often it was handed over, and who has it, as far as is known.
        home: (u64, GroupId),
    },
    /// So many groups should share the buckets, as far as is known. Said again now and then: a
    /// bucket is handed over to no other group than the one that it should be of.
    Wanted(super::lane::Shape),
    /// A group is to be founded; of the first group. Said again as long as it is not noted.
    Found {
        /// The group.
        group: GroupId,
        /// Its founders.
        members: Vec<NodeId>,
    },
    /// A client was not heard of for long. Said again as long as it is so: it is dropped when there
    /// is room for that in the log.
    ClientGone(super::number::Client),
}

/// One thing that a group asks of its lane.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Puts an entry into the log ([`crate::vsr::Replica::propose`]), in the order of the actions.
    /// If the replica refuses one, for whatever reason, none behind it may be put into the log, and
    /// [`Input::NotTaken`] says how many were not. The group goes on: whether it still leads, the
    /// replica tells itself, and what is in the log without it would be executed unexpected.
    Propose(Bytes),
    /// Asks whether this node still leads ([`crate::vsr::Replica::read`]). If that is refused,
    /// [`Input::NotConfirmed`] follows.
    Confirm(Ticket),
    /// Sends a message to the primary of a group. It rests on what was executed, so on nothing that
    /// this node still has to store.
    Send {
        /// The group.
        to: GroupId,
        /// The message.
        message: Message,
    },
    /// Answers a client.
    Reply {
        /// Where its question came from.
        ticket: Ticket,
        /// The answer.
        reply: Reply,
    },
    /// Where buckets are has changed, or who founds groups.
    Placed,
    /// A sweep has ended.
    Swept {
        /// Where the next one begins; none after the last key.
        next: Option<Bytes>,
        /// Whether there was something to remove.
        has_found: bool,
    },
}

/// All that a group may see and touch. Built anew for each call.
pub struct Context<'a> {
    /// The replicated state.
    pub state: &'a State,
    /// Whether the state is right ([`crate::vsr::Replica::is_settled`]). While a copy is made it is
    /// a part of one: the rest looks as if it had never been there.
    pub is_settled: bool,
    /// Which life of the group's log this is ([`crate::vsr::Configuration::life`]): what was
    /// acknowledged in another one may be lost, and places are counted anew.
    pub life: u64,
    /// The lane's bytes.
    pub table: &'a dyn Table,
    /// Monotonic time.
    pub now: Time,
    /// The wall clock; it may run backwards.
    pub wall: WallMs,
    /// What is asked for, in order.
    pub out: &'a mut Vec<Action>,
}

impl Context<'_> {
    pub(super) fn send(&mut self, to: GroupId, message: Message) {
        self.out.push(Action::Send { to, message });
    }

    pub(super) fn reply(&mut self, ticket: Ticket, reply: Reply) {
        self.out.push(Action::Reply { ticket, reply });
    }

    pub(super) fn refuse(&mut self, ticket: Ticket, refused: Refused) {
        self.reply(ticket, Reply::Refused(refused));
    }
}

/// A group at a node: what it has in hand while it leads.
#[derive(Debug)]
pub struct Member {
    optimizations: Optimizations,
    primary: Option<Primary>,
    wanted: Option<super::lane::Shape>,
}

impl Member {
    /// One that does not lead.
    #[must_use]
    pub fn new(optimizations: Optimizations) -> Member {
        Member { optimizations, primary: None, wanted: None }
    }

    /// Whether it takes itself for the primary.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.primary.is_some()
    }

    /// How many transactions it has in hand.
    #[must_use]
    pub fn in_hand(&self) -> usize {
        self.primary.as_ref().map_or(0, Primary::in_hand)
    }

    /// Takes an input.
    pub fn handle(&mut self, input: Input, cx: &mut Context<'_>) {
        if self.primary.is_none() && mutant!("txn_serve_before_replay") {
            self.primary = Some(Primary::new(self.optimizations, cx));
        }
        if let Input::Wanted(wanted) = input {
            self.wanted = Some(wanted);
        }
        match (&mut self.primary, input) {
            (before, Input::Serving) => {
                let kept = before.take().filter(|_| mutant!("txn_tail_validated_across_views"));
                let mut primary = Primary::new(self.optimizations, cx);
                primary.moving.wanted = self.wanted;
                if let Some(kept) = kept {
                    primary.tail = kept.tail;
                }
                primary.begin(cx);
                primary.settle(cx);
                self.primary = Some(primary);
            }
            (Some(_), Input::Deposed) => {
                if !mutant!("txn_tail_validated_across_views") {
                    self.primary = None;
                }
            }
            (Some(primary), input) => {
                primary.saw_clock(cx);
                match input {
                    Input::Serving | Input::Deposed => {}
                    Input::NotTaken(count) => primary.not_taken(count),
                    Input::NotConfirmed(ticket) => primary.not_confirmed(ticket, cx),
                    Input::Executed(executed) => primary.on_executed(executed, cx),
                    Input::Readable(ticket) => primary.on_readable(ticket, cx),
                    Input::Message(message) => primary.on_message(message, cx),
                    Input::Request { ticket, request } => primary.on_request(ticket, request, cx),
                    Input::Tick => primary.tick(cx),
                    Input::Sweep { from, purge } => primary.sweep(&from, purge, cx),
                    Input::ClientGone(client) => primary.client_gone(client, cx),
                    Input::Want { bucket, home } => primary.want(bucket, home, cx),
                    Input::Wanted(wanted) => primary.moving.wanted = Some(wanted),
                    Input::Found { group, members } => primary.found(group, &members, cx),
                }
                primary.settle(cx);
                primary.release_all(cx);
            }
            (None, Input::Request { ticket, request: Request::ReadAny { keys } }) => {
                super::commit::read::read_any(ticket, &keys, cx);
            }
            (None, Input::Request { ticket, .. }) => cx.refuse(ticket, Refused::NotPrimary),
            (None, Input::NotConfirmed(ticket)) => cx.refuse(ticket, Refused::NotPrimary),
            // Where this node was it goes on when it leads again.
            (None, Input::Sweep { from, .. }) => {
                cx.out.push(Action::Swept { next: Some(from), has_found: false });
            }
            // Another member leads; what others say is said again to it.
            (None, _) => {}
        }
    }
}

impl Default for Member {
    fn default() -> Member {
        Member::new(Optimizations::default())
    }
}
