//! Frames between nodes, and the codec of the messages in them.
//!
//! ```text
//! len u32 | version u8 | lane u32 | source node u64, start u32 | target node u64, start u32
//!         | checksum u32 | head length u32 | first tail length u32 | head | tail | tail
//! ```
//! All integers are little-endian. `len` counts what follows it. The head is the message's fields
//! as postcard bytes; the at most two tails are raw (a key, a record), sliced out of the frame as
//! shared bytes and never copied. A target start of 0 means any. Node ids stand in full, which
//! spares the handshake an agreement on short ones.

use crate::arena::Arena;
use crate::error::WireError;
use crate::ids::{Incarnation, LaneId, NodeId, Start};
use crate::limits::{FRAME_BYTES_MAX, HEADER_BYTES_MAX, HEADER_BYTES_USUAL};
use crate::rng::mix;
use crate::rope::Rope;
use bytes::{Buf, Bytes, BytesMut};
use serde::{Serialize, de::DeserializeOwned};
use xxhash_rust::xxh3::xxh3_64;

/// The version of the frame layout and of every message in it.
pub const VERSION: u8 = 15;
/// The bytes of a frame before its head.
pub const PREFIX_BYTES: usize = 45;
/// How many raw tails a message can have.
pub const TAILS: usize = 2;
/// Most heads are no longer than this: they are written at once, without an allocation.
const HEAD_BYTES_MOST: usize = 512;
const LENGTH_BYTES: usize = 4;
const SOURCE_AT: usize = 9;
const CHECKSUM_AT: usize = 33;
const HEAD_AT: usize = 37;
const FIRST_AT: usize = 41;

/// A message that can cross the network.
pub trait Wire: Sized {
    /// The longest head in bytes. Whoever wants more than is usual reads long lists with
    /// [`Decoder::items`], and stops at a limit of its own.
    const HEAD_BYTES_MAX: usize = HEADER_BYTES_USUAL;

    /// Writes the message: one head, at most two tails.
    fn encode(&self, out: &mut Encoder<'_>);

    /// Reads a message back.
    ///
    /// # Errors
    /// The bytes are not a message of this kind; nothing was changed.
    fn decode(input: &Decoder) -> Result<Self, WireError>;
}

/// Where a message is written.
pub struct Encoder<'a> {
    head: &'a mut BytesMut,
    tails: [Bytes; TAILS],
}

impl Encoder<'_> {
    /// Appends a value to the head.
    pub fn head<T: Serialize>(&mut self, value: &T) {
        let mut room = [0; HEAD_BYTES_MOST];
        if let Ok(used) = postcard::to_slice(value, &mut room) {
            self.head.extend_from_slice(used);
        } else {
            let bytes = postcard::to_allocvec(value).expect("plain data always serializes");
            self.head.extend_from_slice(&bytes);
        }
    }

    /// Appends bytes to the head as they are.
    pub fn raw(&mut self, bytes: &[u8]) {
        self.head.extend_from_slice(bytes);
    }

    /// Sets a raw tail.
    pub fn tail(&mut self, index: usize, bytes: &Bytes) {
        self.tails[index] = bytes.clone();
    }
}

/// What a message is read from.
pub struct Decoder {
    head: Bytes,
    tails: [Bytes; TAILS],
}

impl Decoder {
    /// The message.
    ///
    /// # Errors
    /// The bytes are not a message of this kind, or more than it may have; nothing was changed.
    pub fn message<M: Wire>(&self) -> Result<M, WireError> {
        within("head of a message", self.head.len(), M::HEAD_BYTES_MAX)?;
        M::decode(self)
    }

    /// The values that were written to the head one after the other, read one by one: of a long
    /// list no more is taken into memory than the reader keeps.
    pub fn items<T: DeserializeOwned>(&self) -> impl Iterator<Item = Result<T, WireError>> + '_ {
        let mut rest = &self.head[..];
        core::iter::from_fn(move || {
            let bytes = core::mem::take(&mut rest);
            match postcard::take_from_bytes(bytes) {
                _ if bytes.is_empty() => None,
                // What takes no bytes would never end.
                Ok((value, after)) if after.len() < bytes.len() => {
                    rest = after;
                    Some(Ok(value))
                }
                _ => Some(Err(WireError::Malformed { what: "message fields" })),
            }
        })
    }

    /// The head as a value; the whole head must be used up.
    ///
    /// # Errors
    /// The head is not such a value.
    pub fn head<T: DeserializeOwned>(&self) -> Result<T, WireError> {
        Decoder::value(&self.head)
    }

    /// Such a value of bytes that it must use up.
    ///
    /// # Errors
    /// The bytes are not such a value.
    pub fn value<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
        match postcard::take_from_bytes(bytes) {
            Ok((value, [])) => Ok(value),
            Ok(_) => Err(WireError::Malformed { what: "bytes after the message's fields" }),
            Err(_) => Err(WireError::Malformed { what: "message fields" }),
        }
    }

    /// What the head takes on the wire, as it was received.
    #[must_use]
    pub fn head_bytes(&self) -> &[u8] {
        &self.head
    }

    /// A raw tail, shared with the frame.
    #[must_use]
    pub fn tail(&self, index: usize) -> Bytes {
        self.tails[index].clone()
    }

    /// The head and the tails as they arrived.
    #[must_use]
    pub fn parts(&self) -> (Bytes, [Bytes; TAILS]) {
        (self.head.clone(), self.tails.clone())
    }
}

