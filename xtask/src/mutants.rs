//! Planted bugs: each changes the real code and must be condemned by the simulator or by a test.
//!
//! A mutant is a piece of code under `mutant!("name")`. The list `xtask/mutants.txt` says how it
//! must fall: `name | scenario | A..B | judge` in a scenario of the simulator, within these seeds,
//! by this judge or one of several with commas between them; or `name | crate | test` by a test of
//! a crate. A mutant that survives means that a judge or a test is blind, which counts as much as a
//! bug.
//!
//! All of them are compiled in (`planted.rs`), and an environment variable names the one in force.

use crate::planted::{self, Tests};
use crate::{run, sweep};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::sync::Mutex;
use std::thread::available_parallelism;
use std::time::Instant;

const LIST: &str = "xtask/mutants.txt";

/// The simulator's exit code when a judge condemned a run.
const EXIT_VIOLATION: i32 = 8;
/// The variable that names the planted bug in force.
const PLANTED: &str = "QUORATE_PLANTED";

/// One planted bug and how it must fall.
#[derive(Debug, PartialEq, Eq)]
struct Mutant {
    name: String,
    falls: Fall,
}

/// Who must condemn a planted bug.
#[derive(Debug, PartialEq, Eq)]
enum Fall {
    /// A judge of the simulator.
    Simulated { scenario: String, seeds: String, judges: Vec<String> },
    /// A test.
    Tested { package: String, test: String },
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
    let is_chosen = |each: &&Mutant| names.is_empty() || names.contains(&each.name);
    let chosen: Vec<&Mutant> = mutants.iter().filter(is_chosen).collect();
    let mut ended = simulate_all(&chosen)?;
    ended.extend(try_all(&chosen, names.is_empty())?);
    let (mut rows, mut failures) = (Vec::new(), Vec::new());
    for (name, judged) in ended {
        match judged {
            Ok(row) => rows.push(row),
            Err(message) => failures.push(format!("{name}: {message}")),
        }
    }
    rows.iter().for_each(|row| println!("{row}"));
    if failures.is_empty() {
        println!("== mutants: all {} were condemned", rows.len());
        return Ok(());
    }
    Err(format!("mutants: {} failed\n{}", failures.len(), failures.join("\n")))
}

/// Names of mutants, each with its row of the table or with what is wrong.
type Ended = Vec<(String, Result<String, String>)>;

/// Runs those that the simulator must condemn, one after the other: it uses all cores.
fn simulate_all(chosen: &[&Mutant]) -> Result<Ended, String> {
    let mut ended = Ended::new();
    for mutant in chosen {
        if let Fall::Simulated { scenario, seeds, judges } = &mutant.falls {
            if ended.is_empty() {
                sweep::build()?;
            }
            let judged = simulate(&mutant.name, (scenario, seeds, judges));
            ended.push((mutant.name.clone(), judged));
        }
    }
    Ok(ended)
}

/// Runs the tests that must condemn one, as many at once as there are cores.
fn try_all(chosen: &[&Mutant], is_whole: bool) -> Result<Ended, String> {
    let tested = chosen.iter().filter_map(|mutant| match &mutant.falls {
        Fall::Tested { package, test } => Some((&mutant.name[..], &package[..], &test[..])),
        Fall::Simulated { .. } => None,
    });
    let tested: Vec<_> = tested.collect();
    let packages: BTreeSet<&str> = tested.iter().map(|(_, package, _)| *package).collect();
    if packages.is_empty() {
        return Ok(Ended::new());
    }
    let tests = planted::tests((!is_whole).then_some(&packages))?;
    let (rest, ended) = (Mutex::new(tested.iter()), Mutex::new(Ended::new()));
    let next = || rest.lock().expect("no thread panics").next();
    let work = || {
        while let Some((name, package, test)) = next() {
            let judged = try_test(&tests, name, (package, test));
            ended.lock().expect("no thread panics").push(((*name).to_owned(), judged));
        }
    };
    std::thread::scope(|scope| {
        (0..available_parallelism().map_or(1, usize::from)).for_each(|_| drop(scope.spawn(work)));
    });
    Ok(ended.into_inner().expect("no thread panics"))
}

