//! What replicas and coordinators of the baseline say to each other.

use super::tree::Hash;
use alloc::vec::Vec;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorate_kernel::error::WireError;
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use quorate_kernel::write::WriteId;
use quorate_protocols::causal::keys::is_data_key;
use quorate_protocols::causal::map::Map;
use quorate_protocols::causal::message::{Pair, TellContext};
use quorate_protocols::causal::page;
use quorate_protocols::dots::dot::Partition;
use quorate_protocols::dots::object::{Object, is_counter};
use serde::{Deserialize, Serialize};

/// The hashes below one node of one tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The group.
    pub home: u16,
    /// Which inner node; 0 for what is directly below or at the root.
    pub at: u32,
    /// The hashes.
    pub hashes: Vec<Hash>,
}

/// The keys of one leaf of one tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// The group.
    pub home: u16,
    /// Which leaf.
    pub at: u32,
    /// Its keys with the hashes of their objects, ascending.
    pub keys: Vec<(Bytes, Hash)>,
}

/// One message. `op` names the asker's operation and is echoed; keys begin with their hash. The
/// bulky fields are raw tails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Coordinator of a get to the replicas of a key.
    ReadA {
        /// The asker's operation.
        op: u64,
        /// The key.
        #[serde(skip)]
        key: Bytes,
    },
    /// Replica to the coordinator of a get. It counts only if the replica serves.
    ReadB {
        /// Echoed.
        op: u64,
        /// Which replica.
        partition: Partition,
        /// Whether what it lacks says something.
        is_serving: bool,
        /// The object.
        #[serde(skip)]
        object: Bytes,
    },
    /// A node that is no replica of the key, to one that is: coordinate this write.
    WriteA {
        /// The asker's operation.
        op: u64,
        /// The client's name of the write.
        id: Option<WriteId>,
        /// What it replaces.
        context: TellContext,
        /// Whether it has no value.
        is_delete: bool,
        /// The key.
        #[serde(skip)]
        key: Bytes,
        /// The value.
        #[serde(skip)]
        value: Bytes,
    },
    /// Coordinator to the node that forwarded a write: it is stored, and this may be told to cover
    /// it. None if it is no replica and nothing was changed.
    WriteB {
        /// Echoed.
        op: u64,
        /// What covers it.
        told: Option<TellContext>,
    },
    /// Coordinator to the other replicas of a key: take in this object.
    Replicate {
        /// The key.
        #[serde(skip)]
        key: Bytes,
        /// The object.
        #[serde(skip)]
        object: Bytes,
    },
    /// Begins an exchange: the roots of the trees that both have.
    Roots {
        /// Who asks whom.
        pair: Pair,
        /// Numbers the asker's exchanges; echoed.
        exchange: u64,
        /// For each group its root.
        #[serde(skip)]
        parts: Vec<Part>,
    },
    /// What is below the roots that differ. A group that is missing is equal.
    Buckets {
        /// Who answers whom.
        pair: Pair,
        /// Echoed.
        exchange: u64,
        /// For each group its inner nodes.
        #[serde(skip)]
        parts: Vec<Part>,
    },
    /// The leaves below inner nodes that differ.
    Leaves {
        /// Who answers whom.
        pair: Pair,
        /// For each inner node its leaves.
        #[serde(skip)]
        parts: Vec<Part>,
    },
    /// The keys of leaves that differ; as many messages as it takes.
    Keys {
        /// Who answers whom.
        pair: Pair,
        /// The leaves.
        #[serde(skip)]
        leaves: Vec<Leaf>,
    },
    /// Objects of keys that differ; as many messages as it takes.
    Repair {
        /// Who tells whom.
        pair: Pair,
        /// Whether the receiver says what it has made of them.
        wants: bool,
        /// The objects; absent ones of keys that only the receiver has.
        #[serde(skip)]
        page: Bytes,
    },
    /// To a node that has shown a newer map: tell it.
    MapA {
        /// The asker's version.
        version: u64,
    },
    /// The newest map that the sender knows.
    MapB {
        /// The map.
        map: Map,
    },
}

