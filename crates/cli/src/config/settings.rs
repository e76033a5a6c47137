//! The typed settings of a host and their defaults.

use super::values::{Addresses, Length, LogFormat, LogLevel, Names, RollKind, Size};
use quorate_doors::{DOORS, Door};
use quorate_host::proof::Encrypt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

/// All settings of a host. What the whole cluster must agree on is not here but in the directory's
/// identity, which `quorate init` wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The host itself.
    pub node: Node,
    /// The doors of clients on the core thread, in the order of [`DOORS`].
    pub doors: Vec<ClientDoor>,
    /// The door between hosts.
    pub cluster: Cluster,
    /// Who takes part in the cluster.
    pub membership: Membership,
    /// The HTTP door.
    pub http: Http,
    /// The gRPC door.
    pub grpc: Grpc,
    /// What a host may use for its data.
    pub store: Store,
    /// Bounds.
    pub limits: Limits,
    /// What a host says while it runs.
    pub log: Log,
    /// What only clusters on one machine want.
    pub dev: Dev,
}

/// The host itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// The data directory.
    pub data: PathBuf,
    /// Whether a door may be bound to an address other machines can reach.
    pub insecure: bool,
}

/// A door of clients on the core thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientDoor {
    /// Where it listens.
    pub bind: SocketAddr,
    /// The most clients connected at once.
    pub clients_max: u32,
    /// The most memory that they may take together; 0 is a quarter of the machine's.
    pub memory_max: Size,
}

/// The door between hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cluster {
    /// Where it listens.
    pub bind: SocketAddr,
    /// Where the hosts of the cluster are found, in the order of their numbers; empty means where
    /// `init` said.
    pub addresses: Addresses,
    /// Where the other hosts find this one, if that is not what `addresses` or the directory say.
    pub advertise: Addresses,
    /// Which connections to other hosts are encrypted.
    pub encrypt: Encrypt,
    /// Whether it moves, adds and gives up tokens to even out the load.
    pub balance: bool,
    /// How often it looks at the load for that.
    pub balance_every: Length,
    /// How many bytes a second it fetches at most when data moves; 0 is no limit.
    pub transfer_rate: Size,
}

/// Who takes part in the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Who says so.
    pub roll: RollKind,
}

/// The HTTP door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http {
    /// Where it listens.
    pub bind: SocketAddr,
    /// The names of this host that requests may be for, besides those that are known.
    pub hosts: Names,
}

/// The gRPC door.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grpc {
    /// Where it listens.
    pub bind: SocketAddr,
    /// The most connections at once.
    pub clients_max: u32,
}

/// What a host may use for its data: memory and disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// The memory for blocks read from the disk.
    pub cache: Size,
    /// The memory for records; 0 is a tenth of the machine's.
    pub record_cache: Size,
    /// The size of one memtable.
    pub memtable: Size,
    /// The most disk space for the log.
    pub log_max: Size,
    /// The size of one segment of the log.
    pub log_segment: Size,
    /// The threads that merge tables.
    pub worker_threads: u32,
    /// A delay added to every sync.
    pub sync_delay: Length,
}

/// Bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// When an operation must have been answered.
    pub request_timeout: Length,
}

/// What a host says while it runs: how much of it, and in which form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// How much is logged.
    pub level: LogLevel,
    /// How lines are written.
    pub format: LogFormat,
}

/// What only clusters on one machine want.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dev {
    /// Whether frames to other hosts may be dropped and delayed on purpose.
    pub faults: bool,
}

const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}

/// The default port of the door between hosts.
pub const CLUSTER_PORT: u16 = 7411;
/// The default port of the HTTP door.
pub const HTTP_PORT: u16 = 7412;
/// The default port of the gRPC door.
pub const GRPC_PORT: u16 = 7414;

impl ClientDoor {
    fn of(door: &Door) -> ClientDoor {
        ClientDoor { bind: loopback(door.port), clients_max: 20_000, memory_max: Size(0) }
    }
}

impl Default for Config {
    fn default() -> Config {
        const MIB: u64 = 1 << 20;
        Config {
            node: Node { data: PathBuf::from("quorate-data"), insecure: false },
            doors: DOORS.iter().map(|door| ClientDoor::of(door)).collect(),
            cluster: Cluster {
                bind: loopback(CLUSTER_PORT),
                addresses: Addresses::default(),
                advertise: Addresses::default(),
                encrypt: Encrypt::Auto,
                balance: false,
                balance_every: Length(Duration::from_secs(60)),
                transfer_rate: Size(0),
            },
            membership: Membership { roll: RollKind::None },
            http: Http { bind: loopback(HTTP_PORT), hosts: Names::default() },
            grpc: Grpc { bind: loopback(GRPC_PORT), clients_max: 1_000 },
            store: Store {
                cache: Size(32 * MIB),
                record_cache: Size(0),
                memtable: Size(64 * MIB),
                log_max: Size(256 * MIB),
                log_segment: Size(64 * MIB),
                worker_threads: 2,
                sync_delay: Length(Duration::ZERO),
            },
            limits: Limits { request_timeout: Length(Duration::from_secs(5)) },
            log: Log { level: LogLevel::Info, format: LogFormat::Auto },
            dev: Dev { faults: false },
        }
    }
}

impl Config {
    /// The doors of clients and operators, all but the cluster door, and where each is to listen.
    #[must_use]
    pub fn client_doors(&self) -> Vec<(&'static str, SocketAddr)> {
        let mut all = vec![("http", self.http.bind)];
        all.extend(
            DOORS.iter().zip(&self.doors).map(|(door, settings)| (door.name, settings.bind)),
        );
        all.push(("grpc", self.grpc.bind));
        all
    }
}
