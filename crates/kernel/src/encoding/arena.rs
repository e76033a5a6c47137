//! Room for short strings of bytes that are soon dropped: keys, and records on their way.

use bytes::{Bytes, BytesMut};

/// How much room is taken at a time.
const ROOM_BYTES: usize = 32 * 1024;
/// A longer string has an allocation of its own: it may live long, and would keep the others.
const SHARED_BYTES_MAX: usize = 4 * 1024;

/// Where many short strings share one allocation. What is kept for long must be copied out of it.
#[derive(Debug, Default)]
pub struct Arena(BytesMut);

impl Arena {
    /// These pieces, one behind the other.
    pub fn join(&mut self, pieces: &[&[u8]]) -> Bytes {
        let length = pieces.iter().map(|piece| piece.len()).sum();
        let mut own = BytesMut::new();
        let room = if length <= SHARED_BYTES_MAX { &mut self.0 } else { &mut own };
        assert!(room.is_empty(), "what was joined is handed out");
        if room.capacity() < length {
            room.reserve(if length <= SHARED_BYTES_MAX { ROOM_BYTES } else { length });
        }
        pieces.iter().for_each(|piece| room.extend_from_slice(piece));
        room.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn pieces_are_joined_whatever_their_length() {
        let mut arena = Arena::default();
        let long = [7; SHARED_BYTES_MAX];
        let mut joined = Vec::new();
        for n in 0..100_u8 {
            joined.push(arena.join(&[&[n], &long[..usize::from(n) * 40], b"end"]));
        }
        joined.push(arena.join(&[&long, b"more"]));
        joined.push(arena.join(&[]));
        for (n, bytes) in (0..100_u8).zip(&joined) {
            assert_eq!(bytes.len(), 4 + usize::from(n) * 40);
            assert!(bytes[0] == n && bytes.ends_with(b"end"));
        }
        assert_eq!((joined[100].len(), joined[101].len()), (SHARED_BYTES_MAX + 4, 0));
    }
}
