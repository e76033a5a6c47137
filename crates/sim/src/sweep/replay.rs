//! Replay files: a seed with its plan written out, so that it can be reduced and kept.

use crate::fault::Fault;
use crate::prepared::Prepared;
use crate::scenario::{Scenario, ScenarioError};
use crate::seed;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A run in full: the scenario with its sizes, the seed, and the faults.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The seed.
    pub seed: u64,
    /// The scenario; the number of clients and operations may have been reduced.
    pub scenario: Scenario,
    /// The faults.
    #[serde(default)]
    pub faults: Vec<Fault>,
}

impl Replay {
    /// What a seed of a scenario does.
    #[must_use]
    pub fn of(prepared: &Prepared, seed: u64) -> Replay {
        let prepared = prepared.of_seed(seed);
        let faults = seed::plan(&prepared, seed);
        Replay { seed, scenario: prepared.scenario.clone(), faults }
    }

    /// The text of a replay file.
    #[must_use]
    pub fn to_text(&self) -> String {
        toml::to_string(self).expect("a replay consists of numbers, texts and lists of them")
    }

    /// Reads a replay file.
    ///
    /// # Errors
    /// The file cannot be read or is no replay.
    pub fn load(path: &Path) -> Result<Replay, ScenarioError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ScenarioError::Read { path: path.to_owned(), source })?;
        Replay::parse(&path.display().to_string(), &text)
    }

    /// Reads the text of a replay file.
    ///
    /// # Errors
    /// The text is no replay.
    pub fn parse(name: &str, text: &str) -> Result<Replay, ScenarioError> {
        let replay: Replay = toml::from_str(text).map_err(|source| ScenarioError::Syntax {
            name: name.to_owned(),
            source: Box::new(source),
        })?;
        replay.scenario.validate()?;
        let hosts = replay.scenario.hosts;
        match replay.faults.iter().find(|fault| !fault.what.is_within(hosts)) {
            None => Ok(replay),
            Some(fault) => Err(ScenarioError::Invalid {
                name: name.to_owned(),
                what: format!("no such host: {}", fault.what),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shipped;

    #[test]
    fn a_replay_reads_what_it_writes() {
        for scenario in shipped::scenarios() {
            let prepared = Prepared::new(scenario).expect("it is valid");
            let replay = Replay::of(&prepared, 5);
            let text = replay.to_text();
            assert_eq!(Replay::parse("test", &text).expect("it is a replay"), replay, "{text}");
        }
    }

    #[test]
    fn a_host_that_is_not_there_is_refused() {
        let prepared = Prepared::new(shipped::find("crash").expect("it ships")).expect("valid");
        let mut replay = Replay::of(&prepared, 5);
        replay.faults[0].what = crate::fault::What::Kill { host: 3 };
        assert!(Replay::parse("test", &replay.to_text()).is_err());
    }
}
