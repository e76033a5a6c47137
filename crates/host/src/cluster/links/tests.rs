//! Connections between hosts over real sockets, with no node behind them.

use super::{Links, Proofs, STRANGERS_MAX};
use crate::cluster::handshake::{Hello, Word};
use crate::cluster::meeting::Meeting;
use crate::metrics::RejectReason;
use crate::proof::{Encrypt, Secrets};
use crate::samples;
use crate::token::{CLUSTER, connection};
use bytes::BytesMut;
use mio::net::TcpListener;
use mio::{Events, Interest, Poll};
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{ClusterId, Incarnation, LaneId, Lsn, NodeId, Start};
use quorate_kernel::limits::{PEER_UNSYNCED_BYTES_MAX, UNSYNCED_BYTES_MAX};
use quorate_kernel::ring::{RingHost, Standing};
use quorate_kernel::sighting::Past;
use quorate_kernel::wire::{Body, Decoder, Encoder, Frame, Received, Wire};
use quorate_node::pump::Input;
use quorate_store::{Identity, Secret};
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long what must come is waited for.
const PATIENCE: Duration = Duration::from_secs(120);
/// Where nobody listens.
const NOWHERE: &str = "127.0.0.1:1";

/// What a lane says.
struct Ping;

impl Wire for Ping {
    fn encode(&self, into: &mut Encoder<'_>) {
        into.head(&7_u8);
    }

    fn decode(_: &Decoder) -> Result<Ping, WireError> {
        Ok(Ping)
    }
}

/// The links of one process.
struct Side {
    poll: Poll,
    links: Links,
    listener: TcpListener,
    address: SocketAddr,
    inputs: Vec<Input>,
}

impl Side {
    /// A node that knows another one, at an address or at none.
    fn new(node: u64, other: u64, address: &str) -> Side {
        let me = Incarnation { node: NodeId(node), start: Start(1) };
        let known = RingHost {
            who: Incarnation { node: NodeId(other), start: Start(1) },
            address: address.to_owned(),
            zone: String::new(),
            tokens: vec![other],
            standing: Standing::Up,
            is_suspected: false,
            doors: Vec::new(),
        };
        let identity = Identity {
            cluster: ClusterId(0xc1),
            node: me.node,
            host: 0,
            is_founder: true,
            secret: Secret([7; 32]),
            context_key: None,
            hosts: Vec::new(),
            keyspaces: Vec::new(),
        };
        let secrets = Secrets::of(Path::new("/nowhere"), &identity).expect("the identity's");
        let proofs = Proofs::new(Arc::new(secrets), Encrypt::Auto);
        let (cluster, word, number) = (identity.cluster, Word::default(), 0);
        let hello = Hello { cluster, from: me, to: me.node, settings: 0, run: 9, word, number };
        let meeting = Meeting::new(me, hello.run, Past::default(), false);
        let met = (meeting, Vec::new(), Lsn(0));
        let shared = Arc::new(samples::shared());
        let links = Links::new(hello, &[known], &[], met, proofs, shared);
        let poll = Poll::new().expect("a poller");
        let any = "localhost:0".to_socket_addrs().expect("a known name").next();
        let mut listener = TcpListener::bind(any.expect("an address")).expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let registry = poll.registry();
        registry.register(&mut listener, CLUSTER, Interest::READABLE).expect("it is registered");
        Side { poll, links, listener, address, inputs: Vec::new() }
    }

    /// Takes what the poller has, and reads.
    fn take(&mut self) {
        let mut events = Events::with_capacity(2 * STRANGERS_MAX);
        self.poll.poll(&mut events, Some(Duration::from_millis(5))).expect("it polls");
        for event in &events {
            match (event.token(), connection(event.token())) {
                (CLUSTER, _) => {
                    while let Ok((stream, _)) = self.listener.accept() {
                        self.links.accept(stream, self.poll.registry());
                    }
                }
                (_, Some((_, key))) => self.links.on_event(key, event),
                (_, None) => {}
            }
        }
        self.links.read(&mut self.inputs);
    }

    /// One run of a core thread's loop.
    fn turn(&mut self) {
        self.take();
        let now = Instant::now();
        self.links.dial(now, self.poll.registry());
        self.links.flush();
        self.links.maintain(now);
    }

    /// Whether frames can go to a node.
    fn is_up(&self, node: u64) -> bool {
        let peer = self.links.peers.find(NodeId(node)).and_then(|it| self.links.peers.get(it));
        let link = peer.and_then(|peer| peer.link).and_then(|key| self.links.links.get(key));
        link.is_some_and(|link| link.is_up())
    }

