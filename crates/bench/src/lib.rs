//! Load generators: one for servers that speak RESP, this one's or any other's, and TPC-C's
//! transactions over the native client ([`tpcc`]).
//!
//! A measurement ([`run`]) writes all keys (the load phase), runs a mix of reads and writes like
//! YCSB's (warm-up, then the measured window, then a short wait for replies), and reports
//! throughput, latencies of reads and writes apart, errors, the longest gaps without a success, and
//! what servers and client used. A comparison ([`compare`]) measures two servers in turn.
//!
//! | file | idea |
//! |---|---|
//! | `config`, `args`, `compare_args`, `ceiling_args` | what to measure; the same as options on the command line |
//! | `distribution`, `workload`, `command` | which key, which operation, which bytes |
//! | `client/` | the event loop: connections, sending, replies, reconnecting |
//! | `scanner` | replies without copying them |
//! | `schedule` | the timetable of an open loop |
//! | `record`, `gaps`, `usage`, `findings` | counting while it runs, and what comes of it |
//! | `longest`, `disks` | the longest gaps, and what hosts say that their disks did in them |
//! | `plot`, `progress` | charts of a report and a progress bar |
//! | `child`, `rounds` | servers to start, and measuring some of them in turn |
//! | `compare`, `ceiling` | two of them side by side; what an operation costs on each |
//! | `zookeeper/` | ZooKeeper's wire, an ensemble to compare with, its table, and fail-over |
//! | `tpcc/` | TPC-C's tables and transactions; it shares records, reports and progress |
//! | `transactions/` | YCSB's mixes in transactions of several operations, also through the native client |
//!
//! It runs on Linux only: it waits with epoll and timerfd and reads `/proc`.

mod args;
mod client;
mod config;
mod error;
mod load;
mod progress;
mod report;
mod rounds;
mod run;
mod scanner;
mod tpcc;
mod transactions;
mod zookeeper;

pub use args::{BenchArgs, BenchCommand, DataArgs, Format};
pub use config::{CONNECTION_COUNT_MAX, Config, Extent, Pace, Stop, Wire};
pub use error::BenchError;
pub use load::distribution::Distribution;
pub use load::mixes::Workload;
pub use report::findings::{ClassReport, CurvePoint, LoadReport, Report};
pub use report::longest::{DiskStep, GapReport, LongGap};
pub use report::record::{Class, Interval};
pub use report::spread::Spread;
pub use report::usage::ServerUsage;
pub use rounds::ceiling::{Ceiling, CeilingConfig, CeilingRow, Kind, ceiling};
pub use rounds::ceiling_args::CeilingArgs;
pub use rounds::compare::{CompareConfig, Comparison, Row, Side, compare};
pub use rounds::compare_args::CompareArgs;
pub use rounds::turns::Target;
pub use run::run;
pub use scanner::Malformed;
pub use tpcc::config::{TpccArgs, TpccConfig};
pub use tpcc::driven::{AttemptEnd, DrivenTerminal};
pub use tpcc::report::{KindReport, TpccReport};
pub use tpcc::run::tpcc;
pub use tpcc::{AuditReport, Kind as TpccKind, Rule, Sizes, Violation};
pub use transactions::config::{Asking, TransactionsConfig};
pub use transactions::draws::{Draws, Step, key};
pub use transactions::gathering::{Gathered, Gathering};
pub use transactions::report::TransactionsReport;
pub use transactions::run::transactions;
pub use zookeeper::args::{Measured, ZooKeeperArgs};
pub use zookeeper::ensemble::EnsembleConfig;
pub use zookeeper::failover::{Failover, FailoverRow};
pub use zookeeper::table::{Table, TableRow};
