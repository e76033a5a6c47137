//! Connections of clients on the core thread: no wake lies between a socket and a protocol.

mod client;
mod pace;
mod parting;
mod readable;
mod starter;

use self::client::Client;
use self::pace::Pace;
use self::readable::Readable;
use self::starter::Starter;
use super::admission::OpenDoor;
use super::budget::Charge;
use crate::io::{self, Progress};
use crate::keyspaces::Table;
use crate::mark;
use crate::metrics::{DoorCells, RejectReason, Shared};
use crate::pending::{PendingRequests, SessionRequest};
use crate::token::{CLIENT, token};
use bytes::BytesMut;
use mio::net::TcpStream;
use mio::{Interest, Registry};
use quorate_doors::{Clock, Connected, Serving, Shortage};
use quorate_kernel::mutant;
use quorate_kernel::operation::Outcome;
use quorate_kernel::time::Time;
use slab::Slab;
use std::sync::Arc;

/// How much room a read from a client gets.
const READ_BYTES: usize = 64 * 1024;
/// The least room left before more is taken.
const READ_BYTES_MIN: usize = 8 * 1024;
/// The most clients read in one turn. With all of them in one turn, every process works while all
/// others wait for it; with fewer, the next requests are parsed while the peers answer the last.
const READS_MAX: usize = 16;
/// The most connections accepted at one door at a time.
const ACCEPTS_MAX: usize = 256;

/// The clients of all doors.
pub(crate) struct Clients {
    doors: Vec<OpenDoor>,
    clients: Slab<Client>,
    /// Who is read in turn.
    readable: Readable,
    dirty: Vec<usize>,
    /// More connections wait at a door than were taken.
    has_more_at_door: bool,
    scratch: BytesMut,
    last_id: u64,
    is_stopping: bool,
    seed: u64,
    shared: Arc<Shared>,
    serving: Arc<Serving>,
}

impl Clients {
    /// Doors that nobody has come through yet.
    pub fn new(doors: Vec<OpenDoor>, shared: Arc<Shared>, seed: u64) -> Clients {
        Clients {
            doors,
            clients: Slab::new(),
            readable: Readable::default(),
            dirty: Vec::new(),
            has_more_at_door: false,
            scratch: BytesMut::new(),
            last_id: 0,
            is_stopping: false,
            seed,
            shared,
            serving: Arc::default(),
        }
    }

    /// The cells of all doors.
    pub fn doors(&self) -> Vec<Arc<DoorCells>> {
        self.doors.iter().map(|door| Arc::clone(&door.cells)).collect()
    }

    /// Keyspaces came or went. Who works on one that went is told so by its next operation.
    pub fn set_keyspaces(&mut self, table: &Table) {
        self.serving = Arc::new(Serving::new(table.numbered(), table.is_durable()));
        for (_, client) in &mut self.clients {
            client.session.set_serving(&self.serving);
        }
    }

    /// The poller tells now who has sent something: of all clients, or of as many as it can.
    pub fn look(&mut self, now: Time, is_all: bool) {
        self.readable.look(now, is_all && !std::mem::take(&mut self.has_more_at_door));
    }

    /// All that clients had sent by then was read, but for those that are told apart
    /// ([`Session::on_unread`]).
    pub fn read_upto(&self) -> Time {
        self.readable.read_upto()
    }

    /// Takes the connections that wait at a door.
    pub fn accept(&mut self, door: usize, now: Time, registry: &Registry) {
        for _ in 0..ACCEPTS_MAX {
            match self.doors[door].listener.next() {
                Ok(Some(stream)) => self.enter(door, stream, now, registry),
                Ok(None) => return,
                Err(_) => return self.shared.reject(RejectReason::Clients),
            }
        }
        self.has_more_at_door = true;
        self.doors[door].listener.rearm(registry);
    }

    /// Looks again after those who waited at a door and could not be taken.
    pub fn accept_again(&mut self, registry: &Registry) {
        self.doors.iter_mut().for_each(|door| door.listener.rearm_failed(registry));
    }

