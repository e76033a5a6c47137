//! `server`: one host, from its data directory.

mod files;
mod ready;

use self::files::Shares;
pub use self::ready::ReadyLine;
use self::ready::announce;
use super::{doors, join};
use crate::config::values::path_parser;
use crate::config::{Config, Environment, Loaded, Sources};
use crate::exit::{Code, Failure};
use crate::logging;
use crate::output::Output;
use quorate_doors::DOORS;
use quorate_host::metrics::Shared;
use quorate_host::proof::Secrets;
use quorate_host::ring::founding::ring_hosts;
use quorate_host::shutdown::Shutdown;
use quorate_host::{DoorOptions, HostError};
use quorate_kernel::ring::RingHost;
use quorate_store::{Directory, Identity};
use rustix::fs::Mode;
use rustix::process::{Pid, Signal};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use tokio::signal::unix::{SignalKind, signal};

/// The arguments of `server`.
#[derive(Debug, clap::Args)]
#[command(after_help = "When the host is ready it prints its addresses as one line. SIGTERM and \
                        SIGINT stop it.\nThe settings in quorate.toml in the data directory are \
                        read first.\n\nA host joins a running cluster with --join and \
                        the cluster's secret:\n  \
                        quorate server --data host-4 --cluster 10.0.0.4:7411 \\\n    \
                        --join 10.0.0.1:7412 --secret-file cluster.secret\n\n\
                        Example: quorate server --data quorate-data/host-2")]
pub struct Args {
    #[command(flatten)]
    settings: Settings,
    #[command(flatten)]
    join: join::JoinArgs,
    /// Take a directory that was moved or copied after its host was killed, if every other host
    /// agrees. Only if the original is gone for good and was not started since
    #[arg(long)]
    moved: bool,
    #[command(flatten)]
    output: Output,
    /// The process to end with
    #[arg(long, hide = true, value_name = "PID")]
    exit_with: Option<u32>,
}

/// The flags that are settings.
#[derive(Debug, clap::Args)]
pub struct Settings {
    /// The data directory
    #[arg(long, value_name = "DIR", value_parser = path_parser())]
    data: Option<PathBuf>,
    /// A file of settings; of two that set the same, the later one counts
    #[arg(long, value_name = "FILE")]
    config: Vec<PathBuf>,
    /// Where the RESP door listens
    #[arg(long, value_name = "ADDRESS")]
    resp: Option<SocketAddr>,
    /// Where the door for ZooKeeper's clients listens
    #[arg(long, value_name = "ADDRESS")]
    zookeeper: Option<SocketAddr>,
    /// Where the HTTP door listens
    #[arg(long, value_name = "ADDRESS")]
    http: Option<SocketAddr>,
    /// Where the gRPC door listens
    #[arg(long, value_name = "ADDRESS")]
    grpc: Option<SocketAddr>,
    /// Where the door for other hosts listens
    #[arg(long, value_name = "ADDRESS")]
    cluster: Option<SocketAddr>,
    /// Allow doors of clients that other machines can reach, without encryption or authentication
    #[arg(long)]
    insecure: bool,
    /// How much is logged: error, warn, info, debug or trace
    #[arg(long, value_name = "LEVEL")]
    log_level: Option<String>,
    /// How log lines are written: text, json or auto
    #[arg(long, value_name = "FORMAT")]
    log_format: Option<String>,
    /// Any setting
    #[arg(long = "set", value_name = "SECTION.NAME=VALUE", value_parser = parse_set)]
    set: Vec<(String, String)>,
}

fn parse_set(text: &str) -> Result<(String, String), String> {
    let (path, value) = text.split_once('=').ok_or("expected SECTION.NAME=VALUE")?;
    Ok((path.trim().to_owned(), value.trim().to_owned()))
}

