//! The grid: what each seed of a scenario draws of durability, replicas, changes of the cluster and
//! faults, and whether both really took place.
//!
//! A cell is met by a run that came to its end, in which the change was seen at the keyspace, and a
//! fault of the kind was not skipped. Which changes an engine can have follows from its value.

use super::World;
use crate::fault::{Fault, Kind, What};
use crate::groups::Row;
use crate::host::Running;
use crate::keyspace::{ChangeSection, KeyspaceSection, Word};
use crate::scenario::Scenario;
use quorate_kernel::engine::{Engine, Placement};
use quorate_kernel::ids::NodeId;
use quorate_kernel::rng::{Rng, mix};
use quorate_kernel::rules::{Alter, Takes};
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
    /// Whether keyspaces of an engine can have it.
    fn is_of(self, engine: &Engine) -> bool {
        let is_live = |name| {
            let mut settings = engine.settings.iter().filter(|setting| setting.name == name);
            settings.any(|setting| matches!(setting.alter, Alter::Live(_)))
        };
        match self {
            Change::Alter => is_live("replicas"),
            Change::Split => engine.placement == Placement::Groups,
            Change::Join | Change::Drain | Change::Replace | Change::Remove => {
                engine.placement != Placement::Everywhere
            }
            Change::None | Change::Renew => true,
        }
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
        engine.is_some_and(|engine| self.change.is_of(engine))
            && self.on(keyspace, 0).problem().is_none()
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
        if cell.change == Change::Alter {
            let replicas = Word::Number(grid.altered(cell.replicas));
            let settings = BTreeMap::from([("replicas".to_owned(), replicas)]);
            keyspace.changes = vec![ChangeSection { at_ms, settings }];
        }
    }
    of_cell.spares = cell.change.joining();
    of_cell.hosts = scenario.members() + of_cell.spares;
    of_cell.faults.weights = BTreeMap::from([(cell.fault, 1)]);
    of_cell.faults.cycle = cell.change.directed(at_ms * 1000);
    of_cell.faults.cycle_ms = scenario.liveness.heal_ms;
    of_cell.cell = Some(cell);
    Some(of_cell)
}

/// What was seen of the change of a cell, by keyspace.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The nodes that held something.
    held: BTreeSet<NodeId>,
    /// How many parts there were first.
    parts: Option<usize>,
    has_joined: bool,
    has_left: bool,
    is_altered: bool,
    is_split: bool,
}

/// How the data of a keyspace lies now, by its placement.
#[derive(Default)]
struct Layout {
    /// The nodes that hold something and are ready.
    holders: BTreeSet<NodeId>,
    /// All nodes that shall hold something.
    named: BTreeSet<NodeId>,
    parts: usize,
    /// The most members of a part.
    members: usize,
}

impl World<'_> {
    fn layout(&self, index: usize) -> Layout {
        let tenant = &self.tenants[index];
        let placement = tenant.keyspace.engine.map(|engine| engine.placement);
        let mut layout = Layout::default();
        if placement == Some(Placement::Groups) {
            let said = self.said(tenant.lane());
            let rows = said.iter().flat_map(|(_, groups)| &groups.rows);
            let rows: Vec<&Row> = rows.filter(|row| row.is_member).collect();
            let ready: Vec<&&Row> = rows.iter().filter(|row| row.is_ready).collect();
            let is_holder = |row: &Row| row.is_ready;
            let holders = said.iter().filter(|(_, groups)| groups.rows.iter().any(is_holder));
            let node = |host: usize| self.machines.hosts[host].node_id;
            layout.holders = holders.map(|(host, _)| node(*host)).collect();
            layout.named = rows.iter().flat_map(|row| row.members.iter().copied()).collect();
            layout.parts = ready.iter().map(|row| row.view.group).collect::<BTreeSet<_>>().len();
            layout.members = ready.iter().map(|row| row.members.len()).max().unwrap_or(0);
        } else if let Some(keyspace) = self.known(tenant.lane()) {
            let partitions = keyspace.partitions.iter();
            layout.named = partitions.clone().map(|place| place.node).collect();
            let settled = partitions.filter(|place| place.is_settled);
            layout.holders = settled.map(|place| place.node).collect();
            (layout.parts, layout.members) = (keyspace.partitions.len(), keyspace.replicas());
        }
        layout
    }

    /// Looks what of the change of the cell has taken place.
    pub(super) fn note_change(&mut self) {
        let scenario = &self.prepared.scenario;
        if scenario.cell.is_none() {
            return;
        }
        self.seen.resize_with(self.tenants.len(), Seen::default);
        let leaves = &self.machines.hosts[LEAVES];
        let is_leaving = leaves.running == Running::Up && self.plan.drained().contains(&LEAVES);
        let (leaving, first) = (leaves.node_id, leaves.first_node());
        let joined = &self.machines.hosts[scenario.members()..];
        let joined: Vec<NodeId> = joined.iter().map(|host| host.node_id).collect();
        for index in 0..self.tenants.len() {
            let layout = self.layout(index);
            let wanted = scenario.keyspaces[index].last_settings().get("replicas").cloned();
            let seen = &mut self.seen[index];
            let parts = *seen.parts.get_or_insert(layout.parts);
            seen.is_split |= layout.parts > parts;
            seen.has_joined |= joined.iter().all(|node| layout.holders.contains(node));
            let is_out = is_leaving && !layout.named.is_empty() && !layout.named.contains(&first);
            seen.has_left |= is_out && leaving == first && seen.held.contains(&first);
            seen.is_altered |= wanted == Some(Word::Number(layout.members as u64));
            seen.held.extend(layout.holders);
        }
    }

    /// The cells that this run has met.
    pub(super) fn met(&self) -> Vec<Met> {
        let Some(cell) = &self.prepared.scenario.cell else { return Vec::new() };
        let hosts = self.prepared.scenario.hosts;
        let directed = self.prepared.scenario.faults.cycle.iter();
        let directed = directed.filter(|fault| fault.what.kind(hosts) == cell.fault).count();
        let is_over = self.is_over && self.machines.violation.is_none();
        if !is_over || self.plan.applied_of(cell.fault, hosts) <= directed {
            return Vec::new();
        }
        let leaves = &self.machines.hosts[LEAVES];
        let first = leaves.first_node();
        let is_lost = leaves.lost.contains(&first);
        let took_place = |(index, tenant): &(usize, &super::Tenant<'_>)| {
            let Some(seen) = self.seen.get(*index) else { return false };
            match cell.change {
                Change::None => true,
                Change::Join => seen.has_joined,
                Change::Drain => seen.has_left,
                Change::Replace => seen.has_joined && seen.has_left,
                // The run has come to rest, so that nobody names it any more.
                Change::Remove => is_lost && seen.held.contains(&first),
                Change::Alter => seen.is_altered,
                Change::Split => seen.has_joined && seen.is_split,
                Change::Renew => tenant.lane() != tenant.keyspace.lane,
            }
        };
        let tenants = self.tenants.iter().enumerate().filter(took_place);
        let engines = tenants.filter_map(|(_, tenant)| tenant.keyspace.engine);
        engines.map(|engine| Met { engine: engine.name.to_owned(), cell: cell.clone() }).collect()
    }
}
