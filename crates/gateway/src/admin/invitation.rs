//! What a host that joins is told by one of the cluster.

use quorate_host::ring::Report;
use quorate_host::ring::founding::context_key;
use quorate_host::ring::report::cell;
use quorate_kernel::keyspace::NewKeyspace;
use quorate_kernel::limits::HOSTS_LISTED_MAX;
use quorate_kernel::ring::{RingHost, Standing};
use quorate_store::text::{self, HostText};
use quorate_store::{HostRecord, Identity};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a host that joins is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// Its id, as text.
    pub cluster: String,
    /// The version of the protocol between hosts.
    pub protocol: u8,
    /// A number for the newcomer that no other host has, as far as is known.
    pub number: u32,
    /// The key that signs what clients keep for engines, in hexadecimal.
    pub context_key: String,
    /// The hosts on the ring.
    pub hosts: Vec<HostText>,
    /// Where tokens have stood that are gone: and that bound groups all the same, as far as
    /// is known. A host that does not know of them says nothing.
    #[serde(default)]
    pub former: Vec<String>,
    /// Those of the catalog, as far as the host that answers knows it.
    pub keyspaces: Vec<NewKeyspace>,
}

impl Invitation {
    /// The invitation to a cluster whose ring looks like this.
    #[must_use]
    pub fn of(identity: &Identity, report: &Report, protocol: u8) -> Invitation {
        let hosts = report.ring.hosts();
        let is_there = |host: &&RingHost| host.standing != Standing::Left;
        let inviting = |host: &RingHost| {
            HostText::from(&HostRecord {
                host: report.number(host.who.node).unwrap_or(0),
                node: host.who.node,
                address: host.address.clone(),
                zone: host.zone.clone(),
                tokens: host.tokens.clone(),
            })
        };
        let highest = report.numbers.iter().map(|(_, number)| *number).max().unwrap_or(0);
        let count = u32::try_from(hosts.len()).unwrap_or(u32::MAX - 1);
        Invitation {
            cluster: identity.cluster.to_string(),
            protocol,
            context_key: text::of_bytes(&context_key(identity)),
            // Hosts that left keep theirs.
            number: highest.max(count) + 1,
            hosts: hosts.iter().filter(is_there).map(inviting).collect(),
            former: former(report).iter().map(|token| format!("{token:016x}")).collect(),
            keyspaces: identity.keyspaces.clone(),
        }
    }
}

/// Where hosts that have left stood, and where groups end that this host knows, unless a token
/// stands there.
fn former(report: &Report) -> Vec<u64> {
    let hosts = report.ring.hosts().iter();
    let left = hosts.filter(|host| host.standing == Standing::Left);
    let groups = report.keyspaces.iter().flat_map(|keyspace| &keyspace.groups);
    let ends = groups.filter_map(|group| u64::from_str_radix(cell(group, "high"), 16).ok());
    let taken: BTreeSet<u64> = report.ring.tokens().map(|(token, _)| token).collect();
    let all: BTreeSet<u64> = left.flat_map(|host| host.tokens.clone()).chain(ends).collect();
    all.difference(&taken).copied().take(HOSTS_LISTED_MAX).collect()
}
