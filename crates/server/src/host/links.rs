//! Connections to the other hosts: one for each pair, carrying frames both ways.
//!
//! The node with the lower id dials, the other accepts; a newer connection replaces an older one.
//! What waits for a peer is bounded: a peer that does not read loses frames, and protocols repeat.

mod hello;

use super::faults::{Fate, Faults};
use super::handshake::{HELLO_BYTES, Hello, HelloError, VERSION_BYTES};
use super::io::{self, Progress};
use super::mark;
use super::meeting::Meeting;
use super::peers::{DIAL_AFTER_MAX, Peers};
use super::progress;
use super::sent::Sent;
use super::token::{LINK, token};
use crate::metrics::{RejectReason, Shared};
use bytes::BytesMut;
use mio::net::TcpStream;
use mio::{Interest, Registry};
use quorate_kernel::ids::{Incarnation, Lsn, NodeId};
use quorate_kernel::limits::PEER_QUEUE_BYTES_MAX;
use quorate_kernel::ring::{Ring, RingHost};
use quorate_kernel::rope::Rope;
use quorate_kernel::sighting::Sighting;
use quorate_kernel::wire::{Frame, frame_length};
use quorate_node::pump::Input;
use rustix::net::sockopt::set_tcp_user_timeout;
use slab::Slab;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How much room a read from a peer gets.
const READ_BYTES: usize = 256 * 1024;
/// The least room left before more is taken.
const READ_BYTES_MIN: usize = 16 * 1024;
/// The most reads from one peer in one turn.
const READS_MAX: usize = 8;
/// How long a new connection may take to say hello.
const HELLO_WITHIN: Duration = Duration::from_secs(5);
/// How long what was sent may stay unacknowledged. Left alone, TCP waits ever longer, and two hosts
/// would find each other again as late after a cut as the cut was long.
const SILENT_WITHIN_MS: u32 = 3_000;
/// The most accepted connections that have not said hello.
const STRANGERS_MAX: usize = 64;
/// How often a connection says at least how far this host has synced.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// How long a connection may be silent before its other end may be gone.
const SILENT_WITHIN: Duration = Duration::from_secs(2);

/// One connection.
struct Link {
    stream: TcpStream,
    /// Which peer it is; known from the start if this host dialled, from its hello otherwise.
    peer: Option<usize>,
    is_up: bool,
    /// Which start of the peer, and which run of it, said hello.
    greeted: (Incarnation, u64),
    began: Instant,
    heard_at: Instant,
    /// What the peer was told of how far this host has synced, and when.
    said: Option<(Lsn, Instant)>,
    input: BytesMut,
    out: Rope,
    is_readable: bool,
    is_dirty: bool,
    /// The peer will send nothing more than what the socket holds.
    is_ending: bool,
}

/// All connections to other hosts.
pub(super) struct Links {
    hello: Hello,
    peers: Peers,
    meeting: Meeting,
    /// Whether the meeting is over, and frames may leave.
    is_speaking: bool,
    /// How far the log has synced: what leaves may rest on that.
    synced: Lsn,
    links: Slab<Link>,
    readable: Vec<usize>,
    dirty: Vec<usize>,
    faults: Faults,
    pub sent: Sent,
    shared: Arc<Shared>,
}

impl Links {
    pub fn new(
        hello: Hello,
        known: &[RingHost],
        numbers: &[(NodeId, u32)],
        (meeting, seen, synced): (Meeting, Vec<Sighting>, Lsn),
        shared: Arc<Shared>,
    ) -> Links {
        Links {
            hello,
            peers: Peers::new(hello.from.node, known, numbers, seen, Arc::clone(&shared)),
            meeting,
            is_speaking: false,
            synced,
            links: Slab::new(),
            readable: Vec::new(),
            dirty: Vec::new(),
            faults: Faults::default(),
            sent: Sent::default(),
            shared,
        }
    }

