//! What is asked and told of keys, page by page.
//!
//! A place is where a listing begins or goes on: a token, or the wire form of a key, which begins
//! with its token. As bytes places stand in the order of cursors.

use crate::epidemic::keys::{HASH_BYTES, client_key, is_wire_key, wire_key};
use crate::epidemic::replica::range::position;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::limits::{KEY_BYTES_MAX, SCAN_KEYS_MAX};
use quorate_kernel::operation::{Cursor, Outcome};
use serde::{Deserialize, Serialize};

/// The question for a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListA {
    /// Names the question.
    pub number: u64,
    /// The place from which on keys are listed.
    pub from: Bytes,
    /// How many keys are looked at at most, those that are deleted among them.
    pub limit: u32,
    /// Whether a member answers that is in doubt of what it lists.
    pub takes_doubtful: bool,
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListB {
    /// Names the question.
    pub number: u64,
    /// The page; none of who has not all of what was asked for, or is in doubt of it.
    pub listed: Option<Listed>,
}

/// One page: all keys from the place that was asked for to the next one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listed {
    /// The wire forms of keys that are not deleted, ascending.
    pub keys: Vec<Bytes>,
    /// Where it goes on; none at the end of all positions.
    pub next: Option<Bytes>,
}

/// The place of a cursor; none of one that stands at a key with another token, or at none that
/// there can be.
pub(super) fn place_of(cursor: &Cursor) -> Option<Bytes> {
    let token = Bytes::copy_from_slice(&cursor.token.to_be_bytes());
    if cursor.is_token() {
        return Some(token);
    }
    let is_short = cursor.key.len() <= KEY_BYTES_MAX;
    is_short.then(|| wire_key(&cursor.key)).filter(|wire| wire.starts_with(&token))
}

fn cursor_of(place: &Bytes) -> Cursor {
    let key = Bytes::copy_from_slice(client_key(place));
    Cursor { token: position(place).0, key }
}

/// Where a page ends before a key: between two tokens if the key before it has another one, as
/// numbers alone name those to some clients.
pub(in crate::epidemic) fn cut_before(key: &Bytes, before: &Bytes) -> Bytes {
    match position(key) == position(before) {
        true => key.clone(),
        false => key.slice(..HASH_BYTES),
    }
}

fn is_place(bytes: &Bytes) -> bool {
    bytes.len() == HASH_BYTES || is_wire_key(bytes)
}

impl ListA {
    pub(in crate::epidemic) fn is_sound(&self) -> bool {
        is_place(&self.from)
    }
}

impl Listed {
    pub(in crate::epidemic) fn is_sound(&self) -> bool {
        let is_before = |key: &Bytes| self.next.as_ref().is_none_or(|next| key < next);
        self.keys.len() <= SCAN_KEYS_MAX
            && self.keys.iter().all(|key| is_wire_key(key))
            && self.keys.is_sorted_by(|one, next| one < next)
            && self.keys.last().is_none_or(is_before)
            && self.next.as_ref().is_none_or(is_place)
    }

    /// Whether it is a page from this place on: what comes next lies behind it.
    pub(super) fn is_from(&self, place: &Bytes) -> bool {
        let is_behind = self.next.as_ref().is_none_or(|next| next > place);
        is_behind && self.keys.first().is_none_or(|key| key >= place)
    }

    pub(super) fn outcome(&self) -> Outcome {
        let client = |wire: &Bytes| Bytes::copy_from_slice(client_key(wire));
        let keys = self.keys.iter().map(client).collect();
        Outcome::Page { keys, next: self.next.as_ref().map(cursor_of) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(token: u64, key: &[u8]) -> Bytes {
        [&token.to_be_bytes()[..], key].concat().into()
    }

    #[test]
    fn places_are_cursors_and_strange_ones_are_none() {
        let key = Bytes::from_static(b"k");
        let token = position(&wire_key(&key)).0;
        for cursor in [Cursor::at(0), Cursor::at(u64::MAX), Cursor { token, key: key.clone() }] {
            let place = place_of(&cursor).expect("it is one");
            assert!(is_place(&place));
            assert_eq!(cursor_of(&place), cursor);
        }
        assert_eq!(place_of(&Cursor { token: token + 1, key }), None, "of another token");
        let key = Bytes::from(std::vec![b'k'; KEY_BYTES_MAX + 1]);
        let token = position(&wire_key(&key)).0;
        assert_eq!(place_of(&Cursor { token, key }), None, "no key is so long");
    }

    #[test]
    fn a_page_ends_between_two_tokens_where_it_can() {
        let (one, two, other) = (wire(7, b"a"), wire(7, b"b"), wire(8, b"a"));
        assert_eq!(cut_before(&two, &one), two);
        assert_eq!(cut_before(&other, &two), other.slice(..8));
    }

    #[test]
    fn no_page_goes_back_nor_holds_what_is_not_in_it() {
        let mut keys = Vec::from([wire_key(b"a"), wire_key(b"b"), wire_key(b"c")]);
        keys.sort();
        let listed = Listed { keys: keys.clone(), next: None };
        let of = |keys: &[&Bytes], next: Option<&Bytes>| Listed {
            keys: keys.iter().map(|key| (*key).clone()).collect(),
            next: next.cloned(),
        };
        assert!(listed.is_sound() && listed.is_from(&keys[0]) && !listed.is_from(&keys[1]));
        assert!(of(&[&keys[0]], Some(&keys[1])).is_sound());
        assert!(!of(&[&keys[0]], Some(&keys[0])).is_sound(), "its last key is of the next page");
        assert!(!of(&[&keys[1], &keys[0]], None).is_sound());
        assert!(!of(&[&keys[0], &keys[0]], None).is_sound());
        assert!(!of(&[&wire(7, b"no such hash")], None).is_sound());
        assert!(!of(&[], Some(&Bytes::from_static(b"short"))).is_sound());
        assert!(of(&[], Some(&keys[1])).is_from(&keys[0]));
        assert!(!of(&[], Some(&keys[1])).is_from(&keys[1]), "it would never end");
    }
}
