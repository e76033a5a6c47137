//! Lists in bytes: counted, read item by item, and never further than a limit.

use alloc::vec::Vec;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Appends a value.
pub(super) fn put<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    out.extend(postcard::to_allocvec(value).expect("plain data always serializes"));
}

/// Appends a list with its length.
pub(super) fn put_list<T: Serialize>(out: &mut Vec<u8>, items: &[T]) {
    put(out, &(items.len() as u64));
    items.iter().for_each(|item| put(out, item));
}

/// Takes a value off the front; none if the bytes are not one.
pub(super) fn take<T: DeserializeOwned>(rest: &mut &[u8]) -> Option<T> {
    let (value, after) = postcard::take_from_bytes(rest).ok()?;
    *rest = after;
    Some(value)
}

/// Takes a list off the front; none if it is longer than `most`, which is checked first.
pub(super) fn take_list<T: DeserializeOwned>(rest: &mut &[u8], most: usize) -> Option<Vec<T>> {
    let count: u64 = take(rest)?;
    if count > most as u64 {
        return None;
    }
    // Nothing is set aside before the bytes are there: a count alone takes no memory.
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(take(rest)?);
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_back_within_its_limit() {
        let mut bytes = Vec::new();
        put_list(&mut bytes, &[1_u64, 300]);
        let read = |most| take_list::<u64>(&mut &bytes[..], most);
        assert_eq!(read(2), Some(Vec::from([1, 300])));
        assert_eq!(read(1), None, "too long");
        assert_eq!(take_list::<u64>(&mut &bytes[..2], 2), None, "cut off");
        let huge = postcard::to_allocvec(&u64::MAX).expect("a number");
        assert_eq!(take_list::<u64>(&mut &huge[..], 9), None);
    }
}
