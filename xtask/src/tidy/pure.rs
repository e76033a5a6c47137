//! Pure crates are `no_std`, and so is everything they use.
//!
//! That is what keeps clocks, sockets, threads, files and ambient randomness out of protocol
//! code: they are not in scope.

use super::Finding;
use super::arrows::{dependencies, line_of_key};
use super::source::{Source, line_of};
use super::tree::Tree;

/// The crates that must be pure.
pub const CRATES: [&str; 6] = ["kernel", "protocols", "merkle", "node", "doors", "check"];

/// What is not built into the product: planted bugs, and worlds for the tests of other crates.
const APART: [&str; 2] = ["#[cfg(quorate_mutants)]", "#[cfg(any(test, feature = \"testing\"))]"];

/// Finds what would let the standard library into a pure crate.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let shared = tree.text("Cargo.toml").and_then(|text| text.parse::<toml::Table>().ok());
    let shared = shared.unwrap_or_default();
    let mut findings = Vec::new();
    for name in CRATES {
        check_attribute(tree, name, &mut findings);
        check_dependencies(tree, name, &shared, &mut findings);
        check_extern(tree, name, &mut findings);
    }
    findings
}

fn check_attribute(tree: &Tree, name: &str, findings: &mut Vec<Finding>) {
    let path = format!("crates/{name}/src/lib.rs");
    let text = tree.text(&path).unwrap_or_default();
    if !Source::new(text).code.contains("#![no_std]") {
        findings.push(Finding::new(
            &path,
            1,
            format!("{name} is a pure crate: its first attribute must be #![no_std], always"),
        ));
    }
}

fn check_dependencies(tree: &Tree, name: &str, shared: &toml::Table, out: &mut Vec<Finding>) {
    let path = format!("crates/{name}/Cargo.toml");
    let text = tree.text(&path).unwrap_or_default();
    let Ok(manifest) = text.parse::<toml::Table>() else { return };
    for (dependency, settings) in dependencies(&manifest, &["dependencies"]) {
        if dependency.starts_with("quorate-") || has_no_defaults(&dependency, &settings, shared) {
            continue;
        }
        out.push(Finding::new(
            &path,
            line_of_key(text, &dependency),
            format!(
                "{name} is a pure crate: {dependency} needs default-features = false where its \
                 version is set, or it may bring the standard library along"
            ),
        ));
    }
}

/// Whether a dependency's default features are off, here or in the workspace's table. A member
/// cannot turn off what the workspace's table leaves on, so only the latter counts for it.
fn has_no_defaults(name: &str, settings: &toml::Value, shared: &toml::Table) -> bool {
    let is_off = |value: &toml::Value| {
        value.get("default-features").and_then(toml::Value::as_bool) == Some(false)
    };
    if settings.get("workspace").and_then(toml::Value::as_bool) != Some(true) {
        return is_off(settings);
    }
    let turned_on = settings.get("default-features").and_then(toml::Value::as_bool) == Some(true);
    let entry = || shared.get("workspace")?.get("dependencies")?.get(name);
    !turned_on && entry().is_some_and(is_off)
}

fn check_extern(tree: &Tree, name: &str, findings: &mut Vec<Finding>) {
    let folder = format!("crates/{name}/src");
    for (path, text) in tree.below(&folder, ".rs") {
        if path.ends_with("/tests.rs") || path.contains("/tests/") {
            continue;
        }
        let source = Source::new(text);
        let tests = source.test_regions();
        for at in source.places_of("std") {
            let before = source.code[..at].trim_end();
            let is_extern = before.strip_suffix("crate").is_some_and(|rest| {
                rest.ends_with(char::is_whitespace) && rest.trim_end().ends_with("extern")
            });
            let line = text[..at].rfind('\n').map_or("", |end| &text[..end]);
            let is_apart = APART.iter().any(|cfg| line.ends_with(cfg));
            if is_extern && !is_apart && !tests.iter().any(|region| region.contains(&at)) {
                let message = format!(
                    "{name} is a pure crate: extern crate std may stand only under #[cfg(test)] \
                     or {}",
                    APART.join(" or ")
                );
                findings.push(Finding::new(path, line_of(text, at), message));
            }
        }
    }
}
