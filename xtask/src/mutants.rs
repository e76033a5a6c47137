//! Planted bugs: each changes the real code and must be condemned by the simulator.
//!
//! A mutant is a piece of code under `mutant!("name")`. The list `xtask/mutants.txt` says in which
//! scenario, within which seeds and by which judge it must fall: `name | scenario | A..B | judge`,
//! or several judges with commas between them. A mutant that survives means that a judge is blind,
//! which counts as much as a bug.
//!
//! All of them are compiled into one simulator, which puts the one in force that it is told to. The
//! flag that lets them in reaches only the crates of this workspace, through a compiler wrapper.

use crate::{run, sweep};
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

const LIST: &str = "xtask/mutants.txt";
const PROFILE: &str = "mutant";

/// The simulator's exit code when a judge condemned a run.
const EXIT_VIOLATION: i32 = 8;

/// One planted bug and how it must fall.
#[derive(Debug, PartialEq, Eq)]
struct Mutant {
    name: String,
    scenario: String,
    seeds: String,
    judges: Vec<String>,
}

/// How the simulator ended.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// No judge objected to any seed.
    Survived,
    /// A judge condemned the run of `seed`.
    Condemned { judge: String, seed: u64 },
}

/// `cargo xtask mutants [NAME...]`.
pub fn command(names: &[String]) -> Result<(), String> {
    let text = fs::read_to_string(run::root().join(LIST))
        .map_err(|error| format!("{LIST}: cannot read: {error}"))?;
    let mutants = parse_list(&text)?;
    if let Some(name) = names.iter().find(|name| mutants.iter().all(|each| each.name != **name)) {
        return Err(format!("{LIST} has no mutant {name}"));
    }
    let target = run::target_directory().join("mutants");
    sweep::build(&target, PROFILE, Some(&wrapper(&target)?))?;
    let chosen = mutants.iter().filter(|each| names.is_empty() || names.contains(&each.name));
    let mut failures = Vec::new();
    let mut rows = Vec::new();
    for mutant in chosen {
        match judge(mutant, &target) {
            Ok(row) => rows.push(row),
            Err(message) => failures.push(format!("{}: {message}", mutant.name)),
        }
    }
    rows.iter().for_each(|row| println!("{row}"));
    if failures.is_empty() {
        println!("== mutants: all {} were condemned", rows.len());
        return Ok(());
    }
    Err(format!("mutants: {} failed\n{}", failures.len(), failures.join("\n")))
}

