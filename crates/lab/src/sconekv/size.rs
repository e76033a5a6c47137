//! How large and how long.

use super::SconekvArgs;
use quorate_kernel::engine::Engine;
use quorate_kernel::storage::Durability;
use std::time::Duration;

/// Operations of a transaction (§6.1).
pub const LENGTH: usize = 5;
/// The size of values: YCSB's ten fields of a hundred bytes.
pub const VALUE_BYTES: usize = 1000;

/// What all figures have in common.
#[derive(Clone, Debug)]
pub struct Size {
    /// The first port of real clusters.
    pub port_base: u16,
    /// Real hosts.
    pub hosts: u32,
    /// Members of each group.
    pub replicas: u32,
    /// How durable real keyspaces are, unless a row says otherwise.
    pub durability: Durability,
    /// Keys of YCSB on real hosts.
    pub keys: u64,
    /// Numbers of clients.
    pub clients: Vec<u32>,
    /// Clients where one thing after the other is switched.
    pub switched_clients: u32,
    /// Keys of the marks.
    pub marked_keys: u64,
    /// Numbers of clients of the marks.
    pub marked_clients: Vec<u32>,
    /// How often a host is killed for the gaps.
    pub kills: u32,
    /// How long a run is measured.
    pub window: Duration,
    /// What runs before anything counts.
    pub warm_up: Duration,
    /// Warehouses of TPC-C.
    pub warehouses: u16,
    /// What its customers, orders and items are divided by.
    pub scale: u32,
    /// Clients of TPC-C, and of the crashes.
    pub terminals: Vec<u32>,
    /// How long a run goes on before a host is killed, and thrice as long after.
    pub before: Duration,
    /// Numbers of simulated nodes.
    pub nodes: Vec<usize>,
    /// Simulated clients for each twenty nodes.
    pub clients_per_twenty: usize,
    /// Simulated keys for each twenty nodes.
    pub keys_per_twenty: u64,
    /// Simulated terminals of TPC-C for each twenty nodes.
    pub terminals_per_twenty: usize,
    /// Simulated warehouses for each twenty nodes.
    pub warehouses_per_twenty: usize,
    /// What their customers, orders and items are divided by.
    pub simulated_scale: u32,
    /// Simulated milliseconds that count.
    pub simulated_ms: u64,
}

impl Size {
    /// What is asked for.
    #[must_use]
    pub fn of(args: &SconekvArgs) -> Size {
        let full = if args.quick { Size::quick() } else { Size::full() };
        let seconds = args.seconds.map(Duration::from_secs);
        let or = |asked: &[u32], usual: Vec<u32>| match asked {
            [] => usual,
            asked => asked.to_vec(),
        };
        Size {
            port_base: args.port_base,
            durability: args.durability,
            hosts: args.hosts.unwrap_or(full.hosts),
            clients: or(&args.clients, full.clients),
            marked_clients: or(&args.clients, full.marked_clients),
            window: seconds.unwrap_or(full.window),
            nodes: match &args.nodes[..] {
                [] => full.nodes,
                asked => asked.iter().map(|count| *count as usize).collect(),
            },
            ..full
        }
    }

    fn full() -> Size {
        Size {
            port_base: 0,
            hosts: 6,
            replicas: 3,
            durability: Durability::Sync,
            keys: 10_000,
            clients: vec![1, 4, 16, 64, 128],
            switched_clients: 32,
            marked_keys: 100_000,
            marked_clients: vec![16, 64],
            kills: 20,
            window: Duration::from_secs(10),
            warm_up: Duration::from_secs(2),
            warehouses: 4,
            scale: 10,
            terminals: vec![4, 16, 32],
            before: Duration::from_secs(5),
            nodes: vec![20, 40, 80],
            clients_per_twenty: 256,
            keys_per_twenty: 10_000,
            terminals_per_twenty: 64,
            warehouses_per_twenty: 64,
            simulated_scale: 100,
            simulated_ms: 300,
        }
    }

    /// What shows that everything works.
    fn quick() -> Size {
        Size {
            hosts: 3,
            keys: 500,
            clients: vec![2, 8],
            switched_clients: 8,
            marked_keys: 500,
            marked_clients: vec![2, 8],
            kills: 2,
            window: Duration::from_millis(600),
            warm_up: Duration::from_millis(200),
            warehouses: 1,
            scale: 100,
            terminals: vec![2, 8],
            before: Duration::from_secs(2),
            nodes: vec![8, 16],
            clients_per_twenty: 20,
            keys_per_twenty: 500,
            terminals_per_twenty: 8,
            warehouses_per_twenty: 2,
            simulated_ms: 30,
            ..Size::full()
        }
    }

    /// Groups of the real hosts: as many as they fill, as in the paper.
    #[must_use]
    pub fn groups(&self) -> u32 {
        (self.hosts / self.replicas).max(1)
    }

    /// A keyspace of real hosts, as `--keyspace` takes it.
    #[must_use]
    pub fn spec(&self, name: &str, engine: &Engine, groups: u32, durability: Durability) -> String {
        let (engine, replicas) = (engine.name, self.replicas);
        format!("{name}={engine},replicas={replicas},groups={groups},durability={durability}")
    }

    /// What real clusters are, for a page.
    #[must_use]
    pub fn words(&self) -> String {
        format!(
            "{} real hosts of one cluster, on loopback; {} replicas of each key, {}; durability \
             `{}`",
            self.hosts,
            self.replicas,
            groups(self.groups()),
            self.durability
        )
    }
}

/// A number of groups in words.
#[must_use]
pub fn groups(count: u32) -> String {
    match count {
        1 => "one group".to_owned(),
        more => format!("{more} groups"),
    }
}
