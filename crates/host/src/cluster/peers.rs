//! The other hosts: who is known, where each is looked for, and whether it may connect.
//!
//! At first they are those of the data directory; from then on they follow the ring. A host that
//! says hello and is not known yet is taken in all the same: it may be joining, and what it says of
//! itself arrives by gossip. If the ring never hears of it, it is forgotten when it disconnects.

mod dial;
mod numbers;
mod seen;

use super::handshake::{Hello, HelloError};
use super::names::Names;
use crate::metrics::{PeerCells, Shared};
use quorate_kernel::ids::{NodeId, Start};
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_kernel::sighting::Sighting;
use slab::Slab;
use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long after a lost connection it is dialled again, at first and at most.
pub(super) const DIAL_AFTER: Duration = Duration::from_millis(20);
pub(super) const DIAL_AFTER_MAX: Duration = Duration::from_secs(1);
/// How long a host waits for one that should dial it and never has. That one may not know of it
/// yet, as none does of a host that joins.
const PATIENCE: Duration = Duration::from_millis(500);
/// The most connected hosts of which the ring knows nothing.
const UNLISTED_MAX: usize = 64;

/// One other host.
pub(super) struct Peer {
    pub node: NodeId,
    address: String,
    /// Where the address leads; none until its name was looked up.
    pub resolved: Option<SocketAddr>,
    /// Whether the name is being looked up.
    is_asked: bool,
    pub link: Option<usize>,
    /// Since when no connection carries frames, until that was told; none while one does.
    pub away_since: Option<Instant>,
    /// Whether it came since this host was started.
    has_come: bool,
    /// The highest start that the ring knows.
    heard: Start,
    pub dial_at: Instant,
    pub dial_after: Duration,
    pub dropped: u64,
    /// How often it refused a secret of this host.
    pub refusals: usize,
    /// The last complaint about it, so that each is logged once.
    pub complaint: Option<HelloError>,
    pub cells: Arc<PeerCells>,
    /// The number it has, or says that it has; 0 if it has none.
    claim: u32,
    /// Whether the directory says so.
    is_numbered: bool,
    /// Whether the directory or the ring names it.
    pub is_listed: bool,
}

/// All other hosts.
pub(crate) struct Peers {
    me: NodeId,
    peers: Slab<Peer>,
    /// Where each node is in `peers`, in the order of nodes.
    places: Vec<(NodeId, usize)>,
    /// What this host has seen of each node, in this start and in earlier ones.
    seen: BTreeMap<NodeId, Sighting>,
    /// Whether that was taken since it changed.
    is_seen_taken: bool,
    /// Whether the numbers were taken since they changed.
    are_numbers_taken: bool,
    /// Nodes that have left for good.
    left: HashSet<NodeId>,
    /// Whether this host itself was removed.
    pub is_removed: bool,
    names: Names,
    shared: Arc<Shared>,
}

impl Peers {
    pub fn new(
        me: NodeId,
        known: &[RingHost],
        numbers: &[(NodeId, u32)],
        seen: Vec<Sighting>,
        shared: Arc<Shared>,
    ) -> Peers {
        let mut peers = Peers {
            me,
            peers: Slab::new(),
            places: Vec::new(),
            seen: seen.into_iter().map(|one| (one.node, one)).collect(),
            is_seen_taken: true,
            are_numbers_taken: true,
            left: HashSet::new(),
            is_removed: false,
            names: Names::default(),
            shared,
        };
        for host in known.iter().filter(|host| host.who.node != me) {
            let node = host.who.node;
            let number = numbers.iter().find(|(other, _)| *other == node).map_or(0, |(_, n)| *n);
            let index = peers.add(node, Arc::new(PeerCells::new(number, node, &host.address)));
            let peer = &mut peers.peers[index];
            (peer.is_listed, peer.claim, peer.is_numbered) = (true, number, number != 0);
            peers.look_for(index, &host.address);
        }
        peers.publish();
        peers
    }

    /// Where a node is among the peers.
    pub fn find(&self, node: NodeId) -> Option<usize> {
        let place = self.places.binary_search_by_key(&node, |(node, _)| *node).ok()?;
        Some(self.places[place].1)
    }

    pub fn get(&self, index: usize) -> Option<&Peer> {
        self.peers.get(index)
    }

