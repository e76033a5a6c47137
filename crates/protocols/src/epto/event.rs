//! Events, and the balls in which they travel.

use super::key::{EventKey, LogicalTime, Sequence};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::limits::{EPTO_BALL_EVENTS_MAX, EPTO_PAYLOAD_BYTES_MAX, EPTO_TTL_MAX};
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// What a payload is known by while it is elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// Its length.
    pub bytes: u32,
    /// Its hash, little-endian. It tells accidents, not malice.
    pub hash: [u8; 8],
}

/// All of an event but its payload. It is the same in all copies, wherever they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Its name, and place in the order.
    pub key: EventKey,
    /// Its place among the events of its source.
    pub sequence: Sequence,
    /// The paper's TTL: for how many rounds it is relayed, as its source says. All judge its
    /// stability by this, so that nodes with other parameters do not disagree.
    pub ttl_max: u16,
    /// The payload, which is pulled apart from it.
    pub payload: Digest,
}

/// A copy of an event in a ball.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Copied {
    /// The event.
    pub event: Event,
    /// How many whole rounds it has been known to those who have passed it on, as far as counted:
    /// never more than have passed since its broadcast.
    pub ttl: u16,
    /// Whether the sender has the payload, so that it may be pulled there.
    pub is_held: bool,
}

/// Events that are sent together, ascending by key. Sent each round to the same few random peers;
/// the receiver relays what is young enough.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ball(pub Vec<Copied>);

impl Digest {
    /// That of these bytes. They are no more than a payload may have.
    #[must_use]
    pub fn of(payload: &[u8]) -> Digest {
        let bytes = u32::try_from(payload.len()).expect("a payload is bounded");
        Digest { bytes, hash: xxh3_64(payload).to_le_bytes() }
    }

    /// The length in memory.
    #[must_use]
    pub fn length(&self) -> usize {
        self.bytes as usize
    }
}

impl Event {
    /// Whether a correct peer may have made it.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let is_named = self.key.is_sound() && self.sequence.0 > 0;
        let is_counted = self.sequence.0 <= self.key.time.0;
        is_named
            && is_counted
            && (1..=EPTO_TTL_MAX).contains(&self.ttl_max)
            && self.payload.length() <= EPTO_PAYLOAD_BYTES_MAX
    }
}

impl Ball {
    /// The highest time in it.
    #[must_use]
    pub fn highest(&self) -> LogicalTime {
        self.0.last().map_or(LogicalTime(0), |copy| copy.event.key.time)
    }

    /// Whether a correct peer may have made it.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        (1..=EPTO_BALL_EVENTS_MAX).contains(&self.0.len())
            && self.0.iter().all(|copy| copy.event.is_sound())
            && self.0.windows(2).all(|two| two[0].event.key < two[1].event.key)
    }

    /// Divides copies, ascending by key, into balls that fit messages.
    pub(super) fn split(copies: &[Copied]) -> impl Iterator<Item = Arc<Ball>> + '_ {
        copies.chunks(EPTO_BALL_EVENTS_MAX).map(|part| Arc::new(Ball(part.to_vec())))
    }
}
