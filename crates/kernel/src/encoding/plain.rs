//! Values that are stored and sent as they are: their fields as postcard bytes.
//!
//! A process whose messages need no layout of their own says so with one line, and what it stores
//! is read back in the same way. Who wants a short head and shared tails implements [`Wire`].

use crate::error::WireError;
use crate::wire::{Decoder, Encoder, Wire};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A value whose bytes are its fields, one after the other.
pub trait PlainData: Serialize + DeserializeOwned {
    /// Whether it can have come about. Bytes are no such value if it cannot.
    fn is_sound(&self) -> bool {
        true
    }

    /// What is stored and sent of it.
    fn to_bytes(&self) -> Bytes {
        postcard::to_allocvec(self).expect("plain data always serializes").into()
    }

    /// The value of these bytes, which it must use up.
    ///
    /// # Errors
    /// They are no such value, or one that cannot have come about.
    fn from_bytes(bytes: &[u8]) -> Result<Self, WireError> {
        let value: Self = Decoder::value(bytes)?;
        let wrong = WireError::Malformed { what: "fields that do not go together" };
        if value.is_sound() { Ok(value) } else { Err(wrong) }
    }
}

/// As a message it is one raw tail, so it may be as long as a frame.
impl<T: PlainData> Wire for T {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.tail(0, &self.to_bytes());
    }

    fn decode(input: &Decoder) -> Result<T, WireError> {
        T::from_bytes(&input.tail(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Body;
    use alloc::vec;
    use alloc::vec::Vec;
    use bytes::BytesMut;
    use serde::Deserialize;

    #[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
    struct Ascending(Vec<u32>);

    impl PlainData for Ascending {
        fn is_sound(&self) -> bool {
            self.0.is_sorted()
        }
    }

    #[test]
    fn what_is_sound_comes_back_from_the_wire_and_the_store() {
        let long = Ascending((0..100_000).collect());
        assert_eq!(Ascending::from_bytes(&long.to_bytes()), Ok(Ascending((0..100_000).collect())));
        let body = Body::encode(&long, &mut BytesMut::new()).expect("a frame has room for it");
        assert_eq!(body.decode(), Ok(long));
        for wrong in [&[][..], &[2, 1], &[2, 2, 1], &[1, 1, 1]] {
            assert!(Ascending::from_bytes(wrong).is_err(), "{wrong:?}");
        }
        let wrong = Body::encode(&Ascending(vec![2, 1]), &mut BytesMut::new()).expect("short");
        assert!(wrong.decode::<Ascending>().is_err());
    }
}
