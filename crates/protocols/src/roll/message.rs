//! What hosts say to each other: the roll's messages, and under which name.

use crate::membership;
use quorate_kernel::error::WireError;
use quorate_kernel::wire::{Decoder, Encoder, Wire};

/// A message of the roll.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// How often its sender had come before: with its node id that is its name.
    pub coming: u64,
    /// What it says.
    pub message: membership::Message,
}

impl Wire for Message {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(&(self.coming, &self.message));
        out.tail(0, &self.message.tail());
    }

    fn decode(input: &Decoder) -> Result<Message, WireError> {
        let (coming, head) = input.head::<(u64, membership::Message)>()?;
        Ok(Message { coming, message: head.with_tail(&input.tail(0))? })
    }
}
