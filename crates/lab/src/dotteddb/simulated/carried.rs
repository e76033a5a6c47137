//! What messages and objects of the measured engines consist of, counted as the paper counts it.

use bytes::Bytes;
use quorate_protocols::causal::page::{self, Entry};
use quorate_protocols::dots::object::Object;
use std::collections::BTreeSet;

/// What of a message's bytes are objects; the rest is what the protocol adds (DottedDB Fig. 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    /// Bytes of keys and values.
    pub data: usize,
    /// Bytes of objects' clocks.
    pub clocks: usize,
}

impl Carried {
    /// What a page of objects carries.
    #[must_use]
    pub fn of(page: &Bytes) -> Carried {
        let mut carried = Carried::default();
        for Entry { key, object, .. } in page::read(page.clone()).into_iter().flatten() {
            carried.data += key.len() + object.value_bytes();
            if !object.is_empty() {
                carried.clocks += object.to_bytes().len() - object.value_bytes();
            }
        }
        carried
    }
}

/// How many actors an object's clock names, in versions or context (DottedDB Fig. 1).
#[must_use]
pub fn clock_entries(object: &Object) -> usize {
    let named = object.versions.keys().map(|dot| dot.actor);
    named.chain(object.context.iter().map(|(actor, _)| actor)).collect::<BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use quorate_protocols::causal::keys::data_key;
    use quorate_protocols::dots::dot::Dot;
    use quorate_protocols::dots::object::Version;

    #[test]
    fn bytes_of_keys_values_and_clocks_are_told_apart() {
        let (key, mut object) = (data_key(b"k"), Object::default());
        let dot = Dot { counter: 1, ..Dot::default() };
        object.versions.insert(dot, Version { id: None, value: Bytes::from_static(b"four") });
        object.context.raise(dot.actor, 1);
        assert_eq!(clock_entries(&object), 1, "one actor, named twice");
        let (bytes, mut page) = (object.to_bytes(), BytesMut::new());
        page::push(&mut page, &key, &bytes, &[]);
        page::push(&mut page, &key, &[], &[]);
        let expected = Carried { data: 2 * key.len() + 4, clocks: bytes.len() - 4 };
        assert_eq!(Carried::of(&page.clone().freeze()), expected);
        assert!(page.len() > expected.data + expected.clocks);
        assert_eq!(Carried::of(&Bytes::new()), Carried::default());
    }
}