    /// Follows the ring: connects to who came, looks for who moved, parts with who has left.
    pub fn set_ring(&mut self, ring: &Ring) {
        for index in self.peers.set_ring(ring) {
            let link = self.peers.get(index).and_then(|peer| peer.link);
            match link {
                Some(key) => self.close(key),
                None => self.peers.forget(index),
            }
        }
    }

    /// The faults in force.
    pub fn faults(&mut self) -> &mut Faults {
        &mut self.faults
    }

    /// Queues a frame for its target; drops it if the target is away or does not read.
    pub fn send(&mut self, frame: &Frame) {
        let fate = if self.faults.is_calm() { Fate::Sent } else { self.faults.judge(frame) };
        match fate {
            Fate::Sent => self.queue(frame.target.node, frame.body.frame_bytes(), |out| {
                frame.write(out);
            }),
            Fate::Dropped => self.count_dropped(frame.target.node),
            Fate::Kept => {}
        }
    }

    /// Sends the frames that were kept back on purpose until now.
    pub fn send_kept(&mut self, now: Instant) {
        let due = if self.faults.is_calm() { Vec::new() } else { self.faults.due(now) };
        for (node, bytes) in due {
            self.queue(node, bytes.len(), |out| out.push(bytes));
        }
    }

    fn queue(&mut self, node: NodeId, bytes: usize, write: impl FnOnce(&mut Rope)) {
        if !self.is_speaking {
            return;
        }
        let Some(index) = self.peers.find(node) else { return };
        let key = self.peers.get(index).and_then(|peer| peer.link);
        let link = key.and_then(|key| Some((key, self.links.get_mut(key)?)));
        let has_room =
            |link: &Link| link.out.is_empty() || link.out.len() + bytes <= PEER_QUEUE_BYTES_MAX;
        match link.filter(|(_, link)| link.is_up && has_room(link)) {
            Some((key, link)) => {
                if link.said.is_none_or(|(said, _)| said < self.synced) {
                    link.say(self.hello.from, node, self.synced);
                }
                write(&mut link.out);
                mark(&mut link.is_dirty, &mut self.dirty, key);
            }
            None => self.count_dropped(node),
        }
    }

    fn count_dropped(&mut self, node: NodeId) {
        let index = self.peers.find(node);
        if let Some(peer) = index.and_then(|index| self.peers.get_mut(index)) {
            peer.dropped += 1;
        }
    }

    /// Another host connected.
    pub fn accept(&mut self, stream: TcpStream, registry: &Registry) {
        let strangers = self.links.iter().filter(|(_, link)| link.peer.is_none()).count();
        if strangers >= STRANGERS_MAX {
            self.shared.reject(RejectReason::Handshake);
            return;
        }
        self.add(stream, None, registry);
    }

    /// Dials the peers whose time has come.
    pub fn dial(&mut self, now: Instant, registry: &Registry) {
        for index in self.peers.due(now) {
            let Some(peer) = self.peers.get_mut(index) else { continue };
            peer.dial_at = now + peer.dial_after;
            peer.dial_after = (peer.dial_after * 2).min(DIAL_AFTER_MAX);
            let Some(address) = peer.resolved else { continue };
            if let Ok(stream) = TcpStream::connect(address) {
                let key = self.add(stream, Some(index), registry);
                if let Some(peer) = self.peers.get_mut(index) {
                    peer.link = key;
                }
            }
        }
    }

    /// Closes what never said hello, and counts what waits.
    pub fn tend(&mut self, now: Instant) {
        self.peers.take_names();
        let is_late = |link: &Link| !link.is_up && now > link.began + HELLO_WITHIN;
        let late = self.links.iter().filter(|(_, link)| is_late(link));
        let late: Vec<usize> = late.map(|(key, _)| key).collect();
        late.into_iter().for_each(|key| self.close(key));
        if self.is_speaking {
            self.tell_progress();
        }
        for peer in self.peers.iter() {
            peer.cells.frames_dropped.set(peer.dropped);
            let link = peer.link.and_then(|key| self.links.get(key));
            peer.cells.queued_bytes.set(link.map_or(0, |link| link.out.len() as u64));
        }
    }

