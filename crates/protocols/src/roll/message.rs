//! What hosts say to each other: the messages of the roll's kind, and under which names.

use crate::membership::{self, prime};
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::NodeId;
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use serde::{Deserialize, Serialize};

/// A message of the roll.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// How often its sender had come before: with its node id that is its name.
    pub coming: u64,
    /// The name of the receiver that it is for; none if it is for the host under any name. One that
    /// has come again takes nothing that was meant for what it was before.
    pub whom: Option<NodeId>,
    /// What it says.
    pub says: Says,
}

/// What a message says. All hosts of a cluster keep the roll in the same way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Says {
    /// In Rapid's words.
    Rapid(membership::Message),
    /// In PRIME's.
    Prime(prime::Message),
}

impl Says {
    fn tail(&self) -> Bytes {
        match self {
            Says::Rapid(message) => message.tail(),
            Says::Prime(message) => message.tail(),
        }
    }

    fn with_tail(self, tail: Bytes) -> Result<Says, WireError> {
        match self {
            Says::Rapid(message) => message.with_tail(&tail).map(Says::Rapid),
            Says::Prime(message) => message.with_tail(tail).map(Says::Prime),
        }
    }
}

impl Wire for Message {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(&(self.coming, self.whom, &self.says));
        out.tail(0, &self.says.tail());
    }

    fn decode(input: &Decoder) -> Result<Message, WireError> {
        let (coming, whom, head) = input.head::<(u64, Option<NodeId>, Says)>()?;
        Ok(Message { coming, whom, says: head.with_tail(input.tail(0))? })
    }
}
