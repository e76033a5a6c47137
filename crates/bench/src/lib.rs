//! A load generator for servers that speak RESP, this one's or any other's.
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
//! | `record`, `usage`, `report` | counting while it runs, and what comes of it |
//! | `plot`, `progress` | charts of a report and a progress bar |
//! | `child`, `rounds` | servers to start, and measuring some of them in turn |
//! | `compare`, `ceiling` | two of them side by side; what an operation costs on each |
//!
//! It runs on Linux only: it waits with epoll and timerfd and reads `/proc`.

mod args;
mod ceiling;
mod ceiling_args;
mod child;
mod client;
mod command;
mod compare;
mod compare_args;
mod config;
mod distribution;
mod error;
mod plot;
mod progress;
mod record;
mod report;
mod rounds;
mod run;
mod scanner;
mod schedule;
mod spread;
mod usage;
mod workload;

pub use args::{BenchArgs, BenchCommand, DataArgs, Format};
pub use ceiling::{Ceiling, CeilingConfig, CeilingRow, Kind, ceiling};
pub use ceiling_args::CeilingArgs;
pub use compare::{CompareConfig, Comparison, Row, Side, compare};
pub use compare_args::CompareArgs;
pub use config::{CONNECTION_COUNT_MAX, Config, Extent, Pace, Stop};
pub use distribution::Distribution;
pub use error::BenchError;
pub use record::Interval;
pub use report::{ClassReport, CurvePoint, GapReport, LoadReport, Report};
pub use rounds::Target;
pub use run::run;
pub use scanner::Malformed;
pub use spread::Spread;
pub use usage::ServerUsage;
pub use workload::Workload;