    /// When something must be done though nothing arrives.
    pub fn next_due(&self) -> Option<Instant> {
        [self.peers.next_dial(), self.faults.next_due()].into_iter().flatten().min()
    }

    fn add(
        &mut self,
        stream: TcpStream,
        peer: Option<usize>,
        registry: &Registry,
    ) -> Option<usize> {
        let entry = self.links.vacant_entry();
        let key = entry.key();
        let mut link = Link {
            stream,
            peer,
            is_up: false,
            greeted: (Incarnation::default(), 0),
            began: Instant::now(),
            heard_at: Instant::now(),
            said: None,
            input: BytesMut::new(),
            out: Rope::default(),
            is_readable: false,
            is_dirty: false,
            is_ending: false,
        };
        let interest = Interest::READABLE | Interest::WRITABLE;
        registry.register(&mut link.stream, token(LINK, key), interest).ok()?;
        // Without it small frames wait for the acknowledgement of the ones before.
        link.stream.set_nodelay(true).ok();
        set_tcp_user_timeout(&link.stream, SILENT_WITHIN_MS).ok();
        // Who accepted learns from the hello which node to greet.
        if let Some(peer) = peer.and_then(|index| self.peers.get(index)) {
            let word = self.peers.word(peer.node);
            let hello = Hello { to: peer.node, word, ..self.hello };
            link.out.push_slice(&hello.to_bytes());
        }
        entry.insert(link);
        Some(key)
    }

    /// The operating system says that a connection can be read or written.
    pub fn on_event(&mut self, key: usize, event: &mio::event::Event) {
        let Some(link) = self.links.get_mut(key) else { return };
        link.is_ending |= event.is_read_closed() || event.is_error();
        if event.is_readable() || link.is_ending {
            mark(&mut link.is_readable, &mut self.readable, key);
        }
        if event.is_writable() {
            mark(&mut link.is_dirty, &mut self.dirty, key);
        }
    }

    /// Whether a connection has more to read.
    pub fn has_readable(&self) -> bool {
        !self.readable.is_empty()
    }

    /// Reads what has arrived and cuts it into frames.
    pub fn read(&mut self, inputs: &mut Vec<Input>) {
        for key in std::mem::take(&mut self.readable) {
            if let Err(why) = self.read_one(key, inputs) {
                self.lose(key, &why);
            }
        }
    }

    fn read_one(&mut self, key: usize, inputs: &mut Vec<Input>) -> Result<(), Loss> {
        for _ in 0..READS_MAX {
            let Some(link) = self.links.get_mut(key) else { return Ok(()) };
            let needed = match link.is_up.then(|| frame_length(&link.input)).transpose() {
                Ok(length) => length.flatten().unwrap_or(0).saturating_sub(link.input.len()),
                Err(_) => return Err(Loss::Garbage),
            };
            if link.input.capacity() - link.input.len() < needed.max(READ_BYTES_MIN) {
                link.input.reserve(needed.max(READ_BYTES));
            }
            let before = link.input.len();
            let progress = io::read(&link.stream, &mut link.input).map_err(|_| Loss::Closed)?;
            if link.input.len() > before {
                link.heard_at = Instant::now();
            }
            self.cut(key, inputs)?;
            match progress {
                Progress::More => {}
                // The end comes after the last bytes, and is announced only once.
                Progress::Drained if self.links.get(key).is_some_and(|link| link.is_ending) => {}
                Progress::Drained => {
                    if let Some(link) = self.links.get_mut(key) {
                        link.is_readable = false;
                    }
                    return Ok(());
                }
                Progress::Closed => return Err(Loss::Closed),
            }
        }
        self.readable.push(key);
        Ok(())
    }

