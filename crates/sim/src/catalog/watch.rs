//! What hosts know of the chain: their stores are looked at, and what they were told.

use super::World;
use super::clients::TAG;
use crate::host::Running;
use crate::queue::HostIndex;
use quorate_check::catalog::{Decree, Known};
use quorate_kernel::ids::LaneId;
use quorate_kernel::keyspace::{Keyspaces, Settings};
use quorate_kernel::storage::{Class, Reader, store_key};
use quorate_protocols::catalog::{self, Entry};

/// How often the stores are looked at.
pub(super) const WATCH_NS: u64 = 500_000_000;

/// Keyspaces as the judge has them.
pub(super) fn known(told: &Keyspaces) -> Known {
    let list = told.list.iter();
    list.map(|(known, _)| (known.lane, known.name.clone(), tag(&known.settings))).collect()
}

fn tag(settings: &Settings) -> u64 {
    settings.get(TAG).and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A decree as the judge has it.
fn judged(decree: catalog::Decree) -> Decree {
    match decree {
        catalog::Decree::Create { name, settings, .. } => {
            Decree::Created { name, tag: tag(&settings) }
        }
        catalog::Decree::Alter { lane, settings } => Decree::Altered { lane, tag: tag(&settings) },
        catalog::Decree::Drop { lane } => Decree::Dropped { lane },
        other => Decree::Other(format!("{other:?}")),
    }
}

/// Where the catalog stores a decree.
fn place(number: u64) -> Vec<u8> {
    store_key(LaneId::CATALOG, Class::State, &[b"decree", &number.to_be_bytes()[..]].concat())
        .to_vec()
}

impl World<'_> {
    /// Looks at all hosts that run; who is down is looked at when it is back.
    pub(super) fn watch(&mut self) {
        for host in 0..self.machines.hosts.len() {
            if self.machines.hosts[host].running != Running::Down {
                self.watch_host(host);
            }
        }
    }

    /// Notes the decrees that a host has stored since it was looked at, and the lanes it gave.
    pub(super) fn watch_host(&mut self, host: HostIndex) {
        let (target, chain) = (&self.machines.hosts[host], &mut self.clients.history.chain);
        let seen = &mut self.seen[host];
        let mut found = Vec::new();
        let result =
            target.disk.store().scan(&place(*seen + 1), &place(u64::MAX), &mut |key, value| {
                let number = key.last_chunk().copied().map(u64::from_be_bytes);
                found.push((number.expect("it ends with a number"), value.clone()));
                true
            });
        result.expect("the simulated store reads");
        for (number, value) in found {
            // Before the value stands its version.
            let entry: Entry = postcard::from_bytes(&value[1..]).expect("it was stored");
            chain.saw(number, entry.origin.who, judged(entry.decree));
            *seen = number;
        }
        let told = target.told.iter().flat_map(|told| &told.list);
        told.for_each(|(keyspace, _)| chain.saw_lane(keyspace.created, keyspace.lane));
        self.decrees = self.decrees.max(*seen);
    }

    /// What keeps the hosts from knowing the same.
    pub(super) fn unsettled(&self) -> Option<String> {
        let hosts = self.machines.hosts.iter().enumerate();
        let mut first = None;
        for (index, host) in hosts {
            let Some(told) = host.told.as_ref().filter(|_| host.running == Running::Up) else {
                return Some(format!("n{} knows no catalog", index + 1));
            };
            let first = first.get_or_insert(told);
            if first.version != told.version {
                let (mine, theirs) = (told.version, first.version);
                return Some(format!("n{} is at {mine}, others at {theirs}", index + 1));
            }
        }
        let there = |node| self.machines.hosts.iter().any(|host| host.node_id == node);
        let mut members = first.into_iter().flat_map(|told| told.members.iter().copied());
        let lost = members.find(|node| !there(*node))?;
        Some(format!("{lost} is in the system group, and its disk was lost"))
    }
}
