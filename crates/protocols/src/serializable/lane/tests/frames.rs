//! Frames: what is written is read back, anything else is an error, and a turn's messages share
//! one.

use super::world::{World, settings};
use crate::groups::Stands;
use crate::groups::{Leads, PARTS_MAX};
use crate::serializable::lane::message::Message;
use crate::serializable::lane::places::place;
use crate::serializable::{Outcome, Reply, Request, Token, TxId, number::Client};
use crate::vsr::{self, Entry, Epoch, Op, ViewNumber};
use bytes::{Bytes, BytesMut};
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::operation::Operation;
use quorate_kernel::refusal::Ended;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::wire::{Body, Decoder, Encoder, Wire};
use std::format;
use std::sync::Arc;
use std::vec::Vec;

/// A body whose pieces are any bytes, as a peer gone wrong could send them.
struct Pieces(Vec<u8>, Vec<u8>);

impl Wire for Pieces {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.raw(&self.0);
        out.tail(0, &Bytes::copy_from_slice(&self.1));
    }

    fn decode(input: &Decoder) -> Result<Pieces, WireError> {
        Ok(Pieces(input.head_bytes().to_vec(), input.tail(0).to_vec()))
    }
}

fn body<M: Wire>(message: &M) -> Body {
    Body::encode(message, &mut BytesMut::new()).expect("it fits")
}

fn all() -> Vec<Message> {
    let view = ViewNumber { epoch: Epoch(1), view: 3 };
    let entry = |text: &'static str| Entry::command(view, Bytes::from_static(text.as_bytes()));
    let prepare = |texts: &[&'static str]| vsr::Message::Prepare {
        view,
        from: Op(4),
        entries: texts.iter().map(|text| entry(text)).collect(),
        commit: Op(2),
    };
    let beat = vsr::Message::Beat { view, commit: Op(2), end: Op(4), round: 9, held: Op(1) };
    let tx = TxId { counter: 7, client: Client(8) };
    let (group, question) = (GroupId(2), 77);
    let token = Token { tx, coordinator: group };
    let parts = Vec::from([
        (GroupId(1), prepare(&["one", "", "three"])),
        (GroupId(2), beat),
        (GroupId(3), prepare(&["four"])),
    ]);
    let between = crate::serializable::Message::Applied { tx, group };
    let reply = Reply::Outcome { tx, outcome: Outcome::Running };
    let members: Arc<[NodeId]> = [1, 2, 3].map(NodeId).into();
    let founders: Arc<[NodeId]> = [4, 9].map(NodeId).into();
    let (from, keys) = (place::stored(b"a"), Vec::from([place::stored(b"b")]));
    let next = Some(place::stored(b"c"));
    let (epoch, leaver) = (Epoch(4), Some(NodeId(3)));
    let them = Arc::clone(&members);
    let stands = Stands { epoch, members: them, is_whole: true, owes: false, brings: true };
    Vec::from([
        Message::Log(parts),
        Message::Between { to: GroupId(9), message: between },
        Message::Ask { question, group, request: Request::Outcome { token } },
        Message::Told { question, group, reply },
        Message::Leads(Leads { group, members, view, serves: true }),
        Message::List { question, group, from, limit: 12 },
        Message::Listed { question, group, keys, next },
        Message::Stand { question, group, leaver },
        Message::Stands { question, group, stands },
        Message::WhoLeads { group },
        Message::Placed { group, list: Vec::from([(0, 1, group), (255, 7, GroupId(256))]) },
        Message::Founded(Vec::from([(group, founders)])),
        Message::Recall { question, tx },
        Message::Recalled { question, tx, ended: Some(Ended::Partial) },
    ])
}

#[test]
fn what_is_written_is_read_back() {
    for message in all() {
        assert_eq!(body(&message).decode::<Message>().expect("it is one"), message);
    }
}

#[test]
fn any_other_bytes_are_an_error_or_another_message() {
    let mut rng = Rng::new(5);
    for message in all() {
        let Pieces(head, tail) = body(&message).decode().expect("it has pieces");
        let read = |head: &[u8], tail: &[u8]| {
            body(&Pieces(head.to_vec(), tail.to_vec())).decode::<Message>()
        };
        for end in 0..head.len() {
            let told = read(&head[..end], &tail);
            assert!(told.is_err() || told.is_ok_and(|it| it != message), "{end} of {message:?}");
        }
        if !tail.is_empty() {
            let told = read(&head, &tail[..tail.len() - 1]);
            assert!(told.is_err() || told.is_ok_and(|it| it != message), "{message:?}");
        }
        for _ in 0..2000 {
            let (mut head, mut tail) = (head.clone(), tail.clone());
            for bytes in [&mut head, &mut tail] {
                if !bytes.is_empty() && rng.below(2) == 0 {
                    let at = rng.below(bytes.len() as u64) as usize;
                    bytes[at] = rng.next() as u8;
                }
            }
            // No panic: what comes out is a message, or none.
            if let Ok(other) = read(&head, &tail) {
                assert_eq!(body(&other).decode::<Message>().expect("it is one"), other);
            }
        }
    }
}

#[test]
fn no_frame_has_more_parts_than_may_be() {
    let view = ViewNumber { epoch: Epoch(1), view: 3 };
    let beat = vsr::Message::Beat { view, commit: Op(2), end: Op(4), round: 9, held: Op(1) };
    let parts =
        |count: usize| Message::Log((0..count).map(|_| (GroupId(1), beat.clone())).collect());
    assert!(body(&parts(PARTS_MAX)).decode::<Message>().is_ok());
    assert!(body(&parts(PARTS_MAX + 1)).decode::<Message>().is_err());
    assert!(body(&parts(0)).decode::<Message>().is_err());
}

#[test]
fn the_groups_of_a_host_share_a_frame_and_requests_of_a_turn_an_entry_frame() {
    let mut world = World::new(1, 3, settings(3, 3, 8, Durability::Sync));
    world.run(Span::secs(2));
    let before = world.sent.get("Log").copied().unwrap_or_default();
    world.run(Span::secs(1));
    let beats = world.sent["Log"] - before;
    // Three hosts, each with groups that it leads: one frame to each other host, and one back.
    assert!(beats <= 20 * 3 * 2 * 3, "{beats} frames for the beats of 8 groups in a second");
    let mut world = World::new(1, 3, settings(3, 3, 1, Durability::Sync));
    world.run(Span::secs(2));
    let leader = world.leader(GroupId(1)).expect("somebody leads");
    let before = world.sent["Log"];
    world.turn(leader, |process, cx| {
        use quorate_kernel::ids::Ticket;
        use quorate_kernel::process::{Process, Request};
        for number in 0..50 {
            let operation = Operation::put(format!("k{number}").into(), Bytes::from_static(b"v"));
            let deadline = cx.now + Span::secs(2);
            process.on_request(Ticket(1000 + number), Request { operation, deadline }, cx);
        }
    });
    let sent = world.sent["Log"] - before;
    assert_eq!(sent, 2, "one to each other member, whatever the turn has brought");
    assert!(world.run_until(Span::secs(2), |world| world.answers.len() == 50), "all are done");
}