    pub fn get_mut(&mut self, index: usize) -> Option<&mut Peer> {
        self.peers.get_mut(index)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Peer> {
        self.peers.iter().map(|(_, peer)| peer)
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Peer> {
        self.peers.iter_mut().map(|(_, peer)| peer)
    }

    fn add(&mut self, node: NodeId, cells: Arc<PeerCells>) -> usize {
        // Of two hosts the one with the lower node dials, so that there is one connection.
        let patience = if self.me < node { Duration::ZERO } else { PATIENCE };
        let index = self.peers.insert(Peer {
            node,
            address: String::new(),
            resolved: None,
            is_asked: false,
            link: None,
            away_since: Some(Instant::now()),
            has_come: false,
            heard: Start(0),
            dial_at: Instant::now() + patience,
            dial_after: DIAL_AFTER,
            dropped: 0,
            refusals: 0,
            complaint: None,
            cells,
            claim: 0,
            is_numbered: false,
            is_listed: false,
        });
        let place = self.places.partition_point(|(other, _)| *other < node);
        self.places.insert(place, (node, index));
        index
    }

    /// Looks for a peer at an address from now on.
    fn look_for(&mut self, index: usize, address: &str) {
        let peer = &mut self.peers[index];
        if peer.address == address || address.is_empty() {
            return;
        }
        address.clone_into(&mut peer.address);
        peer.cells.set_address(address);
        match address.parse() {
            Ok(resolved) => (peer.resolved, peer.is_asked) = (Some(resolved), false),
            Err(_) => self.look_up(index),
        }
    }

    /// Has a peer's name looked up. The old place stays until the new one was found.
    fn look_up(&mut self, index: usize) {
        let peer = &mut self.peers[index];
        peer.is_asked = true;
        self.names.ask(peer.node, &peer.address);
    }

    /// A peer was not found where its address led: its name may lead elsewhere by now.
    pub fn look_again(&mut self, index: usize) {
        let is_name =
            |peer: &Peer| !peer.address.is_empty() && peer.address.parse::<SocketAddr>().is_err();
        if self.peers.get(index).is_some_and(|peer| !peer.is_asked && is_name(peer)) {
            self.look_up(index);
        }
    }

    /// Takes the names that were looked up since.
    pub fn take_names(&mut self) {
        while let Some((node, resolved)) = self.names.answer() {
            if let Some(index) = self.find(node) {
                let peer = &mut self.peers[index];
                (peer.resolved, peer.is_asked) = (Some(resolved), false);
            }
        }
    }

    /// Who has left for good.
    pub fn left(&self) -> &HashSet<NodeId> {
        &self.left
    }

    /// Follows the ring: adds who came, moves who moved. Answers who has left, and is forgotten by
    /// [`Peers::forget`] once its connection is closed.
    pub fn set_ring(&mut self, ring: &Ring) -> Vec<usize> {
        let standing = ring.host(self.me).map(|host| host.standing);
        self.is_removed |= standing == Some(Standing::Left);
        let mut gone = Vec::new();
        let before = self.places.len();
        let me = self.me;
        for host in ring.hosts().iter().filter(|host| host.who.node != me) {
            let node = host.who.node;
            let found = self.find(node);
            if host.standing == Standing::Left {
                self.left.insert(node);
                self.is_seen_taken &= self.seen.remove(&node).is_none();
                gone.extend(found);
                continue;
            }
            let index = found.unwrap_or_else(|| {
                self.add(node, Arc::new(PeerCells::new(0, node, &host.address)))
            });
            let peer = &mut self.peers[index];
            peer.is_listed = true;
            peer.heard = peer.heard.max(host.who.start);
            self.look_for(index, &host.address);
        }
        if self.places.len() != before {
            self.publish();
        }
        gone
    }

    /// Lets a host connect that said hello, if it may; its place among the peers. That is not yet
    /// to believe it: it may itself find that it is not who it was, and then says nothing more.
    pub fn greet(&mut self, hello: &Hello) -> Result<usize, HelloError> {
        self.check(hello)?;
        let node = hello.from.node;
        let index = match self.find(node) {
            Some(index) => index,
            None => self.take_in(node)?,
        };
        let peer = &mut self.peers[index];
        peer.has_come = true;
        peer.dial_after = DIAL_AFTER;
        peer.complaint = None;
        peer.cells.set_trouble("");
        self.claim(index, hello.number);
        Ok(index)
    }

    /// The other hosts that the directory or the ring names.
    pub fn listed(&self) -> Vec<NodeId> {
        self.iter().filter(|peer| peer.is_listed).map(|peer| peer.node).collect()
    }

    fn take_in(&mut self, node: NodeId) -> Result<usize, HelloError> {
        let unlisted = self.iter().filter(|peer| !peer.is_listed).count();
        if unlisted >= UNLISTED_MAX {
            return Err(HelloError::Crowd { node });
        }
        let index = self.add(node, Arc::new(PeerCells::new(0, node, "")));
        self.publish();
        Ok(index)
    }

    /// Forgets a peer that the ring does not name, or no longer.
    pub fn forget(&mut self, index: usize) {
        let Some(peer) = self.peers.get(index) else { return };
        if !peer.is_listed || self.left.contains(&peer.node) {
            let node = self.peers.remove(index).node;
            self.places.retain(|(other, _)| *other != node);
            self.publish();
            self.renumber();
        }
    }

    /// Shows the outside who is known.
    fn publish(&self) {
        let mut cells: Vec<_> = self.iter().map(|peer| Arc::clone(&peer.cells)).collect();
        // Numbered hosts first, as people know them.
        cells.sort_by_key(|cells| (cells.host() == 0, cells.host(), cells.node));
        self.shared.set_peers(cells);
    }
}

#[cfg(test)]
mod tests;
