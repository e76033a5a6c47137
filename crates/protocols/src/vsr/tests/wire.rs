//! Every message's bytes are pinned, and any other bytes are an error or another message: never a
//! panic.
//!
//! Messages outlive the code that sends them: a changed byte here is a change of the protocol.

use crate::vsr::state::Standing;
use crate::vsr::{Configuration, Entry, Epoch, Message, Op, Position, ViewNumber};
use bytes::{Bytes, BytesMut};
use quorate_kernel::error::WireError;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::{
    GROUP_MEMBERS_MAX, VSR_CURSOR_BYTES_MAX, VSR_ENTRIES_BYTES_MAX, VSR_ENTRIES_MAX,
};
use quorate_kernel::rng::Rng;
use quorate_kernel::wire::{Body, Decoder, Encoder, Wire};
use std::format;
use std::string::String;
use std::vec::Vec;

/// A body whose pieces are any bytes, as a peer gone wrong could send them.
struct Raw(Vec<u8>, Vec<u8>);

impl Wire for Raw {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.raw(&self.0);
        out.tail(0, &Bytes::copy_from_slice(&self.1));
    }

    /// The pieces of another message.
    fn decode(input: &Decoder) -> Result<Raw, WireError> {
        Ok(Raw(input.head_bytes().to_vec(), input.tail(0).to_vec()))
    }
}

fn body(message: &Message) -> Body {
    Body::encode(message, &mut BytesMut::new()).expect("it fits")
}

pub fn pieces(message: &Message) -> (Vec<u8>, Vec<u8>) {
    let raw: Raw = body(message).decode().expect("it has pieces");
    (raw.0, raw.1)
}

