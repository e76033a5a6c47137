//! What is said after the proof: records, each encrypted, signed and numbered.
//!
//! ```text
//! length u16 | ciphertext with its tag
//! ```
//! The length is little-endian and counts what follows it. Records have no other meaning: what they
//! hold is one stream of bytes.

use bytes::{Bytes, BytesMut};
use snow::{HandshakeState, TransportState};
use thiserror::Error;

/// How many bytes a record has more than it tells.
pub const RECORD_BYTES_MORE: usize = LENGTH_BYTES + TAG_BYTES;
/// The most bytes that one record tells.
pub const RECORD_BYTES_MAX: usize = u16::MAX as usize - TAG_BYTES;
const LENGTH_BYTES: usize = 2;
const TAG_BYTES: usize = 16;

/// A record that the other side did not write, or not as the next one. The session is of no more
/// use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a record is not what the other side wrote")]
pub struct Broken;

/// A proven connection.
pub struct Session(Box<TransportState>);

impl Session {
    pub(super) fn new(state: HandshakeState) -> Session {
        let state = state.into_transport_mode().expect("both messages of the proof are through");
        Session(Box::new(state))
    }

    /// One record of at most [`RECORD_BYTES_MAX`] bytes.
    #[must_use]
    pub fn seal(&mut self, plain: &[u8]) -> Bytes {
        assert!(plain.len() <= RECORD_BYTES_MAX, "a record is bounded");
        let mut record = BytesMut::zeroed(plain.len() + RECORD_BYTES_MORE);
        let length = self.0.write_message(plain, &mut record[LENGTH_BYTES..]);
        let length = length.expect("there is room, and numbers for 2^64 records");
        let length = u16::try_from(length).expect("a record is bounded");
        record[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
        record.freeze()
    }

    /// Opens a record without its length, behind what `into` has.
    ///
    /// # Errors
    /// [`Broken`]; `into` is as it was.
    pub fn open(&mut self, record: &[u8], into: &mut BytesMut) -> Result<(), Broken> {
        let before = into.len();
        into.resize(before + record.len().saturating_sub(TAG_BYTES), 0);
        let opened = self.0.read_message(record, &mut into[before..]);
        opened.map(drop).map_err(|_| {
            into.truncate(before);
            Broken
        })
    }

    /// Opens all records that have arrived whole, in order.
    ///
    /// # Errors
    /// [`Broken`]; what came before stands in `into`.
    pub fn open_all(&mut self, from: &mut BytesMut, into: &mut BytesMut) -> Result<(), Broken> {
        while let Some(record) = next(from) {
            self.open(&record, into)?;
        }
        Ok(())
    }
}

/// Cuts off the next record, without its length, if it has arrived whole.
pub fn next(from: &mut BytesMut) -> Option<BytesMut> {
    let length = usize::from(u16::from_le_bytes(*from.first_chunk()?));
    if from.len() < LENGTH_BYTES + length {
        return None;
    }
    let mut record = from.split_to(LENGTH_BYTES + length);
    Some(record.split_off(LENGTH_BYTES))
}

#[cfg(test)]
mod tests {
    use super::super::{Purpose, answer, ask};
    use super::*;
    use proptest::prelude::*;
    use quorate_store::Secret;

    fn pair() -> (Session, Session) {
        let (asked, first) = ask(Purpose::Link, &Secret([7; 32]));
        let answered = answer(Purpose::Link, &[Secret([7; 32])], &first);
        let (_, second, here) = answered.expect("the same secret");
        (asked.answered(&second).expect("the same secret"), here)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
        #[test]
        fn records_are_one_stream_of_bytes(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3000), 1..8),
            step in 1usize..5000,
        ) {
            let (mut there, mut here) = pair();
            let mut wire = BytesMut::new();
            pieces.iter().for_each(|piece| wire.extend_from_slice(&there.seal(piece)));
            let (mut arrived, mut plain) = (BytesMut::new(), BytesMut::new());
            for bytes in wire.chunks(step) {
                arrived.extend_from_slice(bytes);
                prop_assert_eq!(here.open_all(&mut arrived, &mut plain), Ok(()));
            }
            prop_assert!(arrived.is_empty());
            prop_assert_eq!(&plain[..], &pieces.concat()[..]);
        }

        #[test]
        fn a_changed_a_lost_and_a_swapped_record_are_noticed(at: prop::sample::Index, by in 1u8..) {
            let (mut there, mut here) = pair();
            let (one, two) = (there.seal(b"one"), there.seal(b"two"));
            let mut plain = BytesMut::new();
            prop_assert_eq!(here.open(&two[LENGTH_BYTES..], &mut plain), Err(Broken));
            let mut changed = one[LENGTH_BYTES..].to_vec();
            let at = at.index(changed.len());
            changed[at] ^= by;
            prop_assert_eq!(here.open(&changed, &mut plain), Err(Broken));
            prop_assert!(plain.is_empty());
        }
    }

    #[test]
    fn the_longest_record_passes_and_the_shortest_does_no_harm() {
        let (mut there, mut here) = pair();
        let long = vec![5; RECORD_BYTES_MAX];
        let record = there.seal(&long);
        assert_eq!(record.len(), RECORD_BYTES_MAX + RECORD_BYTES_MORE);
        let mut plain = BytesMut::new();
        assert_eq!(here.open(&record[LENGTH_BYTES..], &mut plain), Ok(()));
        assert_eq!(&plain[..], &long[..]);
        assert_eq!(here.open(&[], &mut plain), Err(Broken));
        assert_eq!(here.open(&[1; TAG_BYTES - 1], &mut plain), Err(Broken));
    }
}
