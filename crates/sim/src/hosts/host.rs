//! One simulated host: a process with a node in it, its disk and its clocks.

mod outlet;

pub use outlet::Surroundings;

use crate::clock::Clock;
use crate::disk::Disk;
use crate::groups::Groups;
use crate::memory::{Memory, sighting};
use crate::queue::{Event, HostIndex, Said};
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::{Incarnation, LaneId, Lsn, NodeId, Start};
use quorate_kernel::keyspace::Keyspaces;
use quorate_kernel::lane::{Lane, LaneSpec};
use quorate_kernel::part::Part;
use quorate_kernel::process::{Inspect, Recovery};
use quorate_kernel::ring::Closing;
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Time;
use quorate_node::node::{Node, Opener};
use quorate_node::pump::{self, Input};
use quorate_store::memory::Crash;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::Arc;

/// Replaces a lane by another one around it: how a test plants a bug.
pub type Wrap = fn(Box<dyn Lane>) -> Box<dyn Lane>;

/// A number that a host shows of a lane; 0 if that does not run, or shows none of this name.
#[must_use]
pub fn count(host: &Host, lane: LaneId, name: &str) -> u64 {
    struct Find<'a>(&'a str, u64);
    impl Inspect for Find<'_> {
        fn field(&mut self, name: &'static str, value: &dyn Display) {
            if name == self.0 {
                self.1 = value.to_string().parse().expect("it shows numbers");
            }
        }
    }
    let mut find = Find(name, 0);
    host.inspect_state(lane, &mut find);
    find.1
}

/// How much data a node has at hand: so little that records come and go.
const CACHE_BYTES: usize = 16 * 1024;

/// Whether a process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Running {
    /// It handles what arrives.
    Up,
    /// It is stopped; what arrives waits.
    Paused,
    /// There is no process.
    Down,
}

/// A host.
pub struct Host {
    index: HostIndex,
    /// The node its directory belongs to.
    pub node_id: NodeId,
    start: Start,
    /// Counts starts and stops, so that what was meant for another life is void.
    pub life: u32,
    /// Whether the process runs.
    pub running: Running,
    /// It is lent out for each turn, so it stays in one place.
    node: Option<Box<Node>>,
    inbox: Vec<Input>,
    /// Whether a turn is on its way.
    pub is_turn_due: bool,
    wake_at: u64,
    /// The disk.
    pub disk: Disk,
    /// The clocks.
    pub clock: Clock,
    /// Events of the disk thread that came while the process was stopped.
    pub stalled: Vec<Event>,
    /// Whether data that was acknowledged may be lost since the last life that was ready.
    pub has_forgotten: bool,
    /// If it has forgotten: from when on it may have lost writes, at first and in the end.
    pub lost_since: (u64, u64),
    /// The last batch of the time when it was whole again, until that batch is synced.
    whole_at: Option<Lsn>,
    /// Whether its directory was wiped and the groups have not made up for it yet.
    pub is_wiped: bool,
    /// Whether the cluster is being shut down, as far as it was told.
    pub closing: Closing,
    /// Whether it has said, since it was told, that nothing is in hand for clients.
    pub has_told_idle: bool,
    /// Whether it ended because the cluster was shut down.
    pub has_ended: bool,
    /// What it last said of the groups of each lane.
    pub said: BTreeMap<LaneId, Groups>,
    /// Which keyspaces it was told there are, in its present life.
    pub told: Option<Arc<Keyspaces>>,
    /// The nodes that its directory belonged to before it was wiped.
    pub lost: Vec<NodeId>,
    /// Whether its next sync fails.
    pub is_sync_failing: bool,
    /// Whether a failed sync has stopped it.
    pub is_stopped_by_disk: bool,
    /// Whether it takes part: a founder, or a spare that has joined.
    pub has_joined: bool,
    /// What its directory knows of itself and of others.
    pub memory: Memory,
    /// Whether its state is looked at after every turn.
    pub is_checked: bool,
    /// How many faults keep it down.
    pub downs: u32,
    /// How many faults keep it paused.
    pub pauses: u32,
    rng: Rng,
}

