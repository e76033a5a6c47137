//! Context tokens: a causal context as clients carry it.
//!
//! ```text
//! version u8 | mac 16 | scope 16 | names | entries
//! entry: partition, since, birth varint, node 8, counter varint
//! names, if the version is 2: how many, varint, and for each its dot, as an entry, and id 16
//! ```
//! The scope is a hash of the lane (which is never given to another keyspace) and the key; the MAC
//! is over the version, the cluster's id, the scope and all that follows. Both are BLAKE3 keyed
//! with the cluster's secret and cut to 128 bits. So a client can neither make up counters, nor use
//! a context for another key (T11): both would make updates disappear that nobody has seen.

use super::coordinate::seen::Seen;
use crate::dots::context::CausalContext;
use crate::dots::dot::{Actor, Counter, Dot, Partition};
use crate::dots::object::is_counter;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{ClusterId, LaneId, NodeId};
use quorate_kernel::limits::CONTEXT_BYTES_MAX;
use quorate_kernel::write::{ContextError, WriteId};

const VERSION: u8 = 1;
/// With names.
const VERSION_NAMES: u8 = 2;
const MAC_BYTES: usize = 16;
const SCOPE_BYTES: usize = 16;
const HEAD_BYTES: usize = 1 + MAC_BYTES + SCOPE_BYTES;

/// Makes and reads the tokens of one keyspace.
#[derive(Clone)]
pub struct Tokens {
    key: [u8; 32],
    cluster: ClusterId,
}

impl core::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tokens").field("cluster", &self.cluster).finish_non_exhaustive()
    }
}

impl Tokens {
    /// The tokens of a cluster with this secret.
    #[must_use]
    pub fn new(secret: &[u8], cluster: ClusterId) -> Tokens {
        Tokens::with_key(crate::engines::signing_key(secret), cluster)
    }

    /// The tokens signed by this key.
    #[must_use]
    pub fn with_key(key: [u8; 32], cluster: ClusterId) -> Tokens {
        Tokens { key, cluster }
    }

    fn scope(&self, lane: LaneId, key: &[u8]) -> [u8; SCOPE_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&lane.0.to_be_bytes());
        hasher.update(key);
        cut(hasher.finalize())
    }

    fn mac(&self, version: u8, scope: &[u8], entries: &[u8]) -> [u8; MAC_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&[version]);
        hasher.update(&self.cluster.0.to_be_bytes());
        // Of a fixed length, like all before it.
        hasher.update(scope);
        hasher.update(entries);
        cut(hasher.finalize())
    }

    /// The token of a context of a key.
    #[must_use]
    pub fn seal(&self, lane: LaneId, key: &[u8], context: &CausalContext) -> Bytes {
        self.seal_seen(lane, key, &Seen::from(context.clone()))
    }

    /// The token of what a client has seen of a key.
    #[must_use]
    pub fn seal_seen(&self, lane: LaneId, key: &[u8], seen: &Seen) -> Bytes {
        let mut entries = Vec::with_capacity(24 * seen.context.len());
        for (actor, counter) in seen.context.iter() {
            put_dot(&mut entries, actor, counter);
        }
        let mut names = Vec::new();
        if !seen.names.is_empty() {
            put_varint(&mut names, seen.names.len() as u64);
        }
        for (dot, name) in &seen.names {
            put_dot(&mut names, dot.actor, dot.counter);
            names.extend_from_slice(&name.0.to_be_bytes());
        }
        let has_names =
            !names.is_empty() && HEAD_BYTES + names.len() + entries.len() <= CONTEXT_BYTES_MAX;
        let version = if has_names { VERSION_NAMES } else { VERSION };
        if has_names {
            names.append(&mut entries);
            entries = names;
        }
        let scope = self.scope(lane, key);
        let mut token = Vec::with_capacity(HEAD_BYTES + entries.len());
        token.push(version);
        token.extend_from_slice(&self.mac(version, &scope, &entries));
        token.extend_from_slice(&scope);
        token.extend_from_slice(&entries);
        token.into()
    }

    /// The context of a token of a key; of no bytes at all the empty one.
    ///
    /// # Errors
    /// It is no token, not of this cluster, or not of this key.
    pub fn open(
        &self,
        lane: LaneId,
        key: &[u8],
        token: &[u8],
    ) -> Result<CausalContext, ContextError> {
        self.open_seen(lane, key, token).map(|seen| seen.context)
    }

    /// What who has a token of a key has seen; of no bytes at all nothing.
    ///
    /// # Errors
    /// It is no token, not of this cluster, or not of this key.
    pub fn open_seen(&self, lane: LaneId, key: &[u8], token: &[u8]) -> Result<Seen, ContextError> {
        let Some(version) = token.first().copied() else { return Ok(Seen::default()) };
        let is_known = version == VERSION || version == VERSION_NAMES;
        if token.len() < HEAD_BYTES || token.len() > CONTEXT_BYTES_MAX || !is_known {
            return Err(ContextError::Damaged);
        }
        let (mac, scoped) = token[1..].split_at(MAC_BYTES);
        let (scope, entries) = scoped.split_at(SCOPE_BYTES);
        // Without an early end, so that its duration says nothing.
        let pairs = self.mac(version, scope, entries).into_iter().zip(mac);
        if pairs.fold(0, |differs, (one, other)| differs | (one ^ other)) != 0 {
            return Err(ContextError::Forged);
        }
        if scope != self.scope(lane, key) {
            return Err(ContextError::Foreign);
        }
        read_seen(version, entries).ok_or(ContextError::Damaged)
    }
}

fn cut<const N: usize>(hash: blake3::Hash) -> [u8; N] {
    *hash.as_bytes().first_chunk().expect("a hash has 32 bytes")
}

