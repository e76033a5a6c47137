//! Connections to the other hosts: one for each pair, carrying frames both ways.
//!
//! The node with the lower id dials, the other accepts; a newer connection replaces an older one.
//! Nothing is read of a connection, and nothing known of its other side is touched, before that
//! side has proven that it belongs to the cluster.
//! What waits for a peer is bounded: a peer that does not read loses frames, and protocols repeat.

mod ending;
mod hello;
#[cfg(test)]
mod tests;

use super::faults::{Fate, Faults};
use super::handshake::Hello;
use super::link::{Greeting, Link, Loss, Wanted};
use super::meeting::Meeting;
use super::peers::{DIAL_AFTER_MAX, Peers};
use super::sent::Sent;
use crate::io::Progress;
use crate::mark;
use crate::metrics::{RejectReason, Shared};
use crate::proof::Encrypt;
use crate::proof::Secrets;
use crate::token::{LINK, token};
use mio::net::TcpStream;
use mio::{Interest, Registry};
use quorate_kernel::ids::{Incarnation, Lsn, NodeId};
use quorate_kernel::limits::{LARGE_FRAME_BYTES, LARGE_QUEUE_BYTES_MAX};
use quorate_kernel::limits::{PEER_QUEUE_BYTES_MAX, PEER_UNSYNCED_BYTES_MAX};
use quorate_kernel::ring::{Ring, RingHost};
use quorate_kernel::rope::Rope;
use quorate_kernel::sighting::Sighting;
use quorate_kernel::wire::Frame;
use quorate_node::pump::Input;
use quorate_store::Secret;
use rustix::net::sockopt::set_tcp_user_timeout;
use slab::Slab;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The most reads from one peer in one turn.
const READS_MAX: usize = 8;
/// How long a new connection may take to prove itself and say hello.
const HELLO_WITHIN: Duration = Duration::from_secs(5);
/// How long what was sent may stay unacknowledged. Left alone, TCP waits ever longer, and two hosts
/// would find each other again as late after a cut as the cut was long.
const SILENT_WITHIN_MS: u32 = 3_000;
/// The most accepted connections that have not said hello. One more takes the place of the oldest:
/// a host needs milliseconds, and who only holds a place must not keep it out.
const STRANGERS_MAX: usize = 64;
/// How often a connection says at least how far this host has synced.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// How long a connection may be silent before its other end may be gone.
const SILENT_WITHIN: Duration = Duration::from_secs(2);
/// All connections to other hosts.
pub(crate) struct Links {
    hello: Hello,
    peers: Peers,
    meeting: Meeting,
    /// Whether the meeting is over, and frames may leave.
    is_speaking: bool,
    /// Whether the disk is so far behind that frames of keyspaces are dropped.
    has_backlog: bool,
    /// How far the log has synced: what leaves may rest on that.
    synced: Lsn,
    links: Slab<Link>,
    readable: Vec<usize>,
    /// Peers to which a connection has ended, of which the node is not told yet.
    unlinked: Vec<NodeId>,
    dirty: Vec<usize>,
    faults: Faults,
    pub sent: Sent,
    proofs: Proofs,
    /// When a stranger's refusal was last logged, and how many were not since.
    strangers: (Option<Instant>, u64),
    shared: Arc<Shared>,
}

/// How connections are proven and kept secret.
pub(crate) struct Proofs {
    pub secrets: Arc<Secrets>,
    pub encrypt: Encrypt,
    accepted: Arc<[Secret]>,
    /// How often the secrets had changed when `accepted` was taken.
    changes: u64,
}

impl Proofs {
    pub fn new(secrets: Arc<Secrets>, encrypt: Encrypt) -> Proofs {
        let (changes, accepted) = (secrets.changes(), secrets.accepted());
        Proofs { secrets, encrypt, accepted, changes }
    }

    /// Whether this host wants the frames of a connection encrypted: if they leave this machine, or
    /// always.
    fn encrypts(&self, stream: &TcpStream) -> bool {
        let ends = [stream.local_addr(), stream.peer_addr()];
        let is_here = |end: &std::io::Result<std::net::SocketAddr>| {
            end.as_ref().is_ok_and(|end| end.ip().to_canonical().is_loopback())
        };
        self.encrypt == Encrypt::Always || !ends.iter().all(is_here)
    }
}

