//! The grid: what each seed of a scenario draws of durability, replicas, changes of the cluster and
//! faults, and whether both really took place.
//!
//! A cell is met by a run that came to its end, in which the change was seen at the keyspace, and a
//! fault of the kind was not skipped. Which changes an engine can have follows from its value.

mod seen;

pub(super) use seen::Seen;

use crate::fault::{Fault, Kind, What};
use crate::keyspace::{ChangeSection, KeyspaceSection, Word};
use crate::scenario::Scenario;
use quorate_kernel::engine::{Engine, Placement};
use quorate_kernel::rng::{Rng, mix};
use quorate_kernel::rules::{Alter, Takes};
use quorate_kernel::storage::Durability;
use serde::{Deserialize, Serialize};
use serde_json::to_string;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// From so many seeds of a grid on, each of its cells must be met.
pub const SEEDS_FOR_ALL: u64 = 20_000;
/// The host that is drained, or lost and removed. It is a founder.
const LEAVES: usize = 0;
/// What distinguishes the draw of a cell from that of faults.
const CELLS: u64 = 0x6365_6c6c;

/// What seeds draw from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GridSection {
    /// How durable keyspaces are.
    pub durability: Vec<String>,
    /// How many hosts hold each key, ascending.
    pub replicas: Vec<u64>,
    /// What changes.
    pub change: Vec<Change>,
    /// What goes wrong.
    pub fault: Vec<Kind>,
    /// After how many milliseconds the change begins, at the earliest.
    pub change_ms: u64,
}

/// A change of a cluster, or of a keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Nothing changes.
    None,
    /// A host joins and holds data.
    Join,
    /// A host hands over all that it holds.
    Drain,
    /// A host joins while another one is drained.
    Replace,
    /// A host loses its disk, and its node is removed.
    Remove,
    /// The number of replicas is altered.
    Alter,
    /// Two hosts join, and groups become two each.
    Split,
    /// The number of groups is altered to twice as many.
    Regroup,
    /// The keyspace is dropped, and made again under its name.
    Renew,
}

/// One choice of each.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// How durable keyspaces are.
    pub durability: String,
    /// How many hosts hold each key, before the change.
    pub replicas: u64,
    /// What changes.
    pub change: Change,
    /// What goes wrong.
    pub fault: Kind,
}

/// A cell of one engine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Met {
    /// The engine.
    pub engine: String,
    /// The cell.
    #[serde(flatten)]
    pub cell: Cell,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cell { durability, replicas, change, fault } = self;
        // As files spell them.
        let word = |json: Result<String, _>| json.unwrap_or_default().replace('"', "");
        let (change, fault) = (word(to_string(change)), word(to_string(fault)));
        write!(f, "{durability} {replicas} {change} {fault}")
    }
}

impl fmt::Display for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.engine, self.cell)
    }
}

impl Change {
    /// Whether keyspaces of an engine can have it that are as durable as this.
    fn is_of(self, engine: &Engine, durability: Durability) -> bool {
        let can_alter = |name| {
            let mut settings = engine.settings.iter().filter(|setting| setting.name == name);
            settings.any(|setting| match setting.alter {
                Alter::Live(_) | Alter::Later(_) => true,
                Alter::Synced(_) => durability == Durability::Sync,
                Alter::Never(_) => false,
            })
        };
        match self {
            Change::Alter => can_alter("replicas"),
            Change::Regroup => can_alter("groups"),
            Change::Split => engine.placement == Placement::Groups,
            // Where every host has all of it none has it to hand over.
            Change::Drain | Change::Replace => engine.placement != Placement::Everywhere,
            Change::None | Change::Join | Change::Remove | Change::Renew => true,
        }
    }

    /// Whether it changes who the members of groups are.
    pub(super) fn is_of_members(self) -> bool {
        !matches!(self, Change::None | Change::Regroup | Change::Renew)
    }

    /// How many hosts join.
    fn joining(self) -> usize {
        match self {
            Change::Join | Change::Replace => 1,
            Change::Split => 2,
            _ => 0,
        }
    }

    /// What operators, or the loss of a disk, do to hosts, the change beginning at this moment.
    fn directed(self, at_us: u64) -> Vec<Fault> {
        let fault = |at_us, for_us, what| Fault { at_us, for_us, what };
        match self {
            Change::Drain => vec![fault(at_us, 7_000_000, What::Drain { host: LEAVES })],
            Change::Replace => vec![fault(at_us, 60_000_000, What::Drain { host: LEAVES })],
            Change::Remove => {
                let remove = |host| fault(at_us + 3_000_000, 0, What::Remove { host });
                let lose = fault(at_us, 2_000_000, What::Wipe { host: LEAVES });
                vec![lose, remove(LEAVES + 1), remove(LEAVES + 2)]
            }
            _ => Vec::new(),
        }
    }
}

impl Cell {
    /// Whether a keyspace can be in it.
    fn is_of(&self, keyspace: &KeyspaceSection) -> bool {
        let engine = keyspace.engine().ok().flatten();
        let its = self.on(keyspace, 0);
        engine.is_some_and(|engine| self.change.is_of(engine, its.durability()))
            && its.problem().is_none()
    }

