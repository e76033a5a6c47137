//! Whether replicas have the same.

use super::clients::writer;
use super::cluster::Cluster;
use super::shown::shown;
use bytes::Bytes;
use quorate_kernel::plain::PlainData;
use quorate_protocols::epidemic::keys::{self, record_of, wire_key};
use quorate_protocols::epidemic::replica::range::position;
use quorate_protocols::epidemic::replica::version::Version;
use quorate_protocols::slices::position::{Groups, Position};
use quorate_sim::light::node_id;
use std::collections::{BTreeMap, BTreeSet};

/// The newest version of each key that a node has.
type Newest = BTreeMap<Bytes, Version>;

impl Cluster {
    /// How many slices there are, if all nodes that are up agree on it and are ready.
    #[must_use]
    pub fn agreed(&self) -> Option<u64> {
        let mut agreed = BTreeSet::new();
        for node in &self.up {
            let [ready, slices] = shown(self.light.process(*node), &["standing", "slices"]);
            if ready == 0 {
                return None;
            }
            agreed.insert(slices);
        }
        agreed.pop_first().filter(|_| agreed.is_empty())
    }

    /// Of how many members of slices a key is missing, or newer elsewhere: none if replicas are
    /// equal. The nodes must agree on the number of slices.
    #[must_use]
    pub fn missing(&self, slices: u64) -> u64 {
        let log2 = u8::try_from(slices.ilog2()).expect("there are few slices");
        let groups = Groups::power(log2).expect("there are few slices");
        let held: Vec<(usize, Newest)> = self.up.iter().map(|it| (*it, self.newest(*it))).collect();
        let mut all = Newest::new();
        for (key, version) in held.iter().flat_map(|(_, held)| held) {
            let newest = all.entry(key.clone()).or_insert(*version);
            *newest = (*newest).max(*version);
        }
        let mut slices: BTreeMap<u32, Vec<(&Bytes, &Version)>> = BTreeMap::new();
        for (key, version) in &all {
            slices.entry(groups.slice(position(key)).0).or_default().push((key, version));
        }
        let lacks = |(node, held): &(usize, Newest)| {
            let own = groups.slice(Position::of(node_id(*node))).0;
            let due = slices.get(&own).into_iter().flatten();
            due.filter(|(key, version)| held.get(*key) != Some(version)).count() as u64
        };
        held.iter().map(lacks).sum()
    }

    /// Which requests wrote the newest value of a key that replicas have, and how many have it.
    #[must_use]
    pub fn holders(&self, key: &[u8]) -> BTreeMap<u64, usize> {
        let mut first = vec![b'k'];
        first.extend(wire_key(key));
        let (mut last, first) = (first.clone(), Bytes::from(first));
        last.push(u8::MAX);
        let mut holders = BTreeMap::new();
        for node in &self.up {
            let held =
                self.light.around.stored[*node].0.range(first.clone()..Bytes::from(last.clone()));
            let stored = held.last().and_then(|(_, value)| keys::Stored::from_bytes(value).ok());
            let wrote = stored.and_then(|stored| writer(&stored.value?));
            if let Some(wrote) = wrote {
                *holders.entry(wrote).or_default() += 1;
            }
        }
        holders
    }

    fn newest(&self, node: usize) -> Newest {
        let mut newest = Newest::new();
        // Behind an own letter, by key and version ascending: the last one of a key is the newest.
        let stored = &self.light.around.stored[node].0;
        let records = stored.range(Bytes::from_static(b"k")..Bytes::from_static(b"l"));
        newest.extend(records.filter_map(|(key, _)| record_of(key)));
        newest
    }
}