fn read_seen(version: u8, mut bytes: &[u8]) -> Option<Seen> {
    let mut names = Vec::new();
    let count = if version == VERSION_NAMES { take_varint(&mut bytes)? } else { 0 };
    for _ in 0..count {
        let dot = take_dot(&mut bytes)?;
        let (name, rest) = bytes.split_first_chunk::<16>()?;
        bytes = rest;
        names.push((dot, WriteId(u128::from_be_bytes(*name))));
    }
    let mut context = CausalContext::default();
    while !bytes.is_empty() {
        let Dot { actor, counter } = take_dot(&mut bytes)?;
        context.raise(actor, counter);
    }
    Some(Seen::new(context, names))
}

fn put_dot(out: &mut Vec<u8>, actor: Actor, counter: Counter) {
    put_varint(out, u64::from(actor.partition.0));
    put_varint(out, actor.since);
    put_varint(out, u64::from(actor.birth));
    out.extend_from_slice(&actor.node.0.to_be_bytes());
    put_varint(out, counter);
}

fn take_dot(bytes: &mut &[u8]) -> Option<Dot> {
    let partition = Partition(u16::try_from(take_varint(bytes)?).ok()?);
    let since = take_varint(bytes)?;
    let birth = u32::try_from(take_varint(bytes)?).ok()?;
    let (node, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    let node = NodeId(u64::from_be_bytes(*node));
    let counter = take_varint(bytes)?;
    let actor = Actor { partition, since, birth, node };
    is_counter(counter).then_some(Dot { actor, counter })
}

fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    fn any_context() -> impl Strategy<Value = CausalContext> {
        let entry = (any::<(u16, u64, u32, u64)>(), 1..=crate::dots::dot::COUNTER_MAX);
        let entry = entry.prop_map(|((partition, since, birth, node), counter)| {
            let (partition, node) = (Partition(partition), NodeId(node));
            (Actor { partition, since, birth, node }, counter)
        });
        proptest::collection::vec(entry, 0..6).prop_map(|entries| entries.into_iter().collect())
    }

    fn tokens(secret: &[u8]) -> Tokens {
        Tokens::new(secret, ClusterId(1))
    }

    const LANE: LaneId = LaneId(3);

    proptest! {
        #[test]
        fn a_token_is_read_back(key: Vec<u8>, context in any_context()) {
            let token = tokens(b"secret").seal(LANE, &key, &context);
            prop_assert_eq!(tokens(b"secret").open(LANE, &key, &token), Ok(context));
        }

        #[test]
        fn names_are_read_back_where_the_context_covers_them(
            context in any_context(), ids: Vec<u128>
        ) {
            let dots = context.iter().zip(ids);
            let name = |((actor, counter), id)| (Dot { actor, counter }, WriteId(id));
            let lone = Dot { actor: Actor::default(), counter: 7 };
            let seen = Seen::new(context.clone(), dots.map(name));
            let mut told = seen.clone();
            told.names.insert(lone, WriteId(9));
            let token = tokens(b"secret").seal_seen(LANE, b"key", &told);
            let read = tokens(b"secret").open_seen(LANE, b"key", &token);
            let expected = if context.covers(lone) { told } else { seen };
            prop_assert_eq!(read, Ok(expected));
            prop_assert_eq!(tokens(b"secret").open(LANE, b"key", &token), Ok(context));
        }

        #[test]
        fn a_changed_bit_is_noticed(
            context in any_context(), at in any::<prop::sample::Index>(), bit in 0u8..8
        ) {
            let mut token = tokens(b"secret").seal(LANE, b"key", &context).to_vec();
            let at = at.index(token.len());
            token[at] ^= 1 << bit;
            let is_version = at > 0 || token[0] == VERSION_NAMES;
            let expected = if is_version { ContextError::Forged } else { ContextError::Damaged };
            prop_assert_eq!(tokens(b"secret").open(LANE, b"key", &token), Err(expected));
        }

        #[test]
        fn what_is_cut_off_or_made_up_is_refused(context in any_context(), mut bytes: Vec<u8>) {
            let token = tokens(b"secret").seal(LANE, b"key", &context);
            for length in 1..token.len() {
                prop_assert!(tokens(b"secret").open(LANE, b"key", &token[..length]).is_err());
            }
            bytes.insert(0, VERSION);
            prop_assert!(tokens(b"secret").open(LANE, b"key", &bytes).is_err());
        }
    }

    #[test]
    fn a_token_of_another_key_keyspace_or_cluster_is_refused() {
        let actor = Actor { since: 1, birth: 1, ..Actor::default() };
        let context = [(actor, 9)].into_iter().collect();
        let token = tokens(b"secret").seal(LANE, b"key", &context);
        let foreign = Err(ContextError::Foreign);
        assert_eq!(tokens(b"secret").open(LANE, b"other", &token), foreign);
        assert_eq!(tokens(b"secret").open(LaneId(4), b"key", &token), foreign);
        let forged = Err(ContextError::Forged);
        assert_eq!(tokens(b"other").open(LANE, b"key", &token), forged);
        assert_eq!(Tokens::new(b"secret", ClusterId(2)).open(LANE, b"key", &token), forged);
    }

    #[test]
    fn a_counter_that_nobody_issues_is_refused_even_with_a_mac() {
        let context = [(Actor::default(), 1 << 63)].into_iter().collect();
        let token = tokens(b"secret").seal(LANE, b"key", &context);
        assert_eq!(tokens(b"secret").open(LANE, b"key", &token), Err(ContextError::Damaged));
        let empty = tokens(b"secret").open(LANE, b"key", b"");
        assert_eq!(empty, Ok(CausalContext::default()));
    }
}
