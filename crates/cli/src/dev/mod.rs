//! `dev`: a cluster on this machine, each host a process of its own, in one command.
//!
//! The hosts are `server` processes of this executable in process groups of their own, so that
//! Ctrl-C reaches `dev` alone and a script can kill, stop or restart one host like an operator
//! would. `dev` never restarts a host on its own; `dev ctl` has it do so, and more.
//!
//! | module | what it holds |
//! |---|---|
//! | [`prepare`] | the directories, made or found again, and free ports |
//! | [`hosts`] | the processes: started, awaited, stopped |
//! | [`ctl`], [`steer`] | `dev ctl`: orders to a running cluster, and how they are carried out |
//! | [`cuts`] | what frames between hosts meet on purpose |
//! | [`report`] | what is printed when the cluster is ready |

pub mod ctl;
pub mod cuts;
pub mod hosts;
pub mod prepare;
pub mod report;
pub mod steer;

use crate::config::values::path_parser;
use crate::exit::{Code, Failure};
use crate::output::Output;
use crate::provision::keyspace;
use hosts::{Event, Hosts};
use prepare::Prepared;
use quorate_kernel::keyspace::NewKeyspace;
use quorate_kernel::storage::Durability;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::time::Duration;
use steer::Steering;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The port from which those of a new cluster are counted.
pub const PORT_BASE: u16 = 7400;
/// How many hosts a new cluster has.
pub const HOSTS: u32 = 3;
/// How many hosts a new cluster has at most.
pub const HOSTS_MAX: u32 = 32;
/// How long a stopping host may take to finish what is in hand and sync.
const STOP_MAX: Duration = Duration::from_secs(60);

/// The arguments of `dev`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Started again on the same directory, the cluster has its data.\n\
                        With --format json the first line printed says where the hosts are.\n\n\
                        Example: quorate dev --hosts 5 --durability memory --data /tmp/quorate")]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    /// What else than to start a cluster
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Where the hosts keep their data, in host-1, host-2 and so on
    #[arg(long, default_value = "quorate-data", value_name = "DIR", value_parser = path_parser())]
    pub data: PathBuf,
    /// How many hosts a new cluster has: 1 to 32 [default: 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(HOSTS_MAX)))]
    #[arg(value_name = "COUNT")]
    pub hosts: Option<u32>,
    /// Host i has port PORT + 10 i + 1 for other hosts, + 2 for HTTP, + 3 for RESP,
    /// + 4 for gRPC [default: 7400]
    #[arg(long, value_name = "PORT")]
    pub port_base: Option<u16>,
    /// How durable a new cluster's data is before it is acknowledged: sync, periodic=50ms or
    /// memory [default: sync]
    #[arg(long, value_name = "LEVEL")]
    pub durability: Option<Durability>,
    /// A keyspace of a new cluster, once for each, as `init` takes it: NAME=ENGINE[,SETTING=VALUE]…
    /// [default: one of each engine]
    #[arg(long = "keyspace", value_name = "SPEC", value_parser = keyspace::parse)]
    pub keyspaces: Vec<NewKeyspace>,
    /// How many places on the ring each host of a new cluster has [default: 1]
    #[arg(long, value_name = "COUNT")]
    pub tokens: Option<usize>,
    /// A setting for every host
    #[arg(long = "set", value_name = "SECTION.NAME=VALUE")]
    pub set: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc here would replace the command's own")]
    pub output: Output,
}

/// What `dev` can do beside starting a cluster.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Steer a running cluster: add, kill, freeze, part and heal hosts
    Ctl(ctl::CtlArgs),
}

/// Runs `dev`, until it is told to stop.
///
/// # Errors
/// The cluster could not start, or a host did not stop as it should.
pub fn run(args: &Args) -> Result<(), Failure> {
    if let Some(Command::Ctl(args)) = &args.command {
        return ctl::run(args);
    }
    let prepared = prepare::prepare(args)?;
    // The hosts end with the thread that started them, so all of this stays on the main thread.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(drive(args, &prepared))
}

async fn drive(args: &Args, prepared: &Prepared) -> Result<(), Failure> {
    let mut signals = Signals::catch()?;
    let mut hosts = Hosts::start(prepared, &args.set)?;
    let started = tokio::select! {
        started = hosts.ready() => Some(started),
        () = signals.next() => None,
    };
    match started {
        Some(Ok(lines)) => {
            let text = if args.output.is_json() {
                report::json(prepared, &lines)
            } else {
                report::text(prepared, &lines)
            };
            let shown = stdout().write_all(text.as_bytes()).and_then(|()| stdout().flush());
            if shown.is_ok() {
                let mut steering = Steering::open(&prepared.data);
                watch(&mut hosts, &mut steering, &mut signals).await;
            }
            stop(&mut hosts, &mut signals).await?;
            Ok(shown?)
        }
        Some(Err(failure)) => {
            // Why the cluster could not start matters more than how the others ended.
            let _ = stop(&mut hosts, &mut signals).await;
            Err(failure)
        }
        None => stop(&mut hosts, &mut signals).await,
    }
}

/// Waits for a signal, says when a host ends, and carries out orders.
async fn watch(hosts: &mut Hosts, steering: &mut Steering, signals: &mut Signals) {
    loop {
        tokio::select! {
            () = signals.next() => return,
            event = hosts.next() => if let Event::Ended { number, pid, how } = event {
                let again = report::start_again(&hosts.directory(number));
                eprintln!("host {number} (process {pid}) ended: {how}; to start it again: {again}");
            },
            stream = steering.accept() => tokio::select! {
                () = signals.next() => return,
                () = steering.serve(stream, hosts) => {}
            },
        }
    }
}

/// Stops every host once. A second signal while they stop ends everything at once.
async fn stop(hosts: &mut Hosts, signals: &mut Signals) -> Result<(), Failure> {
    tokio::select! {
        stopped = tokio::time::timeout(STOP_MAX, hosts.stop()) => match stopped {
            Ok(result) => result,
            Err(_) => {
                let late = hosts.running().join(", ");
                Err(Failure::failed(format!(
                    "{late} did not stop within {} s and will be killed",
                    STOP_MAX.as_secs()
                )))
            }
        },
        () = signals.next() => Err(Failure::new(Code::Interrupted, "the hosts are killed")),
    }
}

/// The signals that stop `dev`.
struct Signals([Signal; 3]);

impl Signals {
    fn catch() -> Result<Signals, Failure> {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let [interrupt, terminate, hangup] = kinds.map(signal);
        Ok(Signals([interrupt?, terminate?, hangup?]))
    }

    async fn next(&mut self) {
        let [interrupt, terminate, hangup] = &mut self.0;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
    }
}
