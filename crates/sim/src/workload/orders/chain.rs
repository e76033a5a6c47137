//! What hosts know of the chain: their stores are looked at, and what they were told.

use super::TAG;
use crate::host::{Host, Running};
use quorate_check::catalog::{Decree, History, Known};
use quorate_kernel::ids::LaneId;
use quorate_kernel::keyspace::{Keyspaces, Settings};
use quorate_kernel::storage::{Class, Reader, store_key};
use quorate_protocols::catalog::{self, Entry};

/// How far the store of each host was looked at: in which life, up to which decree. What a crash
/// took from the disk may be decided otherwise in the next one.
#[derive(Debug, Default)]
pub(super) struct Chain(Vec<(u32, u64)>);

impl Chain {
    /// Looks at all hosts that run; who is down is looked at when it is back. Only what is new, or
    /// all that is stored.
    pub fn watch(&mut self, hosts: &[Host], anew: bool, history: &mut History) {
        self.0.resize(hosts.len(), (0, 0));
        for (host, (life, seen)) in hosts.iter().zip(&mut self.0) {
            if anew || *life != host.life {
                (*life, *seen) = (host.life, 0);
            }
            if host.running != Running::Down {
                watch_host(host, seen, history);
            }
        }
    }
}

/// Notes the decrees that a host has stored since it was looked at, and the lanes it gave.
fn watch_host(host: &Host, seen: &mut u64, history: &mut History) {
    let chain = &mut history.chain;
    let mut found = Vec::new();
    let (low, high) = (place(*seen + 1), place(u64::MAX));
    let result = host.disk.store().scan(&low, &high, &mut |key, value| {
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
    let told = host.told.iter().flat_map(|told| &told.list);
    told.for_each(|(keyspace, _)| chain.saw_lane(keyspace.created, keyspace.lane));
}

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
