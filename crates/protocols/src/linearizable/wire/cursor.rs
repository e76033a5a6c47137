//! Cursors on the wire: a message's head has their tokens, a raw part their keys.
//!
//! Nearly every page ends between two tokens, and then there is no key to send. Of two cursors
//! in one message the keys are `length of the first u16, first, second`; the integer is
//! little-endian.

use crate::linearizable::keys::{first_of, is_data_key};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorate_kernel::error::WireError;
use quorate_kernel::limits::KEY_BYTES_MAX;
use quorate_kernel::operation::Cursor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<S: Serializer>(cursor: &Cursor, to: S) -> Result<S::Ok, S::Error> {
    cursor.token.serialize(to)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Cursor, D::Error> {
    u64::deserialize(from).map(Cursor::at)
}

/// The same where there may be none.
pub(crate) mod optional {
    use super::*;

    pub fn serialize<S: Serializer>(cursor: &Option<Cursor>, to: S) -> Result<S::Ok, S::Error> {
        cursor.as_ref().map(|cursor| cursor.token).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Cursor>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Cursor::at))
    }
}

/// The keys of a message's cursors in one raw part; nothing if none has one.
pub(super) fn pack(first: &Cursor, second: Option<&Cursor>) -> Bytes {
    let second = second.map_or(&[][..], |cursor| &cursor.key);
    if first.is_token() && second.is_empty() {
        return Bytes::new();
    }
    let length = u16::try_from(first.key.len()).expect("a key's length counts with 16 bits");
    let mut bytes = BytesMut::with_capacity(2 + first.key.len() + second.len());
    bytes.put_u16_le(length);
    bytes.put_slice(&first.key);
    bytes.put_slice(second);
    bytes.freeze()
}

/// Gives cursors their keys back.
pub(super) fn unpack(
    mut bytes: Bytes,
    first: &mut Cursor,
    second: Option<&mut Cursor>,
) -> Result<(), WireError> {
    if bytes.is_empty() {
        return Ok(());
    }
    let length = usize::from(bytes.try_get_u16_le().map_err(|_| short())?);
    if length > bytes.len() {
        return Err(short());
    }
    first.key = bytes.split_to(length);
    validate(first)?;
    match second {
        Some(second) => {
            second.key = bytes;
            validate(second)
        }
        None if bytes.is_empty() => Ok(()),
        None => Err(WireError::Malformed { what: "cursor" }),
    }
}

fn short() -> WireError {
    WireError::Truncated { what: "cursor" }
}

/// Whether a cursor's key lies at the cursor's token.
fn validate(cursor: &Cursor) -> Result<(), WireError> {
    if cursor.is_token() { Ok(()) } else { is_data_key(&first_of(cursor)) }
}

const _: () = assert!(KEY_BYTES_MAX <= u16::MAX as usize);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linearizable::keys::cursor_of;
    use crate::order::Order;
    use proptest::prelude::*;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn keys_of_cursors_are_read_back(keys: [Vec<u8>; 2], is_alone: bool) {
            let [first, second] = keys.map(|key| cursor_of(&Order::Key.data_key(&key)));
            let second = (!is_alone).then_some(second);
            let packed = pack(&first, second.as_ref());
            let place = |cursor: &Cursor| Cursor::at(cursor.token);
            let mut read = (place(&first), second.as_ref().map(place));
            prop_assert_eq!(unpack(packed, &mut read.0, read.1.as_mut()), Ok(()));
            prop_assert_eq!(read, (first, second));
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let (mut first, mut second) = (Cursor::at(1), Cursor::at(2));
            let _ = unpack(bytes.into(), &mut first, Some(&mut second));
        }
    }
}
