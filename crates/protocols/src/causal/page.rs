//! Pages of objects, as replicas send them to each other.
//!
//! Each entry is `key length u32, key, object length u32, object, count of dots u16, dots`. An
//! object of no bytes is an absent one. The dots are updates of the key that the receiver may
//! count as seen, because the object tells all that the sender knows of the key.

use super::keys::{actor_key, is_data_key};
use crate::dots::dot::Dot;
use crate::dots::object::{Object, is_counter};
use alloc::vec::Vec;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorate_kernel::error::WireError;
use quorate_kernel::probe;

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its key in the table.
    pub key: Bytes,
    /// What the page has of it.
    pub object: Object,
    /// The dots that it is told for.
    pub dots: Vec<Dot>,
}

/// Appends an entry.
pub fn push(page: &mut BytesMut, key: &[u8], object: &[u8], dots: &[Dot]) {
    page.put_u32(key.len() as u32);
    page.put_slice(key);
    page.put_u32(object.len() as u32);
    page.put_slice(object);
    page.put_u16(u16::try_from(dots.len()).expect("a page tells at most 65535 dots of a key"));
    for dot in dots {
        page.put_slice(&actor_key(dot.actor));
        page.put_u64(dot.counter);
    }
}

/// How many dots of one key an entry tells at most.
pub(super) const DOTS_MAX: usize = 4096;

/// Which of the dots of a key, in their order, an entry tells that has room for so many, and the
/// first that it leaves out.
///
/// The newest of each actor is told in any case. Whoever has seen that one has seen what older
/// ones brought, as the object that came with it said so; who has not must hear of it from
/// anybody who has this entry's object.
pub(super) fn told(mut dots: Vec<Dot>, most: usize) -> (Vec<Dot>, Option<Dot>) {
    if dots.len() <= most {
        return (dots, None);
    }
    probe!("causal/many_dots_of_a_key");
    let newest = |dots: &[Dot]| -> Vec<Dot> {
        let last_of = dots.chunk_by(|one, next| one.actor == next.actor);
        last_of.filter_map(|its| its.last().copied()).collect()
    };
    let room = most.saturating_sub(newest(&dots).len());
    let rest = dots.split_off(room);
    let newest = newest(&rest);
    let left_out = rest.iter().find(|dot| !newest.contains(dot)).copied();
    dots.extend(newest);
    (dots, left_out)
}

/// Reads a page.
///
/// # Errors
/// The bytes are no page.
pub fn read(mut page: Bytes) -> Result<Vec<Entry>, WireError> {
    let mut entries = Vec::new();
    while !page.is_empty() {
        let key = piece(&mut page)?;
        is_data_key(&key)?;
        let object = piece(&mut page)?;
        let object = match object.is_empty() {
            true => Object::default(),
            false => Object::from_bytes(&object)?,
        };
        if page.len() < 2 {
            return Err(WireError::Truncated { what: "page" });
        }
        let mut dots = Vec::new();
        for _ in 0..page.get_u16() {
            let before = page.len();
            let Ok((actor, rest)) = postcard::take_from_bytes(&page) else {
                return Err(WireError::Malformed { what: "dot" });
            };
            let used = before - rest.len();
            page.advance(used);
            if page.len() < 8 {
                return Err(WireError::Truncated { what: "page" });
            }
            let dot = Dot { actor, counter: page.get_u64() };
            if !is_counter(dot.counter) {
                return Err(WireError::Malformed { what: "counter" });
            }
            dots.push(dot);
        }
        entries.push(Entry { key, object, dots });
    }
    Ok(entries)
}

fn piece(page: &mut Bytes) -> Result<Bytes, WireError> {
    if page.len() < 4 {
        return Err(WireError::Truncated { what: "page" });
    }
    let length = page.get_u32() as usize;
    if length > page.len() {
        return Err(WireError::Truncated { what: "page" });
    }
    Ok(page.split_to(length))
}
