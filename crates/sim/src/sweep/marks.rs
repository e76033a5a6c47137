//! The marks of rare paths that the code under test has passed.

use quorate_kernel::invariant;
use std::collections::BTreeMap;

/// The marks that a full sweep must reach, one per line; and those that none reaches, with reasons.
const NEEDED: &str = include_str!("../../probes.txt");

/// Every mark reached so far in this process, with its count.
#[must_use]
pub fn counts() -> BTreeMap<&'static str, u64> {
    let mut found = BTreeMap::new();
    invariant::probes(&mut |name, count| *found.entry(name).or_default() += count);
    found
}

/// The marks reached, one per line.
#[must_use]
pub fn reached() -> String {
    let lines = counts().into_iter().map(|(name, count)| format!("mark {name:<40} {count:>12}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The marks of the list that were not reached.
#[must_use]
pub fn missing() -> Vec<&'static str> {
    let found = counts();
    needed().filter(|name| !found.contains_key(name)).collect()
}

fn needed() -> impl Iterator<Item = &'static str> {
    let lines = NEEDED.lines().map(str::trim);
    lines.filter(|line| !line.is_empty() && !line.starts_with('#') && !line.contains('|'))
}

/// Names the marks of the list that were not reached; returns whether there are none.
pub fn tell_missing() -> bool {
    let missing = missing();
    for name in &missing {
        eprintln!("mark {name} was reached by no seed");
    }
    missing.is_empty()
}