/// The bytes of leaves: `home u16, at u32, count u32`, then each key as `length u16, key, hash`.
pub(super) fn push_leaf(out: &mut BytesMut, leaf: &Leaf) {
    out.put_u16(leaf.home);
    out.put_u32(leaf.at);
    out.put_u32(leaf.keys.len() as u32);
    for (key, hash) in &leaf.keys {
        out.put_u16(u16::try_from(key.len()).expect("keys are shorter than 64 KiB"));
        out.put_slice(key);
        out.put_slice(hash);
    }
}

fn read_leaves(mut bytes: Bytes) -> Result<Vec<Leaf>, WireError> {
    let truncated = WireError::Truncated { what: "leaf" };
    let mut leaves = Vec::new();
    while !bytes.is_empty() {
        if bytes.len() < 10 {
            return Err(truncated);
        }
        let (home, at, count) = (bytes.get_u16(), bytes.get_u32(), bytes.get_u32());
        let mut keys = Vec::new();
        for _ in 0..count {
            let length = if bytes.len() < 2 { usize::MAX } else { usize::from(bytes.get_u16()) };
            if bytes.len() < length.saturating_add(size_of::<Hash>()) {
                return Err(truncated);
            }
            let key = bytes.split_to(length);
            is_data_key(&key)?;
            let mut hash = Hash::default();
            bytes.copy_to_slice(&mut hash);
            keys.push((key, hash));
        }
        leaves.push(Leaf { home, at, keys });
    }
    Ok(leaves)
}

fn read_parts(bytes: &Bytes) -> Result<Vec<Part>, WireError> {
    match postcard::take_from_bytes(bytes) {
        Ok((parts, [])) => Ok(parts),
        _ => Err(WireError::Malformed { what: "hashes" }),
    }
}

impl Wire for Message {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(self);
        match self {
            Message::ReadA { key, .. } => out.tail(0, key),
            Message::ReadB { object, .. } => out.tail(0, object),
            Message::WriteA { key, value: second, .. }
            | Message::Replicate { key, object: second } => {
                out.tail(0, key);
                out.tail(1, second);
            }
            Message::Roots { parts, .. }
            | Message::Buckets { parts, .. }
            | Message::Leaves { parts, .. } => {
                let bytes = postcard::to_allocvec(parts).expect("plain data always serializes");
                out.tail(0, &bytes.into());
            }
            Message::Keys { leaves, .. } => {
                let mut bytes = BytesMut::new();
                leaves.iter().for_each(|leaf| push_leaf(&mut bytes, leaf));
                out.tail(0, &bytes.freeze());
            }
            Message::Repair { page, .. } => out.tail(0, page),
            Message::WriteB { .. } | Message::MapA { .. } | Message::MapB { .. } => {}
        }
    }

    fn decode(input: &Decoder) -> Result<Message, WireError> {
        let mut message: Message = input.head()?;
        let (first, second) = (input.tail(0), input.tail(1));
        match &mut message {
            Message::ReadA { key, .. } => {
                is_data_key(&first)?;
                *key = first;
            }
            Message::ReadB { object, .. } => {
                Object::from_bytes(&first)?;
                *object = first;
            }
            Message::WriteA { key, value, context, .. } => {
                is_data_key(&first)?;
                if !context.iter().all(|(_, counter)| is_counter(*counter)) {
                    return Err(WireError::Malformed { what: "counter" });
                }
                (*key, *value) = (first, second);
            }
            Message::Replicate { key, object } => {
                is_data_key(&first)?;
                Object::from_bytes(&second)?;
                (*key, *object) = (first, second);
            }
            Message::Roots { parts, .. }
            | Message::Buckets { parts, .. }
            | Message::Leaves { parts, .. } => *parts = read_parts(&first)?,
            Message::Keys { leaves, .. } => *leaves = read_leaves(first)?,
            Message::Repair { page, .. } => {
                page::read(first.clone())?;
                *page = first;
            }
            Message::WriteB { .. } | Message::MapA { .. } | Message::MapB { .. } => {}
        }
        Ok(message)
    }
}