impl Host {
    /// A host that was never started.
    #[must_use]
    pub fn new(index: HostIndex, node_id: NodeId, disk: Disk, clock: Clock, rng: Rng) -> Host {
        Host {
            index,
            node_id,
            start: Start(0),
            life: 0,
            running: Running::Down,
            node: None,
            inbox: Vec::new(),
            is_turn_due: false,
            wake_at: u64::MAX,
            disk,
            clock,
            stalled: Vec::new(),
            has_forgotten: false,
            lost_since: (0, 0),
            whole_at: None,
            is_wiped: false,
            closing: Closing::No,
            has_told_idle: false,
            has_ended: false,
            said: BTreeMap::new(),
            told: None,
            lost: Vec::new(),
            is_sync_failing: false,
            is_stopped_by_disk: false,
            has_joined: true,
            memory: Memory::default(),
            is_checked: true,
            downs: 0,
            pauses: 0,
            rng,
        }
    }

    /// What the directory still knows of the lanes.
    #[must_use]
    pub fn recovery(&self) -> Recovery {
        if self.has_forgotten { Recovery::Forgot } else { Recovery::Intact }
    }

    /// Starts the process with these lanes, and those that are opened later.
    ///
    /// # Errors
    /// The store failed.
    pub fn launch(
        &mut self,
        specs: Vec<LaneSpec>,
        opener: Opener,
        around: &mut Surroundings<'_>,
    ) -> Result<(), Fatal> {
        assert_eq!(self.running, Running::Down, "a host is started once");
        self.life += 1;
        self.start = self.start.next();
        self.running = Running::Up;
        self.wake_at = u64::MAX;
        self.is_sync_failing = false;
        self.closing = Closing::No;
        self.has_told_idle = false;
        self.clock = self.clock.restarted(around.now);
        let recovered = self.disk.open(self.life, around.now);
        let me = self.me();
        self.memory.speak(me.start, self.run(), recovered.synced);
        let reader = Box::new(self.disk.store().clone());
        let node = Node::new(me, self.rng.next(), recovered.synced, reader, specs);
        let mut node = node.with_cache(CACHE_BYTES).with_opener(opener);
        node.begin(Time(0), self.clock.wall(around.now));
        let mut outlet = self.outlet(around);
        node.start(&mut outlet);
        node.end(&mut outlet)?;
        if self.is_checked {
            node.check();
        }
        self.node = Some(Box::new(node));
        self.arm(around);
        Ok(())
    }

    /// Ends the process without warning. `is_lossy` says that data which was acknowledged may be
    /// gone, so that the next start must say that it forgot.
    pub fn stop(&mut self, crash: Crash, is_lossy: bool, now: u64) {
        if is_lossy {
            let since = self.disk.unsynced_since().unwrap_or(now);
            let before = if self.has_forgotten { self.lost_since.0 } else { since };
            self.lost_since = (before.min(since), since);
        }
        self.disk.crash(crash);
        self.has_forgotten |= is_lossy;
        (self.whole_at, self.told) = (None, None);
        if self.running != Running::Down {
            self.life += 1;
        }
        (self.running, self.node) = (Running::Down, None);
        self.inbox.clear();
        self.stalled.clear();
        self.is_turn_due = false;
    }

    /// Gives the host an empty disk, and with it another node id.
    pub fn wipe(&mut self, node_id: NodeId) {
        assert_eq!(self.running, Running::Down, "a directory is wiped while nobody uses it");
        self.disk.wipe();
        self.lost.push(self.node_id);
        self.node_id = node_id;
        self.start = Start(0);
        self.has_forgotten = false;
        self.is_wiped = true;
        self.said.clear();
        self.memory = Memory::default();
    }

    /// The node that its first directory belonged to.
    #[must_use]
    pub fn first_node(&self) -> NodeId {
        self.lost.first().copied().unwrap_or(self.node_id)
    }

    /// A number that no other process of the host has.
    fn run(&self) -> u64 {
        u64::from(self.life)
    }

    /// Keeps a copy of the directory as it is now, while the process goes on.
    pub fn keep_copy(&mut self) {
        if self.running != Running::Down {
            self.memory.keep_copy(self.start, self.disk.store());
        }
    }

