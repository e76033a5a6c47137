//! The core thread: drain what has arrived, run one turn, write once per peer and client.

mod accept;
mod start;

use self::start::system;
use super::callers::Callers;
use super::clients::Clients;
use super::desk::{Desk, Sight};
use super::disk::{Disk, SyncEvery};
use super::keyspaces::Table;
use super::links::Links;
use super::meeting::Verdict;
use super::out::Out;
use super::refused::Refused;
use super::token::{self, CLIENT, CLUSTER, WAKER};
use super::{HostError, show};
use crate::metrics::{Shared, Stage};
use crate::shutdown::Shutdown;
use mio::net::TcpListener;
use mio::{Events, Poll};
use quorate_doors::Clock;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::Ticket;
use quorate_kernel::keyspace::Keyspaces;
use quorate_kernel::limits::UNSYNCED_BYTES_MAX;
use quorate_kernel::operation::Outcome;
use quorate_kernel::ring::Closing;
use quorate_kernel::time::{Time, WallTime};
use quorate_node::node::Node;
use quorate_node::pump::{self, Input};
use quorate_store::Directory;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// How often the host beats, counts and looks after its connections, idle or not.
pub(super) const TEND_EVERY: Duration = Duration::from_millis(250);
/// How often it looks whether it has met the other hosts, until it has.
const MEET_EVERY: Duration = Duration::from_millis(50);
/// How long a stopping host waits for its clients to take their answers.
const FAREWELL: Duration = Duration::from_secs(5);
/// The most turns between two flushes: answers can start operations, which want another turn.
const TURNS_MAX: usize = 8;

/// The loop and all it owns.
pub(super) struct Core {
    poll: Poll,
    cluster: TcpListener,
    clients: Clients,
    links: Links,
    desk: Desk,
    callers: Callers,
    node: Node,
    disk: Disk,
    directory: Directory,
    /// Which process of this start it is.
    run: u64,
    table: Table,
    /// What the catalog says since the last turn, if it has changed.
    fresh: Option<Arc<Keyspaces>>,
    sync_every: SyncEvery,
    inputs: Vec<Input>,
    answers: Vec<(Ticket, Outcome)>,
    epoch: Instant,
    clock: Clock,
    tended: Instant,
    refused: Refused,
    stopping_since: Option<Instant>,
    shared: Arc<Shared>,
    shutdown: Arc<Shutdown>,
}

impl Core {
    /// Turns until the host is told to stop, then syncs and closes the directory.
    pub fn run(mut self) -> Result<(), HostError> {
        let served = self.serve();
        let is_removed = self.links.verdict() == Some(Verdict::Removed);
        let Core { disk, directory, .. } = self;
        match served.and_then(|()| Ok(disk.close()?)) {
            Ok(()) if is_removed => {
                let (node, path) = (directory.identity().node, directory.path().to_path_buf());
                directory.stop_cleanly()?;
                Err(HostError::Removed { node, path })
            }
            Ok(()) => Ok(directory.stop_cleanly()?),
            Err(failure) => {
                if let HostError::Fatal(_) = &failure
                    && let Err(error) = directory.stop_failed()
                {
                    tracing::warn!(event = "failure_not_noted", %error);
                }
                Err(failure)
            }
        }
    }

