//! A scenario made ready to run: what all its seeds share.

use crate::delay::Delay;
use crate::host::Host;
use crate::keyspace::KeyspaceSection;
use crate::net::parse_matrix;
use crate::scenario::{Scenario, ScenarioError};
use crate::shipped;
use crate::workload::Ground;
use crate::world::grid;
use quorate_kernel::engine::{Engine, Pace};
use quorate_kernel::ids::LaneId;
use quorate_kernel::keyspace::{Keyspace, NewKeyspace};
use quorate_kernel::storage::Durability;
use std::borrow::Cow;

/// A scenario with its distributions tabulated.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The scenario.
    pub scenario: Scenario,
    /// Its keyspaces, in the order of the file.
    pub keyspaces: Vec<PreparedKeyspace>,
    /// How long frames take.
    pub net: Delay,
    /// What each link adds, in nanoseconds.
    pub distance: Vec<Vec<u64>>,
    /// How long writes take.
    pub write: Delay,
    /// How long syncs take.
    pub sync: Delay,
}

/// A keyspace of a scenario.
#[derive(Clone, Debug)]
pub struct PreparedKeyspace {
    /// Its name.
    pub name: String,
    /// The lane that the catalog gives it first; that of the catalog if it is none.
    pub lane: LaneId,
    /// Its engine; none of the catalog.
    pub engine: Option<&'static Engine>,
    /// What the cluster is born with, if it is born with it.
    pub founding: Option<NewKeyspace>,
    /// Its limits and periods.
    pub pace: Pace,
    /// How durable it is.
    pub durability: Durability,
    /// The fewest hosts that ever hold each key.
    pub replicas: usize,
    /// How many hold a write before it is acknowledged.
    pub copies: usize,
    /// How long its clients think.
    pub think: Delay,
}

impl Prepared {
    /// Tabulates a scenario's distributions and reads its matrix.
    ///
    /// # Errors
    /// The matrix is none, or a keyspace cannot be.
    pub fn new(scenario: Scenario) -> Result<Prepared, ScenarioError> {
        let invalid = |what| ScenarioError::Invalid { name: scenario.name.clone(), what };
        let distance = match &scenario.net.matrix {
            None => Vec::new(),
            // A scenario of the user's own holds the text of its file here.
            Some(name) => {
                let text = shipped::matrix(name).unwrap_or(name);
                parse_matrix(text).map_err(|what| invalid(format!("matrix: {what}")))?
            }
        };
        let keyspaces = keyspaces(&scenario).map_err(invalid)?;
        Ok(Prepared {
            keyspaces,
            net: Delay::new(&scenario.net.delay),
            distance,
            write: Delay::new(&scenario.disk.write),
            sync: Delay::new(&scenario.disk.sync),
            scenario,
        })
    }

    /// What a seed runs: of a grid, the scenario of the cell that it draws.
    ///
    /// # Panics
    /// A cell of the grid is not valid, which a test rules out for those that ship.
    #[must_use]
    pub fn of_seed(&self, seed: u64) -> Cow<'_, Prepared> {
        let Some(scenario) = grid::scenario_of(&self.scenario, seed) else {
            return Cow::Borrowed(self);
        };
        let keyspaces = keyspaces(&scenario).unwrap_or_else(|why| panic!("{why}: {scenario:?}"));
        Cow::Owned(Prepared { scenario, keyspaces, ..self.clone() })
    }
}

impl PreparedKeyspace {
    /// The facts that its promise depends on.
    #[must_use]
    pub fn ground<'a>(
        &self,
        hosts: &'a [Host],
        known: Option<&'a Keyspace>,
        unsettled: Option<&'a str>,
    ) -> Ground<'a> {
        let PreparedKeyspace { lane, engine, durability, replicas, copies, .. } = *self;
        let has_lost_lately = false;
        Ground {
            hosts,
            lane,
            engine,
            durability,
            replicas,
            copies,
            known,
            unsettled,
            has_lost_lately,
        }
    }
}

/// The catalog gives lanes in the order of creation.
fn keyspaces(scenario: &Scenario) -> Result<Vec<PreparedKeyspace>, String> {
    let sections = &scenario.keyspaces;
    let mut order: Vec<usize> = (0..sections.len()).collect();
    order.retain(|index| sections[*index].engine.is_some());
    order.sort_by_key(|index| sections[*index].created_ms);
    let prepare = |(index, section): (usize, &KeyspaceSection)| {
        let place = order.iter().position(|other| *other == index);
        let lane = place.map_or(LaneId::CATALOG, |at| LaneId(LaneId::KEYSPACES.0 + at as u32));
        let founding = section.creation().filter(|_| section.created_ms == 0);
        let mut pace = section.pace();
        if let Some(balance) = &scenario.balance {
            pace = pace.with("weigh", balance.look_ms);
        }
        let settings = section.settings()?;
        Ok(PreparedKeyspace {
            name: section.name.clone(),
            lane,
            engine: section.engine()?,
            founding: founding.map(|founding| NewKeyspace { settings, ..founding }),
            pace,
            durability: section.durability(),
            replicas: section.replicas(),
            copies: section.copies(),
            think: Delay::new(&section.workload.think),
        })
    };
    sections.iter().enumerate().map(prepare).collect()
}
