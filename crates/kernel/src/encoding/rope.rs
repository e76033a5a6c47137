//! Output bytes of a connection: small pieces are gathered, large ones are shared, not copied.

use alloc::collections::VecDeque;
use bytes::{Buf, Bytes, BytesMut};

/// A piece from this length on is queued by reference instead of being copied.
const SHARE_BYTES_MIN: usize = 4096;
/// How much room is taken at a time for small pieces.
const GATHER_BYTES: usize = 16 * 1024;

/// A queue of bytes to write.
#[derive(Default, Debug)]
pub struct Rope {
    full: VecDeque<Bytes>,
    open: BytesMut,
    length: usize,
}

impl Rope {
    /// How many bytes wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Appends a copy of some bytes.
    pub fn push_slice(&mut self, bytes: &[u8]) {
        if self.open.capacity() - self.open.len() < bytes.len() {
            self.seal();
            self.open.reserve(bytes.len().max(GATHER_BYTES));
        }
        self.open.extend_from_slice(bytes);
        self.length += bytes.len();
    }

    /// Appends shared bytes: by reference when they are long enough to be worth it.
    pub fn push(&mut self, bytes: Bytes) {
        if bytes.len() < SHARE_BYTES_MIN {
            self.push_slice(&bytes);
        } else {
            self.seal();
            self.length += bytes.len();
            self.full.push_back(bytes);
        }
    }

    fn seal(&mut self) {
        if !self.open.is_empty() {
            self.full.push_back(self.open.split().freeze());
        }
    }

    /// The pieces in order, for a vectored write.
    pub fn chunks(&self) -> impl Iterator<Item = &[u8]> {
        let open: &[u8] = &self.open;
        self.full.iter().map(|piece| &piece[..]).chain((!open.is_empty()).then_some(open))
    }

    /// Drops the first `count` bytes: they were written.
    pub fn advance(&mut self, mut count: usize) {
        assert!(count <= self.length, "no more can be written than waits");
        self.length -= count;
        while let Some(first) = self.full.front_mut() {
            if count < first.len() {
                first.advance(count);
                return;
            }
            count -= first.len();
            self.full.pop_front();
        }
        if count == self.open.len() {
            // Keeps the room for what comes next.
            self.open.clear();
        } else {
            self.open.advance(count);
        }
    }

    /// Moves at most `count` of the first bytes into a buffer.
    pub fn take(&mut self, count: usize, into: &mut BytesMut) {
        let mut left = count.min(self.length);
        let taken = left;
        for chunk in self.chunks() {
            let piece = &chunk[..chunk.len().min(left)];
            into.extend_from_slice(piece);
            left -= piece.len();
            if left == 0 {
                break;
            }
        }
        self.advance(taken);
    }

    /// Gives up the room kept for small pieces, if nothing waits.
    pub fn release(&mut self) {
        if self.is_empty() {
            self.open = BytesMut::new();
        }
    }

    /// Everything that waits, as one piece.
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        let mut all = BytesMut::with_capacity(self.length);
        for chunk in self.chunks() {
            all.extend_from_slice(chunk);
        }
        all.freeze()
    }

    /// Forgets everything that waits.
    pub fn clear(&mut self) {
        *self = Rope::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn it_is_a_queue_of_bytes(pieces in prop::collection::vec((0usize..10_000, any::<bool>(), 0usize..9_000), 0..20)) {
            let mut rope = Rope::default();
            let mut model: Vec<u8> = Vec::new();
            for (n, (length, shared, drop)) in pieces.into_iter().enumerate() {
                let piece: Vec<u8> = (0..length).map(|i| (i + n) as u8).collect();
                model.extend(&piece);
                if shared { rope.push(piece.into()) } else { rope.push_slice(&piece) }
                let drop = drop.min(model.len());
                if shared {
                    let mut taken = BytesMut::new();
                    rope.take(drop, &mut taken);
                    prop_assert_eq!(&taken[..], &model[..drop]);
                } else {
                    rope.advance(drop);
                }
                model.drain(..drop);
                prop_assert_eq!(rope.len(), model.len());
                prop_assert_eq!(&rope.to_bytes()[..], &model[..]);
            }
        }
    }
}
