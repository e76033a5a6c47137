//! What a scenario file says, and the scenarios that ship with the simulator.

mod error;

pub use error::ScenarioError;

use crate::delay::Distribution;
use crate::fault::{Fault, Kind};
use crate::keyspace::KeyspaceSection;
use crate::workload::section;
use crate::world::grid::{Cell, GridSection};
use crate::world::{BalanceSection, RollSection};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The hosts a scenario can have at most.
pub const HOSTS_MAX: usize = 64;

/// A scenario: a kind of world, what clients do in it, and what may go wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its name; files that ship are called by it.
    pub name: String,
    /// One sentence on what it is for.
    pub about: String,
    /// A sweep over several scenarios runs one of so many seeds of this one: more for what costs
    /// much.
    #[serde(default = "one")]
    pub every: u64,
    /// How many hosts there are.
    pub hosts: usize,
    /// How many of them, the last ones, are no founders: they join while clients work.
    #[serde(default)]
    pub spares: usize,
    /// Whether spares have no token and are there from the beginning, so that they only coordinate
    /// what clients ask.
    #[serde(default)]
    pub keeps_view: bool,
    /// Whether a client at each host follows what this tells of keyspaces and hosts.
    #[serde(default)]
    pub follow: bool,
    /// How many tokens each host has.
    #[serde(default = "one_token")]
    pub tokens: usize,
    /// The longest time between an arrival and the turn that handles it, drawn for each seed; 0
    /// makes every arrival a turn of its own.
    #[serde(default)]
    pub turn_us_max: u64,
    /// The network.
    pub net: NetSection,
    /// The disks.
    pub disk: DiskSection,
    /// The clocks.
    #[serde(default)]
    pub clock: ClockSection,
    /// How hosts keep a roll of who takes part, which seats follow, if they do.
    #[serde(default)]
    pub roll: Option<RollSection>,
    /// How hosts even out their load, if they do.
    #[serde(default)]
    pub balance: Option<BalanceSection>,
    /// What each seed draws, if its worlds differ by more than chance.
    #[serde(default)]
    pub grid: Option<GridSection>,
    /// What a seed of a grid has drawn.
    #[serde(default)]
    pub cell: Option<Cell>,
    /// The faults.
    #[serde(default)]
    pub faults: FaultsSection,
    /// What must happen after the faults.
    #[serde(default)]
    pub liveness: LivenessSection,
    /// What a seed must have done to count.
    pub least: LeastSection,
    /// The keyspaces and their clients.
    #[serde(rename = "keyspace")]
    pub keyspaces: Vec<KeyspaceSection>,
}

/// The network of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetSection {
    /// How long a frame takes. With a matrix: what is added to it, for jitter.
    pub delay: Distribution,
    /// A file with one row per sending host and one mean in microseconds per receiving host,
    /// separated by commas; relative to the scenario's own file.
    #[serde(default)]
    pub matrix: Option<String>,
    /// How many frames of a million are lost.
    #[serde(default)]
    pub loss_ppm: u32,
    /// How many frames of a million are delivered twice.
    #[serde(default)]
    pub duplicate_ppm: u32,
    /// Up to how many times as long frames take; the factor is drawn for each seed among the powers
    /// of two. Slow networks leave more under way when a fault strikes.
    #[serde(default = "one")]
    pub slower_max: u64,
    /// Whether frames of a link stay in order, as on one connection.
    #[serde(default)]
    pub ordered: bool,
}

/// The disks of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DiskSection {
    /// How long it takes to hand batches to the operating system.
    pub write: Distribution,
    /// How long a sync takes.
    pub sync: Distribution,
    /// Up to how many times as long both take; the factor is drawn for each seed among the powers
    /// of two.
    #[serde(default = "one")]
    pub slower_max: u64,
}

/// The clocks of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockSection {
    /// By how much wall clocks may be off at the start.
    #[serde(default)]
    pub skew_ms: u64,
    /// By how many millionths monotonic clocks may run too fast or too slow.
    #[serde(default)]
    pub drift_ppm: u64,
}

/// The faults of a scenario.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultsSection {
    /// The fewest faults of a plan.
    #[serde(default)]
    pub count_min: u64,
    /// The most faults of a plan.
    #[serde(default)]
    pub count_max: u64,
    /// The shortest duration in milliseconds.
    #[serde(default)]
    pub for_ms_min: u64,
    /// The longest duration in milliseconds.
    #[serde(default)]
    pub for_ms_max: u64,
    /// How likely each kind is. Each seed switches some kinds off.
    #[serde(default)]
    pub weights: BTreeMap<Kind, u32>,
    /// After how many milliseconds the directed faults come again.
    #[serde(default)]
    pub cycle_ms: u64,
    /// Directed faults, their times counted from the beginning of each cycle: what chance would put
    /// together too rarely. They come on top of what is drawn.
    #[serde(default)]
    pub cycle: Vec<Fault>,
}

