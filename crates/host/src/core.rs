//! The core thread: drain what has arrived, run one turn, write once per peer and client.

mod accept;
mod start;

use self::start::system;
use super::HostError;
use super::calls::callers::Callers;
use super::calls::watches;
use super::cluster::links::Links;
use super::cluster::meeting::Verdict;
use super::cluster::refused::Refused;
use super::disk::{Disk, SyncEvery};
use super::doors::clients::Clients;
use super::doors::listener::Listener;
use super::keyspaces::Table;
use super::operators::answers::{self, Operators, Sight};
use super::operators::show;
use super::out::Out;
use super::pending::{PendingRequests, Waiter};
use super::refill::Refill;
use super::token::{self, CLIENT, CLUSTER, WAKER};
use crate::metrics::{Shared, Stage};
use crate::shutdown::Shutdown;
use mio::{Events, Poll};
use quorate_doors::Clock;
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::Ticket;
use quorate_kernel::keyspace::Keyspaces;
use quorate_kernel::limits::UNREAD_FOR;
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
pub(super) const MAINTAIN_EVERY: Duration = Duration::from_millis(250);
/// How often it looks whether it has met the other hosts, until it has.
const MEET_EVERY: Duration = Duration::from_millis(50);
/// How long a stopping host waits for its clients to take their answers.
const FAREWELL: Duration = Duration::from_secs(5);
/// The most that the poller tells at a time.
const EVENTS_MAX: usize = 1024;
/// The most turns between two flushes: answers can start operations, which want another turn.
const TURNS_MAX: usize = 8;

/// The loop and all it owns.
pub(super) struct Core {
    poll: Poll,
    /// The door for other hosts.
    cluster: Listener,
    clients: Clients,
    links: Links,
    operators: Operators,
    callers: Callers,
    pending: PendingRequests,
    node: Node,
    disk: Disk,
    directory: Directory,
    refill: Refill,
    /// Which process of this start it is.
    run: u64,
    table: Table,
    /// What the catalog says since the last turn, if it has changed.
    fresh: Option<Arc<Keyspaces>>,
    sync_every: SyncEvery,
    answers: Vec<(Ticket, Outcome)>,
    epoch: Instant,
    clock: Clock,
    maintained: Instant,
    refused: Refused,
    stopping_since: Option<Instant>,
    shared: Arc<Shared>,
    shutdown: Arc<Shutdown>,
}

impl Core {
    /// Turns until the host is told to stop, then syncs and closes the directory. That is released
    /// last: nobody else may open it while anything of this host uses it.
    pub fn run(mut self) -> Result<(), HostError> {
        let served = self.serve();
        let is_removed = self.links.verdict() == Some(Verdict::Removed);
        let Core { node, mut disk, mut directory, cluster, clients, links, .. } = self;
        if let Err(failure) = &served {
            // Closing may take its time, and nobody is answered any more.
            drop((cluster, clients, links));
            note_failure_of(&mut directory, failure);
        }
        let finished = disk.finish().map_err(HostError::from);
        // A merge may go on for longer than whoever stops this host waits.
        let noted = match served.is_ok() && finished.is_ok() {
            true => directory.note_clean().map_err(HostError::from),
            false => Ok(()),
        };
        let closed = finished.and(disk.close().map_err(HostError::from));
        // It reads what the directory holds.
        drop(node);
        if let Err(failure) = &closed {
            note_failure_of(&mut directory, failure);
        }
        served.and(closed).and(noted)?;
        let (node, path) = (directory.identity().node, directory.path().to_path_buf());
        if is_removed { Err(HostError::Removed { node, path }) } else { Ok(()) }
    }

    fn serve(&mut self) -> Result<(), HostError> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        let Core { node, links, operators, answers, disk, fresh, .. } = self;
        node.start(&mut Out { links, operators, answers, fresh, disk });
        self.turns()?;
        self.maintain();
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
            self.meet()?;
            self.turns()?;
            // Peers first: they go to work while the replies are written.
            self.maintain_links();
            self.links.flush();
            self.clients.flush(self.clock, &mut self.pending);
            self.close_with_cluster();
            if self.maintained.elapsed() >= MAINTAIN_EVERY {
                self.maintain();
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
        match self.operators.closing() {
            Closing::No => return,
            Closing::Finishing if self.shared.stage() == Stage::Stopping => {}
            Closing::Finishing => self.shared.stopping(),
            Closing::Over if self.shutdown.is_requested() => {}
            Closing::Over => {
                tracing::info!(event = "host_stopping", "the whole cluster is shut down");
                self.shutdown.request();
            }
        }
        // Requests that lie in the queue of the other threads are refused when they are taken.
        if self.pending.awaited() == 0 {
            self.operators.tell_idle(self.clock.now, &mut self.pending.inputs);
        }
    }

    fn maintain_links(&mut self) {
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
        if has_work || !self.pending.inputs.is_empty() {
            return Duration::ZERO;
        }
        let mut timeout = MAINTAIN_EVERY.saturating_sub(self.maintained.elapsed());
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
        self.links.is_speaking() && self.node.keeps_up()
    }

