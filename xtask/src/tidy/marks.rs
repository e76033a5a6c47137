//! Every mark of a rare path is in the list of the sweep, required or with the reason why no sweep
//! reaches it, and every listed one is in the code.

use super::Finding;
use super::source::{Source, line_of};
use super::tree::Tree;
use std::collections::BTreeMap;

const LIST: &str = "crates/sim/probes.txt";
/// Marks of the tests of the mechanism itself.
const OF_TESTS: &str = "test/";

/// Finds marks of which the list says nothing, entries without a mark, and reasons that say none.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut marks = BTreeMap::new();
    for (path, text) in tree.below("crates", ".rs") {
        for at in Source::new(text).places_of("probe") {
            let name = text[at..].strip_prefix("probe!(\"").and_then(|rest| rest.split('"').next());
            if let Some(name) = name.filter(|name| !name.starts_with(OF_TESTS)) {
                marks.entry(name).or_insert((path, line_of(text, at)));
            }
        }
    }
    let (mut listed, mut findings) = (BTreeMap::new(), Vec::new());
    for (index, line) in tree.text(LIST).unwrap_or_default().lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let (name, why) =
            line.split_once('|').map_or((line, None), |(name, why)| (name, Some(why)));
        if why.is_some_and(|why| why.trim().is_empty()) {
            findings.push(Finding::new(LIST, index + 1, "say why no sweep reaches it"));
        }
        listed.insert(name.trim(), index + 1);
    }
    // `folder/*` speaks of all marks of a folder.
    let covers = |entry: &str, mark: &str| match entry.strip_suffix('*') {
        Some(folder) => mark.starts_with(folder),
        None => entry == mark,
    };
    for (name, (path, line)) in &marks {
        if !listed.keys().any(|entry| covers(entry, name)) {
            let message = format!(
                "mark {name} is not in {LIST}: require it there, or argue why nothing reaches it"
            );
            findings.push(Finding::new(path, *line, message));
        }
    }
    for (entry, line) in listed {
        if !marks.keys().any(|name| covers(entry, name)) {
            let message = format!("no code has the mark {entry}: drop the line");
            findings.push(Finding::new(LIST, line, message));
        }
    }
    findings
}
