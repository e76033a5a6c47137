//! Frames out of the bytes of a connection.

use bytes::{Buf, BytesMut};
use quorate_kernel::limits::JUTE_FRAME_BYTES_MAX;

/// What is at the front of a connection's bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Four letters in place of a first frame.
    Word([u8; 4]),
    /// A whole frame, without its length.
    Frame(BytesMut),
    /// Less than that.
    Nothing,
    /// A length that no frame has. Where the next one begins is not known.
    Broken,
}

/// Four letters are no length: as such they are far beyond the longest frame.
fn is_word(first: &[u8; 4], is_first: bool) -> bool {
    is_first && first.iter().all(u8::is_ascii_lowercase)
}

fn length(first: &[u8; 4]) -> Option<usize> {
    let length = usize::try_from(i32::from_be_bytes(*first)).ok()?;
    (length <= JUTE_FRAME_BYTES_MAX).then_some(length)
}

/// Takes what is at the front, if it is whole. A length is checked when it is there; no room is
/// taken for what has not come.
pub(crate) fn next(input: &mut BytesMut, is_first: bool) -> Next {
    let Some(first) = input.first_chunk::<4>().copied() else { return Next::Nothing };
    if is_word(&first, is_first) {
        input.advance(4);
        return Next::Word(first);
    }
    let Some(length) = length(&first) else { return Next::Broken };
    if input.len() < 4 + length {
        return Next::Nothing;
    }
    input.advance(4);
    Next::Frame(input.split_to(length))
}

/// How many bytes the frame takes of which the beginning is there; 0 if none is.
pub(crate) fn begun_bytes(input: &BytesMut) -> usize {
    let announced = input.first_chunk().and_then(length).map_or(0, |length| 4 + length);
    if input.is_empty() { 0 } else { input.len().max(announced) }
}

const _: () = assert!((JUTE_FRAME_BYTES_MAX as u32) < u32::from_be_bytes(*b"aaaa"));
