//! Crate arrows point down only.
//!
//! kernel ← {protocols, doors, check, store, node} ← {sim, bench, host} ← gateway ← cli ←
//! {server, lab}; api ← client ← bench. The tests of a crate obey too: a test that needs a higher
//! crate belongs to that crate.

use super::Finding;
use super::tree::Tree;

/// Each crate below `crates/` with the crates of ours it may depend on.
const ARROWS: [(&str, &[&str]); 17] = [
    ("api", &[]),
    ("client", &["api"]),
    ("kernel", &[]),
    ("protocols", &["kernel"]),
    ("doors", &["kernel"]),
    ("check", &["kernel"]),
    ("merkle", &["kernel", "protocols"]),
    ("store", &["kernel"]),
    ("node", &["kernel"]),
    ("chart", &[]),
    ("bench", &["kernel", "doors", "client", "chart"]),
    ("sim", &["kernel", "protocols", "doors", "check", "store", "node"]),
    ("host", &["kernel", "protocols", "doors", "store", "node"]),
    ("gateway", &["kernel", "doors", "store", "api", "host"]),
    (
        "cli",
        &[
            "kernel",
            "protocols",
            "doors",
            "check",
            "store",
            "sim",
            "bench",
            "host",
            "gateway",
            "client",
        ],
    ),
    (
        "server",
        &["kernel", "protocols", "doors", "check", "store", "sim", "api", "client", "host", "cli"],
    ),
    (
        "lab",
        &[
            "kernel",
            "protocols",
            "doors",
            "store",
            "node",
            "merkle",
            "sim",
            "bench",
            "chart",
            "host",
            "gateway",
            "cli",
        ],
    ),
];

/// The tables of a manifest that name dependencies.
const TABLES: [&str; 3] = ["dependencies", "dev-dependencies", "build-dependencies"];

/// Finds every dependency that points up or sideways.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.below("crates", "/Cargo.toml") {
        let Some((name, "Cargo.toml")) = path["crates/".len()..].split_once('/') else { continue };
        let Some((_, allowed)) = ARROWS.iter().find(|(each, _)| *each == name) else {
            findings.push(Finding::new(path, 1, unknown(name)));
            continue;
        };
        let manifest = match text.parse::<toml::Table>() {
            Ok(manifest) => manifest,
            Err(error) => {
                findings.push(Finding::new(path, 1, format!("not TOML: {}", error.message())));
                continue;
            }
        };
        for (dependency, _) in dependencies(&manifest, &TABLES) {
            let Some(ours) = dependency.strip_prefix("quorate-") else { continue };
            if !allowed.contains(&ours) {
                let line = line_of_key(text, &dependency);
                findings.push(Finding::new(path, line, upward(name, ours, allowed)));
            }
        }
    }
    findings
}

/// The names and settings in the dependency `tables` of a manifest, those of single targets
/// included; a renamed dependency goes by its package's name.
pub fn dependencies(manifest: &toml::Table, tables: &[&str]) -> Vec<(String, toml::Value)> {
    let targets = manifest.get("target").and_then(toml::Value::as_table);
    let nested = targets.into_iter().flat_map(|each| each.values()).filter_map(|v| v.as_table());
    let mut found = Vec::new();
    for owner in std::iter::once(manifest).chain(nested) {
        for table in tables.iter().filter_map(|name| owner.get(*name)?.as_table()) {
            for (key, settings) in table {
                let package = settings.get("package").and_then(toml::Value::as_str);
                found.push((package.unwrap_or(key).to_owned(), settings.clone()));
            }
        }
    }
    found
}

/// The line on which `key` is set, or the first one.
pub fn line_of_key(text: &str, key: &str) -> usize {
    let is_set = |line: &str| {
        let named = line.trim_start().trim_start_matches('"').strip_prefix(key);
        let table = line.trim_end().strip_suffix(']').is_some_and(|line| line.ends_with(key));
        table || named.is_some_and(|rest| rest.starts_with([' ', '.', '=', '"']))
    };
    text.lines().position(is_set).map_or(1, |index| index + 1)
}

fn unknown(name: &str) -> String {
    format!(
        "crate {name} has no place among the arrows; say what it may depend on in \
         xtask/src/tidy/arrows.rs, and draw it in ARCHITECTURE.md"
    )
}

fn upward(name: &str, ours: &str, allowed: &[&str]) -> String {
    let may = if allowed.is_empty() { "none of ours".to_owned() } else { allowed.join(", ") };
    format!("{name} depends on {ours}, but arrows point down only: {name} may use {may}")
}
