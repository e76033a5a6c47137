//! What a scenario says of one keyspace: its engine, its settings, and what its clients do.

use crate::engines;
use crate::workload::section::{Kind, WorkloadSection};
use quorate_kernel::engine::{Engine, Pace, find};
use quorate_kernel::keyspace::{NewKeyspace, Settings};
use quorate_kernel::storage::Durability;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Faster than in life, so that a short run sees whole changes: nothing depends on it but when
/// things are tried.
const USUAL: [(&str, u64); 4] =
    [("settle", 500), ("beat", 500), ("purge", 2500), ("compare", 60_000)];

/// The value of a setting, as a file spells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Word {
    /// A number.
    Number(u64),
    /// A word.
    Text(String),
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Word::Number(number) => number.fmt(f),
            Word::Text(text) => text.fmt(f),
        }
    }
}

/// A keyspace; or the catalog itself, which every cluster has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyspaceSection {
    /// Its name.
    pub name: String,
    /// Its engine; none if the clients speak to the catalog.
    #[serde(default)]
    pub engine: Option<String>,
    /// The settings that do not have their default.
    #[serde(default)]
    pub settings: BTreeMap<String, Word>,
    /// Limits and periods, times in milliseconds, that are not as usual in scenarios.
    #[serde(default)]
    pub pace: BTreeMap<String, u64>,
    /// After how many milliseconds it is created; 0 if the cluster is born with it.
    #[serde(default)]
    pub created_ms: u64,
    /// After how many milliseconds it is dropped, and made again under its name; 0 if it is not.
    #[serde(default)]
    pub renewed_ms: u64,
    /// What operators alter later.
    #[serde(default)]
    pub changes: Vec<ChangeSection>,
    /// What its clients do.
    pub workload: WorkloadSection,
}

/// A change of settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChangeSection {
    /// After how many milliseconds.
    pub at_ms: u64,
    /// What is altered.
    pub settings: BTreeMap<String, Word>,
}

/// Words as the catalog takes them.
#[must_use]
pub fn words(settings: &BTreeMap<String, Word>) -> Settings {
    settings.iter().map(|(name, word)| (name.clone(), word.to_string())).collect()
}

/// The limits and periods of keyspaces of which a scenario says nothing.
#[must_use]
pub fn usual_pace() -> Pace {
    USUAL.iter().fold(Pace::default(), |pace, (name, number)| pace.with(name, *number))
}

impl KeyspaceSection {
    /// Its engine.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn engine(&self) -> Result<Option<&'static Engine>, String> {
        let Some(name) = &self.engine else { return Ok(None) };
        find(engines::all(), name).map(Some).map_err(|refusal| refusal.to_string())
    }

    /// All its settings; none of the catalog.
    ///
    /// # Errors
    /// Its engine does not take them.
    pub fn settings(&self) -> Result<Settings, String> {
        let Some(engine) = self.engine()? else { return Ok(Settings::new()) };
        engine.complete(&words(&self.settings)).map_err(|refusal| refusal.to_string())
    }

    /// Its settings after all changes: what it is to be at rest.
    #[must_use]
    pub fn last_settings(&self) -> BTreeMap<String, Word> {
        let mut last = self.settings.clone();
        for change in &self.changes {
            last.extend(change.settings.clone());
        }
        last
    }

    /// Whether a setting has this value at first, or after a change.
    #[must_use]
    pub fn is_ever(&self, name: &str, value: &str) -> bool {
        let changed = self.changes.iter().map(|change| &change.settings);
        let mut all = changed.chain([&self.settings]).filter_map(|settings| settings.get(name));
        all.any(|word| word.to_string() == value)
    }

    fn last(&self, name: &str) -> Option<String> {
        let last = KeyspaceSection { settings: self.last_settings(), ..self.clone() };
        last.settings().ok()?.remove(name)
    }

    /// How many hosts hold each key at first and in the end; of the catalog none.
    fn both_replicas(&self) -> [usize; 2] {
        let first = self.settings().ok().and_then(|mut settings| settings.remove("replicas"));
        [first, self.last("replicas")]
            .map(|text| text.and_then(|text| text.parse().ok()).unwrap_or(0))
    }

    /// The fewest hosts that ever hold each key: what is promised rests on them.
    #[must_use]
    pub fn replicas(&self) -> usize {
        let [first, last] = self.both_replicas();
        first.min(last)
    }

    /// How many hosts hold each key in the end.
    #[must_use]
    pub fn replicas_last(&self) -> usize {
        self.both_replicas()[1]
    }

    /// How many hosts hold a write before it is acknowledged, where that is a setting; otherwise
    /// all that hold the key.
    #[must_use]
    pub fn copies(&self) -> usize {
        let set = ["w", "acks"].iter().find_map(|name| self.last(name));
        set.and_then(|text| text.parse().ok()).unwrap_or(self.replicas())
    }

    /// How durable what it acknowledges is. The catalog is always synced.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.last("durability").and_then(|text| text.parse().ok()).unwrap_or(Durability::Sync)
    }

    /// The limits and periods that its engine can be given.
    fn numbers(&self) -> &'static [&'static str] {
        self.engine().ok().flatten().map_or(&[], |engine| engine.numbers)
    }

    /// Its limits and periods.
    #[must_use]
    pub fn pace(&self) -> Pace {
        self.numbers().iter().fold(usual_pace(), |pace, name| match self.pace.get(*name) {
            Some(number) => pace.with(name, *number),
            None => pace,
        })
    }

    /// What makes it.
    #[must_use]
    pub fn creation(&self) -> Option<NewKeyspace> {
        let (name, engine) = (self.name.clone(), self.engine.clone()?);
        Some(NewKeyspace { name, engine, settings: words(&self.settings) })
    }

    /// What contradicts itself, if anything does.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        let changed = KeyspaceSection { settings: self.last_settings(), ..self.clone() };
        if let Err(why) = self.settings().and(changed.settings()) {
            return Some(why);
        }
        if let Some(name) = self.pace.keys().find(|name| !self.numbers().contains(&&name[..])) {
            return Some(format!("`{name}` is no number that its engine is given"));
        }
        let is_of_catalog = self.workload.name == Kind::Orders;
        if is_of_catalog != self.engine.is_none() {
            return Some("orders are for the catalog, and nothing else is".to_owned());
        }
        let changes_later = self.created_ms + self.renewed_ms > 0 || !self.changes.is_empty();
        if self.engine.is_none() && changes_later {
            return Some("the catalog is neither created nor altered".to_owned());
        }
        let by_clocks = self.last("mode").is_some_and(|mode| mode == "eventual");
        if by_clocks != self.workload.apart_ms.is_some() || by_clocks && self.workload.scan > 0 {
            let what =
                "`mode = eventual` goes with `apart_ms`, and without scans: nothing else judges";
            return Some(format!("{what} it"));
        }
        self.workload.problem().map(str::to_owned)
    }
}
