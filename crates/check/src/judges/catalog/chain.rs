//! The chain of decrees as hosts show it, and what it comes to.

use super::{CatalogOrder, Order};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, LaneId};

/// The keyspaces there are: lane, name, tag of its newest setting.
pub type Known = Vec<(LaneId, String, u64)>;

/// A decree, as far as the judge looks at it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decree {
    /// A new keyspace.
    Created {
        /// Its name.
        name: String,
        /// The tag of the order.
        tag: u64,
    },
    /// Another setting.
    Altered {
        /// The keyspace's lane.
        lane: LaneId,
        /// The tag of the order.
        tag: u64,
    },
    /// The end of a keyspace.
    Dropped {
        /// Its lane.
        lane: LaneId,
    },
    /// What hosts decide by themselves, in words.
    Other(String),
}

/// What was decided, as far as it was seen.
#[derive(Clone, Debug, Default)]
pub struct Chain {
    decrees: BTreeMap<u64, (Incarnation, Decree)>,
    conflict: Option<String>,
    /// The lanes that hosts gave to keyspaces, by the decree that created them.
    lanes: BTreeMap<u64, LaneId>,
}

impl Chain {
    /// A host knows a decree, which somebody wanted.
    pub fn saw(&mut self, number: u64, by: Incarnation, decree: Decree) {
        let known = self.decrees.entry(number).or_insert_with(|| (by, decree.clone()));
        if *known != (by, decree.clone()) {
            let message = format!("decree {number} is {known:?} and {decree:?} by {by}");
            self.conflict.get_or_insert(message);
        }
    }

    /// A host has given a lane to the keyspace that a decree created.
    pub fn saw_lane(&mut self, created: u64, lane: LaneId) {
        let known = *self.lanes.entry(created).or_insert(lane);
        if known != lane {
            let message = format!("decree {created} made {known:?} and {lane:?}");
            self.conflict.get_or_insert(message);
        }
    }

    /// What the decrees come to, each after the other.
    ///
    /// # Errors
    /// There is not one chain, or a decree cannot follow those before it.
    pub(super) fn fold(&self) -> Result<Fold, String> {
        if let Some(conflict) = &self.conflict {
            return Err(conflict.clone());
        }
        let (mut fold, mut given) = (Fold::new(), BTreeSet::new());
        for (number, (by, decree)) in &self.decrees {
            if *number != fold.last + 1 {
                return Err(format!("decree {number} follows decree {}", fold.last));
            }
            let mut known = fold.states.last().cloned().unwrap_or_default();
            let wrong = |what: &str| Err(format!("decree {number}, {decree:?}, {what}"));
            let mut about = None;
            match decree {
                Decree::Created { name, tag } => {
                    if known.iter().any(|(_, taken, _)| taken == name) {
                        return wrong("takes a name that is taken");
                    }
                    // A keyspace that was dropped before anybody was asked has shown no lane.
                    let newest =
                        given.last().map_or(LaneId::KEYSPACES.0, |lane: &LaneId| lane.0 + 1);
                    let lane = self.lanes.get(number).copied().unwrap_or(LaneId(newest));
                    if !given.insert(lane) {
                        return wrong("gives a lane again");
                    }
                    known.push((lane, name.clone(), *tag));
                    about = Some(name.clone());
                }
                Decree::Altered { lane, tag } => {
                    let Some(keyspace) = known.iter_mut().find(|known| known.0 == *lane) else {
                        return wrong("alters what is not there");
                    };
                    keyspace.2 = *tag;
                    about = Some(keyspace.1.clone());
                }
                Decree::Dropped { lane } => {
                    let Some(at) = known.iter().position(|known| known.0 == *lane) else {
                        return wrong("drops what is not there");
                    };
                    about = Some(known.remove(at).1);
                }
                Decree::Other(_) => {}
            }
            if let Some(name) = about {
                fold.asked.insert(*number, (*by, ask(decree, name)));
            }
            fold.states.push(known);
            fold.last = *number;
        }
        Ok(fold)
    }
}

/// What a decree was asked for as.
fn ask(decree: &Decree, name: String) -> CatalogOrder {
    match decree {
        Decree::Created { tag, .. } => CatalogOrder::Create { name, tag: *tag },
        Decree::Altered { tag, .. } => CatalogOrder::Alter { name, tag: *tag },
        Decree::Dropped { .. } | Decree::Other(_) => CatalogOrder::Drop { name },
    }
}

/// What the chain comes to after each decree.
pub(super) struct Fold {
    /// The state before the first decree.
    pub first: u64,
    /// The newest decree.
    pub last: u64,
    /// The decrees that operators ask for, as what they were asked for, and at whom.
    pub asked: BTreeMap<u64, (Incarnation, CatalogOrder)>,
    /// What there is after each, from the first state on, in the order of lanes.
    states: Vec<Known>,
}

impl Fold {
    /// A cluster is born with the first link.
    fn new() -> Fold {
        let (first, last) = (1, 1);
        Fold { first, last, asked: BTreeMap::new(), states: Vec::from([Known::new()]) }
    }

    /// What there is after a decree.
    pub fn at(&self, version: u64) -> Option<&Known> {
        self.states.get(version.checked_sub(self.first)? as usize)
    }

    /// Whether some keyspace has a name then.
    pub fn is_taken(&self, name: &str, state: u64) -> bool {
        self.at(state).is_some_and(|known| known.iter().any(|(_, taken, _)| taken == name))
    }

    /// The decrees that may be an order's, in order.
    pub fn candidates(&self, order: &Order) -> impl Iterator<Item = u64> {
        let is_its = move |(_, (by, ask)): &(&u64, &(Incarnation, CatalogOrder))| {
            *by == order.host && *ask == order.ask
        };
        self.asked.iter().filter(is_its).map(|(number, _)| *number)
    }
}