    /// Puts the copy in the place of the directory, if there is one of the present start. Returns
    /// whether there was.
    pub fn put_back(&mut self) -> bool {
        assert_eq!(self.running, Running::Down, "a directory is put back while nobody uses it");
        let Some(store) = self.memory.put_back(self.start) else { return false };
        self.disk.put_back(store);
        true
    }

    /// Keeps what the connection of a frame has said of its sender.
    pub fn see(&mut self, frame: &[u8], said: Said) {
        if self.running != Running::Down && said.run > 0 {
            self.memory.see(sighting(frame, said));
        }
    }

    /// Continues a stopped process. Its timers may have come due meanwhile.
    pub fn resume(&mut self) {
        assert_eq!(self.running, Running::Paused, "only a stopped process is continued");
        self.running = Running::Up;
        self.wake_at = u64::MAX;
    }

    /// Adds an input to what the next turn handles.
    pub fn receive(&mut self, input: Input) {
        if self.running != Running::Down {
            self.inbox.push(input);
        }
    }

    /// Handles what has arrived, and fires the timers that are due.
    ///
    /// # Errors
    /// The store failed; the host must stop.
    pub fn turn(&mut self, around: &mut Surroundings<'_>) -> Result<(), Fatal> {
        self.is_turn_due = false;
        let Some(mut node) = self.node.take() else { return Ok(()) };
        let (local, wall) = (self.clock.local(around.now), self.clock.wall(around.now));
        let mut inbox = std::mem::take(&mut self.inbox);
        let result = pump::turn(&mut node, local, wall, &mut inbox, &mut self.outlet(around));
        self.inbox = inbox;
        if self.is_checked {
            node.check();
            let why = node.dropped().why;
            assert_eq!(why, None, "correct peers say nothing that is refused");
        }
        self.node = Some(node);
        result?;
        self.arm(around);
        Ok(())
    }

    /// Its node in its present start.
    #[must_use]
    pub fn me(&self) -> Incarnation {
        Incarnation { node: self.node_id, start: self.start }
    }

    /// Queues a wake for the node's next timer, unless an earlier one is queued.
    fn arm(&mut self, around: &mut Surroundings<'_>) {
        let deadline = self.node.as_ref().and_then(|node| node.next_deadline());
        let Some(deadline) = deadline else { return };
        let at = self.clock.world(deadline).max(around.now + 1);
        if at < self.wake_at {
            self.wake_at = at;
            around.queue.push(at, Event::Wake { host: self.index, life: self.life });
        }
    }

    /// Whether a wake that was queued for now still means anything: a timer is due. Otherwise
    /// queues the next one.
    pub fn is_awake(&mut self, around: &mut Surroundings<'_>) -> bool {
        if around.now < self.wake_at {
            return false;
        }
        self.wake_at = u64::MAX;
        let local = self.clock.local(around.now);
        let deadline = self.node.as_ref().and_then(|node| node.next_deadline());
        if deadline.is_some_and(|deadline| deadline <= local) {
            return true;
        }
        self.arm(around);
        false
    }

    /// Whether the process runs and its lanes of keyspaces are ready.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        let (Some(node), Some(told)) = (&self.node, &self.told) else { return false };
        told.list.iter().all(|(keyspace, _)| node.is_ready(keyspace.lane))
    }

    /// Shows a lane's state, and what the host has of its parts.
    pub fn inspect(&self, lane: LaneId, into: &mut dyn Inspect) {
        if let Some(node) = &self.node {
            node.inspect(lane, into);
        }
    }

    /// Shows a lane's state alone.
    pub fn inspect_state(&self, lane: LaneId, into: &mut dyn Inspect) {
        if let Some(node) = &self.node {
            node.inspect_state(lane, into);
        }
    }

    /// The parts of a lane's data that the host knows.
    #[must_use]
    pub fn parts(&self, lane: LaneId) -> Vec<Part> {
        self.node.as_ref().map(|node| node.parts(lane)).unwrap_or_default()
    }

    /// Notes that a host that had forgotten is whole again, and stays so if it is stopped now.
    pub fn settle(&mut self) {
        if !self.has_forgotten || !self.is_ready() {
            self.whole_at = None;
        } else if self.disk.synced() >= *self.whole_at.get_or_insert(self.disk.given()) {
            self.has_forgotten = false;
        }
    }
}
