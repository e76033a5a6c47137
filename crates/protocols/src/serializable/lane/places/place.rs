//! Places of keys: buckets, and the groups that hold them.
//!
//! A key is stored behind its token, so that a group's keys stand in the order in which they are
//! listed. The first byte of the token is its bucket. Neighbouring buckets are of one group, so
//! that each group has one range of tokens.

use crate::order::{Order, TOKEN_BYTES};
use crate::serializable::{Raw, bucket_of};
use bytes::{BufMut, Bytes, BytesMut};
use quorate_kernel::ids::GroupId;
use quorate_kernel::mutant;
use quorate_kernel::operation::Cursor;
use quorate_kernel::view::Range;

/// How many buckets a keyspace has.
pub const BUCKETS: u64 = 256;
/// The longest key of a client: the token goes before it.
pub const KEY_BYTES_MAX: usize = crate::serializable::rules::ITEM_KEY_BYTES_MAX - TOKEN_BYTES;

const _: () = assert!(BUCKETS == 1 << 8, "a bucket is the first byte of a token");

/// A key as groups know it.
#[must_use]
pub fn stored(key: &[u8]) -> Raw {
    behind(Order::Hash.token(key), key)
}

/// Where a listing begins, as groups know it.
#[must_use]
pub fn from_cursor(cursor: &Cursor) -> Raw {
    behind(cursor.token, &cursor.key)
}

fn behind(token: u64, key: &[u8]) -> Raw {
    let mut bytes = BytesMut::with_capacity(TOKEN_BYTES + key.len());
    bytes.put_u64(token);
    bytes.put_slice(key);
    Raw(bytes.freeze())
}

/// Where a bucket begins, as groups know it.
#[must_use]
pub fn first_token(bucket: u8) -> Raw {
    behind(u64::from(bucket) << 56, &[])
}

/// The client's key; none if it is no key of this engine.
#[must_use]
pub fn of_client(stored: &Raw) -> Option<Bytes> {
    let (token, key) = stored.split_first_chunk::<TOKEN_BYTES>()?;
    let is_its = Order::Hash.token(key) == u64::from_be_bytes(*token);
    is_its.then(|| stored.slice(TOKEN_BYTES..))
}

/// Where a listing goes on behind a page from here on that shows this key last; none if it is no
/// place between keys. A number alone, as some clients can name no other place, unless the page has
/// keys of that token, or began within it.
#[must_use]
pub fn to_cursor(stored: &Raw, from: &Raw, last: Option<&Raw>) -> Option<Cursor> {
    let (token, _) = stored.split_first_chunk::<TOKEN_BYTES>()?;
    let token = u64::from_be_bytes(*token);
    let first = behind(token, &[]);
    let is_within = first <= *from || last.is_some_and(|last| first <= *last);
    let is_whole = is_within || mutant!("lane_lists_from_keys");
    let key = if is_whole { stored.slice(TOKEN_BYTES..) } else { Bytes::new() };
    Some(Cursor { token, key })
}

/// How many groups share the buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape(u64);

impl Shape {
    /// So many groups: one at least, and no more than there are buckets.
    #[must_use]
    pub fn new(groups: u64) -> Shape {
        Shape(groups.clamp(1, BUCKETS))
    }

    /// The groups, ascending.
    pub fn groups(self) -> impl Iterator<Item = GroupId> {
        (1..=self.0).map(GroupId)
    }

    /// The group of a stored key.
    #[must_use]
    pub fn group_of(self, stored: &[u8]) -> GroupId {
        self.of_bucket(bucket_of(stored))
    }

    /// The group of a bucket.
    #[must_use]
    pub fn of_bucket(self, bucket: u8) -> GroupId {
        GroupId(1 + u64::from(bucket) * self.0 / BUCKETS)
    }

    /// The tokens of a group.
    #[must_use]
    pub fn range(self, group: GroupId) -> Range {
        let first = |group: u64| ((group - 1) * BUCKETS).div_ceil(self.0);
        let before = |bucket: u64| (bucket << 56).wrapping_sub(1);
        Range { low: before(first(group.0) % BUCKETS), high: before(first(group.0 + 1) % BUCKETS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_token_is_of_the_one_group_whose_range_has_it() {
        for groups in [1, 2, 3, 5, 7, 100, 255, 256] {
            let shape = Shape::new(groups);
            assert_eq!(shape.groups().count() as u64, groups);
            for bucket in 0..BUCKETS {
                for token in [bucket << 56, (bucket << 56) + 7, (bucket << 56) | ((1 << 56) - 1)] {
                    let of = shape.group_of(&token.to_be_bytes());
                    let has: Vec<_> =
                        shape.groups().filter(|it| shape.range(*it).contains(token)).collect();
                    assert_eq!(has, [of], "{token:x} of {groups}");
                }
            }
        }
        assert_eq!(Shape::new(0), Shape::new(1));
        assert_eq!(Shape::new(1000), Shape::new(256));
        assert_eq!(Shape::new(1).range(GroupId(1)), Range::ALL);
    }

    #[test]
    fn a_key_comes_back_and_stands_in_the_order_of_tokens() {
        for key in [&b""[..], b"a", b"another"] {
            let stored = stored(key);
            assert_eq!(of_client(&stored).as_deref(), Some(key));
            let cursor = to_cursor(&stored, &stored, None).expect("it has a token");
            assert_eq!((cursor.token, from_cursor(&cursor)), (Order::Hash.token(key), stored));
        }
        assert_eq!(of_client(&Raw::from("short")), None);
        assert_eq!(of_client(&Raw::from("12345678key")), None, "it is not its token");
        assert_eq!(to_cursor(&Raw::from("short"), &Raw::from(""), None), None);
    }

    #[test]
    fn a_listing_goes_on_at_a_number_unless_the_page_has_keys_of_that_token() {
        let next = behind(9, b"next");
        let cursor =
            |from: &Raw, last: Option<&Raw>| to_cursor(&next, from, last).expect("a place");
        let [first, before] = [behind(9, &[]), behind(8, b"zzz")];
        assert_eq!(cursor(&Raw::from(""), None), Cursor::at(9));
        assert_eq!(cursor(&before, Some(&before)), Cursor::at(9));
        let whole = Cursor { token: 9, key: Bytes::from_static(b"next") };
        assert_eq!(cursor(&first, None), whole, "it comes further than it began");
        assert_eq!(cursor(&before, Some(&behind(9, b"a"))), whole, "nothing is shown twice");
    }

    use alloc::vec::Vec;
}