/// An encoded message, shared by all its recipients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Body {
    head: Bytes,
    tails: [Bytes; TAILS],
    checksum: u64,
}

impl Body {
    /// Encodes a message; `arena` lends the room of the head.
    ///
    /// # Errors
    /// It is longer than a message of its kind, or any frame, may be.
    pub fn encode<M: Wire>(message: &M, arena: &mut BytesMut) -> Result<Body, WireError> {
        const { assert!(M::HEAD_BYTES_MAX <= HEADER_BYTES_MAX, "a head fits a frame") };
        let mut encoder = Encoder { head: arena, tails: [Bytes::new(), Bytes::new()] };
        message.encode(&mut encoder);
        let tails = encoder.tails;
        let head = arena.split().freeze();
        within("head of a message", head.len(), M::HEAD_BYTES_MAX)?;
        let length = PREFIX_BYTES - LENGTH_BYTES + head.len() + tails[0].len() + tails[1].len();
        within("frame", length, FRAME_BYTES_MAX)?;
        let checksum = checksum(&head, &tails[0], &tails[1]);
        Ok(Body { head, tails, checksum })
    }

    /// Reads the message back, as a test or a local delivery does.
    ///
    /// # Errors
    /// The bytes are not a message of this kind.
    pub fn decode<M: Wire>(&self) -> Result<M, WireError> {
        Decoder { head: self.head.clone(), tails: self.tails.clone() }.message()
    }

    /// How many bytes a frame of this body has.
    #[must_use]
    pub fn frame_bytes(&self) -> usize {
        PREFIX_BYTES + self.head.len() + self.tails[0].len() + self.tails[1].len()
    }
}

fn within(what: &'static str, length: usize, limit: usize) -> Result<(), WireError> {
    let error = WireError::TooLong { what, length: length as u64, limit: limit as u64 };
    if length > limit { Err(error) } else { Ok(()) }
}

fn checksum(head: &[u8], first: &[u8], second: &[u8]) -> u64 {
    let mut sum = xxh3_64(head);
    for piece in [first, second] {
        if !piece.is_empty() {
            sum = mix(sum.rotate_left(17) ^ xxh3_64(piece));
        }
    }
    sum
}

/// A frame on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The lane on both nodes.
    pub lane: LaneId,
    /// Who sends it.
    pub source: Incarnation,
    /// Who shall receive it; start 0 means any start.
    pub target: Incarnation,
    /// The message.
    pub body: Body,
}

impl Frame {
    fn prefix(&self) -> [u8; PREFIX_BYTES] {
        let body = &self.body;
        let length = body.frame_bytes() - LENGTH_BYTES;
        assert!(length <= FRAME_BYTES_MAX, "a frame of {length} bytes is over the limit");
        let mut prefix = [0; PREFIX_BYTES];
        prefix[0..4].copy_from_slice(&(length as u32).to_le_bytes());
        prefix[4] = VERSION;
        prefix[5..9].copy_from_slice(&self.lane.0.to_le_bytes());
        prefix[9..17].copy_from_slice(&self.source.node.0.to_le_bytes());
        prefix[17..21].copy_from_slice(&self.source.start.0.to_le_bytes());
        prefix[21..29].copy_from_slice(&self.target.node.0.to_le_bytes());
        prefix[29..33].copy_from_slice(&self.target.start.0.to_le_bytes());
        prefix[HEAD_AT..FIRST_AT].copy_from_slice(&(body.head.len() as u32).to_le_bytes());
        prefix[FIRST_AT..].copy_from_slice(&(body.tails[0].len() as u32).to_le_bytes());
        let sum = mix(body.checksum ^ xxh3_64(&prefix)) as u32;
        prefix[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&sum.to_le_bytes());
        prefix
    }

    /// Appends the frame to the output of a connection.
    pub fn write(&self, out: &mut Rope) {
        out.push_slice(&self.prefix());
        out.push_slice(&self.body.head);
        for tail in &self.body.tails {
            out.push(tail.clone());
        }
    }

