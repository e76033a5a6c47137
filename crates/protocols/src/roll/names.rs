//! Names of hosts on the roll.

use crate::membership::{Configuration, Member};
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::HOSTS_MAX;
use quorate_kernel::mutant;
use quorate_kernel::rng::mix;

/// The name of a host that has come so often before. The first time it is its node id.
#[must_use]
pub fn name(node: NodeId, coming: u64) -> NodeId {
    match coming {
        0 => node,
        _ => NodeId(mix(node.0 ^ mix(coming))),
    }
}

/// A host as the others shall know it. Where it is the ring says.
#[must_use]
pub fn member(node: NodeId, coming: u64) -> Member {
    let metadata = Vec::from(node.0.to_be_bytes());
    Member { id: name(node, coming), address: String::new(), metadata }
}

/// The host that a member is; none if no host has said so.
#[must_use]
pub fn host(member: &Member) -> Option<NodeId> {
    let node: [u8; 8] = member.metadata[..].try_into().ok()?;
    Some(NodeId(u64::from_be_bytes(node)))
}

/// The hosts of a configuration, ascending, each once.
#[must_use]
pub fn hosts(configuration: &Configuration) -> Vec<NodeId> {
    let mut hosts: Vec<NodeId> =
        configuration.members.iter().filter_map(|member| host(member)).collect();
    hosts.sort_unstable();
    hosts.dedup();
    hosts
}

/// Where those are found that are no members, or not yet: by the name under which each was heard
/// last, or that was heard of it.
#[derive(Debug, Default)]
pub(super) struct Names {
    hosts: BTreeMap<NodeId, NodeId>,
    names: BTreeMap<NodeId, NodeId>,
}

impl Names {
    /// A host speaks, or is spoken of, under this name.
    pub fn note(&mut self, name: NodeId, host: NodeId) {
        if self.names.get(&host) == Some(&name) {
            return;
        }
        if !self.names.contains_key(&host) && self.names.len() >= HOSTS_MAX {
            return;
        }
        if let Some(old) = self.names.insert(host, name) {
            self.hosts.remove(&old);
        }
        self.hosts.insert(name, host);
    }

    /// The host of this name.
    pub fn host(&self, name: NodeId) -> Option<NodeId> {
        self.hosts.get(&name).copied().filter(|_| !mutant!("roll_names_are_forgotten"))
    }
}