    fn cut(&mut self, key: usize, inputs: &mut Vec<Input>) -> Result<(), Loss> {
        let Some(link) = self.links.get_mut(key) else { return Ok(()) };
        if !link.is_up {
            let first = link.input.len().min(VERSION_BYTES);
            Hello::check_version(&link.input[..first]).map_err(Loss::Refused)?;
            if link.input.len() < HELLO_BYTES {
                return Ok(());
            }
            let bytes = link.input.split_to(HELLO_BYTES);
            let bytes = bytes.first_chunk().expect("a hello was split off");
            let hello = Hello::from_bytes(bytes).map_err(Loss::Refused)?;
            self.greet(key, &hello).map_err(Loss::Refused)?;
        }
        let Some(link) = self.links.get_mut(key) else { return Ok(()) };
        while let Some(length) = frame_length(&link.input).map_err(|_| Loss::Garbage)? {
            if link.input.len() < length {
                break;
            }
            let frame = link.input.split_to(length).freeze();
            if !progress::is_of_link(&frame) {
                // Until this host speaks itself it is not there.
                if self.is_speaking {
                    inputs.push(Input::Frame(frame));
                }
                continue;
            }
            let (source, synced) = progress::read(frame).map_err(|_| Loss::Garbage)?;
            let (peer, run) = link.greeted;
            if source != peer {
                return Err(Loss::Garbage);
            }
            let Incarnation { node, start } = source;
            self.peers.see(Sighting { node, start, run, synced });
        }
        Ok(())
    }

    /// Writes what waits.
    pub fn flush(&mut self) {
        for key in std::mem::take(&mut self.dirty) {
            let Some(link) = self.links.get_mut(key) else { continue };
            link.is_dirty = false;
            if io::write(&mut link.stream, &mut link.out).is_err() {
                self.lose(key, &Loss::Closed);
            }
        }
    }

    fn lose(&mut self, key: usize, why: &Loss) {
        let peer = self.links.get(key).and_then(|link| link.peer);
        match why {
            Loss::Closed => {}
            Loss::Garbage => {
                self.shared.reject(RejectReason::Frame);
                let peer = peer.and_then(|index| self.peers.get(index));
                let peer = peer.map(|peer| peer.node.to_string());
                tracing::warn!(
                    event = "peer_garbage",
                    peer,
                    "bytes are no frame; connection closed"
                );
            }
            Loss::Refused(error) => self.complain(peer, error),
        }
        self.close(key);
    }

    fn complain(&mut self, peer: Option<usize>, error: &HelloError) {
        self.shared.reject(RejectReason::Handshake);
        // Who was dialled is known; who connected is known by what it claims to be.
        let claimed = error.node().and_then(|node| self.peers.find(node));
        let peer = peer.or(claimed).and_then(|index| self.peers.get_mut(index));
        let address = match peer {
            Some(peer) => {
                if peer.complaint.as_ref() == Some(error) {
                    return;
                }
                peer.complaint = Some(error.clone());
                peer.cells.set_trouble(&error.to_string());
                peer.cells.address()
            }
            None => "a connection to this host".to_owned(),
        };
        if error.is_grave() {
            tracing::error!(event = "peer_refused", %address, reason = %error);
        } else {
            tracing::warn!(event = "peer_refused", %address, reason = %error);
        }
    }

    fn close(&mut self, key: usize) {
        let Some(link) = self.links.try_remove(key) else { return };
        let Some(index) = link.peer else { return };
        let Some(peer) = self.peers.get_mut(index).filter(|peer| peer.link == Some(key)) else {
            return;
        };
        peer.link = None;
        peer.dial_at = Instant::now() + peer.dial_after;
        peer.cells.set_up(&self.shared, false);
        if link.is_up {
            tracing::info!(event = "peer_down", peer = %peer.node);
        }
        self.peers.forget(index);
    }
}

/// Why a connection is closed.
enum Loss {
    Closed,
    Garbage,
    Refused(HelloError),
}
