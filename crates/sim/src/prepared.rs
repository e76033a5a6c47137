//! A scenario made ready to run: what all its seeds share.

use crate::delay::Delay;
use crate::net::parse_matrix;
use crate::scenario::{Scenario, ScenarioError};
use crate::shipped;

/// A scenario with its distributions tabulated.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The scenario.
    pub scenario: Scenario,
    /// How long frames take.
    pub net: Delay,
    /// What each link adds, in nanoseconds.
    pub distance: Vec<Vec<u64>>,
    /// How long writes take.
    pub write: Delay,
    /// How long syncs take.
    pub sync: Delay,
    /// How long clients think.
    pub think: Delay,
}

impl Prepared {
    /// Tabulates a scenario's distributions and reads its matrix.
    ///
    /// # Errors
    /// The matrix is none.
    pub fn new(scenario: Scenario) -> Result<Prepared, ScenarioError> {
        let distance = match &scenario.net.matrix {
            None => Vec::new(),
            // A scenario of the user's own holds the text of its file here.
            Some(name) => {
                let text = shipped::matrix(name).unwrap_or(name);
                parse_matrix(text).map_err(|what| ScenarioError::Invalid {
                    name: scenario.name.clone(),
                    what: format!("matrix: {what}"),
                })?
            }
        };
        Ok(Prepared {
            net: Delay::new(&scenario.net.delay),
            distance,
            write: Delay::new(&scenario.disk.write),
            sync: Delay::new(&scenario.disk.sync),
            think: Delay::new(&scenario.workload.think),
            scenario,
        })
    }
}