/// Runs one mutant in the simulator; returns its row of the table.
fn simulate(
    name: &str,
    (scenario, seeds, judges): (&str, &str, &[String]),
) -> Result<String, String> {
    let mut simulator = sweep::simulator();
    simulator.env(PLANTED, name).args(["--scenario", scenario, "--seeds", seeds]);
    simulator.args(["--until-violation", "--format", "json"]);
    println!("== mutant {name}: {}", run::line(&simulator));
    let begun = Instant::now();
    let output = simulator.output().map_err(|error| format!("cannot run: {error}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout);
    let verdict = verdict(output.status.code(), &stdout)
        .map_err(|message| format!("{message}\n{}", String::from_utf8_lossy(&output.stderr)))?;
    let Verdict::Condemned { judge, seed } = verdict else {
        return Err(format!("survived seeds {seeds} of {scenario}"));
    };
    if !judges.contains(&judge) {
        let expected = judges.join(" or ");
        return Err(format!("seed {seed} was condemned by {judge}, expected was {expected}"));
    }
    Ok(format!(
        "mutant {name}: {judge} condemned it after {} seeds of {scenario} (seed {seed}) in {:.1} s",
        seed.saturating_sub(first_seed(seeds)) + 1,
        begun.elapsed().as_secs_f64(),
    ))
}

/// Runs the test that must fail with one mutant; returns its row of the table.
fn try_test(tests: &Tests, name: &str, (package, test): (&str, &str)) -> Result<String, String> {
    for mut command in tests.of(package) {
        command.args(["--exact", test]).env(PLANTED, name);
        // A case that a planted bug fails is no case to keep.
        command.env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1");
        println!("== mutant {name}: {}", run::line(&command));
        let output = command.output().map_err(|error| format!("cannot run: {error}"))?;
        match is_failed(&String::from_utf8_lossy(&output.stdout)) {
            Some(true) => return Ok(format!("mutant {name}: {test} condemned it")),
            Some(false) => return Err(format!("survived {test}")),
            // It is a test of another binary of the crate.
            None => {}
        }
    }
    Err(format!("no test of {package} is named {test}"))
}

/// Whether the one test that ran failed; `None` if none ran.
fn is_failed(stdout: &str) -> Option<bool> {
    let results = stdout.lines().filter(|line| line.starts_with("test result: "));
    let ran: Vec<&str> = results.filter(|line| !line.contains(" 0 passed; 0 failed;")).collect();
    let [line] = ran[..] else { return None };
    Some(line.contains(" 0 passed; 1 failed;"))
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
    let (name, falls) = match fields[..] {
        [name, scenario, seeds, judges] => {
            let bounds = seeds.split_once("..");
            let bounds = bounds.map(|(from, to)| (from.parse::<u64>(), to.parse::<u64>()));
            if !matches!(bounds, Some((Ok(from), Ok(to))) if from < to) {
                return Err(format!("{seeds} is no range of seeds: right is A..B with A below B"));
            }
            let judges = judges.split(',').map(|judge| judge.trim().to_owned()).collect();
            let (scenario, seeds) = (scenario.to_owned(), seeds.to_owned());
            (name, Fall::Simulated { scenario, seeds, judges })
        }
        [name, package, test] => {
            (name, Fall::Tested { package: package.to_owned(), test: test.to_owned() })
        }
        _ => return Err("right is: name | scenario | A..B | judge, or name | crate | test".into()),
    };
    let is_plain = |each: char| each.is_ascii_lowercase() || each.is_ascii_digit() || each == '_';
    if name.is_empty() || !name.chars().all(is_plain) {
        return Err(format!("{name} is no name: lower case letters, digits and underscores"));
    }
    Ok(Mutant { name: name.to_owned(), falls })
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
        let Fall::Simulated { judges, .. } = &mutants[0].falls else { panic!("it is simulated") };
        assert_eq!(judges[..], ["durability", "linearizability"]);
        assert_eq!(first_seed("5..9"), 5);

        for (wrong, part) in [
            ("no_sync | crash", "right is: name"),
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
    fn a_test_must_have_run_and_failed() {
        let none = "test result: ok. 0 passed; 0 failed; 0 ignored";
        assert_eq!(is_failed(none), None);
        let failed = "test result: FAILED. 0 passed; 1 failed; 0 ignored";
        assert_eq!(is_failed(&format!("{none}\nnoise\n{failed}\n")), Some(true));
        assert_eq!(is_failed("test result: ok. 1 passed; 0 failed; 0 ignored"), Some(false));
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
