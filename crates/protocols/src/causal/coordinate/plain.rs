//! Operations that carry no context: what every keyspace can be asked, here on siblings.
//!
//! | operation | what it does |
//! |---|---|
//! | get | shows the one value; of several none or one, as the keyspace says ([`Plain`]) |
//! | put | is a blind write: it replaces nothing, so what is there becomes a sibling |
//! | put, if the newest is shown | replaces what a get sees: there would be no end of siblings |
//! | delete | replaces what a get of the same moment shows |
//! | scan | lists the keys that one replica of each part of the hash space has values of |

use super::get::refuse;
use super::operations::Work;
use crate::causal::keys::{Kind, client_key, each_of, hash_of};
use crate::causal::message::{Message, PAGE_BYTES};
use crate::causal::{Causal, Context, Plain};
use crate::dots::dot::Partition;
use crate::dots::object::Object;
use alloc::vec::Vec;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::limits::{KEY_BYTES_MAX, OPERATIONS_MAX, SCAN_KEYS_MAX};
use quorate_kernel::operation::{Cursor, Outcome, Refusal};
use quorate_kernel::probe;
use quorate_kernel::time::Time;

/// What is listed from a hash on.
#[derive(Debug, Default, PartialEq, Eq)]
struct Listed {
    keys: Vec<Bytes>,
    next: Option<u64>,
    /// How many objects were looked at: also those whose values were all deleted.
    seen: usize,
    bytes: usize,
}

impl Causal {
    /// What a get without a context answers.
    pub(super) fn value_of(&self, merged: &Object) -> Outcome {
        let values = merged.values();
        match (values.len(), self.settings.plain) {
            (0 | 1, _) => Outcome::value(values.into_iter().next()),
            (_, Plain::Newest) => {
                let newest = merged.versions.iter().max_by_key(|(dot, _)| (dot.counter, dot.actor));
                Outcome::value(newest.map(|(_, version)| version.value.clone()))
            }
            (count, Plain::Error) => {
                probe!("causal/siblings_refused");
                Outcome::Refused(Refusal::Siblings { count })
            }
        }
    }

    /// A client lists keys.
    pub(super) fn begin_list(
        &mut self,
        ticket: Ticket,
        (from, limit): (u64, u32),
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        if self.durable.map.is_none() {
            return refuse(ticket, Refusal::NoRoute, cx);
        }
        if self.volatile.operations.len() >= OPERATIONS_MAX {
            return refuse(ticket, Refusal::Overloaded, cx);
        }
        if let Some(Listed { keys, next, .. }) = self.list(from, limit, cx) {
            // It shows what may not be durable yet.
            let next = next.map(Cursor::at);
            return cx.fx.answer(ticket, Outcome::Page { keys, next });
        }
        let key = Bytes::copy_from_slice(&from.to_be_bytes());
        let id = self.volatile.operations.number();
        self.volatile.operations.insert(id, key, deadline, Work::List { ticket, limit }, cx);
        self.ask_lists_but(Some(cx.me.node), id, cx);
    }

    /// Asks every replica of a part of the hash space for its keys, but for the one of a host that
    /// cannot tell them now. Later it may. A question promises nothing.
    pub(super) fn ask_lists_but(&mut self, without: Option<NodeId>, id: u64, cx: &mut Context<'_>) {
        let Some(operation) = self.volatile.operations.get_mut(id) else { return };
        let Work::List { limit, .. } = operation.work else { return };
        let (key, from) = (operation.key.clone(), hash_of(&operation.key));
        for (_, host) in self.replicas_of(&key) {
            if Some(host) != without {
                cx.fx.send_early(host, Message::ListA { op: id, from, limit });
            }
        }
    }

    /// A coordinator asks for keys.
    pub(crate) fn on_list(
        &mut self,
        peer: Incarnation,
        op: u64,
        (from, limit): (u64, u32),
        cx: &mut Context<'_>,
    ) {
        let Some(at) = self.local(&from.to_be_bytes()) else { return self.tell_map(peer, cx) };
        invariant!(self.durable.replicas[&at].is_flushed(), "what is listed was written");
        if let Some(Listed { keys, next, .. }) = self.list(from, limit, cx) {
            invariant!(next.is_none_or(|next| next > from), "a list comes further than it began");
            cx.fx.send(peer, Message::ListB { op, next, keys: pack(&keys) });
        }
    }

