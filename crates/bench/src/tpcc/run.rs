//! A TPC-C-like run from the first connection to the report.

use std::rc::Rc;
use std::time::Duration;

use quorate_client::Client;
use quorate_kernel::rng::{Rng, mix};
use quorate_kernel::time::Time;
use tokio::runtime::Builder;
use tokio::task::{JoinError, JoinSet, LocalSet};

use crate::config::Extent;
use crate::error::BenchError;
use crate::progress::Progress;
use crate::report::findings::LoadReport;
use crate::report::record::Class;
use crate::report::usage::Watch;
use crate::run::most_frequent;
use crate::tpcc::audit::audit;
use crate::tpcc::config::TpccConfig;
use crate::tpcc::data::draws::Constants;
use crate::tpcc::data::keys::Key;
use crate::tpcc::data::population::Population;
use crate::tpcc::data::rows::{self, LAYOUT, Meta};
use crate::tpcc::inputs::Inputs;
use crate::tpcc::load::load;
use crate::tpcc::report::TpccReport;
use crate::tpcc::tables::Tables;
use crate::tpcc::terminals::{Floor, Terminal, date};

/// Terminals that share the connections of one client: a host takes 128 calls on each.
pub const TERMINALS_PER_CLIENT: usize = 64;

/// Loads the tables if asked to, runs the terminals, checks the conditions, and reports.
///
/// # Errors
/// See [`BenchError`]. Conditions that do not hold are in the report.
pub fn tpcc(config: &TpccConfig) -> Result<TpccReport, BenchError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(BenchError::system("start a runtime"))?;
    LocalSet::new().block_on(&runtime, measure(config))
}

async fn measure(config: &TpccConfig) -> Result<TpccReport, BenchError> {
    let client_count = (config.terminals as usize).div_ceil(TERMINALS_PER_CLIENT);
    let mut tables = Vec::with_capacity(client_count);
    for _ in 0..client_count {
        let client = Client::new(&config.endpoints).map_err(BenchError::Client)?;
        client.learn_routes().await;
        tables.push(Tables::new(&client, &config.keyspace));
    }
    let (meta, loaded) = prepare(config, &tables[0]).await?;
    let mut watch = Watch::new(&[])?;
    let floor = Rc::new(Floor::new(config.extent, writer()?));
    let terminals = open(config, &tables, &floor, &meta).await?;
    conduct(config, &floor, terminals, &mut watch).await?;
    let mut report = {
        let counts = floor.counts.borrow();
        if [Class::Read, Class::Write].iter().all(|of| counts.total.class(*of).success_count == 0) {
            let (errors, first) = most_frequent(&counts.total);
            return Err(BenchError::NothingSucceeded { errors, first });
        }
        TpccReport::new(config, meta.sizes, loaded, &counts, &watch)
    };
    if !report.interrupted {
        let rows = Population::new(meta.sizes, config.seed, 0).row_count();
        let progress = config.progress(|| Progress::rows("check", rows));
        report.audit = Some(audit(&tables[0], meta.sizes, &progress, &config.stop).await?);
    }
    Ok(report)
}

/// Loads the tables, or finds out how large those are that are there.
async fn prepare(
    config: &TpccConfig,
    tables: &Tables,
) -> Result<(Meta, Option<LoadReport>), BenchError> {
    let Some(sizes) = config.load else {
        let read = tables.read(&[Key::Meta]).await;
        let read = read.map_err(|failure| BenchError::Tables(failure.to_string()))?;
        let meta: Option<Meta> = read[0].as_ref().and_then(|value| rows::decode(value));
        let meta = meta.filter(|meta| meta.layout == LAYOUT).ok_or_else(|| config.no_tables())?;
        return Ok((meta, None));
    };
    let population = Population::new(sizes, config.seed, date());
    let meta = Meta { layout: LAYOUT, sizes, name_constant: population.name_constant() };
    let progress = config.progress(|| Progress::rows("load", population.row_count()));
    let loaded = load(tables, population, meta, progress, &config.stop).await?;
    Ok((meta, Some(loaded)))
}