    /// A frame of this node.
    fn frame(&self, lane: LaneId, to: u64) -> Frame {
        let target = Incarnation { node: NodeId(to), start: Start(1) };
        let body = Body::encode(&Ping, &mut BytesMut::new()).expect("it fits");
        Frame { lane, source: self.links.hello.from, target, body }
    }

    /// The lanes of the frames that have come.
    fn lanes(&self) -> Vec<LaneId> {
        let frames = self.inputs.iter().filter_map(|input| match input {
            Input::Frame(frame) => Some(frame.clone()),
            _ => None,
        });
        frames.map(|frame| Received::decode(frame).expect("it is whole").lane).collect()
    }

    /// How many connections have ended of which the node was told.
    fn unlinked(&self) -> usize {
        self.inputs.iter().filter(|input| matches!(input, Input::Unlinked(_))).count()
    }
}

/// Runs what is to bring something about, until it has.
fn until(mut has_come: impl FnMut() -> bool) {
    let began = Instant::now();
    while !has_come() {
        assert!(began.elapsed() < PATIENCE, "it never comes");
    }
}

#[test]
fn a_name_is_looked_up_again_when_nobody_is_found_where_it_led() {
    let other = Side::new(2, 1, "");
    let mut one = Side::new(1, 2, &format!("localhost:{}", other.address.port()));
    let index = one.links.peers.find(NodeId(2)).expect("it is known");
    until(|| {
        one.links.peers.take_names();
        one.links.peers.get(index).is_some_and(|peer| peer.resolved.is_some())
    });
    let peer = one.links.peers.get_mut(index).expect("it is known");
    peer.resolved = Some(NOWHERE.parse().expect("an address"));
    until(|| {
        one.turn();
        other.listener.accept().is_ok()
    });
}

#[test]
fn a_connection_does_not_end_with_the_one_whose_place_it_got() {
    let mut host = Side::new(1, 2, "");
    let address = host.address;
    let connect = || TcpStream::connect(address).expect("it listens");
    let strangers: Vec<TcpStream> = (0..STRANGERS_MAX).map(|_| connect()).collect();
    until(|| {
        host.turn();
        host.links.links.len() == STRANGERS_MAX
    });
    // So far the poller has told of all that there is.
    host.turn();
    // It tells of both at once: the late one takes the place of the oldest, and then that
    // one's end is told.
    let late = connect();
    strangers[0].shutdown(Shutdown::Write).expect("it is connected");
    let from = late.local_addr().expect("it is connected");
    until(|| {
        host.take();
        let mut all = host.links.links.iter();
        all.any(|(_, link)| link.stream.peer_addr().is_ok_and(|peer| peer == from))
    });
    until(|| {
        host.take();
        !host.links.has_readable()
    });
    assert_eq!(host.links.links.len(), STRANGERS_MAX);
}

#[test]
fn a_connection_that_another_replaces_is_told_as_one_that_ended() {
    let mut host = Side::new(2, 1, "");
    let address = host.address.to_string();
    let (mut first, mut second) = (Side::new(1, 2, &address), Side::new(1, 2, &address));
    until(|| {
        first.turn();
        host.turn();
        first.is_up(2) && host.is_up(1)
    });
    assert_eq!(host.unlinked(), 0);
    until(|| {
        second.turn();
        host.turn();
        second.is_up(2)
    });
    assert_eq!(host.unlinked(), 1);
    assert!(host.is_up(1), "the new one carries frames");
}

#[test]
fn while_the_disk_is_far_behind_frames_of_keyspaces_are_dropped_and_counted() {
    let mut host = Side::new(2, 1, "");
    let mut other = Side::new(1, 2, &host.address.to_string());
    until(|| {
        other.turn();
        host.turn();
        other.is_up(2) && host.is_up(1)
    });
    host.links.speak();
    other.links.speak();
    let lanes = [LaneId::KEYSPACES, LaneId::OVERLAY];
    for (waiting, taken, dropped) in [
        (UNSYNCED_BYTES_MAX, vec![lanes[0], lanes[1]], 0),
        (PEER_UNSYNCED_BYTES_MAX, vec![lanes[1]], 1),
        (PEER_UNSYNCED_BYTES_MAX - 1, vec![lanes[0], lanes[1]], 1),
    ] {
        host.links.set_waiting(waiting);
        host.inputs.clear();
        lanes.iter().for_each(|lane| other.links.send(&other.frame(*lane, 2)));
        until(|| {
            other.turn();
            host.turn();
            host.lanes().last() == taken.last()
        });
        assert_eq!(host.lanes(), taken, "{waiting} bytes");
        assert_eq!(host.links.shared.rejected(RejectReason::Backlog), dropped);
    }
}
