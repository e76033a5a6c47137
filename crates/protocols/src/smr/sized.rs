//! Data as bytes, in a buffer that is as long as they are: one that grows while it is written is
//! copied again and again, and for a long one the system gives new pages each time.

use alloc::vec::Vec;
use bytes::Bytes;
use postcard::ser_flavors::Size;
use quorate_kernel::invariant;
use serde::Serialize;

/// What is put in front, and then the value.
pub fn sized<T: Serialize>(front: &[u8], value: &T) -> Bytes {
    let length = front.len() + length(value);
    let mut bytes = Vec::with_capacity(length);
    bytes.extend_from_slice(front);
    let bytes = postcard::to_extend(value, bytes).expect("plain data always serializes");
    invariant!(bytes.len() == length, "data is written as it was measured");
    bytes.into()
}

/// How many bytes a value has as it is written.
pub fn length<T: Serialize>(value: &T) -> usize {
    let length = postcard::serialize_with_flavor(value, Size::default());
    length.expect("plain data always serializes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;
    use std::vec;

    #[test]
    fn what_is_written_is_what_postcard_writes() {
        let value = (7_u64, String::from("a text"), vec![Some(Bytes::from(vec![9; 1000])), None]);
        let plain = postcard::to_allocvec(&value).unwrap();
        assert_eq!(sized(&[], &value), plain);
        assert_eq!(sized(&[1, 2], &value), [&[1, 2][..], &plain].concat());
        assert!(sized(&[], &()).is_empty());
    }
}