/// The liveness phase of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LivenessSection {
    /// When all faults end, in milliseconds.
    pub heal_ms: u64,
    /// How long after that operations may still fail.
    pub grace_ms: u64,
    /// How long after the grace everything must have finished.
    pub bound_ms: u64,
    /// How many operations each client then begins, before the final gets.
    pub operations: u32,
    /// How many seeds of a million heal only a majority of the members.
    pub core_ppm: u32,
}

impl Default for LivenessSection {
    fn default() -> LivenessSection {
        LivenessSection {
            heal_ms: 10_000,
            grace_ms: 4_000,
            bound_ms: 20_000,
            operations: 3,
            core_ppm: 300_000,
        }
    }
}

/// What a seed must have done to count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeastSection {
    /// The fewest operations answered.
    pub operations: u64,
    /// The fewest faults applied.
    pub faults: u64,
    /// The shortest simulated time in milliseconds.
    pub time_ms: u64,
    /// The most operations of a hundred whose outcome is unknown.
    pub unknown_percent: u64,
    /// The least version that some group must have come to.
    #[serde(default)]
    pub views: u64,
    /// How many decrees the catalog must have come to.
    #[serde(default)]
    pub decrees: u64,
}

fn one() -> u64 {
    1
}

fn one_token() -> usize {
    1
}

impl Scenario {
    /// Reads a scenario from text.
    ///
    /// # Errors
    /// The text is no scenario, or a field is out of range.
    pub fn parse(name: &str, text: &str) -> Result<Scenario, ScenarioError> {
        let scenario: Scenario = toml::from_str(text).map_err(|source| ScenarioError::Syntax {
            name: name.to_owned(),
            source: Box::new(source),
        })?;
        scenario.validate()?;
        Ok(scenario)
    }

    /// Checks what the syntax of a file cannot.
    ///
    /// # Errors
    /// A field is out of range, or two contradict each other.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        match self.problem() {
            None => Ok(()),
            Some(what) => Err(ScenarioError::Invalid { name: self.name.clone(), what }),
        }
    }

    /// Reads a scenario from a file; the file of its matrix is looked for beside it.
    ///
    /// # Errors
    /// The file cannot be read or is no scenario.
    pub fn load(path: &Path) -> Result<Scenario, ScenarioError> {
        let read = |path: &Path| {
            std::fs::read_to_string(path)
                .map_err(|source| ScenarioError::Read { path: path.to_owned(), source })
        };
        let mut scenario = Scenario::parse(&path.display().to_string(), &read(path)?)?;
        if let Some(file) = &scenario.net.matrix
            && crate::shipped::matrix(file).is_none()
        {
            let text = read(&path.with_file_name(file))?;
            scenario.net.matrix = Some(text);
        }
        Ok(scenario)
    }

    /// How many hosts found the cluster.
    #[must_use]
    pub fn members(&self) -> usize {
        self.hosts - self.spares
    }

    /// The most hosts that hold one key in the end.
    #[must_use]
    pub fn replicas_max(&self) -> usize {
        self.keyspaces.iter().map(KeyspaceSection::replicas_last).max().unwrap_or(1)
    }

    fn problem(&self) -> Option<String> {
        let checks = [
            (self.every > 0, "every must be at least 1"),
            ((1..=HOSTS_MAX).contains(&self.hosts), "hosts must be 1 to 64"),
            (self.spares < self.hosts, "there must be more hosts than spares"),
            (self.hosts >= self.replicas_max(), "there are more replicas than hosts"),
            ((1..=64).contains(&self.tokens), "tokens must be 1 to 64"),
            (!self.keyspaces.is_empty(), "there must be a keyspace"),
            (self.net.slower_max > 0 && self.disk.slower_max > 0, "slower_max must be above 0"),
            (self.faults.count_min <= self.faults.count_max, "count_min is above count_max"),
            (self.faults.for_ms_min <= self.faults.for_ms_max, "for_ms_min is above for_ms_max"),
            (self.hosts > 1 || self.faults.count_max == 0, "faults need two hosts"),
            (self.faults.cycle.is_empty() || self.faults.cycle_ms > 0, "a cycle needs a length"),
            (
                self.faults.cycle.iter().all(|fault| fault.what.is_within(self.hosts)),
                "a fault of the cycle names a host that is not there",
            ),
            (
                self.faults.count_max == 0
                    || self.grid.is_some()
                    || self.faults.weights.values().any(|weight| *weight > 0),
                "faults need weights",
            ),
            (
                self.has_fixed_lanes(),
                "beside orders no keyspace is created later: its lane would not be known",
            ),
        ];
        let found = checks.iter().find(|(holds, _)| !holds).map(|(_, message)| *message);
        found
            .or_else(|| self.balance.as_ref()?.problem())
            .or_else(|| self.grid.as_ref()?.problem())
            .map(str::to_owned)
            .or_else(|| self.keyspaces.iter().find_map(KeyspaceSection::problem))
    }

    /// Whether it is known beforehand which lane each keyspace gets.
    fn has_fixed_lanes(&self) -> bool {
        let mut sections = self.keyspaces.iter();
        let has_orders = sections.any(|section| section.workload.name == section::Kind::Orders);
        !has_orders || self.keyspaces.iter().all(|section| section.created_ms == 0)
    }
}
