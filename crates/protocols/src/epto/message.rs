//! What nodes say to each other. New variants are only appended.

use super::event::Ball;
use super::key::EventKey;
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use quorate_kernel::error::WireError;
use quorate_kernel::limits::{EPTO_PAYLOAD_BYTES_MAX, EPTO_PULL_BYTES_MAX, EPTO_PULL_KEYS_MAX};
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use serde::{Deserialize, Serialize};

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// To K random peers, each round in which something is relayed. The receiver knows the events
    /// of it from then on, and relays what is young enough.
    Ball(Arc<Ball>),
    /// To a peer that has said that it has these payloads: send them. Ascending, at least one.
    Pull(Vec<EventKey>),
    /// The answer to a `Pull`.
    Payloads(Payloads),
}

/// Payloads that were asked for, and the names of those that the sender does not have.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Payloads {
    /// The events and the lengths of their payloads in `bytes`, in this order.
    pub found: Vec<(EventKey, u32)>,
    /// Those that may be asked of others at once.
    pub absent: Vec<EventKey>,
    /// The payloads, one behind the other.
    #[serde(skip)]
    pub bytes: Bytes,
}

impl Payloads {
    /// The answer to a question for these, of which `get` has some: as many as fit a message. A
    /// correct peer does not ask for more.
    pub(super) fn answer(keys: &[EventKey], get: impl Fn(&EventKey) -> Option<Bytes>) -> Payloads {
        let (mut found, mut absent) = (Vec::new(), Vec::new());
        let (mut pieces, mut bytes) = (Vec::new(), 0);
        for key in keys {
            let Some(payload) = get(key) else {
                absent.push(*key);
                continue;
            };
            if found.is_empty() || bytes + payload.len() <= EPTO_PULL_BYTES_MAX {
                bytes += payload.len();
                found.push((*key, u32::try_from(payload.len()).expect("a payload is bounded")));
                pieces.push(payload);
            }
        }
        Payloads { found, absent, bytes: join(&pieces) }
    }

    /// Each payload with its event.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (EventKey, Bytes)> + '_ {
        let mut rest = self.bytes.clone();
        self.found
            .iter()
            .map(move |(key, length)| (*key, rest.split_to((*length as usize).min(rest.len()))))
    }

    fn is_sound(&self) -> bool {
        let bytes: u64 = self.found.iter().map(|(_, length)| u64::from(*length)).sum();
        let keys = self.found.len() + self.absent.len();
        bytes == self.bytes.len() as u64
            && self.bytes.len() <= EPTO_PULL_BYTES_MAX.max(EPTO_PAYLOAD_BYTES_MAX)
            && (1..=EPTO_PULL_KEYS_MAX).contains(&keys)
    }
}

/// Pieces one behind the other. One alone is shared, not copied.
fn join(pieces: &[Bytes]) -> Bytes {
    if let [only] = pieces {
        return only.clone();
    }
    let mut joined = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
    pieces.iter().for_each(|piece| joined.extend_from_slice(piece));
    joined.freeze()
}

impl Message {
    /// The bytes that travel beside the head.
    #[must_use]
    pub fn tail(&self) -> Bytes {
        match self {
            Message::Payloads(payloads) => payloads.bytes.clone(),
            Message::Ball(_) | Message::Pull(_) => Bytes::new(),
        }
    }

    /// A message whose head was read, with its tail; for a lane that writes the head beside its
    /// own.
    ///
    /// # Errors
    /// No correct peer sends it; nothing was changed.
    pub fn with_tail(mut self, tail: Bytes) -> Result<Message, WireError> {
        if let Message::Payloads(payloads) = &mut self {
            payloads.bytes = tail;
        } else if !tail.is_empty() {
            return Err(WireError::Malformed { what: "bytes behind a ball" });
        }
        let is_sound = match &self {
            Message::Ball(ball) => ball.is_sound(),
            Message::Pull(keys) => {
                (1..=EPTO_PULL_KEYS_MAX).contains(&keys.len())
                    && keys.windows(2).all(|two| two[0] < two[1])
            }
            Message::Payloads(payloads) => payloads.is_sound(),
        };
        if is_sound { Ok(self) } else { Err(WireError::Malformed { what: "message of EpTO" }) }
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
