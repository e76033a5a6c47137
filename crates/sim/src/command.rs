//! The command line: what `quorate-sim` and `quorate sim` do.

use crate::args::{ForgeArgs, Format, SimArgs, SimCommand};
use crate::prepared::Prepared;
use crate::replay::Replay;
use crate::run::Sweep;
use crate::scenario::{Scenario, ScenarioError};
use crate::seed::{Report, Runner, Setup};
use crate::summary::Summary;
use crate::{marks, overlay, shipped, shrink};
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// A judge condemned a run, or a mark that must be reached was not.
const EXIT_VIOLATION: u8 = 8;
/// The command line or a file is wrong.
const EXIT_USAGE: u8 = 2;

/// Runs the command line and returns the exit code: 0 if no judge objected, 8 if one did, 2 if the
/// command line or a file is wrong.
#[must_use]
pub fn main(args: &SimArgs) -> ExitCode {
    match command(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(EXIT_VIOLATION),
        Err(error) => {
            eprintln!("error: {}", chain(&error));
            ExitCode::from(EXIT_USAGE)
        }
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

fn command(args: &SimArgs) -> Result<bool, ScenarioError> {
    if let Some(SimCommand::Overlay(args)) = &args.command {
        let report = overlay::run(args);
        say(&report.to_string());
        return Ok(report.is_converged());
    }
    if let Some(SimCommand::Forge(args)) = &args.command {
        return forge(args);
    }
    if args.list {
        list(args.format);
        return Ok(true);
    }
    if let Some(path) = &args.replay {
        let replay = Replay::load(path)?;
        return one(args, &replay);
    }
    let scenarios = chosen(&args.scenario)?;
    if let Some(seed) = args.seed {
        let mut is_clean = true;
        for prepared in &scenarios {
            is_clean &= one(args, &Replay::of(prepared, seed))?;
        }
        return Ok(is_clean);
    }
    sweep(args, &scenarios)
}

/// Runs seeds with forged frames; says by what hosts ended, and in how many seeds.
fn forge(args: &ForgeArgs) -> Result<bool, ScenarioError> {
    let mut found: BTreeMap<String, (u64, String)> = BTreeMap::new();
    let (mut runner, mut sent) = (Runner::default(), 0);
    for prepared in chosen(&args.scenario)? {
        for seed in args.seeds.clone() {
            let (report, forged) = runner.forge(&prepared, seed, args.one_in, args.events);
            sent += forged.values().sum::<u64>();
            let Some(violation) = report.violation else { continue };
            let first = format!("{} {seed}", prepared.scenario.name);
            found.entry(violation.message).or_insert((0, first)).0 += 1;
        }
    }
    for (message, (count, first)) in &found {
        say(&format!("{count} seeds, first {first}: {message}"));
    }
    say(&format!("{sent} forged frames, {} ways to end a host", found.len()));
    Ok(found.is_empty())
}

fn list(format: Format) {
    for scenario in shipped::scenarios() {
        match format {
            Format::Text => say(&format!("{:<10} {}", scenario.name, scenario.about)),
            Format::Json => {
                say(&json!({"name": scenario.name, "about": scenario.about}).to_string());
            }
        }
    }
}

/// The scenarios of these names or paths, or all that ship.
fn chosen(names: &[String]) -> Result<Vec<Prepared>, ScenarioError> {
    if names.is_empty() {
        return shipped::scenarios().into_iter().map(Prepared::new).collect();
    }
    let find = |name: &String| -> Result<Scenario, ScenarioError> {
        if let Some(scenario) = shipped::find(name) {
            return Ok(scenario);
        }
        if name.contains(['/', '.']) {
            return Scenario::load(Path::new(name));
        }
        Err(ScenarioError::Unknown { name: name.clone() })
    };
    names.iter().map(|name| Prepared::new(find(name)?)).collect()
}

/// Runs one seed and says everything about it; returns whether nothing is wrong.
fn one(args: &SimArgs, replay: &Replay) -> Result<bool, ScenarioError> {
    let prepared = Prepared::new(replay.scenario.clone())?;
    let out: Option<Box<dyn Write>> =
        if args.trace { Some(Box::new(std::io::stdout().lock())) } else { None };
    let plan = Some(replay.faults.clone());
    let setup = Setup { seed: replay.seed, plan, out, wrap: None };
    let mut runner = Runner::default();
    let report = runner.run(&prepared, setup);
    match args.format {
        Format::Text => say(&tell(replay, &report)),
        Format::Json => say(&tell_json(replay, &report)),
    }
    if args.shrink && report.violation.is_some() {
        reduce(args, &mut runner, replay.clone())?;
    }
    let are_reached = !args.require_probes || marks::tell_missing();
    Ok(report.violation.is_none() && are_reached)
}

fn tell(replay: &Replay, report: &Report) -> String {
    let mut lines = vec![format!("scenario {}, seed {}", replay.scenario.name, replay.seed)];
    lines.extend(replay.faults.iter().map(|fault| format!("fault {fault}")));
    let counts = &report.counts;
    lines.push(format!(
        "{} events, {} operations ({} answered, {} refused, {} unknown), {} faults, {} views, \
         {} decrees, {} ms",
        report.events,
        counts.begun,
        counts.answered,
        counts.refused,
        counts.unknown,
        report.faults,
        report.views,
        report.decrees,
        report.time / 1_000_000,
    ));
    lines.extend(replay.scenario.cell.iter().map(|cell| format!("cell {cell}")));
    lines.extend(report.met.iter().map(|met| format!("met {met}")));
    if let Some(why) = &report.idle {
        lines.push(format!("does not count: {why}"));
    }
    if let Some(violation) = &report.violation {
        lines.push(format!("violation: judge {}\n{}", violation.judge, violation.message));
    }
    lines.push(format!("trace hash: {:016x}", report.hash));
    lines.join("\n")
}

fn tell_json(replay: &Replay, report: &Report) -> String {
    let violation = report.violation.iter().map(|violation| {
        json!({
            "scenario": replay.scenario.name,
            "seed": replay.seed,
            "judge": violation.judge,
            "message": violation.message,
        })
    });
    json!({
        "scenario": replay.scenario.name,
        "seed": replay.seed,
        "events": report.events,
        "operations": report.counts.answered,
        "faults": report.faults,
        "counted": report.idle.is_none(),
        "trace_hash": format!("{:016x}", report.hash),
        "violations": violation.collect::<Vec<_>>(),
    })
    .to_string()
}

fn sweep(args: &SimArgs, scenarios: &[Prepared]) -> Result<bool, ScenarioError> {
    let summary = Sweep::new(args).run(scenarios);
    if args.shrink
        && let Some(found) = summary.violations.first()
    {
        let is_it = |prepared: &&Prepared| prepared.scenario.name == found.scenario;
        let prepared = scenarios.iter().find(is_it).expect("it was found in one of them");
        reduce(args, &mut Runner::default(), Replay::of(prepared, found.seed))?;
    }
    let does_enough =
        !args.require_probes || tell_idle(&summary) & tell_missed(&summary) & marks::tell_missing();
    match args.format {
        Format::Text => {
            say(&marks::reached());
            say(&summary.to_text());
        }
        Format::Json => say(&summary.to_json()),
    }
    Ok(summary.violations.is_empty() && does_enough)
}

/// Names the scenarios that did too little; returns whether there are none.
fn tell_idle(summary: &Summary) -> bool {
    for sums in summary.idle_scenarios() {
        let (name, seeds, counted) = (&sums.scenario, sums.seeds, sums.counted);
        eprintln!("scenario {name}: only {counted} of {seeds} seeds did enough to count");
    }
    summary.idle_scenarios().next().is_none()
}

/// Names the cells of grids that no seed has met, where there were seeds enough; returns whether
/// there are none.
fn tell_missed(summary: &Summary) -> bool {
    for (scenario, cell) in summary.missed() {
        eprintln!("scenario {scenario}: cell {cell} was met by no seed");
    }
    summary.missed().next().is_none()
}

/// Reduces a failing run and keeps or prints the replay file.
fn reduce(args: &SimArgs, runner: &mut Runner, replay: Replay) -> Result<(), ScenarioError> {
    let before = replay.faults.len();
    let Some(shrunk) = shrink::shrink(runner, replay, None)? else { return Ok(()) };
    let (after, runs) = (shrunk.replay.faults.len(), shrunk.runs);
    eprintln!(
        "reduced from {before} to {after} faults in {runs} runs: {}",
        shrunk.violation.message
    );
    let text = shrunk.replay.to_text();
    match &args.output {
        None => say(&text),
        Some(path) => {
            std::fs::write(path, text)
                .map_err(|source| ScenarioError::Write { path: path.clone(), source })?;
            eprintln!("written to {}; run it with --replay", path.display());
        }
    }
    Ok(())
}

/// Prints to standard output; a reader that is gone has seen enough.
fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}");
}
