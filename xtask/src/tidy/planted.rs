//! Every planted bug of the code is in the list of mutants, and every listed one is in the code.

use super::Finding;
use super::source::{Source, line_of};
use super::tree::Tree;
use std::collections::BTreeMap;

const LIST: &str = "xtask/mutants.txt";

/// Finds mutants that nobody runs and list entries without a mutant.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut planted = BTreeMap::new();
    let folders = ["crates", "examples"].into_iter();
    for (path, text) in folders.flat_map(|folder| tree.below(folder, ".rs")) {
        for at in Source::new(text).places_of("mutant") {
            let name =
                text[at..].strip_prefix("mutant!(\"").and_then(|rest| rest.split('"').next());
            if let Some(name) = name {
                planted.entry(name).or_insert((path, line_of(text, at)));
            }
        }
    }
    let mut listed = BTreeMap::new();
    for (index, line) in tree.text(LIST).unwrap_or_default().lines().enumerate() {
        if !line.trim().is_empty() && !line.starts_with('#') {
            listed.insert(line.split('|').next().unwrap_or(line).trim(), index + 1);
        }
    }
    let mut findings = Vec::new();
    for (name, (path, line)) in planted.iter().filter(|(name, _)| !listed.contains_key(*name)) {
        let message = format!("mutant {name} is not in {LIST}: say there who condemns it");
        findings.push(Finding::new(path, *line, message));
    }
    for (name, line) in listed.iter().filter(|(name, _)| !planted.contains_key(*name)) {
        let message = format!("no code has the mutant {name}: plant it or drop the line");
        findings.push(Finding::new(LIST, *line, message));
    }
    findings
}
