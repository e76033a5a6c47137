//! The scenarios and matrices that ship with the simulator.

use crate::scenario::Scenario;

macro_rules! shipped {
    ($kind:literal: $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../scenarios/", $name, $kind)))),*]
    };
}

/// Every scenario: name and text.
const SCENARIOS: &[(&str, &str)] = shipped!(".toml":
    "calm", "loss", "partition", "crash", "skew", "churn", "power", "slow-disk", "pause", "wiped",
    "restored",
    "memory", "blackout", "amnesia", "flicker", "periodic", "outage", "uprooted",
    "forgetful",
    "five", "views", "moves",
    "ring", "elastic", "split", "churning", "paper", "tombs", "purges", "stale", "lagging",
    "swarm60", "shrinking", "withering", "retiring", "retiring-power",
    "causal-calm", "causal-loss", "causal-lazy", "causal-split", "causal-crash",
    "causal-churn", "causal-wiped", "causal-memory", "causal-moves", "causal-skew",
    "causal-single", "causal-two", "causal-five", "causal-power", "causal-memory-moves",
    "causal-two-power", "causal-retries", "causal-pages",
    "catalog-calm", "catalog-partition", "catalog-churn", "catalog-power",
    "both-calm", "both-faults", "both-churn", "both-moves", "both-joins",
    "both-single", "both-memory", "both-power",
    "eventual", "eventual-crash",
    "serializable-calm", "serializable-any",
    "serializable-partition", "serializable-crash", "serializable-power",
    "serializable-counters",
    "serializable-memory", "serializable-periodic", "serializable-wiped", "serializable-churn",
    "serializable-beside", "serializable-expiry", "serializable-replicas", "serializable-moves",
    "serializable-roll", "serializable-patient", "serializable-prime",
    "coordination-calm", "coordination-partition", "coordination-crash", "coordination-power",
    "coordination-silent", "coordination-churn", "coordination-memory", "coordination-periodic",
    "coordination-wiped", "coordination-replicas", "coordination-pipelines",
    "coordination-session", "coordination-session-churn", "coordination-roll",
    "epidemic-calm", "epidemic-loss", "epidemic-partition", "epidemic-crash", "epidemic-churn",
    "epidemic-eventual", "epidemic-slices", "epidemic-grows", "epidemic-graves",
    "epidemic-away",
    "five-engines", "five-engines-faults",
    "balance", "uneven", "shutdown", "grid", "grid-groups",
    "grid-everywhere",
);

/// Every matrix: name and text.
const MATRICES: &[(&str, &str)] = shipped!(".csv": "three-regions");

/// All scenarios that ship, in the order of the list.
///
/// # Panics
/// One of them is not valid, which a test rules out.
#[must_use]
pub fn scenarios() -> Vec<Scenario> {
    let parse = |(name, text): &(&str, &str)| {
        Scenario::parse(name, text).unwrap_or_else(|error| panic!("{error}: {:?}", error))
    };
    SCENARIOS.iter().map(parse).collect()
}

/// The scenario of a name.
#[must_use]
pub fn find(name: &str) -> Option<Scenario> {
    scenarios().into_iter().find(|scenario| scenario.name == name)
}

/// The text of a matrix that ships.
#[must_use]
pub fn matrix(name: &str) -> Option<&'static str> {
    MATRICES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prepared::Prepared;

    #[test]
    fn every_scenario_is_valid_and_called_by_its_file() {
        for ((name, _), scenario) in SCENARIOS.iter().zip(scenarios()) {
            assert_eq!(*name, scenario.name);
            assert!(scenario.about.ends_with('.'), "{name}: one sentence");
            assert!(Prepared::new(scenario).is_ok(), "{name}");
        }
    }

    #[test]
    fn every_file_of_the_folder_ships() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
        let mut found = 0;
        for file in std::fs::read_dir(folder).expect("the folder is there") {
            let file = file.expect("it can be read").file_name();
            let name = file.to_string_lossy();
            let stem = name.split('.').next().expect("a name has a first part");
            assert!(SCENARIOS.iter().chain(MATRICES).any(|(known, _)| *known == stem), "{name}");
            found += 1;
        }
        assert_eq!(found, SCENARIOS.len() + MATRICES.len());
    }
}