    /// The keyspace as it is in this cell, the change beginning at this moment.
    fn on(&self, keyspace: &KeyspaceSection, at_ms: u64) -> KeyspaceSection {
        let mut its = keyspace.clone();
        its.settings.insert("durability".to_owned(), Word::Text(self.durability.clone()));
        its.settings.insert("replicas".to_owned(), Word::Number(self.replicas));
        let engine = keyspace.engine().ok().flatten();
        for setting in engine.iter().flat_map(|engine| engine.settings) {
            // No more copies than replicas.
            if let (Takes::Copies(_), Some(Word::Number(copies))) =
                (setting.takes, its.settings.get_mut(setting.name))
            {
                *copies = (*copies).min(self.replicas);
            }
        }
        its.renewed_ms = if self.change == Change::Renew { at_ms } else { 0 };
        its
    }
}

impl GridSection {
    /// What of it contradicts itself, if anything does.
    #[must_use]
    pub fn problem(&self) -> Option<&'static str> {
        let checks = [
            (!self.durability.is_empty(), "a grid needs levels of durability"),
            (self.replicas.len() > 1, "a grid needs two numbers of replicas, to alter them"),
            (self.replicas.is_sorted(), "the replicas of a grid ascend"),
            (!self.change.is_empty() && !self.fault.is_empty(), "a grid needs changes and faults"),
            (self.change_ms > 0, "the change of a grid comes after the beginning"),
        ];
        checks.iter().find(|(holds, _)| !holds).map(|(_, message)| *message)
    }

    /// Every choice.
    fn cells(&self) -> impl Iterator<Item = Cell> {
        let GridSection { durability, replicas, change, fault, .. } = self;
        durability.iter().flat_map(move |durability| {
            replicas.iter().flat_map(move |replicas| {
                change.iter().flat_map(move |change| {
                    fault.iter().map(move |fault| Cell {
                        durability: durability.clone(),
                        replicas: *replicas,
                        change: *change,
                        fault: *fault,
                    })
                })
            })
        })
    }

    fn draw(&self, rng: &mut Rng) -> Cell {
        let mut below = |length: usize| rng.below(length as u64) as usize;
        Cell {
            durability: self.durability[below(self.durability.len())].clone(),
            replicas: self.replicas[below(self.replicas.len())],
            change: self.change[below(self.change.len())],
            fault: self.fault[below(self.fault.len())],
        }
    }

    /// To how many replicas a keyspace of so many is altered: the next number, or the one before
    /// the last.
    fn altered(&self, replicas: u64) -> u64 {
        let more = self.replicas.iter().find(|other| **other > replicas);
        let fewer = self.replicas.iter().rfind(|other| **other < replicas);
        *more.or(fewer).expect("there are two numbers")
    }
}

/// The cells of a scenario, if it is a grid: for each engine those that it can have.
#[must_use]
pub fn cells(scenario: &Scenario) -> BTreeSet<Met> {
    let cells = scenario.grid.iter().flat_map(GridSection::cells);
    let of_engines = cells.flat_map(|cell| {
        let its = scenario.keyspaces.iter().filter(|keyspace| cell.is_of(keyspace));
        let met = |keyspace: &KeyspaceSection| {
            let engine = keyspace.engine.clone().unwrap_or_default();
            Met { engine, cell: cell.clone() }
        };
        its.map(met).collect::<Vec<_>>()
    });
    of_engines.collect()
}

/// The scenario of the cell that a seed draws: without the keyspaces that cannot be in it.
#[must_use]
pub fn scenario_of(scenario: &Scenario, seed: u64) -> Option<Scenario> {
    let grid = scenario.grid.as_ref()?;
    let mut rng = Rng::new(mix(seed ^ CELLS));
    let cell = loop {
        let cell = grid.draw(&mut rng);
        if scenario.keyspaces.iter().any(|keyspace| cell.is_of(keyspace)) {
            break cell;
        }
    };
    // Not always the same time since the faults.
    let at_ms = grid.change_ms + rng.below(grid.change_ms);
    let mut of_cell = Scenario { grid: None, ..scenario.clone() };
    of_cell.keyspaces.retain(|keyspace| cell.is_of(keyspace));
    for keyspace in &mut of_cell.keyspaces {
        *keyspace = cell.on(keyspace, at_ms);
        let altered = match (cell.change, keyspace.settings.get("groups")) {
            (Change::Alter, _) => ("replicas", grid.altered(cell.replicas)),
            (Change::Regroup, Some(Word::Number(groups))) => ("groups", 2 * groups),
            _ => continue,
        };
        let settings = BTreeMap::from([(altered.0.to_owned(), Word::Number(altered.1))]);
        keyspace.changes = vec![ChangeSection { at_ms, settings }];
    }
    of_cell.spares = cell.change.joining();
    of_cell.hosts = scenario.members() + of_cell.spares;
    of_cell.faults.weights = BTreeMap::from([(cell.fault, 1)]);
    of_cell.faults.cycle = cell.change.directed(at_ms * 1000);
    of_cell.faults.cycle_ms = scenario.liveness.heal_ms;
    of_cell.cell = Some(cell);
    Some(of_cell)
}
