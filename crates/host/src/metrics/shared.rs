//! All of a host's cells behind one handle.

use super::cell::{Counter, Gauge, Histogram};
use super::door::DoorCells;
use super::keyspace::KeyspaceCells;
use super::labels::RejectReason;
use super::peer::PeerCells;
use quorate_kernel::ids::{ClusterId, NodeId, Start};
use quorate_store::SlowSteps;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Where a host is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// Opening its directory and binding its doors.
    Starting = 0,
    /// Its doors are open.
    Serving = 1,
    /// It was told to stop and finishes what is in hand.
    Stopping = 2,
}

/// The doors on the core thread, once they are open.
#[derive(Clone, Debug)]
pub struct OpenDoors {
    /// Where the door for other hosts is bound, as the operating system gave it.
    pub cluster: SocketAddr,
    /// The doors of clients.
    pub clients: Arc<[Arc<DoorCells>]>,
}

/// Everything a host tells the outside. One per process, shared by its threads.
#[derive(Debug)]
pub struct Shared {
    /// The cluster.
    pub cluster: ClusterId,
    /// The host's number in the cluster, from 1.
    pub host: u32,
    /// The host's node.
    pub node: NodeId,
    /// Which of the node's starts this is.
    pub start: Start,
    /// When the process began to start.
    pub began: Instant,
    keyspaces: Mutex<Option<Arc<[Arc<KeyspaceCells>]>>>,
    peers: Mutex<Arc<[Arc<PeerCells>]>>,
    /// Bytes that wait for the disk: writes, and what rests on them at the gate. Written by the
    /// core thread.
    pub unsynced_bytes: Gauge,
    /// How long each sync took. Written by the disk thread.
    pub syncs: Histogram,
    /// Batches the disk thread applied. Written by the disk thread.
    pub batches: Counter,
    /// Bytes of keys and values the disk thread applied. Written by the disk thread.
    pub written_bytes: Counter,
    /// Bytes of the log's segments on the disk. Written by the disk thread, now and then.
    pub log_bytes: Gauge,
    /// Bytes of tables on the disk. Written by the disk thread, now and then.
    pub table_bytes: Gauge,
    /// Bytes of tables that merging them would give back, at most. Written by the disk thread, now
    /// and then.
    pub garbage_bytes: Gauge,
    /// What the disk thread did when it was slow. Written by the disk thread, under a lock that it
    /// takes for slow steps alone.
    pub slow_steps: SlowSteps,
    rejected: Vec<Counter>,
    beat_ms: Gauge,
    stage: AtomicU8,
    doors: Mutex<Option<OpenDoors>>,
    changed: Notify,
}

impl Shared {
    /// The cells of a host that is starting.
    #[must_use]
    pub fn new(
        cluster: ClusterId,
        (host, node, start): (u32, NodeId, Start),
        peers: Vec<PeerCells>,
    ) -> Shared {
        Shared {
            cluster,
            host,
            node,
            start,
            began: Instant::now(),
            keyspaces: Mutex::new(None),
            peers: Mutex::new(peers.into_iter().map(Arc::new).collect()),
            unsynced_bytes: Gauge::default(),
            syncs: Histogram::default(),
            batches: Counter::default(),
            written_bytes: Counter::default(),
            log_bytes: Gauge::default(),
            table_bytes: Gauge::default(),
            garbage_bytes: Gauge::default(),
            slow_steps: SlowSteps::default(),
            rejected: RejectReason::ALL.iter().map(|_| Counter::default()).collect(),
            beat_ms: Gauge::default(),
            stage: AtomicU8::new(Stage::Starting as u8),
            doors: Mutex::new(None),
            changed: Notify::new(),
        }
    }

    /// Counts something turned away. Called by the core thread only.
    pub fn reject(&self, reason: RejectReason) {
        self.reject_many(reason, 1);
    }

    /// Counts so many. Called by the core thread only.
    pub fn reject_many(&self, reason: RejectReason, count: u64) {
        self.rejected[reason as usize].add(count);
    }

    /// How often something was turned away for this reason.
    #[must_use]
    pub fn rejected(&self, reason: RejectReason) -> u64 {
        self.rejected[reason as usize].get()
    }

    /// Says that the core thread's loop turns. It must be called at least once a second while the
    /// host serves, idle or not; `/livez` fails when it has not been called for ten.
    pub fn beat(&self) {
        self.beat_ms.set(self.uptime_ms());
    }

    /// How long ago the core thread's loop last turned; since the start if it never did.
    #[must_use]
    pub fn since_beat(&self) -> Duration {
        Duration::from_millis(self.uptime_ms().saturating_sub(self.beat_ms.get()))
    }

    fn uptime_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// The doors are open: the host serves.
    pub fn doors_open(&self, cluster: SocketAddr, clients: Vec<Arc<DoorCells>>) {
        self.beat();
        let doors = OpenDoors { cluster, clients: clients.into() };
        *self.doors.lock().unwrap_or_else(PoisonError::into_inner) = Some(doors);
        self.stage.store(Stage::Serving as u8, Ordering::Release);
        self.changed.notify_one();
    }