impl Settings {
    /// Everything the configuration is read from.
    #[must_use]
    pub fn sources(&self) -> Sources {
        let mut flags: Vec<(&'static str, String, String)> = Vec::new();
        let mut flag = |name, path: &str, text: Option<String>| {
            flags.extend(text.map(|text| (name, path.to_owned(), text)));
        };
        for (path, value) in &self.set {
            flag("--set", path, Some(value.clone()));
        }
        flag("--data", "node.data", self.data.as_ref().map(|path| path.display().to_string()));
        flag("--resp", "resp.bind", self.resp.map(|address| address.to_string()));
        let zookeeper = self.zookeeper.map(|address| address.to_string());
        flag("--zookeeper", "zookeeper.bind", zookeeper);
        flag("--http", "http.bind", self.http.map(|address| address.to_string()));
        flag("--grpc", "grpc.bind", self.grpc.map(|address| address.to_string()));
        flag("--cluster", "cluster.bind", self.cluster.map(|address| address.to_string()));
        flag("--insecure", "node.insecure", self.insecure.then(|| String::from("true")));
        flag("--log-level", "log.level", self.log_level.clone());
        flag("--log-format", "log.format", self.log_format.clone());
        Sources { files: self.config.clone(), environment: Environment::of_process(), flags }
    }
}

/// Runs `server`, until the host is told to stop or must.
///
/// # Errors
/// The host could not start, or had to stop; see [`HostError`].
pub fn run(args: &Args) -> Result<(), Failure> {
    if let Some(parent) = args.exit_with {
        end_with(parent)?;
    }
    let loaded = Loaded::read(&args.settings.sources())?;
    let config = loaded.config;
    config.check_exposure()?;
    config.check_doors()?;
    logging::start(config.log.level, config.log.format);
    let shares = files::share(&config)?;
    // What the database creates too is its owner's alone.
    rustix::process::umask(Mode::RWXG | Mode::RWXO);
    join::prepare(&args.join, &config)?;
    let directory = open(&config, args.moved)?;
    let hosts = hosts(&config, directory.identity())?;
    let result = serve(args, &config, shares, directory, hosts)?;
    match &result {
        Ok(()) => tracing::info!(event = "host_stopped"),
        Err(error) => tracing::error!(event = "host_failed", %error),
    }
    Ok(result?)
}

/// Opens the data directory, if this host can serve what is in it.
fn open(config: &Config, is_moved: bool) -> Result<Directory, Failure> {
    let directory = match is_moved {
        true => Directory::open_moved(&config.node.data, None)?,
        false => Directory::open(&config.node.data, None)?,
    };
    let identity = directory.identity();
    logging::set_node(&identity.node.to_string());
    if directory.opened_to_others() > 0 {
        let count = directory.opened_to_others();
        tracing::warn!(event = "closed_to_others", count, "others could read the data directory");
    }
    Ok(directory)
}

/// Opens the doors beside the host and runs it until it ends; how it ended.
fn serve(
    args: &Args,
    config: &Config,
    shares: Shares,
    directory: Directory,
    hosts: Vec<RingHost>,
) -> Result<Result<(), HostError>, Failure> {
    let identity = directory.identity();
    let shared = Arc::new(shared(identity, &directory));
    let shutdown = Arc::new(Shutdown::default());
    let (host, data) = (identity.host, std::path::absolute(directory.path())?);
    let start = directory.start().0;
    tracing::info!(event = "host_starting", host, start, data = %data.display());
    let (announced, asked) = (Arc::clone(&shared), Arc::clone(&shutdown));
    let is_json = args.output.is_json();
    let secrets = Arc::new(Secrets::of(directory.path(), identity)?);
    let watched = Arc::clone(&secrets);
    let bound = Arc::new(OnceLock::new());
    let found = Arc::clone(&bound);
    let beside = async move {
        tokio::select! {
            () = announce(&announced, &data, &found, is_json) => {}
            () = watched.watch() => {}
            () = stop_on_signal(&asked) => {}
        }
    };
    let (calls, inbox) = quorate_host::calls();
    let connections = (shares.http, shares.grpc);
    let (admin, grpc) =
        doors::open(config, connections, identity, &secrets, &shared, calls, beside)?;
    bound.set((admin.address(), grpc.address())).expect("the addresses are set once");
    let result = quorate_host::run(quorate_host::Options {
        directory,
        doors: client_doors(config, &shares.doors),
        beside: vec![("http", admin.address()), ("grpc", grpc.address())],
        cluster: config.cluster.bind,
        hosts,
        secrets,
        encrypt: config.cluster.encrypt,
        calls: inbox,
        balance: config.cluster.balance.then_some(config.cluster.balance_every.0),
        roll: config.membership.roll.kept(),
        transfer_rate: config.cluster.transfer_rate.0,
        request_timeout: config.limits.request_timeout.0,
        cache_bytes_max: usize::try_from(config.store.record_cache.0).unwrap_or(usize::MAX),
        store: store_options(config, shares.store),
        shared,
        shutdown,
    });
    drop((grpc, admin));
    Ok(result)
}

/// The doors of clients on the core thread, each with so many clients at most.
fn client_doors(config: &Config, most: &[usize]) -> Vec<DoorOptions> {
    let doors = DOORS.iter().zip(&config.doors).zip(most);
    let options = doors.map(|((door, settings), clients_max)| DoorOptions {
        door,
        bind: settings.bind,
        clients_max: *clients_max,
        clients_bytes_max: usize::try_from(settings.memory_max.0).unwrap_or(usize::MAX),
    });
    options.collect()
}

fn store_options(config: &Config, files_max: usize) -> quorate_store::Options {
    quorate_store::Options {
        cache_bytes: config.store.cache.0,
        memtable_bytes: config.store.memtable.0,
        segment_bytes: config.store.log_segment.0,
        log_bytes_max: config.store.log_max.0,
        worker_threads: config.store.worker_threads as usize,
        sync_delay: config.store.sync_delay.0,
        files_max,
    }
}

/// The hosts of the directory, where the configuration or else the identity says they are.
fn hosts(config: &Config, identity: &Identity) -> Result<Vec<RingHost>, Failure> {
    config.check_addresses(identity)?;
    let given = &config.cluster.addresses.0;
    let mut hosts = ring_hosts(&identity.hosts);
    for (host, address) in hosts.iter_mut().zip(given) {
        host.address.clone_from(address);
    }
    if let Some(own) = config.cluster.advertise.0.first()
        && let Some(host) = hosts.iter_mut().find(|host| host.who.node == identity.node)
    {
        host.address.clone_from(own);
    }
    Ok(hosts)
}

fn shared(identity: &Identity, directory: &Directory) -> Shared {
    let me = (identity.host, identity.node, directory.start());
    Shared::new(identity.cluster, me, Vec::new())
}

/// Has the operating system end this process when its parent ends, however that happens. A host of
/// `dev` that was stopped or is stuck must go too, so it is killed, which a host must survive.
fn end_with(parent: u32) -> Result<(), Failure> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| Failure::failed(format!("cannot end with process {parent}: {error}")))?;
    // The parent may have ended before the wish was heard.
    let is_there = rustix::process::getppid().map(Pid::as_raw_nonzero);
    if is_there.is_some_and(|pid| u32::try_from(pid.get()) == Ok(parent)) {
        Ok(())
    } else {
        Err(Failure::failed(format!("process {parent} has ended")))
    }
}

/// Asks the host to stop on the first signal, and ends the process on the second.
async fn stop_on_signal(shutdown: &Shutdown) {
    let signals =
        [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal);
    let [Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)] = signals else {
        tracing::error!(event = "signals_not_caught", "the host can only be killed");
        return;
    };
    while {
        tokio::select! {
            _ = terminate.recv() => false,
            _ = interrupt.recv() => false,
            // The end of a terminal is not the end of a host, and tools send it to reread settings.
            _ = hangup.recv() => true,
        }
    } {
        tracing::info!(event = "hangup_ignored", "settings are read when a host starts");
    }
    tracing::info!(event = "host_stopping");
    shutdown.request();
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    std::process::exit(Code::Interrupted as i32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_a_path_and_a_value() {
        let set = parse_set("store.cache = 64MiB");
        assert_eq!(set, Ok((String::from("store.cache"), String::from("64MiB"))));
        let nested = parse_set("a.b=c=d").expect("the first sign counts");
        assert_eq!(nested.1, "c=d");
        assert!(parse_set("store.cache").is_err());
    }
}
