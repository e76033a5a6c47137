//! The judge: what must hold whatever has happened (E1 to E5).

use super::world::World;
use crate::epidemic::keys::wire_key;
use crate::epidemic::pending::What;
use crate::epidemic::replica::range::{Range, position};
use crate::epidemic::replica::version::{RequestId, Version};
use crate::epto::EventKey;
use bytes::Bytes;
use quorate_kernel::ids::{NodeId, Start, Ticket};
use quorate_kernel::operation::Outcome;
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

/// What was seen so far.
#[derive(Default)]
pub struct Judge {
    /// E4: what each version of a key has, wherever.
    values: BTreeMap<(Bytes, Version), (RequestId, u64, bool)>,
    /// E4: the newest version of each key at each start of a node, with whether it has joined.
    newest: BTreeMap<(NodeId, Start, Bytes), Version>,
}

impl Judge {
    /// Looks at all nodes; to be called often.
    pub fn look(&mut self, world: &World) {
        for node in world.up() {
            let (state, start) = (world.state(node), world.hosts[&node].start);
            let is_ascending = state.delivered.is_sorted_by(|a, b| a < b);
            assert!(is_ascending, "E1: {node} has delivered out of order");
            for (key, versions) in state.store.iter() {
                for held in versions {
                    let content = (held.id, held.hash, held.is_deleted);
                    let known = *self.values.entry((key.clone(), held.version)).or_insert(content);
                    assert_eq!(known, content, "E4: one version of a key has two values");
                }
                let newest = versions.last().expect("a key has a version").version;
                let before = self.newest.insert((node, start, key.clone()), newest);
                assert!(before.is_none_or(|it| it <= newest), "E4: a version has gone back");
            }
        }
    }

    /// E2: two nodes have delivered what both have in the same order. It follows from E1.
    pub fn orders(world: &World) {
        let mut all = BTreeSet::new();
        for node in world.up() {
            let delivered = &world.state(node).delivered;
            let set: BTreeSet<_> = delivered.iter().collect();
            assert_eq!(set.len(), delivered.len(), "E1: an event was delivered twice");
            all.extend(delivered.iter().copied());
        }
        for node in world.up() {
            let mut rest = all.iter();
            let delivered = world.state(node).delivered.iter();
            let in_order = delivered.clone().all(|event| rest.any(|one| one == event));
            assert!(in_order, "E2: {node} has another order");
        }
    }

    /// E5: at quiescence members of a slice have the same, and each key has its replicas.
    pub fn quiescent(world: &World) {
        let up = world.up();
        let groups: BTreeSet<_> =
            up.iter().map(|node| world.state(*node).slices.groups()).collect();
        assert_eq!(groups.len(), 1, "E5: all go by the same number of slices");
        let mut contents: BTreeMap<Range, BTreeMap<Bytes, Vec<_>>> = BTreeMap::new();
        let mut owners: BTreeMap<Range, usize> = BTreeMap::new();
        for node in &up {
            let state = world.state(*node);
            assert!(state.is_whole(), "E5: {node} is ready");
            let range = state.range().expect("it has a slice");
            let mine = state.store.iter().filter(|(key, _)| range.has(position(key)));
            let mine: BTreeMap<_, _> =
                mine.map(|(key, held)| (key.clone(), held.to_vec())).collect();
            *owners.entry(range).or_insert(0) += 1;
            let known = contents.entry(range).or_insert_with(|| mine.clone());
            for (key, held) in known.iter().chain(&mine) {
                let both = (known.get(key), mine.get(key));
                assert!(both.0 == both.1, "E5: members of {range:?} differ in {key:?}: {held:?}");
            }
        }
        for node in &up {
            for (key, _) in world.state(*node).store.iter() {
                let at = position(key);
                let is_held =
                    contents.iter().any(|(range, keys)| range.has(at) && keys.contains_key(key));
                let is_former = world.state(*node).former.iter().any(|one| one.range.has(at));
                assert!(is_held || is_former, "E5: a key is with its slice");
            }
        }
    }

