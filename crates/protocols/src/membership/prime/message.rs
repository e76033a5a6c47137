//! What the nodes of PRIME say to each other. New variants are only appended.

use super::super::codec::{put, take};
use super::super::configuration::Member;
use super::super::number::RollId;
use super::ledger::{CHAIN_MAX, Ledger};
use crate::epto::{self, EventKey, Horizon};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::mutant;
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use serde::{Deserialize, Serialize};

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Of the order of reports.
    Epto(epto::Message),
    /// Observer to subject, once a second: does it answer?
    Probe {
        /// Names the probe.
        nonce: u64,
        /// The view of the sender. One of another chain shows that somebody has a hole.
        view: RollId,
    },
    /// The answer to a `Probe`.
    ProbeAck {
        /// The probe's.
        nonce: u64,
        /// The view of the sender.
        view: RollId,
    },
    /// Who doubts its view, to all members: which views did you go through?
    Ask,
    /// The answer to an `Ask`: the newest views, and the last report behind them.
    Views {
        /// One after the other, the present one last.
        chain: Vec<RollId>,
        /// The last report that the sender has taken in.
        last: Option<EventKey>,
    },
    /// Who doubts, or joins, to one node: send all that you have.
    Fetch,
    /// The answer to a `Fetch`: the sender's view, what is reported in it, and how far it has come
    /// in the order. The receiver may go on from there.
    Whole(#[serde(skip)] Option<Arc<Whole>>),
    /// Joiner to those that would observe it: let me in.
    Join(Arc<Member>),
    /// The answer to one that was a member and is none any more: it comes back under another id.
    Gone,
    /// The answer to an `Ask` of a member without a place: what it knew last.
    Rests {
        /// Its view.
        view: RollId,
        /// The last report that it has taken in.
        last: Option<EventKey>,
    },
    /// Member to any host, also one that is no member of its view: they may have been divided. Also
    /// the answer of one whose view is to stay.
    Meet {
        /// The newest views of the sender, one after the other, the present one last.
        chain: Vec<RollId>,
        /// How many members it has.
        members: u64,
        /// Whether a majority of them has said that it is theirs.
        is_sure: bool,
    },
}

/// All that a node has of the order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    pub(super) ledger: Ledger,
    pub(super) horizon: Horizon,
}

impl Whole {
    fn encode(&self) -> Bytes {
        let mut out = Vec::new();
        put(&mut out, &self.horizon);
        out.extend(self.ledger.encode());
        out.into()
    }

    fn decode(mut bytes: &[u8]) -> Option<Whole> {
        let horizon: Horizon = take(&mut bytes)?;
        let ledger = Ledger::decode(bytes)?;
        let is_sound = horizon.is_sound() && is_sound(ledger.last());
        let is_sound = is_sound || mutant!("prime_believes_any_clock");
        is_sound.then_some(Whole { ledger, horizon })
    }
}

impl Message {
    /// Whether it is for a host under whatever id it is there now: it is part of the order, or its
    /// sender may not know the id.
    #[must_use]
    pub fn is_for_any_id(&self) -> bool {
        matches!(self, Message::Epto(_) | Message::Fetch | Message::Meet { .. })
    }

    /// The bytes that travel beside the head.
    #[must_use]
    pub fn tail(&self) -> Bytes {
        match self {
            Message::Epto(message) => message.tail(),
            Message::Whole(Some(whole)) => whole.encode(),
            _ => Bytes::new(),
        }
    }

    /// A message whose head was read, with its tail.
    ///
    /// # Errors
    /// No correct peer sends it; nothing was changed.
    pub fn with_tail(self, tail: Bytes) -> Result<Message, WireError> {
        let is_sound = match &self {
            Message::Epto(message) => return message.clone().with_tail(tail).map(Message::Epto),
            Message::Whole(_) => {
                let whole = Whole::decode(&tail).map(|whole| Message::Whole(Some(whole.into())));
                return whole.ok_or(WireError::Malformed { what: "state of PRIME" });
            }
            Message::Views { chain, last } => is_chain(chain) && is_sound(*last),
            Message::Meet { chain, .. } => is_chain(chain),
            Message::Rests { last, .. } => is_sound(*last),
            Message::Join(member) => member.is_well_formed(),
            _ => true,
        };
        let wrong = WireError::Malformed { what: "message of PRIME" };
        if is_sound && tail.is_empty() { Ok(self) } else { Err(wrong) }
    }
}

impl Wire for Message {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(self);
        out.tail(0, &self.tail());
    }

    fn decode(input: &Decoder) -> Result<Message, WireError> {
        input.head::<Message>()?.with_tail(input.tail(0))
    }
}

/// Whether a correct peer may have views one after the other.
fn is_chain(chain: &[RollId]) -> bool {
    let follows = |two: &[RollId]| two[0].number.next() == two[1].number;
    (1..=CHAIN_MAX).contains(&chain.len()) && chain.windows(2).all(follows)
}

/// Whether a correct peer may have taken this in last.
fn is_sound(last: Option<EventKey>) -> bool {
    last.is_none_or(EventKey::is_sound)
}