/// Runs one mutant; returns its row of the table.
fn judge(mutant: &Mutant, target: &Path) -> Result<String, String> {
    let mut simulator = sweep::simulator(target, PROFILE);
    simulator.args(["--mutant", &mutant.name]);
    simulator.args(["--scenario", &mutant.scenario, "--seeds", &mutant.seeds]);
    simulator.args(["--until-violation", "--format", "json"]);
    println!("== mutant {}: {}", mutant.name, run::line(&simulator));
    let begun = Instant::now();
    let output = simulator.output().map_err(|error| format!("cannot run: {error}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let verdict = verdict(output.status.code(), &stdout)
        .map_err(|message| format!("{message}\n{}", String::from_utf8_lossy(&output.stderr)))?;
    let Verdict::Condemned { judge, seed } = verdict else {
        return Err(format!("survived seeds {} of {}", mutant.seeds, mutant.scenario));
    };
    if !mutant.judges.contains(&judge) {
        let expected = mutant.judges.join(" or ");
        return Err(format!("seed {seed} was condemned by {judge}, expected was {expected}"));
    }
    Ok(format!(
        "mutant {}: {judge} condemned it after {} seeds of {} (seed {seed}) in {:.1} s",
        mutant.name,
        seed.saturating_sub(first_seed(&mutant.seeds)) + 1,
        mutant.scenario,
        begun.elapsed().as_secs_f64(),
    ))
}

/// Writes the compiler wrapper that lets the mutants in. Cargo keeps the results of different
/// wrappers apart by their paths.
fn wrapper(target: &Path) -> Result<PathBuf, String> {
    let path = target.join("with-mutants");
    let write = || {
        fs::create_dir_all(target)?;
        fs::write(&path, "#!/bin/sh\nexec \"$@\" --cfg quorate_mutants\n")?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
    };
    write().map_err(|error| format!("{}: cannot write: {error}", path.display()))?;
    Ok(path)
}

/// Reads the simulator's exit code and the JSON on its last line of output.
fn verdict(code: Option<i32>, stdout: &str) -> Result<Verdict, String> {
    match code {
        Some(0) => return Ok(Verdict::Survived),
        Some(EXIT_VIOLATION) => {}
        Some(code) => return Err(format!("the simulator failed with exit code {code}")),
        None => return Err("the simulator was killed".to_owned()),
    }
    let unclear = || format!("the simulator found a violation but did not say which: {stdout}");
    let summary: Value = stdout
        .lines()
        .rev()
        .find_map(|line| serde_json::from_str(line).ok())
        .ok_or_else(unclear)?;
    let violation = &summary["violations"][0];
    let judge = violation["judge"].as_str().ok_or_else(unclear)?.to_owned();
    let seed = violation["seed"].as_u64().ok_or_else(unclear)?;
    Ok(Verdict::Condemned { judge, seed })
}

fn parse_list(text: &str) -> Result<Vec<Mutant>, String> {
    let lines = text.lines().enumerate();
    let entries = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    entries
        .map(|(index, line)| parse(line).map_err(|e| format!("{LIST}:{}: {e}", index + 1)))
        .collect()
}

fn parse(line: &str) -> Result<Mutant, String> {
    let fields: Vec<&str> = line.split('|').map(str::trim).collect();
    let [name, scenario, seeds, judges] = fields[..] else {
        return Err("right is: name | scenario | A..B | judge".to_owned());
    };
    let is_plain = |each: char| each.is_ascii_lowercase() || each.is_ascii_digit() || each == '_';
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!("{name} is no name: lower case letters, digits and underscores"));
    }
    let bounds = seeds.split_once("..").map(|(from, to)| (from.parse::<u64>(), to.parse::<u64>()));
    if !matches!(bounds, Some((Ok(from), Ok(to))) if from < to) {
        return Err(format!("{seeds} is no range of seeds: right is A..B with A below B"));
    }
    let judges = judges.split(',').map(|judge| judge.trim().to_owned()).collect();
    Ok(Mutant {
        name: name.to_owned(),
        scenario: scenario.to_owned(),
        seeds: seeds.to_owned(),
        judges,
    })
}

fn first_seed(seeds: &str) -> u64 {
    seeds.split_once("..").and_then(|(from, _)| from.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_and_its_errors_name_the_line() {
        let text = "# planted bugs\n\nno_sync | crash | 0..50 | durability, linearizability\n";
        let mutants = parse_list(text).unwrap();
        assert_eq!(mutants.len(), 1);
        assert_eq!(mutants[0].judges, ["durability", "linearizability"]);
        assert_eq!(first_seed(&mutants[0].seeds), 0);

        for (wrong, part) in [
            ("no_sync | crash | 0..50", "right is: name"),
            ("No Sync | crash | 0..50 | durability", "is no name"),
            ("no_sync | crash | 50..50 | durability", "is no range"),
        ] {
            let message = parse_list(&format!("# one\n{wrong}\n")).unwrap_err();
            assert!(message.starts_with("xtask/mutants.txt:2: "), "{message}");
            assert!(message.contains(part), "{message}");
        }
    }

    #[test]
    fn the_list_of_this_repository_is_well_formed() {
        let text = fs::read_to_string(run::root().join(LIST)).unwrap();
        assert!(!parse_list(&text).unwrap().is_empty());
    }

    #[test]
    fn a_verdict_needs_the_exit_code_and_the_judge() {
        let json = r#"{"seeds":3,"violations":[{"seed":2,"judge":"durability"}]}"#;
        let condemned = Verdict::Condemned { judge: "durability".to_owned(), seed: 2 };
        assert_eq!(verdict(Some(8), &format!("noise\n{json}\n")), Ok(condemned));
        assert_eq!(verdict(Some(0), json), Ok(Verdict::Survived));
        assert!(verdict(Some(8), r#"{"violations":[]}"#).is_err());
        assert!(verdict(Some(101), json).is_err());
        assert!(verdict(None, json).is_err());
    }
}
