//! How the core thread comes to be: the store is opened, the doors are bound, and the node is put
//! on top.

use super::{Core, note_failure, wall};
use crate::calls::callers::Callers;
use crate::calls::queues::CallsInbox;
use crate::cluster::handshake::Hello;
use crate::cluster::links::{Links, Proofs};
use crate::cluster::meeting::Meeting;
use crate::cluster::refused::Refused;
use crate::disk::{self, Disk, SyncEvery};
use crate::doors::admission::OpenDoor;
use crate::doors::clients::Clients;
use crate::doors::facts;
use crate::doors::listener::Listener;
use crate::io::wake;
use crate::keyspaces::Table;
use crate::operators::answers::Operators;
use crate::pending::PendingRequests;
use crate::refill::Refill;
use crate::token::{CLUSTER, WAKER};
use crate::{HostError, Options, lanes, machine, span};
use mio::{Poll, Waker};
use quorate_doors::Clock;
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;
use quorate_kernel::ring::Ring;
use quorate_kernel::time::Time;
use quorate_node::node::Node;
use quorate_store::{HostRecord, Identity, Opened};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

pub(super) fn system(what: &'static str) -> impl Fn(std::io::Error) -> HostError {
    move |source| HostError::System { what, source }
}

impl Core {
    /// Opens the store, binds the doors and starts the node.
    pub fn start(mut options: Options) -> Result<Core, HostError> {
        let (shared, shutdown) = (Arc::clone(&options.shared), Arc::clone(&options.shutdown));
        let poll = Poll::new().map_err(system("a poller"))?;
        let waker = Waker::new(poll.registry(), WAKER).map(Arc::new).map_err(system("a waker"))?;
        let (cluster, cluster_at) = Listener::open(&poll, "cluster", options.cluster, CLUSTER)?;
        let identity = options.directory.identity().clone();
        let seed = seed()?;
        let doors = doors(&poll, &options, seed)?;
        let opened = open_store(&mut options)?;
        let sync_every = SyncEvery::default();
        let settings = disk::Settings::new(&sync_every, &shared);
        let (reader, recovered, seen) = (opened.reader.clone(), opened.recovered, opened.seen);
        let wake_disk = Arc::clone(&waker);
        let disk = Disk::start(opened.log, opened.reader, recovered, settings, wake_disk)
            .map_err(system("the disk thread"))?;
        let found: Vec<(&str, SocketAddr)> = doors
            .iter()
            .map(|door| (door.cells.name, door.cells.address))
            .chain(options.beside.iter().copied())
            .collect();
        let lanes = lanes::of(&options, cluster_at, &found)?;
        let me = options.directory.incarnation();
        let cache_bytes_max = match options.cache_bytes_max {
            0 => machine::memory_bytes() / 10,
            set => set,
        };
        let node = Node::new(me, seed, recovered, Box::new(reader), lanes)
            .with_cache(cache_bytes_max)
            .with_opener(lanes::opener(&options));
        let hello = Hello::first(&identity, me, seed);
        let clients = Clients::new(doors, Arc::clone(&shared), seed);
        let numbers = numbers(&identity);
        let past = options.directory.past().clone();
        let met =
            (Meeting::new(me, hello.run, past, options.directory.is_moved()), seen, recovered);
        let proofs = Proofs::new(options.secrets, options.encrypt);
        let links = Links::new(hello, &options.hosts, &numbers, met, proofs, Arc::clone(&shared));
        let CallsInbox { clients: from_clients, operators, calls } = options.calls;
        calls.set_wake(wake(&waker));
        let operators = Operators::new(operators, Ring::new(0, options.hosts), numbers);
        let callers = Callers::new(from_clients, calls, me);
        let epoch = Instant::now();
        shutdown.on_request(wake(&waker));
        shared.doors_open(cluster_at, clients.doors());
        Ok(Core {
            poll,
            cluster,
            clients,
            links,
            operators,
            callers,
            pending: PendingRequests::new(epoch, span(options.request_timeout)),
            node,
            disk,
            directory: options.directory,
            refill: Refill::default(),
            run: hello.run,
            table: Table::default(),
            fresh: None,
            sync_every,
            answers: Vec::new(),
            epoch,
            clock: Clock { now: Time(0), wall: wall() },
            maintained: epoch,
            refused: Refused::default(),
            stopping_since: None,
            shared,
            shutdown,
        })
    }
}

/// Opens the store, and notes in the directory how far it came.
fn open_store(options: &mut Options) -> Result<Opened, HostError> {
    let clock = quorate_store::machine_clock();
    let opened = quorate_store::open(&options.directory, &options.store, clock);
    let opened = opened.inspect_err(|error| {
        // The next start would be told nothing of it.
        if error.may_have_lost() && !mutant!("start_keeps_a_failure_to_itself") {
            note_failure(&mut options.directory);
        }
    })?;
    if let Some(cut) = &opened.cut {
        tracing::warn!(event = "torn_tail_cut", cut = ?cut, "writes never synced were cut off");
    }
    options.directory.recovered(opened.recovered)?;
    Ok(opened)
}

/// A number that nobody can foresee, and that no other process of the host has.
fn seed() -> Result<u64, HostError> {
    getrandom::u64().map_err(|error| system("randomness")(std::io::Error::other(error.to_string())))
}

/// Opens the doors of clients.
fn doors(poll: &Poll, options: &Options, seed: u64) -> Result<Vec<OpenDoor>, HostError> {
    let shared = &options.shared;
    let me = facts::identity(options.directory.identity(), shared, wall(), seed);
    let doors = options.doors.iter().enumerate();
    doors.map(|(number, door)| OpenDoor::open(poll, number, door, &me, shared)).collect()
}

/// The number of each host that the directory knows.
fn numbers(identity: &Identity) -> Vec<(NodeId, u32)> {
    let number = |record: &HostRecord| (record.node, record.host);
    identity.hosts.iter().filter(|record| record.host != 0).map(number).collect()
}