    /// The frame as one piece in the room that an arena lends, as the simulated network carries it.
    #[must_use]
    pub fn join(&self, arena: &mut Arena) -> Bytes {
        let Body { head, tails: [first, second], .. } = &self.body;
        arena.join(&[&self.prefix(), head, first, second])
    }

    /// The frame as one piece of its own.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(self.body.frame_bytes());
        bytes.extend_from_slice(&self.prefix());
        bytes.extend_from_slice(&self.body.head);
        for tail in &self.body.tails {
            bytes.extend_from_slice(tail);
        }
        bytes.freeze()
    }
}

/// A frame of these parts, whatever they hold: what a test sends of which no message says it.
#[must_use]
pub fn frame_of(
    lane: LaneId,
    source: Incarnation,
    target: Incarnation,
    head: Bytes,
    tails: [Bytes; TAILS],
) -> Bytes {
    let checksum = checksum(&head, &tails[0], &tails[1]);
    Frame { lane, source, target, body: Body { head, tails, checksum } }.to_bytes()
}

/// How long the frame at the start of `bytes` is, length field included; `None` if that cannot be
/// told yet.
///
/// # Errors
/// The announced length is impossible; the connection cannot be read on.
pub fn frame_length(bytes: &[u8]) -> Result<Option<usize>, WireError> {
    let Some(field) = bytes.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
    let length = u32::from_le_bytes(*field) as usize;
    within("frame", length, FRAME_BYTES_MAX)?;
    if length + LENGTH_BYTES < PREFIX_BYTES {
        return Err(WireError::Malformed { what: "frame shorter than its prefix" });
    }
    Ok(Some(length + LENGTH_BYTES))
}

/// Who the frame at the start of `bytes` says that it is from.
#[must_use]
pub fn frame_source(bytes: &[u8]) -> Option<Incarnation> {
    let node = u64::from_le_bytes(*bytes.get(SOURCE_AT..)?.first_chunk()?);
    let start = u32::from_le_bytes(*bytes.get(SOURCE_AT + 8..)?.first_chunk()?);
    Some(Incarnation { node: NodeId(node), start: Start(start) })
}

/// A frame that arrived whole.
pub struct Received {
    /// Who of the receiving node takes it.
    pub lane: LaneId,
    /// Who sent it.
    pub source: Incarnation,
    /// Whom it is for; start 0 means any start.
    pub target: Incarnation,
    /// The message, still encoded.
    pub message: Decoder,
}

impl Received {
    /// Checks and takes apart a whole frame, length field included.
    ///
    /// # Errors
    /// The bytes are not a frame; nothing was changed.
    pub fn decode(mut bytes: Bytes) -> Result<Received, WireError> {
        let Some(prefix) = bytes.first_chunk::<PREFIX_BYTES>() else {
            return Err(WireError::Truncated { what: "frame prefix" });
        };
        let mut prefix = *prefix;
        if frame_length(&prefix)? != Some(bytes.len()) {
            return Err(WireError::Truncated { what: "frame" });
        }
        if prefix[4] != VERSION {
            return Err(WireError::Version { found: prefix[4], expected: VERSION });
        }
        let u32_at = |at: usize| {
            u32::from_le_bytes([prefix[at], prefix[at + 1], prefix[at + 2], prefix[at + 3]])
        };
        let u64_at = |at: usize| u64::from(u32_at(at)) | u64::from(u32_at(at + 4)) << 32;
        let incarnation =
            |at: usize| Incarnation { node: NodeId(u64_at(at)), start: Start(u32_at(at + 8)) };
        let (lane, source, target) = (LaneId(u32_at(5)), incarnation(9), incarnation(21));
        let (head_bytes, first_bytes) = (u32_at(HEAD_AT) as usize, u32_at(FIRST_AT) as usize);
        within("head of a message", head_bytes, HEADER_BYTES_MAX)?;
        let sum = u32_at(CHECKSUM_AT);
        bytes.advance(PREFIX_BYTES);
        if head_bytes + first_bytes > bytes.len() {
            return Err(WireError::Malformed { what: "pieces longer than their frame" });
        }
        let head = bytes.split_to(head_bytes);
        let first = bytes.split_to(first_bytes);
        prefix[CHECKSUM_AT..CHECKSUM_AT + 4].fill(0);
        if mix(checksum(&head, &first, &bytes) ^ xxh3_64(&prefix)) as u32 != sum {
            return Err(WireError::Checksum);
        }
        Ok(Received { lane, source, target, message: Decoder { head, tails: [first, bytes] } })
    }
}

#[cfg(test)]
mod tests;