    fn take_events(&mut self, events: &Events) {
        self.clients.look(self.clock.now, events.iter().count() < EVENTS_MAX);
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
            self.pending.inputs.push(Input::Durable(durable));
        }
        let Core { node, table, links, clock, pending, .. } = self;
        self.operators.take(clock.now, &mut Sight { node, table, links, pending });
        self.links.set_waiting(self.node.waiting_bytes());
        self.links.read(&mut self.pending.inputs);
        if self.may_read_clients() {
            self.callers.take(self.clock.now, &mut self.pending);
            self.clients.read(self.clock, &mut self.pending);
        }
        let read = self.clients.read_upto().min(self.callers.taken_upto());
        if self.clock.now - read >= UNREAD_FOR {
            self.pending.inputs.push(Input::Unread(read));
        }
        Ok(())
    }

    fn turns(&mut self) -> Result<(), Fatal> {
        for _ in 0..TURNS_MAX {
            let Core { node, links, operators, answers, disk, fresh, pending, clock, .. } = self;
            let mut out = Out { links, operators, answers, fresh, disk };
            pump::turn(node, clock.now, clock.wall, &mut pending.inputs, &mut out)?;
            let fresh = self.fresh.take();
            if let Some(keyspaces) = &fresh {
                self.on_keyspaces(keyspaces);
            }
            let mut answers = std::mem::take(&mut self.answers);
            for (ticket, outcome) in answers.drain(..) {
                if let Some(waiter) = self.pending.answered(ticket, &outcome, self.clock.now) {
                    self.tell(waiter, ticket, outcome);
                }
            }
            self.answers = answers;
            if fresh.is_some() {
                for dropped in self.pending.take_dropped() {
                    let outcome = dropped.ended_by_drop();
                    self.tell(dropped.waiter, dropped.ticket, outcome);
                }
            }
            if self.pending.inputs.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Tells who waits for a request what has become of it.
    fn tell(&mut self, waiter: Waiter, ticket: Ticket, outcome: Outcome) {
        let pending = &mut self.pending;
        match waiter {
            Waiter::Session(asked) | Waiter::Follower(asked) => {
                self.clients.complete(asked, outcome, self.clock, pending);
            }
            Waiter::Caller(caller) => self.callers.end(caller, &outcome),
            Waiter::Watcher(to) => watches::tell(&to, ticket, outcome, pending),
            Waiter::Operator(reply) => answers::tell(reply, outcome),
        }
    }

    /// The catalog has changed: doors, metrics and the disk thread follow before anybody is told.
    fn on_keyspaces(&mut self, keyspaces: &Arc<Keyspaces>) {
        self.table = self.table.after(keyspaces);
        self.sync_every.set(self.table.sync_every());
        self.clients.set_keyspaces(&self.table);
        self.callers.set_keyspaces(&self.table);
        self.pending.set_keyspaces(&self.table);
        self.table.show(&self.shared);
        for keyspace in self.table.keyspaces().filter(|it| !self.node.has_lane(it.lane)) {
            let (event, keyspace) = ("keyspace_not_opened", &keyspace.name);
            tracing::error!(event, keyspace, "restart this host");
        }
        let (decrees, keyspaces) = (keyspaces.version, self.table.names().join(", "));
        tracing::info!(event = "catalog_learnt", decrees, keyspaces);
    }

    /// What need not be done on every turn.
    fn maintain(&mut self) {
        let now = Instant::now();
        self.maintained = now;
        self.shared.beat();
        self.shared.unsynced_bytes.set(self.node.waiting_bytes() as u64);
        self.accept_again();
        self.links.maintain(now);
        if let Some(seen) = self.links.take_seen() {
            self.disk.note(seen);
        }
        if let Some(numbers) = self.links.take_numbers() {
            self.operators.set_numbers(numbers);
        }
        self.refused.tell(self.node.dropped(), &self.shared);
        self.clients.maintain(self.clock.now, &mut self.pending);
        self.callers.tick(&mut self.pending);
        let mut all_ready = self.shared.knows_keyspaces() && self.table.serves_all();
        for served in &self.table.served {
            let (lane, cells) = (served.keyspace().lane, &served.cells);
            let is_ready = self.links.is_speaking() && self.node.is_ready(lane);
            all_ready &= is_ready;
            self.shared.set_keyspace_ready(cells, is_ready);
            show::keyspace(&self.node, lane, &self.links.sent, cells);
            cells.inflight.set(self.pending.in_hand(lane));
        }
        let (newest, synced) = (self.node.newest(), self.node.progress().synced);
        if self.refill.is_done(all_ready, newest, synced)
            && !self.directory.unsynced_survived()
            && let Err(error) = self.directory.refilled()
        {
            tracing::warn!(event = "refill_not_noted", %error, "the next start refills again");
        }
        if self.shutdown.is_requested() && self.stopping_since.is_none() {
            self.stopping_since = Some(now);
            self.shared.stopping();
            self.clients.finish();
            self.callers.finish(&mut self.pending);
        }
    }

    fn is_done(&self) -> bool {
        let is_late = |since: Instant| since.elapsed() >= FAREWELL;
        let is_empty = self.clients.is_empty() && self.pending.called() == 0;
        self.stopping_since.is_some_and(|since| is_empty || is_late(since))
    }
}

/// Notes in the directory that the disk failed, if that is why the host stops.
fn note_failure_of(directory: &mut Directory, failure: &HostError) {
    if let HostError::Fatal(_) = failure {
        note_failure(directory);
    }
}

/// Notes in the directory that the disk failed.
fn note_failure(directory: &mut Directory) {
    if let Err(error) = directory.note_failure() {
        let advice = "start this host with --moved next, once its disk is whole";
        tracing::error!(event = "failure_not_noted", %error, "{advice}");
    }
}

/// The wall clock of this machine; the epoch if it is set to a time before that.
#[must_use]
pub fn wall() -> WallTime {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    WallTime(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
