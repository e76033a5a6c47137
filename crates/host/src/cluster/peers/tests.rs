use super::*;
use crate::cluster::handshake::Word;
use crate::samples::shared as sample;
use quorate_kernel::ids::{ClusterId, Incarnation, Lsn};

pub(super) fn peers() -> Peers {
    let known = ring(&[(2, "127.0.0.1:2", Standing::Up)]);
    Peers::new(NodeId(1), known.hosts(), &[(NodeId(2), 2)], Vec::new(), Arc::new(sample()))
}

pub(super) fn hello(node: u64, start: u32, run: u64) -> Hello {
    let from = Incarnation { node: NodeId(node), start: Start(start) };
    let word = Word::default();
    Hello { cluster: ClusterId(0xc1), from, to: NodeId(1), settings: 0, run, word, number: 0 }
}

fn sighting(node: u64, start: u32, run: u64, synced: u64) -> Sighting {
    Sighting { node: NodeId(node), start: Start(start), run, synced: Lsn(synced) }
}

pub(super) fn ring(hosts: &[(u64, &str, Standing)]) -> Ring {
    let host = |&(node, address, standing): &(u64, &str, Standing)| RingHost {
        who: Incarnation { node: NodeId(node), start: Start(1) },
        address: address.to_owned(),
        zone: String::new(),
        tokens: vec![node],
        standing,
        is_suspected: false,
        doors: Vec::new(),
    };
    Ring::new(1, hosts.iter().map(host).collect())
}

#[test]
fn peers_follow_the_ring() {
    let mut peers = peers();
    let up = Standing::Up;
    let of = [(1, "127.0.0.1:1", up), (2, "127.0.0.1:20", up), (3, "127.0.0.1:3", up)];
    assert!(peers.set_ring(&ring(&of)).is_empty());
    let at = |peers: &Peers, node| {
        let index = peers.find(NodeId(node))?;
        peers.get(index).and_then(|peer| peer.resolved).map(|address| address.port())
    };
    assert_eq!((at(&peers, 1), at(&peers, 2), at(&peers, 3)), (None, Some(20), Some(3)));
    let gone = peers.set_ring(&ring(&[(2, "127.0.0.1:20", Standing::Left)]));
    assert_eq!(gone, [peers.find(NodeId(2)).expect("it was known")]);
    gone.into_iter().for_each(|index| peers.forget(index));
    assert_eq!(at(&peers, 2), None);
    assert_eq!(peers.greet(&hello(2, 9, 1)), Err(HelloError::Left { node: NodeId(2) }));
    assert_eq!(peers.shared.peers().len(), 1, "the outside sees the same");
}

#[test]
fn a_stranger_is_taken_in_and_forgotten_unless_the_ring_names_it() {
    let mut peers = peers();
    let stranger = peers.greet(&hello(7, 1, 1)).expect("it may be joining");
    peers.forget(stranger);
    assert_eq!(peers.find(NodeId(7)), None);
    let stranger = peers.greet(&hello(7, 1, 1)).expect("it may be joining");
    peers.set_ring(&ring(&[(7, "127.0.0.1:7", Standing::Up)]));
    peers.forget(stranger);
    assert_eq!(peers.find(NodeId(7)), Some(stranger));
}

#[test]
fn one_identity_in_two_places_is_noticed() {
    let mut peers = peers();
    let node = NodeId(2);
    assert!(peers.greet(&hello(2, 5, 50)).is_ok());
    assert!(peers.greet(&hello(2, 5, 51)).is_ok(), "nobody has spoken for it");
    peers.see(sighting(2, 5, 50, 7));
    assert!(peers.greet(&hello(2, 5, 50)).is_ok(), "it may connect again");
    let twin = peers.greet(&hello(2, 5, 51));
    assert_eq!(twin, Err(HelloError::Twin { node, start: 5 }));
    let older = peers.greet(&hello(2, 4, 49));
    assert_eq!(older, Err(HelloError::Start { node, found: 4, seen: 5 }));
    assert!(peers.greet(&hello(2, 6, 60)).is_ok(), "it was started again");
    assert_eq!(peers.word(node).seen, Some(sighting(2, 5, 50, 7)), "it has said nothing yet");
}

#[test]
fn what_was_seen_outlives_the_connection_and_this_host_but_not_a_removal() {
    let mut peers = peers();
    assert_eq!(peers.take_seen(), None);
    peers.see(sighting(2, 5, 50, 7));
    peers.see(sighting(2, 5, 50, 6));
    let seen = peers.take_seen().expect("it is new");
    assert_eq!((seen.as_slice(), peers.take_seen()), (&[sighting(2, 5, 50, 7)][..], None));
    let known = ring(&[(2, "127.0.0.1:2", Standing::Up)]);
    let shared = Arc::new(sample());
    let mut later = Peers::new(NodeId(1), known.hosts(), &[], seen, shared);
    let twin = later.greet(&hello(2, 5, 51));
    assert_eq!(twin, Err(HelloError::Twin { node: NodeId(2), start: 5 }));
    assert_eq!((later.listed(), later.take_seen()), (vec![NodeId(2)], None));
    later.set_ring(&ring(&[(2, "127.0.0.1:2", Standing::Left)]));
    let word = later.word(NodeId(2));
    assert_eq!((word.has_left, word.seen, later.take_seen()), (true, None, Some(vec![])));
}

/// This host was started again since it last met the other one; the ring has not forgotten.
#[test]
fn an_old_disk_is_noticed_by_what_the_ring_knows() {
    let mut peers = peers();
    let mut hosts = ring(&[(2, "127.0.0.1:2", Standing::Up)]).hosts().to_vec();
    hosts[0].who.start = Start(5);
    peers.set_ring(&Ring::new(2, hosts));
    let (node, old) = (NodeId(2), peers.greet(&hello(2, 4, 1)));
    assert_eq!(old, Err(HelloError::Start { node, found: 4, seen: 5 }));
    assert!(peers.greet(&hello(2, 5, 2)).is_ok());
}