    fn enter(&mut self, number: usize, stream: TcpStream, now: Time, registry: &Registry) {
        let door = &mut self.doors[number];
        let Some(mut stream) = door.admit(stream) else {
            return self.shared.reject(RejectReason::Clients);
        };
        self.last_id += 1;
        let id = self.last_id;
        let address = |address: std::io::Result<std::net::SocketAddr>| {
            address.map_or_else(|_| String::new(), |address| address.to_string())
        };
        let connected = Connected {
            id,
            seed: self.seed ^ id,
            peer: address(stream.peer_addr()),
            local: address(stream.local_addr()),
        };
        let entry = self.clients.vacant_entry();
        let key = entry.key();
        let interest = Interest::READABLE | Interest::WRITABLE;
        if registry.register(&mut stream, token(CLIENT, key), interest).is_err() {
            return;
        }
        // Replies are written once per turn; waiting to gather more would only delay them.
        stream.set_nodelay(true).ok();
        pace::watch_silence(&stream).ok();
        entry.insert(Client {
            stream,
            id,
            door: number,
            session: door.protocol.open(connected, &self.serving),
            in_hand: 0,
            input: BytesMut::new(),
            is_readable: true,
            is_queued: true,
            is_dirty: false,
            is_ending: false,
            has_ended: false,
            parting_since: None,
            took_at: now,
            sent_at: now,
            pace: Pace::new(now),
            charge: Charge::default(),
        });
        self.readable.push_new(key);
        door.entered();
    }

    pub fn on_event(&mut self, key: usize, event: &mio::event::Event) {
        let Some(client) = self.clients.get_mut(key) else { return };
        client.is_ending |= event.is_read_closed() || event.is_error();
        if event.is_readable() || client.is_ending {
            queue(client, &mut self.readable, key);
        }
        if event.is_writable() && !client.session.output().is_empty() {
            mark(&mut client.is_dirty, &mut self.dirty, key);
        }
    }

    /// Whether a client has more to read and its session takes it.
    pub fn has_readable(&self) -> bool {
        !self.readable.is_empty()
    }

    /// Reads once from some clients that have something and whose session takes it, in turn.
    pub fn read(&mut self, clock: Clock, pending: &mut PendingRequests) {
        for _ in 0..READS_MAX {
            let Some(key) = self.readable.pop() else { return };
            if self.read_one(key, clock, pending).is_err() {
                self.close(key, pending);
            }
        }
    }

    fn read_one(
        &mut self,
        key: usize,
        clock: Clock,
        pending: &mut PendingRequests,
    ) -> std::io::Result<()> {
        let Some(client) = self.clients.get_mut(key) else { return Ok(()) };
        if !std::mem::replace(&mut client.is_queued, false) {
            // Whoever had the slot before was in the queue.
            return Ok(());
        }
        client.is_readable = false;
        if client.parting_since.is_some() {
            return self.drop_input(key);
        }
        let is_spent = self.doors[client.door].budget.is_spent();
        if !client.session.wants_input() || is_spent && client.charge.begun == 0 {
            // `go_on` comes back to it, or `maintain` when others have given back what they hold.
            client.is_readable = true;
            self.tell_unread(key, clock.now, pending);
            return Ok(());
        }
        client.sent_at = clock.now;
        // A client in the middle of a command reads into its own buffer, all others into one that
        // they share, so that thousands of idle clients hold no buffer.
        let is_fresh = client.input.is_empty();
        let mut input =
            std::mem::take(if is_fresh { &mut self.scratch } else { &mut client.input });
        if input.capacity() - input.len() < READ_BYTES_MIN {
            input.reserve(READ_BYTES);
        }
        let progress = io::read(&client.stream, &mut input)?;
        client.pace.on_read(is_fresh, clock.now);
        client.feed(&mut input, key, clock, pending);
        if is_fresh {
            if !input.is_empty() {
                client.input = BytesMut::from(&input[..]);
                input.clear();
            }
            self.scratch = input;
        } else if !input.is_empty() {
            client.input = input;
        }
        match progress {
            Progress::More => queue(client, &mut self.readable, key),
            // The end comes after the last bytes, and is announced only once.
            Progress::Drained if client.is_ending => queue(client, &mut self.readable, key),
            Progress::Drained => {}
            // An end that was told and is not there was that of another connection.
            Progress::Empty => client.is_ending = false,
            Progress::Closed => {
                client.has_ended = true;
                client.session.finish();
            }
        }
        mark(&mut client.is_dirty, &mut self.dirty, key);
        self.check_begun(key);
        Ok(())
    }

