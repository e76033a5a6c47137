//! Who is believed to hold the keys of keyspaces that have groups on the ring.
//!
//! Any host serves any key, and only views of groups are the truth about who holds what: a route is
//! a hint that saves a message there and back. It may be old or missing, and nothing but time is
//! lost then: the host asked finds the holders itself. Hosts show the groups that they are in, so
//! all of them are asked; no answer says that a route was wrong, so they are asked again after a
//! while, and soon after a call at a host that was chosen by a route has failed.
//!
//! Keys of other keyspaces have no route: the host that answered last has what the client wrote.

use crate::hosts::Hosts;
use quorate_api::v1::{Group, RingResponse, ScanOrder, StatusResponse};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use xxhash_rust::xxh3::xxh3_64;

/// How long routes are used without asking again.
const FRESH: Duration = Duration::from_secs(30);
/// How long they are used that seem to be wrong.
const FRESH_IN_DOUBT: Duration = Duration::from_secs(1);
/// How long a host may take to say what it knows.
const WITHIN: Duration = Duration::from_secs(2);
/// How many bytes of a key are its token where keys stand in their own order.
const TOKEN_BYTES: usize = 8;

/// What is known of who holds what, and since when.
#[derive(Debug, Default)]
pub(crate) struct Routes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    map: Arc<Map>,
    asked: Option<Instant>,
    is_asking: bool,
    is_doubted: bool,
}

impl Routes {
    /// Whether it is time to ask again. Whoever is told so does.
    pub fn are_old(&self) -> bool {
        let mut state = self.state();
        let fresh = if state.is_doubted { FRESH_IN_DOUBT } else { FRESH };
        let is_old = state.asked.is_none_or(|asked| asked.elapsed() >= fresh);
        let is_due = is_old && !state.is_asking;
        state.is_asking |= is_due;
        is_due
    }

    /// A call at a host that was chosen by a route has failed.
    pub fn doubt(&self) {
        self.state().is_doubted = true;
    }

    /// Asks the hosts who holds what.
    pub async fn learn(&self, hosts: &Hosts) {
        let mut told = Vec::new();
        for index in 0..hosts.count() {
            let host = hosts.at(index);
            if host.is_doubted() {
                continue;
            }
            let Ok(status) = host.status(WITHIN).await else { continue };
            let Ok(ring) = host.ring(WITHIN).await else { continue };
            told.push((index, status, ring));
        }
        let mut state = self.state();
        if !told.is_empty() {
            state.map = Arc::new(Map::of(&told));
        }
        (state.asked, state.is_asking, state.is_doubted) = (Some(Instant::now()), false, false);
    }

