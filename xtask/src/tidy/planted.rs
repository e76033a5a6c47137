//! Every planted bug of the code is in the list of mutants, and every listed one is in the code, as
//! is the test that condemns it.

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
    let (mut listed, mut findings) = (BTreeMap::new(), Vec::new());
    for (index, line) in tree.text(LIST).unwrap_or_default().lines().enumerate() {
        if !line.trim().is_empty() && !line.starts_with('#') {
            let fields: Vec<&str> = line.split('|').map(str::trim).collect();
            listed.insert(fields[0], index + 1);
            if let [_, _, test] = fields[..]
                && !has_test(tree, test)
            {
                let message = format!("no file of that module has the test {test}");
                findings.push(Finding::new(LIST, index + 1, message));
            }
        }
    }
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

/// Whether a file has the function that ends the path `test`, and is where its modules say; they
/// may be in the file of the module around them, as `tests` often is.
fn has_test(tree: &Tree, test: &str) -> bool {
    let (modules, name) = test.rsplit_once("::").unwrap_or(("", test));
    let around = modules.rsplit_once("::").map_or("", |(around, _)| around);
    let is_place = |path: &str| {
        let place = path.strip_suffix("/mod.rs").or(path.strip_suffix(".rs")).unwrap_or(path);
        let is_of = |modules: &str| place.ends_with(&format!("/{}", modules.replace("::", "/")));
        modules.is_empty() || is_of(modules) || around.is_empty() || is_of(around)
    };
    let signature = format!("fn {name}(");
    tree.files().any(|(path, text)| is_place(path) && text.contains(&signature))
}