impl Links {
    pub fn new(
        hello: Hello,
        known: &[RingHost],
        numbers: &[(NodeId, u32)],
        (meeting, seen, synced): (Meeting, Vec<Sighting>, Lsn),
        proofs: Proofs,
        shared: Arc<Shared>,
    ) -> Links {
        Links {
            hello,
            peers: Peers::new(hello.from.node, known, numbers, seen, Arc::clone(&shared)),
            meeting,
            is_speaking: false,
            has_backlog: false,
            synced,
            links: Slab::new(),
            readable: Vec::new(),
            unlinked: Vec::new(),
            dirty: Vec::new(),
            faults: Faults::default(),
            sent: Sent::default(),
            proofs,
            strangers: (None, 0),
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

    /// The numbers of all hosts, if they have changed since this was last asked.
    pub fn take_numbers(&mut self) -> Option<Vec<(NodeId, u32)>> {
        self.peers.take_numbers()
    }

    /// The faults in force.
    pub fn faults(&mut self) -> &mut Faults {
        &mut self.faults
    }

    /// Says how many bytes wait for the disk. While they are too many, what keyspaces of other
    /// hosts ask is dropped, since it brings more of them; protocols ask again. The overlay and the
    /// catalog go on: they write and answer little.
    pub fn set_waiting(&mut self, bytes: usize) {
        self.has_backlog = bytes >= PEER_UNSYNCED_BYTES_MAX;
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
        let has_room = |link: &Link| match link.waiting() {
            0 => true,
            waiting if bytes > LARGE_FRAME_BYTES => waiting <= LARGE_QUEUE_BYTES_MAX,
            waiting => waiting + bytes <= PEER_QUEUE_BYTES_MAX,
        };
        match link.filter(|(_, link)| link.is_up() && has_room(link)) {
            Some((key, link)) => {
                if link.said.is_none_or(|(said, _)| said < self.synced) {
                    let report = link.report(self.synced, self.peers.left());
                    link.say(self.hello.from, node, &report);
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
        let strangers = self.links.iter().filter(|(_, link)| link.peer.is_none());
        let (count, oldest) = (strangers.clone().count(), strangers.min_by_key(|(_, it)| it.began));
        if let Some((oldest, _)) = oldest.filter(|_| count >= STRANGERS_MAX) {
            self.shared.reject(RejectReason::Handshake);
            self.close(oldest);
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
            let stream = TcpStream::connect(address).ok();
            let key = stream.and_then(|stream| self.add(stream, Some(index), registry));
            match self.peers.get_mut(index) {
                Some(peer) if key.is_some() => peer.link = key,
                _ => self.peers.look_again(index),
            }
        }
    }

    /// Closes what never said hello or rests on a secret that is not accepted any more, and counts
    /// what waits.
    pub fn maintain(&mut self, now: Instant) {
        self.peers.take_names();
        self.take_secrets();
        let is_late = |link: &Link| !link.is_up() && now > link.began + HELLO_WITHIN;
        let late = self.links.iter().filter(|(_, link)| is_late(link));
        let late: Vec<usize> = late.map(|(key, _)| key).collect();
        late.into_iter().for_each(|key| self.close(key));
        self.tell_unreached(now);
        if self.is_speaking {
            self.tell_progress();
        }
        for peer in self.peers.iter() {
            peer.cells.frames_dropped.set(peer.dropped);
            let link = peer.link.and_then(|key| self.links.get(key));
            peer.cells.queued_bytes.set(link.map_or(0, |link| link.waiting() as u64));
        }
    }

    /// The secrets may have changed: what was proven by one that is not accepted any more ends.
    fn take_secrets(&mut self) {
        let changes = self.proofs.secrets.changes();
        if std::mem::replace(&mut self.proofs.changes, changes) == changes {
            return;
        }
        self.proofs.accepted = self.proofs.secrets.accepted();
        let accepted = &self.proofs.accepted;
        let is_void = |link: &Link| link.secret.is_some_and(|secret| !accepted.contains(&secret));
        let void = self.links.iter().filter(|(_, link)| is_void(link)).map(|(key, _)| key);
        void.collect::<Vec<_>>().into_iter().for_each(|key| self.close(key));
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
        let encrypts = self.proofs.encrypts(&stream);
        let mut link = Link::new(stream, peer, encrypts);
        let interest = Interest::READABLE | Interest::WRITABLE;
        registry.register(&mut link.stream, token(LINK, key), interest).ok()?;
        // Without it small frames wait for the acknowledgement of the ones before.
        link.stream.set_nodelay(true).ok();
        set_tcp_user_timeout(&link.stream, SILENT_WITHIN_MS).ok();
        if let Some(peer) = peer.and_then(|index| self.peers.get(index)) {
            let accepted = &self.proofs.accepted;
            link.ask(accepted[peer.refusals % accepted.len()]);
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

    /// Whether there is more to read.
    pub fn has_readable(&self) -> bool {
        !self.readable.is_empty() || !self.unlinked.is_empty()
    }

    /// Reads what has arrived and cuts it into frames.
    pub fn read(&mut self, inputs: &mut Vec<Input>) {
        for key in std::mem::take(&mut self.readable) {
            if let Err(why) = self.read_one(key, inputs) {
                self.lose(key, &why);
            }
        }
        inputs.extend(self.unlinked.drain(..).map(Input::Unlinked));
    }

    fn read_one(&mut self, key: usize, inputs: &mut Vec<Input>) -> Result<(), Loss> {
        for _ in 0..READS_MAX {
            let Some(link) = self.links.get_mut(key) else { return Ok(()) };
            let progress = link.read().map_err(|loss| match loss {
                Loss::Closed => link.last_words(),
                other => other,
            })?;
            self.cut(key, inputs)?;
            match progress {
                Progress::More => {}
                // The end comes after the last bytes, and is announced only once.
                Progress::Drained if self.links.get(key).is_some_and(|link| link.is_ending) => {}
                Progress::Drained | Progress::Empty => {
                    if let Some(link) = self.links.get_mut(key) {
                        // An end that was told and is not there was that of the connection that
                        // had this place before.
                        (link.is_readable, link.is_ending) = (false, false);
                    }
                    return Ok(());
                }
                Progress::Closed => {
                    return Err(self.links.get(key).map_or(Loss::Closed, Link::last_words));
                }
            }
        }
        self.readable.push(key);
        Ok(())
    }

    fn cut(&mut self, key: usize, inputs: &mut Vec<Input>) -> Result<(), Loss> {
        let Some(link) = self.links.get_mut(key) else { return Ok(()) };
        if !link.is_up() {
            let to = link.peer.and_then(|peer| self.peers.get(peer)).map(|peer| peer.node);
            // Who accepted learns from the hello which node to greet.
            let to = to.unwrap_or(self.hello.from.node);
            let me = Hello { to, word: self.peers.word(to), ..self.hello };
            let greeting = link.prove(&self.proofs.accepted, &me);
            if !link.out.is_empty() {
                mark(&mut link.is_dirty, &mut self.dirty, key);
            }
            let Some(greeting) = greeting? else { return Ok(()) };
            self.greet(key, &greeting).map_err(Loss::Refused)?;
        }
        let Some(link) = self.links.get_mut(key) else { return Ok(()) };
        let wanted = match (self.is_speaking, self.has_backlog) {
            // Until this host speaks itself it is not there.
            (false, _) => Wanted::None,
            (true, true) => Wanted::NoKeyspaces,
            (true, false) => Wanted::All,
        };
        let arrived = link.frames(wanted, inputs)?;
        let (Incarnation { node, start }, run) = link.greeted;
        self.meeting.leave_out(&arrived.left);
        if let Some(synced) = arrived.synced {
            self.peers.see(Sighting { node, start, run, synced });
        }
        self.shared.reject_many(RejectReason::Frame, arrived.foreign);
        self.shared.reject_many(RejectReason::Backlog, arrived.late);
        Ok(())
    }

    /// Writes what waits.
    pub fn flush(&mut self) {
        for key in std::mem::take(&mut self.dirty) {
            let Some(link) = self.links.get_mut(key) else { continue };
            link.is_dirty = false;
            if link.write().is_err() {
                self.lose(key, &Loss::Closed);
            }
        }
    }
}
