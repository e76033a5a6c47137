//! The catalog itself: what all decrees so far come to.

use super::decree::{Decree, Entry, are_bounded, is_birth};
use crate::catalog::partitions::seats;
use crate::reconfigure::{Ground, Value};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, LaneId, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::keyspace::{CatalogRefusal, Keyspace, Partition, Tenure, is_name};
use quorate_kernel::limits::{KEYSPACES_MAX, PARTITIONS_MAX};
use quorate_kernel::mutant;
use quorate_kernel::view::{Change, Range, View, ViewId};
use serde::{Deserialize, Serialize};

/// The catalog after some decree. Equal numbers mean equal catalogs, on all hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalog {
    /// The system group. Its version is the number of the newest decree.
    view: View,
    /// The lane that the next keyspace gets.
    next_lane: u32,
    keyspaces: BTreeMap<LaneId, Arc<Keyspace>>,
}

impl Ground for Catalog {
    fn view(&self) -> &View {
        &self.view
    }
}

impl Value for Entry {
    type Ground = Catalog;

    fn fits(&self, ground: &Catalog) -> bool {
        self.is_sound() && ground.judge(&self.decree).is_ok()
    }
}

impl Catalog {
    /// The catalog that a cluster is born with: the first link, no keyspace yet.
    #[must_use]
    pub fn born(members: Vec<NodeId>) -> Catalog {
        let id = ViewId { group: GroupId(u64::from(LaneId::CATALOG.0)), version: 1 };
        Catalog {
            view: View::new(id, Range::ALL, members),
            next_lane: LaneId::KEYSPACES.0,
            keyspaces: BTreeMap::new(),
        }
    }

    /// The number of the newest decree.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.view.id.version
    }

    /// The keyspaces in the order of their lanes.
    pub fn keyspaces(&self) -> impl ExactSizeIterator<Item = &Arc<Keyspace>> {
        self.keyspaces.values()
    }

    /// The keyspace of a lane.
    #[must_use]
    pub fn keyspace(&self, lane: LaneId) -> Option<&Arc<Keyspace>> {
        self.keyspaces.get(&lane)
    }

    /// The keyspace of a name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(&self, name: &str) -> Result<&Arc<Keyspace>, CatalogRefusal> {
        let found = self.keyspaces.values().find(|keyspace| keyspace.name == name);
        found.ok_or_else(|| CatalogRefusal::Unknown { name: name.into() })
    }

    /// Whether a decree can follow. What it says is part of the protocol, like the layout of a
    /// message: members of different builds must judge alike, so a rule changes only with the
    /// version of frames and the format of directories, and what only an engine knows is looked at
    /// by whoever proposes.
    ///
    /// # Errors
    /// Why not.
    pub fn judge(&self, decree: &Decree) -> Result<(), CatalogRefusal> {
        match decree {
            Decree::Create { name, settings, birth, places, .. } => {
                if !is_name(name) {
                    return Err(CatalogRefusal::Name { name: name.clone() });
                }
                if self.named(name).is_ok() {
                    return Err(CatalogRefusal::Exists { name: name.clone() });
                }
                if self.keyspaces.len() >= KEYSPACES_MAX || self.next_lane == u32::MAX {
                    let what = String::from("keyspaces");
                    return Err(CatalogRefusal::Full { what, limit: KEYSPACES_MAX });
                }
                if !are_bounded(settings) || !is_birth(birth) || places.len() > PARTITIONS_MAX {
                    return Err(refused("a bound of the catalog is passed"));
                }
                let replicas = settings.get("replicas").and_then(|text| text.parse().ok());
                seats::check(places, replicas.unwrap_or(1))
            }
            Decree::Alter { lane, settings } => {
                let keyspace = self.of(*lane)?;
                let is_known = |name: &String| keyspace.settings.contains_key(name);
                if !are_bounded(settings) || !settings.keys().all(is_known) {
                    return Err(refused("it has no such setting"));
                }
                Ok(())
            }
            Decree::Drop { lane } => self.of(*lane).map(drop),
            Decree::Replace { lane, partition, since, to } => {
                let keyspace = self.of(*lane)?;
                let now = place(keyspace, *partition)?;
                if now.since != *since {
                    let why = format!("partition {partition} was replaced meanwhile");
                    return Err(CatalogRefusal::Partitions { why });
                }
                seats::check_replacement(keyspace, *partition as usize, *to)
            }
            Decree::Settle { lane, partition, since } => {
                judge_settle(self.of(*lane)?, *partition, *since)
            }
            Decree::HandOver { lane, partition, since } => {
                judge_hand_over(self.of(*lane)?, *partition, *since)
            }
            Decree::Gone { lane, node } => {
                let keyspace = self.of(*lane)?;
                let had = keyspace.former.iter().any(|one| one.node == *node);
                let has = keyspace.partitions.iter().any(|place| place.node == *node);
                if keyspace.gone.contains(node) || !(had || has) {
                    let why = format!("node {node} is gone already, or has nothing");
                    return Err(CatalogRefusal::Partitions { why });
                }
                Ok(())
            }
            Decree::Members(Change::Split { .. }) => Err(refused("the system group has no parts")),
            Decree::Members(change) => match self.view.after(change) {
                Some(_) => Ok(()),
                None => Err(refused("the system group has other members by now")),
            },
        }
    }

    /// The catalog after a link that fits.
    #[must_use]
    pub fn after(&self, entry: &Entry) -> Catalog {
        invariant!(entry.fits(self), "decree {} does not fit: {entry:?}", self.version() + 1);
        let mut next = self.clone();
        next.view.id.version += 1;
        let number = next.version();
        match &entry.decree {
            Decree::Create { name, engine, settings, birth, places } => {
                let lane = self.free_lane();
                let place =
                    |node: &NodeId| Partition { node: *node, since: number, is_settled: true };
                let keyspace = Keyspace {
                    birth: birth.clone(),
                    partitions: places.iter().map(place).collect(),
                    ..Keyspace::new(name, lane, engine, settings.clone(), number)
                };
                next.next_lane += 1;
                next.keyspaces.insert(lane, Arc::new(keyspace));
            }
            Decree::Alter { lane, settings } => next.change(*lane, |keyspace| {
                keyspace.settings.extend(settings.clone());
            }),
            Decree::Drop { lane } => {
                next.keyspaces.remove(lane);
            }
            Decree::Replace { lane, partition, to, .. } => next.change(*lane, |keyspace| {
                let place = &mut keyspace.partitions[*partition as usize];
                let (since, node) = (place.since, place.node);
                *place = Partition { node: *to, since: number, is_settled: false };
                // Of who is gone for good nothing is expected.
                if !keyspace.gone.contains(&node) {
                    keyspace.former.push(Tenure { partition: *partition, since, node });
                }
            }),
            Decree::Settle { lane, partition, since } => next.change(*lane, |keyspace| {
                let place = &mut keyspace.partitions[*partition as usize];
                place.is_settled |= place.since == *since;
                if mutant!("catalog_joined_left") {
                    keyspace.former.retain(|one| !is_tenure(one, *partition, *since));
                }
            }),
            Decree::HandOver { lane, partition, since } => next.change(*lane, |keyspace| {
                keyspace.former.retain(|one| !is_tenure(one, *partition, *since));
            }),
            Decree::Gone { lane, node } => next.change(*lane, |keyspace| {
                keyspace.former.retain(|one| one.node != *node);
                keyspace.gone.insert(*node);
            }),
            Decree::Members(change) => {
                let views = self.view.after(change).expect("it fits");
                next.view = views.into_iter().next().expect("a change makes one view");
            }
        }
        invariant!(next.version() == self.version() + 1, "a decree makes the next version");
        next
    }

    /// Whether a correct peer can have sent it.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let is_sound = |(lane, keyspace): (&LaneId, &Arc<Keyspace>)| {
            *lane == keyspace.lane
                && (LaneId::KEYSPACES.0..self.next_lane).contains(&lane.0)
                && is_name(&keyspace.name)
                && are_bounded(&keyspace.settings)
                && are_bounded(&keyspace.founding)
                && is_birth(&keyspace.birth)
                && keyspace.partitions.len() <= PARTITIONS_MAX
                && keyspace.former.iter().all(|one| (one.partition as usize) < PARTITIONS_MAX)
        };
        let is_group = self.view.id.group == GroupId(u64::from(LaneId::CATALOG.0));
        is_group
            && self.view.is_well_formed()
            && self.keyspaces.len() <= KEYSPACES_MAX
            && self.keyspaces.iter().all(is_sound)
    }

    /// The next lane: lanes are given in order, and none of them again.
    fn free_lane(&self) -> LaneId {
        let is_free = |lane: &LaneId| !self.keyspaces.contains_key(lane);
        let mut again = (LaneId::KEYSPACES.0..self.next_lane).map(LaneId).filter(is_free);
        let again = again.next().filter(|_| mutant!("catalog_lane_reused"));
        again.unwrap_or(LaneId(self.next_lane))
    }

    fn of(&self, lane: LaneId) -> Result<&Arc<Keyspace>, CatalogRefusal> {
        let unknown = || CatalogRefusal::Unknown { name: format!("lane {}", lane.0) };
        self.keyspaces.get(&lane).ok_or_else(unknown)
    }

    fn change(&mut self, lane: LaneId, change: impl FnOnce(&mut Keyspace)) {
        let number = self.version();
        let keyspace = self.keyspaces.get_mut(&lane).expect("it fits");
        let keyspace = Arc::make_mut(keyspace);
        change(keyspace);
        keyspace.changed = number;
    }
}

