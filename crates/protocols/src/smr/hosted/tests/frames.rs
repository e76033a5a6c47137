//! Messages as bytes.

use super::letters::command;
use crate::groups::Leads;
use crate::multicast::{RingId, Slot};
use crate::smr::hosted::{Message, Wants};
use crate::smr::partitioned::tests::letters::{Letters, key, read};
use crate::smr::partitioned::{
    self, Addressed, Answered, CommandId, PartitionId, Partitions, Signal,
};
use crate::testing::raw;
use crate::vsr::{self, Epoch, Op, ViewNumber};
use bytes::Bytes;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Start};
use quorate_kernel::rng::Rng;
use std::collections::BTreeMap;
use std::vec::Vec;

fn place() -> partitioned::Place {
    partitioned::Place { slot: Slot(9), index: 2 }
}

fn signal(count: u64) -> Signal<Letters> {
    let variables = (0..count).map(|at| (key(&std::format!("a{at}")), Some(at))).collect();
    let (from, takes_part) = (PartitionId(0), true);
    Signal { place: place(), from, takes_part, variables, versions: BTreeMap::new() }
}

fn all() -> Vec<Message<Letters>> {
    let (ring, partition) = (RingId::ALL, PartitionId(1));
    let view = ViewNumber::first(Epoch(1));
    let client = Incarnation { node: NodeId(5), start: Start(2) };
    let id = CommandId { client, number: 3 };
    let destinations = Partitions::all(2);
    let command = command(&[read("a1"), read("b1")]);
    let addressed = Addressed { id, acked: 1, version: 0, destinations, command };
    let leads = Leads { group: GroupId(1), members: [1, 2].map(NodeId).into(), view, serves: true };
    let reached = Vec::from([(ring, Op(7))]);
    Vec::from([
        Message::Log(Vec::from([(GroupId(1), vsr::Message::Learned { end: Op(4) })])),
        Message::Leads(leads),
        Message::Order { ring, commands: Vec::from([addressed]) },
        Message::Answered(Vec::from([(3, Answered::Done(Vec::from([1, 2])))])),
        Message::Lacks { ring, until: Slot(8) },
        Message::Peers {
            to: partition,
            messages: Vec::from([partitioned::Message::Signal(signal(2))]),
        },
        Message::Follow { ring, partition, after: Op(4) },
        Message::Decided {
            ring,
            partition,
            first: Op(5),
            entries: Vec::from([None, Some(Bytes::from_static(b"entry"))]),
            has_more: true,
        },
        Message::Trimmed { ring, partition, base: Op(3) },
        Message::Holds { partition, upto: Op(2) },
        Message::GetCopy {
            partition,
            nonce: 9,
            page: 1,
            wants: Wants { passed: Some(place()), reached },
        },
        Message::Copy { partition, nonce: 9, page: 1, is_last: true, body: key("bytes") },
    ])
}

#[test]
fn every_message_is_read_as_it_was_written() {
    for (at, message) in all().into_iter().enumerate() {
        let (head, tail) = raw::pieces(&message);
        let read: Message<Letters> = raw::read(&head, &tail).expect("it is read");
        assert_eq!(read, message);
        assert_eq!(usize::from(head[0]), at, "each has its tag");
    }
}

#[test]
fn no_bytes_of_a_peer_stop_a_host() {
    let mut rng = Rng::new(3);
    let mut refused = 0;
    for message in all() {
        let whole = raw::pieces(&message);
        for _ in 0..300 {
            let (mut head, mut tail) = whole.clone();
            let of = if tail.is_empty() || rng.below(4) == 0 { &mut head } else { &mut tail };
            let at = rng.below(of.len() as u64) as usize;
            match rng.below(3) {
                0 => of.truncate(at),
                1 => of.push(at as u8),
                _ => of[at] ^= 1 << rng.below(8),
            }
            refused += usize::from(raw::read::<Message<Letters>>(&head, &tail).is_err());
        }
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn a_signal_in_pieces_has_all_of_it() {
    let whole = signal(40);
    let pieces: Vec<Signal<Letters>> = whole.clone().pieces(64).collect();
    assert!(pieces.len() > 5);
    let mut together = signal(0);
    for piece in pieces {
        assert!(piece.variables.len() < 8 && piece.takes_part);
        together.variables.extend(piece.variables);
    }
    assert_eq!(together, whole);
    assert_eq!(signal(0).pieces(64).collect::<Vec<_>>(), [signal(0)], "nothing is said as well");
}
