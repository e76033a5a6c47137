//! A page of entries: stored keys in ascending order, each with its record or the record's head.
//!
//! ```text
//! repeated: key length u32 | record length u32 | key | record
//! ```
//! Integers are little-endian.

use crate::linearizable::keys::is_data_key;
use crate::linearizable::record::Record;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorate_kernel::error::WireError;
use quorate_kernel::limits::PAGE_BYTES_MAX;

/// How many bytes of records a page holds before it is closed; the last record may exceed it.
pub(crate) const PAGE_BYTES: usize = PAGE_BYTES_MAX / 4;
const LENGTHS_BYTES: usize = 8;

pub(crate) fn push(page: &mut BytesMut, key: &[u8], record: &[u8]) {
    page.put_u32_le(key.len() as u32);
    page.put_u32_le(record.len() as u32);
    page.put_slice(key);
    page.put_slice(record);
}

fn pop(page: &mut Bytes) -> Result<(Bytes, Record), WireError> {
    if page.len() < LENGTHS_BYTES {
        return Err(WireError::Truncated { what: "page entry" });
    }
    let (key_bytes, record_bytes) = (page.get_u32_le() as usize, page.get_u32_le() as usize);
    if key_bytes.saturating_add(record_bytes) > page.len() {
        return Err(WireError::Truncated { what: "page entry" });
    }
    let key = page.split_to(key_bytes);
    is_data_key(&key)?;
    Ok((key, Record::from_bytes(page.split_to(record_bytes))?))
}

/// Checks a page that came from a peer.
pub(crate) fn validate(page: &Bytes) -> Result<(), WireError> {
    let mut rest = page.clone();
    let mut last = Bytes::new();
    while !rest.is_empty() {
        let (key, _) = pop(&mut rest)?;
        if key <= last {
            return Err(WireError::Malformed { what: "page out of order" });
        }
        last = key;
    }
    Ok(())
}

/// The entries of a page that was validated.
pub(crate) fn entries(mut page: Bytes) -> impl Iterator<Item = (Bytes, Record)> {
    core::iter::from_fn(move || {
        (!page.is_empty()).then(|| pop(&mut page).expect("a page is validated when it arrives"))
    })
}

/// The first key of such a page.
pub(crate) fn first_key(page: &Bytes) -> Option<Bytes> {
    entries(page.clone()).next().map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linearizable::record::Ts;
    use crate::order::Order;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    proptest! {
        #[test]
        fn a_page_is_read_back(map: BTreeMap<Vec<u8>, Vec<u8>>) {
            let ts = Ts { n: 1, ..Ts::ZERO };
            let sorted: BTreeMap<Bytes, Record> = map
                .iter()
                .map(|(key, value)| (Order::Hash.data_key(key), Record::new(ts, Some(value))))
                .collect();
            let mut page = BytesMut::new();
            for (key, record) in &sorted {
                push(&mut page, key, record.bytes());
            }
            let page = page.freeze();
            prop_assert_eq!(validate(&page), Ok(()));
            prop_assert!(entries(page).eq(sorted));
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = validate(&bytes.into());
        }
    }
}