    /// The doors on the core thread, once they are open.
    #[must_use]
    pub fn doors(&self) -> Option<OpenDoors> {
        self.doors.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The host was told to stop.
    pub fn stopping(&self) {
        self.stage.store(Stage::Stopping as u8, Ordering::Release);
        self.changed.notify_one();
    }

    /// Where the host is in its life.
    #[must_use]
    pub fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            0 => Stage::Starting,
            1 => Stage::Serving,
            _ => Stage::Stopping,
        }
    }

    /// A keyspace's lane became ready, or no longer is. Costs one load when nothing changed, so it
    /// may be called on every turn.
    pub fn set_keyspace_ready(&self, keyspace: &KeyspaceCells, ready: bool) {
        self.change(&keyspace.ready, ready);
    }

    /// One for each keyspace, in the order of their lanes; none while the catalog is not known.
    #[must_use]
    pub fn keyspaces(&self) -> Arc<[Arc<KeyspaceCells>]> {
        let keyspaces = self.keyspaces.lock().unwrap_or_else(PoisonError::into_inner);
        keyspaces.clone().unwrap_or_default()
    }

    /// Whether it is known which keyspaces there are.
    #[must_use]
    pub fn knows_keyspaces(&self) -> bool {
        self.keyspaces.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Keyspaces came or went. Takes a lock; they rarely do.
    pub fn set_keyspaces(&self, keyspaces: Vec<Arc<KeyspaceCells>>) {
        let now = Some(keyspaces.into());
        *self.keyspaces.lock().unwrap_or_else(PoisonError::into_inner) = now;
        self.changed.notify_one();
    }

    /// One for each other host that is known, in the order of their numbers.
    #[must_use]
    pub fn peers(&self) -> Arc<[Arc<PeerCells>]> {
        Arc::clone(&self.peers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Hosts were added or forgotten. Takes a lock; they rarely are.
    pub fn set_peers(&self, peers: Vec<Arc<PeerCells>>) {
        *self.peers.lock().unwrap_or_else(PoisonError::into_inner) = peers.into();
        self.changed.notify_one();
    }

    pub(super) fn change(&self, cell: &AtomicBool, now: bool) {
        if cell.load(Ordering::Relaxed) != now {
            cell.store(now, Ordering::Release);
            self.changed.notify_one();
        }
    }

    /// Waits until the stage, a keyspace's readiness or a peer has changed since the last call.
    /// One waiter at a time.
    pub async fn changed(&self) {
        self.changed.notified().await;
    }

    /// How many hosts are this one or connected to it, up to the replicas of a key, and how many of
    /// the replicas the keyspace's engine needs.
    #[must_use]
    pub fn reach(&self, keyspace: &KeyspaceCells) -> (usize, usize) {
        let peers = self.peers();
        let up = peers.iter().filter(|peer| peer.is_up()).count();
        let replicas = keyspace.replicas().min(peers.len() + 1);
        ((up + 1).min(replicas), keyspace.quorum(replicas))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines;
    use crate::metrics::{Ending, Kind};
    use crate::samples::{open_doors, served, shared as sample};
    use quorate_kernel::ids::LaneId;

    #[test]
    fn reach_counts_this_host_and_connected_members() {
        let shared = sample();
        assert_eq!(shared.reach(&shared.keyspaces()[0]), (1, 2));
        shared.peers()[1].set_up(&shared, true);
        assert_eq!(shared.reach(&shared.keyspaces()[0]), (2, 2));
        shared.peers()[1].set_up(&shared, false);
        assert_eq!(shared.reach(&shared.keyspaces()[0]), (1, 2));
    }

    #[test]
    fn it_is_the_engine_that_says_how_many_replicas_it_takes() {
        let shared = sample();
        for engine in engines::all() {
            let cells = served("it", engine.name, &[], LaneId(17)).cells;
            assert_eq!(shared.reach(&cells), (1, (engine.quorum)(3)), "{}", engine.name);
        }
    }

    #[test]
    fn stages_follow_one_another() {
        let shared = sample();
        assert_eq!(shared.stage(), Stage::Starting);
        assert!(shared.doors().is_none());
        open_doors(&shared);
        assert_eq!(shared.stage(), Stage::Serving);
        let doors = shared.doors().expect("they are open");
        assert_eq!(doors.cluster.port(), 1);
        assert_eq!((doors.clients[0].name, doors.clients[0].address.port()), ("resp", 2));
        shared.stopping();
        assert_eq!(shared.stage(), Stage::Stopping);
    }

    #[test]
    fn operations_are_counted_apart() {
        let shared = sample();
        let cells = &shared.keyspaces()[0];
        cells.answered(Kind::Get, Ending::Ok, Duration::from_millis(1));
        cells.answered(Kind::Put, Ending::Unknown, Duration::from_secs(5));
        assert_eq!(cells.durations(Kind::Get, Ending::Ok).count(), 1);
        assert_eq!(cells.durations(Kind::Put, Ending::Unknown).count(), 1);
        assert_eq!(cells.durations(Kind::Put, Ending::Ok).count(), 0);
        shared.reject(RejectReason::Frame);
        assert_eq!(shared.rejected(RejectReason::Frame), 1);
        assert_eq!(shared.rejected(RejectReason::Clients), 0);
    }
}