    /// The first host that is believed to hold a key and is good. Each key begins at another of its
    /// holders, so that none of them gets all calls.
    pub fn holder(
        &self,
        keyspace: &str,
        key: &[u8],
        is_good: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let map = Arc::clone(&self.state().map);
        let ranges = map.0.get(keyspace)?;
        let token = token(ranges.order, key);
        let holders = ranges.holders(token)?;
        let first = usize::try_from(token % holders.len() as u64).unwrap_or(0);
        let in_turn = holders[first..].iter().chain(&holders[..first]);
        in_turn.copied().find(|host| is_good(*host))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The keyspaces, by name.
#[derive(Debug, Default)]
struct Map(HashMap<String, Ranges>);

/// A keyspace's parts of the ring.
#[derive(Debug)]
struct Ranges {
    order: ScanOrder,
    /// The parts by where they end, each with where it begins and the hosts that hold it.
    parts: BTreeMap<u64, (u64, Vec<usize>)>,
}

impl Map {
    /// What hosts, each with its index, have told.
    fn of(told: &[(usize, StatusResponse, RingResponse)]) -> Map {
        let mut nodes = HashMap::new();
        let mut all = HashMap::new();
        // By their groups and versions, the newest view of each.
        let mut newest: BTreeMap<(&str, u64), &Group> = BTreeMap::new();
        for (index, status, ring) in told {
            if let Some(who) = status.coordinator {
                nodes.insert(who.node, *index);
            }
            for keyspace in &status.keyspaces {
                let ranges = Ranges { order: keyspace.order(), parts: BTreeMap::new() };
                all.insert(keyspace.name.clone(), ranges);
            }
            for group in &ring.groups {
                let known = newest.entry((&group.keyspace, group.group)).or_insert(group);
                if known.version < group.version {
                    *known = group;
                }
            }
        }
        let mut groups: Vec<&Group> = newest.into_values().collect();
        groups.sort_by_key(|group| group.version);
        for group in groups {
            let holders: Vec<usize> =
                group.members.iter().filter_map(|node| nodes.get(node).copied()).collect();
            if let Some(ranges) = all.get_mut(&group.keyspace)
                && !holders.is_empty()
            {
                ranges.parts.insert(group.high, (group.low, holders));
            }
        }
        Map(all)
    }
}

impl Ranges {
    /// The hosts that hold a token.
    fn holders(&self, token: u64) -> Option<&[usize]> {
        // The part with the lowest end goes round the end of the space.
        let at_or_behind = self.parts.range(token..).next();
        let (high, (low, holders)) = at_or_behind.or_else(|| self.parts.first_key_value())?;
        let from_low = token.wrapping_sub(*low).wrapping_sub(1);
        let is_inside = low == high || from_low < high.wrapping_sub(*low);
        is_inside.then_some(&holders[..])
    }
}

/// Where a key stands on the ring.
fn token(order: ScanOrder, key: &[u8]) -> u64 {
    if order != ScanOrder::Key {
        return xxh3_64(key);
    }
    let mut first = [0; TOKEN_BYTES];
    let known = key.len().min(TOKEN_BYTES);
    first[..known].copy_from_slice(&key[..known]);
    u64::from_be_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_api::v1::{Coordinator, Keyspace};

    fn keyspace(name: &str, order: ScanOrder) -> Keyspace {
        Keyspace { name: name.to_owned(), order: order.into(), ..Keyspace::default() }
    }

    fn group(keyspace: &str, group: u64, range: (u64, u64), version: u64, who: &[u64]) -> Group {
        let (low, high) = range;
        let (keyspace, members) = (keyspace.to_owned(), who.to_vec());
        Group { keyspace, group, low, high, version, members, ..Group::default() }
    }

    /// What the host of an index, which is node 100 more, tells of groups.
    fn told(index: usize, groups: Vec<Group>) -> (usize, StatusResponse, RingResponse) {
        let coordinator = Some(Coordinator { node: 100 + index as u64, start: 1 });
        let keyspaces =
            vec![keyspace("ordered", ScanOrder::Key), keyspace("elsewhere", ScanOrder::Hash)];
        let status = StatusResponse { coordinator, keyspaces, ..StatusResponse::default() };
        (index, status, RingResponse { groups, ..RingResponse::default() })
    }

    fn routes(told: &[(usize, StatusResponse, RingResponse)]) -> Routes {
        let state = State { map: Arc::new(Map::of(told)), ..State::default() };
        Routes(Mutex::new(state))
    }

    #[test]
    fn a_key_is_routed_to_a_holder_of_the_newest_view() {
        let (half, end) = (u64::from_be_bytes(*b"mmmmmmmm"), u64::from_be_bytes(*b"zzzzzzzz"));
        let lower = group("ordered", 1, (end, half), 3, &[100, 101, 900]);
        let old = group("ordered", 2, (half, end), 4, &[100]);
        let upper = group("ordered", 2, (half, end), 5, &[102]);
        let routes = routes(&[
            told(0, vec![lower.clone(), old]),
            told(1, vec![lower]),
            told(2, vec![upper]),
        ]);
        let any = |key: &[u8]| routes.holder("ordered", key, |_| true);
        assert!(matches!(any(b"a"), Some(0 | 1)), "node 900 is no host of ours");
        assert_eq!(any(b"x"), Some(2), "an old view is outvoted");
        assert!(matches!(any(b"~"), Some(0 | 1)), "the lower part goes round the end");
        assert!(any(&half.to_be_bytes()).is_some_and(|host| host < 2), "ends are inside");
        assert_eq!(any(b"mmmmmmmn"), Some(2));
        assert_eq!(routes.holder("ordered", b"a", |host| host == 1), Some(1));
        assert_eq!(routes.holder("ordered", b"a", |_| false), None);
        assert_eq!(routes.holder("elsewhere", b"a", |_| true), None, "it has no groups");
        assert_eq!(routes.holder("none", b"a", |_| true), None);
    }

    #[test]
    fn what_nobody_told_of_has_no_route() {
        let routes = routes(&[told(0, vec![group("ordered", 1, (10, 20), 1, &[100])])]);
        let at = |token: u64| routes.holder("ordered", &token.to_be_bytes(), |_| true);
        assert_eq!([at(10), at(11), at(20), at(21)], [None, Some(0), Some(0), None]);
        assert_eq!(Routes::default().holder("ordered", b"a", |_| true), None);
    }

    #[test]
    fn keys_begin_at_different_holders() {
        let routes = routes(&[
            told(0, vec![group("ordered", 1, (5, 5), 1, &[100, 101])]),
            told(1, Vec::new()),
        ]);
        let at = |key: u64| routes.holder("ordered", &key.to_be_bytes(), |_| true);
        assert_eq!([at(8), at(9), at(10)], [Some(0), Some(1), Some(0)]);
    }

    #[test]
    fn one_asks_when_routes_are_old_and_sooner_when_they_are_doubted() {
        let routes = Routes::default();
        assert!(routes.are_old(), "nothing is known yet");
        assert!(!routes.are_old(), "somebody asks already");
        let since = |ago: Duration| {
            let mut state = routes.state();
            (state.asked, state.is_asking) = (Instant::now().checked_sub(ago), false);
        };
        since(2 * FRESH_IN_DOUBT);
        assert!(!routes.are_old());
        routes.doubt();
        assert!(routes.are_old());
        since(FRESH);
        assert!(routes.are_old());
    }
}
