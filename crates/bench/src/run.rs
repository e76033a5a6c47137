//! One measurement from the first connection to the report.

use std::time::Duration;

use quorate_kernel::rng::mix;

use crate::client::{Client, Manner};
use crate::config::{Config, Extent, Pace, Wire};
use crate::error::BenchError;
use crate::load::command::Commands;
use crate::load::mixes::{Generator, Loader};
use crate::progress::Progress;
use crate::report::disks;
use crate::report::findings::{LoadReport, Report, ratio};
use crate::report::plot;
use crate::report::record::Recorder;
use crate::report::usage::Watch;

/// Commands of several keys that each connection has on its way during the load phase.
const LOAD_PIPELINE: usize = 2;
/// The same where a command has one key.
const LOAD_PIPELINE_SINGLE: usize = 8;

/// Loads the keys if asked to, runs the workload, and reports.
///
/// # Errors
/// See [`BenchError`]: without a single success there is no report.
pub fn run(config: &Config) -> Result<Report, BenchError> {
    config.check()?;
    // A process that does not exist is found before anything is written.
    Watch::new(&config.server_pids)?;
    let load = if config.load { Some(load(config)?) } else { None };
    let commands = Commands::new(config.wire, config.value_bytes, mix(config.seed));
    let (workload, distribution) = (config.workload, config.distribution);
    let seed = mix(config.seed ^ 1);
    let generator = Generator::new(workload, distribution, config.key_count, commands, seed);
    let manner = Manner {
        pipeline_depth: config.pipeline_depth,
        pace: config.pace,
        extent: Some(config.extent),
        warm_up: config.warm_up,
        reconnect: config.reconnect,
        ..manner(config)
    };
    let title = format!("workload {workload}");
    let progress = match config.extent {
        _ if !config.progress => Progress::hidden(),
        Extent::Time(time) => Progress::time(&title, time),
        Extent::Operations(count) => Progress::operations(&title, count, 1),
    };
    let watch = Watch::new(&config.server_pids)?;
    let outcome = Client::new(manner, generator, watch, progress)?.run()?;
    let mut report = Report::new(config, load, &outcome);
    if report.operations == 0 {
        let (errors, first) = most_frequent(&outcome.recorder);
        return Err(BenchError::NothingSucceeded { errors, first });
    }
    report.http_failures = disks::join(&config.http, &mut report.longest_gaps);
    if let Some(path) = &config.svg {
        std::fs::write(path, plot::report(&report))
            .map_err(BenchError::system("write the plot"))?;
    }
    Ok(report)
}

/// Writes every key. What a busy server does not do in time is written again, all of it, with fewer
/// commands on their way.
pub(crate) fn load(config: &Config) -> Result<LoadReport, BenchError> {
    let few = Manner { pipeline_depth: 1, ..manner(config) };
    let fewest = Manner { connection_count: 1, ..few.clone() };
    let mut last = load_once(config, manner(config));
    for manner in [few, fewest] {
        if !matches!(last, Err(BenchError::Load { .. })) {
            break;
        }
        last = load_once(config, manner);
    }
    last
}

fn load_once(config: &Config, manner: Manner) -> Result<LoadReport, BenchError> {
    let commands = Commands::new(config.wire, config.value_bytes, mix(config.seed));
    let seed = mix(config.seed ^ 2);
    let loader = Loader::new(config.key_count, config.value_bytes, commands, seed);
    let progress = match config.progress {
        true => Progress::operations("load", config.key_count, loader.keys_per_command()),
        false => Progress::hidden(),
    };
    let outcome = Client::new(manner, loader, Watch::new(&[])?, progress)?.run()?;
    let (failed, first) = most_frequent(&outcome.recorder);
    if failed > 0 {
        return Err(BenchError::Load { failed, sent: outcome.command_count, first });
    }
    if outcome.was_stopped {
        return Err(BenchError::Interrupted);
    }
    let seconds = outcome.recorder.window_seconds();
    let keys = config.key_count;
    Ok(LoadReport { keys, seconds, keys_per_second: ratio(keys as f64, seconds) })
}

/// The manner of a load phase, which a run adapts.
fn manner(config: &Config) -> Manner {
    Manner {
        endpoints: config.endpoints.clone(),
        wire: config.wire,
        keyspace: config.keyspace.clone(),
        connection_count: config.connection_count,
        pipeline_depth: match config.wire {
            Wire::Resp => LOAD_PIPELINE,
            Wire::ZooKeeper => LOAD_PIPELINE_SINGLE,
        },
        pace: Pace::Closed,
        extent: None,
        warm_up: Duration::ZERO,
        interval: config.interval,
        reconnect: false,
        stop: config.stop.clone(),
    }
}

/// How many operations failed, and the first word of most of them.
pub(crate) fn most_frequent(recorder: &Recorder) -> (u64, String) {
    let errors = recorder.errors();
    let most = errors.iter().max_by_key(|(_, count)| **count);
    let first = most.map_or_else(|| "no reply at all".to_owned(), |(word, _)| word.clone());
    (errors.values().sum(), first)
}
