//! The heads of the four messages of every operation, which have a fixed layout: all other messages
//! together are rarer, and their heads are as `serde` has them.
//!
//! ```text
//! ReadA   0 | op u64 | view | want u8
//! ReadB   1 | op u64 | stamp | n u64, writer node u64, start u32, sequence u64 | live u8 | rest
//! WriteA  2 | op u64 | view | generation u64, imposed u8, epoch u64
//! WriteB  3 | op u64 | view | ok u8 | stamp | rest
//!
//! view    group u64, version u64
//! stamp   view | standing u8 | generation u64, floor u64 | epoch u64
//! ```
//! Integers are little-endian. The rest is there only if the stamp names members that forgot, or a
//! newer view: both of them, as in the heads of other messages.

use crate::linearizable::group::{Generation, Standing};
use crate::linearizable::message::{Basis, Known, Message, Stamp, Want};
use crate::linearizable::record::Ts;
use crate::quorum::CrashVector;
use alloc::boxed::Box;
use bytes::{Buf, BufMut};
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Start};
use quorate_kernel::view::{View, ViewId};
use quorate_kernel::wire::{Decoder, Encoder};

const READ_A: u8 = 0;
const READ_B: u8 = 1;
const WRITE_A: u8 = 2;
const WRITE_B: u8 = 3;
/// The longest of these heads without a rest.
const HEAD_BYTES_MAX: usize = 96;

const WANTS: [Want; 3] = [Want::Value, Want::Digest, Want::Counter];
const STANDINGS: [Standing; 7] = [
    Standing::Ready,
    Standing::Busy,
    Standing::Forgot,
    Standing::Outside,
    Standing::Learned,
    Standing::Split,
    Standing::Gathering,
];

/// Whether it is one of these messages. As the head of another one it has no second form.
pub(super) fn is_fixed(message: &Message) -> bool {
    matches!(
        message,
        Message::ReadA { .. }
            | Message::ReadB { .. }
            | Message::WriteA { .. }
            | Message::WriteB { .. }
    )
}

/// Writes the head of one of these messages; false, and nothing, of any other.
pub(crate) fn encode(message: &Message, out: &mut Encoder<'_>) -> bool {
    let mut room = [0; HEAD_BYTES_MAX];
    let mut head = &mut room[..];
    let stamp = match message {
        Message::ReadA { op, view, want, .. } => {
            begin(&mut head, READ_A, *op);
            put_view(&mut head, *view);
            head.put_u8(*want as u8);
            None
        }
        Message::ReadB { op, stamp, ts, live, .. } => {
            begin(&mut head, READ_B, *op);
            put_stamp(&mut head, stamp);
            head.put_u64_le(ts.n);
            head.put_u64_le(ts.writer.node.0);
            head.put_u32_le(ts.writer.start.0);
            head.put_u64_le(ts.sequence);
            head.put_u8(u8::from(*live));
            Some(stamp)
        }
        Message::WriteA { op, view, basis, .. } => {
            begin(&mut head, WRITE_A, *op);
            put_view(&mut head, *view);
            head.put_u64_le(basis.generation);
            head.put_u8(u8::from(basis.is_imposed));
            head.put_u64_le(basis.epoch);
            None
        }
        Message::WriteB { op, view, ok, stamp } => {
            begin(&mut head, WRITE_B, *op);
            put_view(&mut head, *view);
            head.put_u8(u8::from(*ok));
            put_stamp(&mut head, stamp);
            Some(stamp)
        }
        _ => return false,
    };
    let left = head.len();
    out.raw(&room[..HEAD_BYTES_MAX - left]);
    if let Some(Stamp { crashes, hint, .. }) = stamp
        && (!crashes.is_empty() || hint.is_some())
    {
        out.head(&(crashes, hint));
    }
    true
}

fn begin(head: &mut &mut [u8], tag: u8, op: u64) {
    head.put_u8(tag);
    head.put_u64_le(op);
}

fn put_view(head: &mut &mut [u8], view: ViewId) {
    head.put_u64_le(view.group.0);
    head.put_u64_le(view.version);
}

fn put_stamp(head: &mut &mut [u8], stamp: &Stamp) {
    let Known { generation, epoch } = stamp.known;
    put_view(head, stamp.view);
    head.put_u8(stamp.standing as u8);
    head.put_u64_le(generation.number);
    head.put_u64_le(generation.floor);
    head.put_u64_le(epoch);
}