    /// A replica has listed keys.
    pub(crate) fn on_listed(
        &mut self,
        op: u64,
        next: Option<u64>,
        keys: &Bytes,
        cx: &mut Context<'_>,
    ) {
        let Some(operation) = self.volatile.operations.get_mut(op) else { return };
        let Work::List { ticket, .. } = operation.work else { return };
        let from = hash_of(&operation.key);
        let Ok(keys) = unpack(keys.clone()) else { return };
        if next.is_some_and(|next| next <= from) {
            // It would never end.
            return;
        }
        self.volatile.operations.remove(op);
        // It rests on what another node has, and that was durable before it sent it.
        let next = next.map(Cursor::at);
        cx.fx.answer_early(ticket, Outcome::Page { keys, next });
    }

    /// The keys with values at replicas here, from a hash on, as far as they reach; none if no
    /// replica here may speak of that hash: what one lacks that joins would count as absent (T15).
    fn list(&self, from: u64, limit: u32, cx: &Context<'_>) -> Option<Listed> {
        let limit = (limit as usize).clamp(1, SCAN_KEYS_MAX);
        let local = |hash: u64| self.local(&hash.to_be_bytes());
        let serving = |hash| local(hash).filter(|at| self.is_serving(*at, cx.now));
        let mut listed = Listed { next: Some(from), ..Listed::default() };
        while listed.seen < limit
            && listed.bytes < PAGE_BYTES
            && let Some((from, at)) = listed.next.and_then(|from| Some((from, serving(from)?)))
        {
            self.list_at(at, from, limit, &mut listed, cx);
        }
        (listed.next != Some(from)).then_some(listed)
    }

    /// The same at one replica.
    fn list_at(
        &self,
        at: Partition,
        from: u64,
        limit: usize,
        listed: &mut Listed,
        cx: &Context<'_>,
    ) {
        let shape = self.settings.shape;
        let last = *shape.hashes(&shape.homes(at)).end();
        listed.next = last.checked_add(1);
        let mut before = from;
        let part = self.durable.replicas[&at].part;
        each_of(cx.table, part, Kind::Object, &from.to_be_bytes(), &mut |key, object| {
            let hash = hash_of(key);
            if hash > last {
                return false;
            }
            if (listed.seen >= limit || listed.bytes >= PAGE_BYTES) && hash != before {
                listed.next = Some(hash);
                return false;
            }
            (listed.seen, before) = (listed.seen + 1, hash);
            let object = Object::from_bytes(object);
            let object = object.expect("the store returns the objects that were put into it");
            if !object.versions.is_empty() {
                listed.bytes += key.len();
                listed.keys.push(Bytes::copy_from_slice(client_key(key)));
            }
            true
        });
    }
}

/// Keys as they are sent: of each its length u32, then the key.
pub(crate) fn pack(keys: &[Bytes]) -> Bytes {
    let mut bytes = BytesMut::with_capacity(keys.iter().map(|key| 4 + key.len()).sum());
    for key in keys {
        bytes.put_u32(key.len() as u32);
        bytes.put_slice(key);
    }
    bytes.freeze()
}

/// Reads keys back.
///
/// # Errors
/// The bytes are no list of keys.
pub(crate) fn unpack(mut bytes: Bytes) -> Result<Vec<Bytes>, WireError> {
    let mut keys = Vec::new();
    while !bytes.is_empty() {
        if bytes.len() < 4 {
            return Err(WireError::Truncated { what: "keys" });
        }
        let length = bytes.get_u32() as usize;
        if length > bytes.len() {
            return Err(WireError::Truncated { what: "keys" });
        }
        if length > KEY_BYTES_MAX {
            let (length, limit) = (length as u64, KEY_BYTES_MAX as u64);
            return Err(WireError::TooLong { what: "key", length, limit });
        }
        keys.push(bytes.split_to(length));
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn keys_are_read_back(keys: Vec<Vec<u8>>) {
            let keys: Vec<Bytes> = keys.into_iter().map(Bytes::from).collect();
            prop_assert_eq!(unpack(pack(&keys)), Ok(keys));
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = unpack(bytes.into());
        }
    }
}