    /// What every acknowledged write has come to: it, or a later one, is at each member.
    pub fn acknowledged(world: &World) {
        for (ticket, outcome) in &world.answers {
            let (Outcome::Written { context } | Outcome::Deleted { context, .. }) = outcome else {
                continue;
            };
            let (_, key, _) = &world.asked[ticket];
            let version = Version::from_token(&context[..21]).expect("a receipt begins with it");
            let key = wire_key(key);
            let mut holders = 0;
            for node in world.up() {
                let state = world.state(node);
                if !state.is_ready(position(&key)) {
                    continue;
                }
                let newest = state.store.held(&key, None).map(|held| held.version);
                // A purged tombstone is later than whatever it removed.
                let is_there = newest.is_none() || newest >= Some(version);
                assert!(is_there, "an acknowledged write of {key:?} is lost at {node}");
                holders += usize::from(newest.is_some());
            }
            assert!(holders > 0 || is_deleted(world, &key), "an acknowledged write has no holder");
        }
    }

    /// The requests that were done twice: somewhere the first of their events was missed.
    fn twice(&self) -> BTreeSet<RequestId> {
        let mut versions: BTreeMap<RequestId, BTreeSet<Version>> = BTreeMap::new();
        for ((_, version), (id, _, _)) in &self.values {
            versions.entry(*id).or_default().insert(*version);
        }
        let twice = versions.into_iter().filter(|(_, versions)| versions.len() > 1);
        twice.map(|(id, _)| id).collect()
    }

    /// Of the ordered reads that were answered, how many there were, and how many returned
    /// something else than the last write before them (E6). Keys with a request that was done twice
    /// are left out; these are few.
    pub fn stale(&self, world: &World, written: &Written) -> (usize, usize) {
        let (mut reads, mut stale) = (0, 0);
        let mut requests: BTreeMap<EventKey, &Vec<RequestId>> = BTreeMap::new();
        for host in world.hosts.values() {
            requests.extend(host.engine.state.requests.iter().map(|(event, ids)| (*event, ids)));
        }
        let twice = self.twice();
        assert!(twice.len() * 40 <= world.asked.len(), "{} requests were done twice", twice.len());
        let of_twice = world.asked.values().filter(|(id, _, _)| twice.contains(id));
        let doubtful: BTreeSet<&Bytes> = of_twice.map(|(_, key, _)| key).collect();
        for (ticket, outcome) in &world.answers {
            let (id, key, What::Get) = &world.asked[ticket] else { continue };
            let Outcome::Values { values, context } = outcome else { continue };
            if doubtful.contains(key) {
                continue;
            }
            let at = Version::from_token(&context[..21]).expect("a receipt begins with it");
            let Version::Ordered(event) = at else { continue };
            let writes = written.0.get(&wire_key(key)).into_iter().flatten();
            // Requests of one node and round are one event. Those that are sent again come in
            // another order than they were asked in.
            let order = requests.get(&event).copied().into_iter().flatten();
            let before: BTreeSet<_> = order.take_while(|other| *other != id).collect();
            let is_before = |version: &Version, write: &Ticket| {
                *version < at || (*version == at && before.contains(&world.asked[write].0))
            };
            let last = writes.filter(|(version, (write, _))| is_before(version, write)).last();
            let right = last.and_then(|(_, (_, value))| value.clone());
            reads += 1;
            if values.iter().next().cloned() != right {
                std::println!("stale: {id:?} of {key:?} at {at:?}: {values:?}, not {right:?}");
                stale += 1;
            }
        }
        (reads, stale)
    }
}

fn is_deleted(world: &World, key: &Bytes) -> bool {
    world.asked.values().any(|(_, one, what)| wire_key(one) == *key && *what == What::Delete)
}

/// All writes that any node has done, by key and version: the first event of each request.
#[derive(Default)]
pub struct Written(pub BTreeMap<Bytes, BTreeMap<Version, (Ticket, Option<Bytes>)>>);

impl Written {
    /// Of all that was asked, what was done, as the requests remembered by replicas say.
    pub fn of(world: &World) -> Written {
        let mut first: BTreeMap<RequestId, Version> = BTreeMap::new();
        for node in world.up() {
            for (id, done) in world.state(node).seen.newest(&Range::ALL, None, usize::MAX) {
                let version = Version::Ordered(done.event);
                let known = first.entry(id).or_insert(version);
                *known = version.min(*known);
            }
        }
        let mut written = Written::default();
        for (ticket, (id, key, what)) in &world.asked {
            let value = match what {
                What::Put(value) => Some(value.clone()),
                What::Delete => None,
                _ => continue,
            };
            if let Some(version) = first.get(id) {
                let writes = written.0.entry(wire_key(key)).or_default();
                writes.entry(*version).or_insert((*ticket, value));
            }
        }
        written
    }
}
