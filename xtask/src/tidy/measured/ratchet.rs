//! Exceptions to what is measured: listed one by one, and they only shrink.
//!
//! A line of the list is `kind | place | at most`. A place over its limit without a line is a
//! finding; so is a line that allows more than there is, because what was won would be lost again.

use super::lengths::{Kind, Measure, Place, longest};
use crate::tidy::Finding;
use crate::tidy::tree::Tree;
use std::collections::BTreeMap;

/// Compares the measures with the list at `path`.
pub fn check(path: &str, tree: &Tree, over: &[(Place, Measure)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut listed = BTreeMap::new();
    for (index, line) in tree.text(path).unwrap_or_default().lines().enumerate() {
        match parse(line) {
            Ok(None) => {}
            Ok(Some((place, most))) => {
                check_entry(path, index + 1, &place, most, over, &mut findings);
                listed.insert(place, most);
            }
            Err(message) => findings.push(Finding::new(path, index + 1, message)),
        }
    }
    for (place, measure) in over {
        let (kind, name) = place;
        let allowed = listed.get(place).copied().unwrap_or(kind.limit());
        if measure.length > allowed {
            let message = too_long(path, place, measure.length, allowed);
            let file = name.split("::").next().unwrap_or(name);
            findings.push(Finding::new(file, measure.line, message));
        }
    }
    findings
}

/// The list with every exception lowered to what it is now, and those no longer needed left out.
pub fn tighten(text: &str, over: &[(Place, Measure)]) -> String {
    let mut out = String::new();
    for line in text.lines() {
        match parse(line) {
            Ok(Some((place, most))) => {
                if let Some(length) = longest(over, &place) {
                    let (kind, name) = &place;
                    out += &format!("{kind} | {name} | {}\n", most.min(length));
                }
            }
            _ => out += &format!("{line}\n"),
        }
    }
    out
}

fn check_entry(
    path: &str,
    line: usize,
    place: &Place,
    most: usize,
    over: &[(Place, Measure)],
    findings: &mut Vec<Finding>,
) {
    let (kind, name) = place;
    let length = longest(over, place).unwrap_or(0);
    if most > kind.limit_hard() {
        let hard = kind.limit_hard();
        let message = format!("no exception for {kind} may exceed {hard}; {}", kind.advice());
        findings.push(Finding::new(path, line, message));
    }
    if length == 0 {
        let message = format!(
            "{kind} {name} keeps its limit of {} now; drop this line (cargo xtask tidy --tighten)",
            kind.limit()
        );
        findings.push(Finding::new(path, line, message));
    } else if length < most {
        let message = format!(
            "{kind} {name} has shrunk to {length}; lower {most} to that \
             (cargo xtask tidy --tighten)"
        );
        findings.push(Finding::new(path, line, message));
    }
}

fn too_long(path: &str, (kind, name): &Place, length: usize, allowed: usize) -> String {
    let what = match kind {
        Kind::File => "this file has",
        Kind::Function => "this function has",
        Kind::Columns => "this line has",
        Kind::Folder => "this folder has",
        Kind::Names => "this file names engines with",
        Kind::Asserts => "handlers of this file lack",
        Kind::Worlds => "this file shows",
    };
    let unit = match kind {
        Kind::File | Kind::Function => "lines",
        Kind::Columns => "columns",
        Kind::Folder => "files",
        Kind::Names => "words",
        Kind::Asserts => "assertions",
        Kind::Worlds => "signs of another world",
    };
    let advice = kind.advice();
    if allowed > kind.limit() {
        return format!(
            "{what} {length} {unit} and its exception in {path} allows {allowed}; it may only \
             shrink: {advice}"
        );
    }
    if length > kind.limit_hard() {
        return format!("{what} {length} {unit}, the limit is {allowed}; {advice}");
    }
    format!(
        "{what} {length} {unit}, the limit is {allowed}; {advice} (an exception, for review: \
         the line `{kind} | {name} | {length}` in {path})"
    )
}

/// The exception on `line`, or none on a blank or a comment.
fn parse(line: &str) -> Result<Option<(Place, usize)>, String> {
    if line.trim().is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let wrong = || "not an exception; right is: kind | place | at most".to_owned();
    let fields: Vec<&str> = line.split(" | ").map(str::trim).collect();
    let [kind, place, most] = fields[..] else { return Err(wrong()) };
    let kind = Kind::ALL.into_iter().find(|each| each.to_string() == kind);
    let kind = kind.ok_or_else(|| {
        format!("the kind must be one of {}", Kind::ALL.map(|each| each.to_string()).join(", "))
    })?;
    let most = most.parse().map_err(|_| wrong())?;
    Ok(Some(((kind, place.to_owned()), most)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_none_is_needed_no_exception_comes_in() {
        for (kind, hard) in [(Kind::Folder, 15), (Kind::Names, 0), (Kind::Asserts, 0)] {
            let place = (kind, "a.rs".to_owned());
            for length in hard..hard + 2 {
                let list = format!("{kind} | a.rs | {length}\n");
                let over = [(place.clone(), Measure { length, line: 1 })];
                let found = check("list.txt", &Tree::of(&[("list.txt", &list)]), &over);
                let refused = format!("no exception for {kind} may exceed {hard}");
                let is_refused = found.iter().any(|it| it.message.contains(&refused));
                assert_eq!(is_refused, length > hard, "{found:#?}");
            }
        }
    }
}