/// Reads one of these messages, its raw parts included; `None` if it is another one.
///
/// # Errors
/// The head is cut off, or has more or other bytes than such a message.
pub(crate) fn decode(input: &Decoder) -> Result<Option<Message>, WireError> {
    let mut head = input.head_bytes();
    let Some(tag @ READ_A..=WRITE_B) = head.first().copied() else { return Ok(None) };
    head.advance(1);
    let head = &mut head;
    let op = u64_of(head)?;
    let message = match tag {
        READ_A => {
            let (view, want) = (view_of(head)?, u8_of(head)?);
            let want = WANTS.get(usize::from(want)).ok_or(malformed("want"))?;
            Message::ReadA { op, view, want: *want, key: input.tail(0) }
        }
        READ_B => {
            let stamp = stamp_of(head)?;
            let n = u64_of(head)?;
            let (node, start) = (NodeId(u64_of(head)?), Start(u32_of(head)?));
            let ts = Ts { n, writer: Incarnation { node, start }, sequence: u64_of(head)? };
            let live = truth_of(head)?;
            let stamp = with_rest(stamp, head)?;
            Message::ReadB { op, stamp, ts, live, record: input.tail(0) }
        }
        WRITE_A => {
            let (view, generation) = (view_of(head)?, u64_of(head)?);
            let (is_imposed, epoch) = (truth_of(head)?, u64_of(head)?);
            let basis = Basis { generation, is_imposed, epoch };
            Message::WriteA { op, view, basis, key: input.tail(0), record: input.tail(1) }
        }
        _ => {
            let (view, ok) = (view_of(head)?, truth_of(head)?);
            let stamp = stamp_of(head)?;
            let stamp = with_rest(stamp, head)?;
            Message::WriteB { op, view, ok, stamp }
        }
    };
    match head.is_empty() {
        true => Ok(Some(message)),
        false => Err(malformed("bytes after the message's fields")),
    }
}

fn malformed(what: &'static str) -> WireError {
    WireError::Malformed { what }
}

fn cut() -> WireError {
    WireError::Truncated { what: "message fields" }
}

fn u8_of(head: &mut &[u8]) -> Result<u8, WireError> {
    head.try_get_u8().map_err(|_| cut())
}

fn u32_of(head: &mut &[u8]) -> Result<u32, WireError> {
    head.try_get_u32_le().map_err(|_| cut())
}

fn u64_of(head: &mut &[u8]) -> Result<u64, WireError> {
    head.try_get_u64_le().map_err(|_| cut())
}

fn truth_of(head: &mut &[u8]) -> Result<bool, WireError> {
    match u8_of(head)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(malformed("truth value")),
    }
}

fn view_of(head: &mut &[u8]) -> Result<ViewId, WireError> {
    Ok(ViewId { group: GroupId(u64_of(head)?), version: u64_of(head)? })
}

fn stamp_of(head: &mut &[u8]) -> Result<Stamp, WireError> {
    let (view, standing) = (view_of(head)?, u8_of(head)?);
    let standing = *STANDINGS.get(usize::from(standing)).ok_or(malformed("standing"))?;
    let generation = Generation { number: u64_of(head)?, floor: u64_of(head)? };
    let known = Known { generation, epoch: u64_of(head)? };
    Ok(Stamp { view, standing, known, crashes: CrashVector::default(), hint: None })
}

/// Adds what follows the fixed part, if anything does.
fn with_rest(stamp: Stamp, head: &mut &[u8]) -> Result<Stamp, WireError> {
    if head.is_empty() {
        return Ok(stamp);
    }
    let (crashes, hint): (CrashVector, Option<Box<View>>) = Decoder::value(core::mem::take(head))?;
    match crashes.is_empty() && hint.is_none() {
        true => Err(malformed("a rest that says nothing")),
        false => Ok(Stamp { crashes, hint, ..stamp }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_want_and_standing_is_told_by_its_number() {
        assert!(WANTS.iter().enumerate().all(|(number, want)| *want as usize == number));
        let is_numbered = |(number, standing): (usize, &Standing)| *standing as usize == number;
        assert!(STANDINGS.iter().enumerate().all(is_numbered));
    }
}