    fn serve(&mut self) -> Result<(), HostError> {
        let mut events = Events::with_capacity(1024);
        let Core { node, links, desk, answers, disk, fresh, .. } = self;
        node.start(&mut Out { links, desk, answers, fresh, disk });
        self.turns()?;
        self.tend();
        while !self.is_done() {
            let timeout = self.timeout();
            match self.poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => {
                    return Err(system("polling")(error));
                }
                _ => {}
            }
            self.tick();
            self.take_events(&events);
            self.take_inputs()?;
            self.callers.watches.take_ended(&mut self.inputs);
            self.meet()?;
            self.turns()?;
            self.clients.flush(self.clock, &mut self.inputs);
            self.close_with_cluster();
            self.tend_links();
            self.links.flush();
            if self.tended.elapsed() >= TEND_EVERY {
                self.tend();
            }
        }
        Ok(())
    }

    /// Goes by what the others have seen of this host: it speaks, or it must end.
    fn meet(&mut self) -> Result<(), HostError> {
        match self.links.verdict() {
            Some(Verdict::Disowned(why)) => {
                let path = self.directory.path().to_path_buf();
                return Err(HostError::Disowned {
                    node: self.directory.identity().node,
                    path,
                    why,
                });
            }
            Some(Verdict::Removed) if !self.shutdown.is_requested() => {
                tracing::info!(event = "host_stopping", "it was removed from the cluster");
                self.shutdown.request();
            }
            _ => {}
        }
        if self.links.has_met(Instant::now()) {
            self.directory.speak(self.run)?;
            self.links.speak();
        }
        Ok(())
    }

    /// Ends with all other hosts, once all are told to.
    fn close_with_cluster(&mut self) {
        match self.desk.closing() {
            Closing::No => return,
            Closing::Finishing if self.shared.stage() == Stage::Stopping => {}
            Closing::Finishing => self.shared.stopping(),
            Closing::Over if self.shutdown.is_requested() => {}
            Closing::Over => {
                tracing::info!(event = "host_stopping", "the whole cluster is shut down");
                self.shutdown.request();
            }
        }
        if self.clients.is_idle() {
            self.desk.tell_idle(self.clock.now, &mut self.inputs);
        }
    }

    fn tend_links(&mut self) {
        let now = Instant::now();
        if self.links.next_due().is_some_and(|due| due <= now) {
            self.links.dial(now, self.poll.registry());
            self.links.send_kept(now);
        }
    }

    fn tick(&mut self) {
        let elapsed = self.epoch.elapsed().as_nanos();
        self.clock.now = Time(u64::try_from(elapsed).expect("a host runs for less than 584 years"));
        self.clock.wall = wall();
    }

    /// How long the poller may sleep.
    fn timeout(&self) -> Duration {
        let has_more = self.clients.has_readable() || self.callers.has_more();
        let may_read = has_more && self.may_read_clients();
        let has_work = may_read || self.links.has_readable() || self.clients.has_dirty();
        if has_work || !self.inputs.is_empty() {
            return Duration::ZERO;
        }
        let mut timeout = TEND_EVERY.saturating_sub(self.tended.elapsed());
        if let Some(deadline) = self.node.next_deadline() {
            let at = self.epoch + Duration::from_nanos(deadline.0);
            timeout = timeout.min(at.saturating_duration_since(Instant::now()));
        }
        if let Some(due) = self.links.next_due() {
            timeout = timeout.min(due.saturating_duration_since(Instant::now()));
        }
        if !self.links.is_speaking() {
            timeout = timeout.min(MEET_EVERY);
        }
        // The poller counts in milliseconds and rounds a part of one up.
        timeout
    }

    /// Clients are read only while the disk keeps up, and once the host has met the others.
    fn may_read_clients(&self) -> bool {
        self.links.is_speaking() && self.node.unsynced_bytes() < UNSYNCED_BYTES_MAX
    }

    fn take_events(&mut self, events: &Events) {
        for event in events {
            match event.token() {
                CLUSTER => self.accept_links(),
                WAKER => {}
                other => match (token::connection(other), token::door(other)) {
                    (Some((CLIENT, key)), _) => self.clients.on_event(key, event),
                    (Some((_, key)), _) => self.links.on_event(key, event),
                    (None, Some(door)) => {
                        self.clients.accept(door, self.clock.now, self.poll.registry());
                    }
                    (None, None) => {}
                },
            }
        }
    }

    fn take_inputs(&mut self) -> Result<(), Fatal> {
        if let Some(durable) = self.disk.progress()? {
            self.links.set_synced(durable.synced);
            self.inputs.push(Input::Durable(durable));
        }
        let Core { node, table, links, clock, inputs, .. } = self;
        self.desk.take(&mut Sight { node, table, links, clock: *clock, inputs });
        self.links.read(&mut self.inputs);
        if self.may_read_clients() {
            self.callers.take(self.clock, self.epoch, &mut self.inputs);
            self.clients.read(self.clock, &mut self.inputs);
        }
        Ok(())
    }

    fn turns(&mut self) -> Result<(), Fatal> {
        for _ in 0..TURNS_MAX {
            let Core { node, links, desk, answers, disk, fresh, inputs, clock, .. } = self;
            let mut out = Out { links, desk, answers, fresh, disk };
            pump::turn(node, clock.now, clock.wall, inputs, &mut out)?;
            let fresh = self.fresh.take();
            if let Some(keyspaces) = &fresh {
                self.on_keyspaces(keyspaces);
            }
            for (ticket, outcome) in self.answers.drain(..) {
                let outcome = self.desk.complete(ticket, outcome);
                let outcome =
                    outcome.and_then(|it| self.callers.complete(ticket, it, self.clock.now));
                if let Some(outcome) = outcome {
                    self.clients.complete(ticket, outcome, self.clock, &mut self.inputs);
                }
            }
            if fresh.is_some() {
                self.desk.end_dropped(&self.table);
                self.callers.end_dropped(self.clock.now);
                self.clients.end_dropped(self.clock, &mut self.inputs);
            }
            if self.inputs.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// The catalog has changed: doors, metrics and the disk thread follow before anybody is told.
    fn on_keyspaces(&mut self, keyspaces: &Arc<Keyspaces>) {
        self.table = self.table.after(keyspaces);
        self.sync_every.set(self.table.sync_every());
        self.clients.set_keyspaces(&self.table);
        self.callers.set_keyspaces(&self.table);
        self.table.show(&self.shared);
        let (decrees, keyspaces) = (keyspaces.version, self.table.names().join(", "));
        tracing::info!(event = "catalog_learnt", decrees, keyspaces);
    }

    /// What need not be done on every turn.
    fn tend(&mut self) {
        let now = Instant::now();
        self.tended = now;
        self.shared.beat();
        self.shared.unsynced_bytes.set(self.node.unsynced_bytes() as u64);
        self.links.tend(now);
        if let Some(seen) = self.links.take_seen() {
            self.disk.note(seen);
        }
        if let Some(numbers) = self.links.take_numbers() {
            self.desk.set_numbers(numbers);
        }
        self.refused.tell(self.node.dropped(), &self.shared);
        self.clients.tend(self.clock.now);
        self.callers.tick();
        let mut all_ready = self.shared.knows_keyspaces();
        for served in &self.table.served {
            let (lane, cells) = (served.keyspace().lane, &served.cells);
            let is_ready = self.links.is_speaking() && self.node.is_ready(lane);
            all_ready &= is_ready;
            self.shared.set_keyspace_ready(cells, is_ready);
            show::keyspace(&self.node, lane, &self.links.sent, cells);
            cells.inflight.set(self.clients.in_hand(lane) + self.callers.in_hand(lane));
        }
        let progress = self.node.progress();
        let is_refilled = all_ready && progress.synced == progress.written;
        if is_refilled
            && !self.directory.unsynced_survived()
            && let Err(error) = self.directory.refilled()
        {
            tracing::warn!(event = "refill_not_noted", %error, "the next start refills again");
        }
        if self.shutdown.is_requested() && self.stopping_since.is_none() {
            self.stopping_since = Some(now);
            self.shared.stopping();
            self.clients.finish();
            self.callers.finish();
        }
    }

    fn is_done(&self) -> bool {
        let is_late = |since: Instant| since.elapsed() >= FAREWELL;
        let is_empty = self.clients.is_empty() && self.callers.is_empty();
        self.stopping_since.is_some_and(|since| is_empty || is_late(since))
    }
}

fn wall() -> WallTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    WallTime(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