async fn open(
    config: &TpccConfig,
    tables: &[Tables],
    floor: &Rc<Floor>,
    meta: &Meta,
) -> Result<Vec<Terminal>, BenchError> {
    let constants = Constants::of_run(config.seed, meta.name_constant);
    let mut rng = Rng::new(mix(config.seed ^ 1));
    let mut terminals = Vec::new();
    for number in 0..config.terminals {
        let inputs = Inputs::new(meta.sizes, constants, number, rng.fork(u64::from(number)));
        let tables = tables[number as usize / TERMINALS_PER_CLIENT].clone();
        terminals.push(Terminal::open(Rc::clone(floor), tables, inputs, number).await?);
    }
    Ok(terminals)
}

/// Runs the terminals through warm-up and measured window until the last one has ended.
async fn conduct(
    config: &TpccConfig,
    floor: &Floor,
    terminals: Vec<Terminal>,
    watch: &mut Watch,
) -> Result<(), BenchError> {
    let progress = config.progress(|| match config.extent {
        Extent::Time(time) => Progress::time("tpcc", time),
        Extent::Operations(count) => Progress::operations("tpcc", count, 1),
    });
    let mut working = JoinSet::new();
    for terminal in terminals {
        working.spawn_local(terminal.work());
    }
    let begin = floor.counts.borrow().now();
    let opens_at = begin + span(config.warm_up);
    let closes_at = match config.extent {
        Extent::Time(time) => opens_at + span(time),
        Extent::Operations(_) => Time(u64::MAX),
    };
    let mut next = opens_at;
    loop {
        let now = floor.counts.borrow().now();
        if now >= next {
            next = now + span(config.interval);
            if now < closes_at {
                next = next.min(closes_at);
            }
            tick(config, floor, &progress, watch, now, closes_at)?;
        }
        let wait = Duration::from_nanos(if now < next { (next - now).0 } else { 0 });
        match tokio::time::timeout(wait, working.join_next()).await {
            Ok(Some(ended)) => ended_well(ended)?,
            Ok(None) => break,
            Err(_) => {}
        }
    }
    let mut counts = floor.counts.borrow_mut();
    if counts.is_open() {
        let now = counts.now();
        counts.close(now);
        watch.close();
    }
    Ok(())
}

/// Opens and closes the window, ends pieces of the time line, shows progress.
fn tick(
    config: &TpccConfig,
    floor: &Floor,
    progress: &Progress,
    watch: &mut Watch,
    now: Time,
    closes_at: Time,
) -> Result<(), BenchError> {
    let mut counts = floor.counts.borrow_mut();
    let is_stopped = config.stop.is_raised();
    if counts.is_open() {
        if let Some(interval) = counts.end_interval(now) {
            progress.show(&interval);
        }
        if is_stopped || now >= closes_at {
            counts.close(now);
            watch.close();
            floor.is_over.set(true);
        }
    } else if !floor.is_over.get() {
        if is_stopped {
            return Err(BenchError::Interrupted);
        }
        counts.open(now);
        watch.open();
    }
    Ok(())
}

fn ended_well(ended: Result<Result<(), BenchError>, JoinError>) -> Result<(), BenchError> {
    ended.expect("a terminal neither panics nor is cancelled")
}

fn span(time: Duration) -> quorate_kernel::time::Span {
    quorate_kernel::time::Span(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}

/// A number that no other run has, and that is not the load's.
fn writer() -> Result<u64, BenchError> {
    let drawn = getrandom::u64().map_err(|error| BenchError::System {
        action: "draw a random number",
        source: std::io::Error::other(error.to_string()),
    })?;
    Ok(drawn.max(1))
}

impl TpccConfig {
    fn progress(&self, shown: impl Fn() -> Progress) -> Progress {
        if self.progress { shown() } else { Progress::hidden() }
    }
}