pub fn read(head: &[u8], tail: &[u8]) -> Result<Message, WireError> {
    let raw = Raw(head.to_vec(), tail.to_vec());
    Body::encode(&raw, &mut BytesMut::new()).expect("it fits").decode()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn view(view: u64) -> ViewNumber {
    ViewNumber { epoch: Epoch(3), view }
}

fn entries() -> Vec<Entry> {
    let commands = [&b"one"[..], b"", b"three"];
    let mut entries: Vec<Entry> =
        commands.map(|text| Entry::command(view(1), Bytes::from_static(text))).into();
    entries.push(Entry::members(view(1), &[NodeId(2), NodeId(300)]));
    entries
}

fn configuration() -> Configuration {
    let (before, life) = ([NodeId(1), NodeId(2)].into(), Epoch(2));
    let members = [NodeId(2), NodeId(300)];
    Configuration { before, life, ..Configuration::after(Epoch(2), &members, Op(9)) }
}

/// Each variant, in the order of their tags, with its head and tail in hexadecimal digits.
fn golden() -> Vec<(Message, &'static str, &'static str)> {
    let (op, last) = (Op(300), Position { op: Op(7), view: view(1) });
    let mut list = of_views();
    list.extend([
        (
            Message::GetState { nonce: 4, view: view(2), from: op, has_forgotten: true },
            "07040302ac0201",
            "",
        ),
        (
            Message::NewState {
                nonce: 4,
                asked: Op(8),
                view: view(2),
                is_whole: true,
                before: last,
                entries: entries(),
                commit: op,
                end: Op(301),
            },
            "0804080302010703010403010003030100000301000503010102 02ac0200ac02ad02",
            "6f6e657468726565",
        ),
        (
            Message::GetCheckpoint {
                nonce: 4,
                at: op,
                page: 2,
                cursor: b"k".to_vec(),
                has_forgotten: false,
            },
            "0904ac0202016b00",
            "",
        ),
        (
            Message::Checkpoint {
                nonce: 4,
                at: last,
                configuration: configuration(),
                applied: op,
                page: 2,
                next: Some(b"m".to_vec()),
                body: Bytes::from_static(b"items"),
            },
            "0a0407030103 0202ac020902010202ac020201016d",
            "6974656d73",
        ),
    ]);
    list.extend(of_members());
    list
}

fn of_views() -> Vec<(Message, &'static str, &'static str)> {
    let (op, last) = (Op(300), Position { op: Op(7), view: view(1) });
    let (from, entries, commit) = (Op(8), entries(), Op(7));
    let lost = Some(view(1));
    Vec::from([
        (
            Message::Prepare { view: view(1), from, entries, commit },
            "000301080403010003030100000301000503010102 02ac020007",
            "6f6e657468726565",
        ),
        (Message::PrepareOk { view: view(1), end: op }, "010301ac02", ""),
        (
            Message::Beat { view: view(1), commit, end: op, round: 5, held: Op(6) },
            "02030107ac020506",
            "",
        ),
        (Message::BeatOk { view: view(1), round: 5 }, "03030105", ""),
        (Message::StartViewChange { at: view(1), view: view(2) }, "0403010302", ""),
        (
            Message::DoViewChange { view: view(2), normal: view(1), end: op, commit, lost: None },
            "0503020301ac020700",
            "",
        ),
        (
            Message::DoViewChange { view: view(2), normal: view(1), end: op, commit, lost },
            "0503020301ac0207010301",
            "",
        ),
        (Message::StartView { view: view(2), last, commit }, "06030207030107", ""),
    ])
}

fn of_members() -> Vec<(Message, &'static str, &'static str)> {
    let answer = |standing| Message::RecoveryResponse { nonce: 4, view: view(2), standing };
    let (normal, end, commit, lost) = (view(1), Op(300), Op(7), view(1));
    let without_end = Message::DoViewChangeWithoutEnd { view: view(2), normal, end, commit, lost };
    let without_log = Message::EpochWithoutLog { nonce: 4, configuration: configuration() };
    Vec::from([
        (Message::Recovery { nonce: 4, view: view(2) }, "0b040302", ""),
        (answer(Standing::Normal), "0c04030200", ""),
        (answer(Standing::Whole), "0c04030201", ""),
        (answer(Standing::Forgot), "0c04030202", ""),
        (answer(Standing::Held), "0c04030203", ""),
        (Message::StartEpoch { epoch: Epoch(3) }, "0d03", ""),
        (Message::EpochStarted { epoch: Epoch(3) }, "0e03", ""),
        (Message::Learned { end: Op(300) }, "0fac02", ""),
        (without_end, "1003020301ac02070301", ""),
        (without_log, "1104030202ac020902010202", ""),
    ])
}

/// How many variants there are. Without a wildcard, so that a new one must be added to [`golden`].
fn tag(message: &Message) -> u8 {
    match message {
        Message::Prepare { .. } => 0,
        Message::PrepareOk { .. } => 1,
        Message::Beat { .. } => 2,
        Message::BeatOk { .. } => 3,
        Message::StartViewChange { .. } => 4,
        Message::DoViewChange { .. } => 5,
        Message::StartView { .. } => 6,
        Message::GetState { .. } => 7,
        Message::NewState { .. } => 8,
        Message::GetCheckpoint { .. } => 9,
        Message::Checkpoint { .. } => 10,
        Message::Recovery { .. } => 11,
        Message::RecoveryResponse { .. } => 12,
        Message::StartEpoch { .. } => 13,
        Message::EpochStarted { .. } => 14,
        Message::Learned { .. } => 15,
        Message::DoViewChangeWithoutEnd { .. } => 16,
        Message::EpochWithoutLog { .. } => 17,
    }
}

#[test]
fn every_message_has_its_bytes_and_is_read_back() {
    let mut wrong = String::new();
    for (message, head, tail) in golden() {
        let (actual_head, actual_tail) = pieces(&message);
        let is_pinned = hex(&actual_head) == head.replace(' ', "") && hex(&actual_tail) == tail;
        if !is_pinned || actual_head[0] != tag(&message) {
            wrong += &format!("{message:?}: {} {}\n", hex(&actual_head), hex(&actual_tail));
        }
        assert_eq!(body(&message).decode(), Ok(message));
    }
    assert!(wrong.is_empty(), "{wrong}");
    let tags: std::collections::BTreeSet<u8> = golden().iter().map(|one| tag(&one.0)).collect();
    assert!(tags.into_iter().eq(0..18), "every variant has its bytes");
    assert!(read(&[18, 3, 1, 2], b"").is_err(), "there is no other");
}

#[test]
fn what_is_cut_off_is_an_error() {
    for (message, ..) in golden() {
        let (head, tail) = pieces(&message);
        for length in 0..head.len() {
            assert!(read(&head[..length], &tail).is_err(), "{message:?} cut to {length}");
        }
        assert!(read(&[&head[..], &[0]].concat(), &tail).is_err(), "{message:?} and a byte");
        if matches!(message, Message::Checkpoint { .. }) {
            // The lane's machine reads the body.
            continue;
        }
        assert!(read(&head, &[&tail[..], &[0]].concat()).is_err(), "{message:?} and a byte behind");
        for length in 0..tail.len() {
            assert!(read(&head, &tail[..length]).is_err(), "{message:?}, tail cut to {length}");
        }
    }
}

#[test]
fn damaged_bytes_are_survived() {
    let mut rng = Rng::new(7);
    for (message, ..) in golden() {
        for _ in 0..2000 {
            let (mut head, mut tail) = pieces(&message);
            for _ in 0..=rng.below(3) {
                let piece = if rng.below(4) == 0 { &mut tail } else { &mut head };
                match (piece.len() as u64, rng.below(3)) {
                    (0, _) => piece.push(rng.below(256) as u8),
                    (length, 0) => piece.truncate(rng.below(length) as usize),
                    (length, _) => piece[rng.below(length) as usize] = rng.below(256) as u8,
                }
            }
            if let Ok(read) = read(&head, &tail) {
                assert_eq!(body(&read).decode(), Ok(read));
            }
        }
    }
}

#[test]
fn what_is_too_much_or_makes_no_sense_is_an_error() {
    let with = |entries: Vec<Entry>| {
        let (commit, from) = (Op(7), Op(8));
        let (head, tail) = pieces(&Message::Prepare { view: view(1), from, entries, commit });
        read(&head, &tail)
    };
    let entry = || Entry::command(view(1), Bytes::from_static(b"x"));
    let many = |count| (0..count).map(|_| entry()).collect();
    assert!(with(many(VSR_ENTRIES_MAX)).is_ok());
    assert!(with(many(VSR_ENTRIES_MAX + 1)).is_err(), "too many entries");
    let long = Bytes::from(std::vec![0; VSR_ENTRIES_BYTES_MAX * 2]);
    assert!(with(Vec::from([Entry::command(view(1), long)])).is_ok(), "one entry always fits");
    let members = |ids: &[u64]| {
        let members: Vec<NodeId> = ids.iter().copied().map(NodeId).collect();
        with(Vec::from([Entry::members(view(1), &members)]))
    };
    let most: Vec<u64> = (0..GROUP_MEMBERS_MAX as u64 + 1).collect();
    assert!(members(&most[1..]).is_ok());
    assert!(members(&most).is_err(), "too many members");
    assert!(members(&[]).is_err() && members(&[2, 1]).is_err() && members(&[1, 1]).is_err());
    let at = |number| Entry::command(view(number), Bytes::from_static(b"x"));
    assert!(with(Vec::from([at(1), at(2)])).is_ok());
    assert!(with(Vec::from([at(2), at(1)])).is_err() && with(Vec::from([at(0)])).is_err());
    let last = || Entry::members(view(1), &[NodeId(1)]);
    assert!(with(Vec::from([at(1), last()])).is_ok());
    assert!(with(Vec::from([last(), at(1)])).is_err(), "it ends its epoch");
    let cursor = |length| {
        let (at, cursor) = (Op(1), std::vec![0; length]);
        let (nonce, page, has_forgotten) = (1, 1, false);
        let (head, tail) =
            pieces(&Message::GetCheckpoint { nonce, at, page, cursor, has_forgotten });
        read(&head, &tail)
    };
    assert!(cursor(VSR_CURSOR_BYTES_MAX).is_ok());
    assert!(cursor(VSR_CURSOR_BYTES_MAX + 1).is_err(), "too long a cursor");
    let next = |length| {
        let (_, message) = copied(Some(std::vec![0; length]), configuration());
        message
    };
    assert!(next(VSR_CURSOR_BYTES_MAX).is_ok());
    assert!(next(VSR_CURSOR_BYTES_MAX + 1).is_err(), "too long a cursor of a page");
    let unordered = Configuration::after(Epoch(2), &[NodeId(3), NodeId(2)], Op(9));
    assert!(copied(None, unordered).1.is_err(), "members ascend");
    let before = [NodeId(3), NodeId(2)].into();
    let unordered = Configuration { before, ..configuration() };
    assert!(copied(None, unordered).1.is_err(), "so do those before them");
}

fn copied(
    next: Option<Vec<u8>>,
    configuration: Configuration,
) -> (Vec<u8>, Result<Message, WireError>) {
    let at = Position { op: Op(7), view: view(1) };
    let (applied, body) = (Op(7), Bytes::new());
    let message = Message::Checkpoint { nonce: 1, at, configuration, applied, page: 1, next, body };
    let (head, tail) = pieces(&message);
    let read = read(&head, &tail);
    (head, read)
}

/// The largest of each kind fits the head of a message.
#[test]
fn the_longest_heads_fit() {
    let most: Vec<NodeId> =
        (0..GROUP_MEMBERS_MAX as u64).map(|id| NodeId(u64::MAX - 9 + id)).collect();
    let view = ViewNumber { epoch: Epoch(u64::MAX), view: u64::MAX };
    let entries = std::vec![Entry::members(view, &most); VSR_ENTRIES_MAX];
    let (from, commit) = (Op(u64::MAX), Op(u64::MAX));
    let prepare = Message::Prepare { view, from, entries, commit };
    assert!(pieces(&prepare).0.len() > VSR_ENTRIES_MAX * GROUP_MEMBERS_MAX * 9);
    let (before, members) = (most.clone().into(), most.into());
    let full =
        Configuration { epoch: view.epoch, members, since: commit, before, life: view.epoch };
    let (head, read) = copied(Some(std::vec![255; VSR_CURSOR_BYTES_MAX]), full);
    assert!(head.len() > VSR_CURSOR_BYTES_MAX && read.is_ok());
}

#[test]
fn what_goes_on_with_what_is_left_says_so() {
    let members = [NodeId(2), NodeId(300)];
    let [usual, left] = [Entry::members(view(1), &members), Entry::left(view(1), &members)];
    assert_eq!(usual.new_members(), left.new_members());
    let bytes = [usual, left].map(|entry| entry.stored());
    let [usual, left] = bytes.each_ref().map(|bytes| &bytes[3..]);
    let differ: Vec<usize> = (0..usual.len()).filter(|at| usual[*at] != left[*at]).collect();
    assert_eq!((usual.len(), differ.len()), (left.len(), 1));
    assert_eq!((usual[differ[0]], left[differ[0]]), (1, 2), "a variant of its own, behind others");
    let wrong = Configuration { life: Epoch(4), ..configuration() };
    let copied = copied(None, wrong);
    assert!(copied.1.is_err(), "no life begins in a later epoch");
}
