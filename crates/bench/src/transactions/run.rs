//! A run of transactions from the first connection to the report.

use std::rc::Rc;
use std::time::Duration;

use quorate_client::Client;
use quorate_kernel::rng::mix;
use quorate_kernel::time::{Span, Time};
use tokio::runtime::Builder;
use tokio::task::{JoinSet, LocalSet};

use super::client::Asker;
use super::config::TransactionsConfig;
use super::draws::Draws;
use super::floor::Floor;
use super::report::TransactionsReport;
use crate::error::BenchError;
use crate::report::usage::Watch;
use crate::run::most_frequent;
use crate::tpcc::TERMINALS_PER_CLIENT;

/// Runs the clients, and reports.
///
/// # Errors
/// See [`BenchError`]: if all have failed there is no report. If none has ended there is one.
pub fn transactions(config: &TransactionsConfig) -> Result<TransactionsReport, BenchError> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(BenchError::system("start a runtime"))?;
    LocalSet::new().block_on(&runtime, measure(config))
}

async fn measure(config: &TransactionsConfig) -> Result<TransactionsReport, BenchError> {
    let floor = Rc::new(Floor::default());
    let mut watch = Watch::new(&config.server_pids)?;
    let mut working = JoinSet::new();
    for asker in askers(config, &floor)? {
        working.spawn_local(asker.work());
    }
    let opens_at = floor.now() + span(config.warm_up);
    let closes_at = opens_at + span(config.window);
    until(&floor, opens_at).await;
    floor.recorder.borrow_mut().open(floor.now());
    watch.open();
    let mut next = opens_at;
    while floor.now() < closes_at && !config.stop.is_raised() {
        next = (next + span(config.interval)).min(closes_at);
        until(&floor, next).await;
        if next < closes_at {
            floor.recorder.borrow_mut().end_interval(floor.now());
            watch.sample();
        }
    }
    floor.recorder.borrow_mut().close(floor.now(), true);
    watch.close();
    floor.is_over.set(true);
    while let Some(ended) = working.join_next().await {
        ended.expect("a client neither panics nor is cancelled");
    }
    let recorder = floor.recorder.borrow();
    let report = TransactionsReport::new(config, &recorder, &watch);
    if report.committed + report.aborted == 0 && report.failed() > 0 {
        let (errors, first) = most_frequent(&recorder);
        return Err(BenchError::NothingSucceeded { errors, first });
    }
    Ok(report)
}

/// The clients; some of them share connections.
fn askers(config: &TransactionsConfig, floor: &Rc<Floor>) -> Result<Vec<Asker>, BenchError> {
    let count = (config.clients as usize).div_ceil(TERMINALS_PER_CLIENT);
    let connect = |_| Client::new(&config.endpoints).map_err(BenchError::Client);
    let connected = (0..count).map(connect).collect::<Result<Vec<Client>, BenchError>>()?;
    let asker = |number: u32| Asker {
        floor: Rc::clone(floor),
        keyspace: connected[number as usize / TERMINALS_PER_CLIENT].keyspace(&config.keyspace),
        draws: Draws::new(
            (config.workload, config.distribution),
            config.key_count,
            config.value_bytes,
            config.length,
            mix(mix(config.seed) ^ u64::from(number)),
        ),
        asking: config.asking,
    };
    Ok((0..config.clients).map(asker).collect())
}

async fn until(floor: &Floor, when: Time) {
    let now = floor.now();
    if now < when {
        tokio::time::sleep(Duration::from_nanos((when - now).0)).await;
    }
}

fn span(time: Duration) -> Span {
    Span(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX))
}