    /// Refuses a command for which there is no room, before more of it is read.
    fn check_begun(&mut self, key: usize) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let begun = client.session.begun_bytes(&client.input);
        let OpenDoor { name: door, budget, .. } = &self.doors[client.door];
        if begun > 0 && !budget.admits(client.charge, begun) {
            self.shared.reject(RejectReason::Memory);
            let (taken, limit) = (budget.taken(), budget.limit());
            client.session.refuse(&Shortage::Memory { door, bytes: begun, taken, limit });
            client.input = BytesMut::new();
        }
        self.settle(key);
    }

    /// Charges a client for what it holds now.
    fn settle(&mut self, key: usize) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let begun = client.session.begun_bytes(&client.input);
        let now = Charge { begun, held: client.session.held_bytes() };
        self.doors[client.door].budget.change(&mut client.charge, now);
    }

    /// A request of a session has ended, or its watch has an answer.
    pub fn complete(
        &mut self,
        asked: SessionRequest,
        outcome: Outcome,
        clock: Clock,
        pending: &mut PendingRequests,
    ) {
        let (key, id) = (asked.client, asked.client_id);
        let Some(client) = self.clients.get_mut(key).filter(|client| client.id == id) else {
            return;
        };
        client.in_hand -= usize::from(outcome.is_last());
        let in_hand = &mut client.in_hand;
        let mut starter = Starter { pending, client: (key, id), in_hand, now: clock.now };
        if client.session.output().is_empty() {
            client.pace.on_told(clock.now);
        }
        client.session.complete(asked.number, outcome, clock, &mut starter);
        client.feed_again(key, clock, pending);
        mark(&mut client.is_dirty, &mut self.dirty, key);
    }

    /// Writes what waits, lets sessions go on that were held back by it, closes those that are
    /// done.
    pub fn flush(&mut self, clock: Clock, pending: &mut PendingRequests) {
        for key in std::mem::take(&mut self.dirty) {
            let Some(client) = self.clients.get_mut(key) else { continue };
            client.is_dirty = false;
            let before = client.session.output().len();
            let written = io::write(&mut client.stream, client.session.output());
            let left = client.session.output().len();
            if left < before || before == 0 {
                client.took_at = clock.now;
            }
            client.pace.on_taken(before - left, left, clock.now);
            let is_done = client.session.is_closing() && client.session.output().is_empty();
            if written.is_err() || is_done {
                if written.is_err() || !self.part(key, clock.now) {
                    self.close(key, pending);
                }
                continue;
            }
            self.go_on(key, clock, pending);
            self.settle(key);
        }
        for door in &self.doors {
            door.cells.clients_bytes.set(door.budget.taken() as u64);
        }
    }

    /// Goes on with what the session held back, and with reading if it takes input again.
    fn go_on(&mut self, key: usize, clock: Clock, pending: &mut PendingRequests) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.feed_again(key, clock, pending) {
            mark(&mut client.is_dirty, &mut self.dirty, key);
        }
        if client.is_readable && client.session.wants_input() {
            queue(client, &mut self.readable, key);
        }
    }

    /// Whether anything waits to be written.
    pub fn has_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Takes no further commands; each client is closed when those read so far were answered.
    pub fn finish(&mut self) {
        self.is_stopping = true;
        for (key, client) in &mut self.clients {
            client.session.finish();
            mark(&mut client.is_dirty, &mut self.dirty, key);
        }
    }

    /// Whether every client was closed.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }
}

/// Has a client read in its turn. All of them may want that at one moment, so the queue is never
/// searched.
fn queue(client: &mut Client, readable: &mut Readable, key: usize) {
    client.is_readable = true;
    client.pace.on_sent(readable.looked());
    if !std::mem::replace(&mut client.is_queued, true) || mutant!("client_queued_twice") {
        readable.push(key);
    }
}