fn is_tenure(one: &Tenure, partition: u32, since: u64) -> bool {
    (one.partition, one.since) == (partition, since)
}

/// Whether a tenure has ended, and what it had is not handed over.
fn has_former(keyspace: &Keyspace, partition: u32, since: u64) -> bool {
    keyspace.former.iter().any(|one| is_tenure(one, partition, since))
}

/// What was said of a tenure that has ended says nothing of who has the partition now, nor that
/// anything was handed over.
fn judge_settle(keyspace: &Keyspace, partition: u32, since: u64) -> Result<(), CatalogRefusal> {
    let now = place(keyspace, partition)?;
    let is_former = has_former(keyspace, partition, since) && mutant!("catalog_joined_left");
    if !is_former && (now.since != since || now.is_settled) {
        let why = format!("partition {partition} is settled, or was replaced");
        return Err(CatalogRefusal::Partitions { why });
    }
    Ok(())
}

fn judge_hand_over(keyspace: &Keyspace, partition: u32, since: u64) -> Result<(), CatalogRefusal> {
    if !has_former(keyspace, partition, since) {
        let why = format!("nobody has to hand over partition {partition} since {since}");
        return Err(CatalogRefusal::Partitions { why });
    }
    Ok(())
}

fn place(keyspace: &Keyspace, partition: u32) -> Result<&Partition, CatalogRefusal> {
    keyspace.partitions.get(partition as usize).ok_or_else(|| {
        let (name, count) = (&keyspace.name, keyspace.partitions.len());
        let why = format!("keyspace `{name}` has {count} partitions, and not number {partition}");
        CatalogRefusal::Partitions { why }
    })
}

fn refused(why: &str) -> CatalogRefusal {
    CatalogRefusal::Partitions { why: why.into() }
}
