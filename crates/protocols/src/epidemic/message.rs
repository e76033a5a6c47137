//! The messages. New variants are only appended.

use super::keys::is_wire_key;
use super::listings::{ListA, ListB, Listed};
use super::repair::behind::Heard;
use super::replica::range::{Leaf, PARTS_MAX, Range};
pub use super::replica::rest::Rest;
use super::replica::seen::Done;
use super::replica::store::{Entry, Record};
use super::replica::version::{RequestId, Version};
pub use super::said::Came;
use crate::epto::{self, EventKey, Horizon, LogicalTime, Sequence};
use crate::gossip::cyclon::Peer;
use crate::slices::Profile;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::limits::{ADDRESS_BYTES_MAX, CYCLON_VIEW_MAX};
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use serde::{Deserialize, Serialize};

/// The most keys that one message lists.
pub const LISTED_MAX: usize = 256;
/// The most records, or ids of requests, in one message.
pub const RECORDS_MAX: usize = 512;
/// From how many bytes on a message takes no further record.
pub const PAGE_BYTES: usize = 64 * 1024;
/// The most sums of leaves, or of parts of a range, in one message.
pub const SUMS_MAX: usize = 256;
/// The most members of a slice in one message.
pub const MEMBERS_MAX: usize = 1024;
/// How far a request without order travels, from node to node.
pub const HOPS_MAX: u8 = 24;

/// A message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// One of the building block EpTO.
    Epto(epto::Message),
    /// Each period, to the oldest neighbour (Cyclon), with what the sender knows of slices.
    Shuffle {
        /// Some of the sender's neighbours, and itself.
        entries: Vec<Peer>,
        /// What it knows of slices.
        told: Profile,
    },
    /// The answer.
    ShuffleReply {
        /// Some of the sender's neighbours.
        entries: Vec<Peer>,
        /// What it knows of slices.
        told: Profile,
    },
    /// Each period, to two members of the sender's slice: whom it knows there.
    Members(Vec<Peer>),
    /// Replica to the node that broadcast an event, when what it did is durable there.
    Did {
        /// The event.
        event: EventKey,
        /// How many members the slice has, as far as the sender knows, itself among them.
        members: u16,
        /// What came of those of its requests whose keys are the sender's.
        results: Vec<(RequestId, Came)>,
    },
    /// A request without order, on its way to the slice of its key, and there to all members.
    Flask(Flask),
    /// Replica to the node that a client asked: what came of it there, durably.
    Flasked {
        /// The request.
        id: RequestId,
        /// How many members the slice has, as far as the sender knows, itself among them.
        members: u16,
        /// What came of it.
        result: Came,
    },
    /// Repair, the question: these are the sums of a range at the sender.
    Compare {
        /// Names the question.
        number: u64,
        /// The range.
        range: Range,
        /// The sums of its equal parts.
        sums: Vec<u64>,
        /// The sum over the requests known.
        ids: u64,
        /// The last event that the sender has delivered.
        last: Option<EventKey>,
        /// Up to which event the sender has forgotten requests, as there were too many.
        forgotten: Option<EventKey>,
    },
    /// The answer where parts differ: the sums of their leaves at the sender.
    Leaves {
        /// Names the question.
        number: u64,
        /// The leaves that this is about: some of those of parts that differ.
        parts: Vec<(Leaf, Leaf)>,
        /// The leaves among them where the sender has anything.
        sums: Vec<(Leaf, u64)>,
        /// Requests that the asker may not know.
        ids: Vec<(RequestId, Done)>,
    },
    /// The answer where nothing differs: of who is ready there, so all of it is in good hands.
    Equal {
        /// Names the question.
        number: u64,
    },
    /// A leaf that differs: all that the sender has between two keys.
    Listed {
        /// Which page of a leaf.
        page: Page,
        /// It begins behind this key.
        after: Option<Bytes>,
        /// The keys with their versions, ascending.
        held: Vec<Entry>,
    },
    /// What the receiver lacks, and what the sender would like. The answer to a `Listed` comes even
    /// if nothing differs: who hands a range over waits for it.
    Records {
        /// Which page of a leaf it answers.
        page: Option<Page>,
        /// Up to when the sender has heard of all that was deleted of what it sends here.
        heard: LogicalTime,
        /// Records that are newer than what was listed, or were asked for.
        records: Vec<Record>,
        /// What their requests, and others of their keys, came to.
        ids: Vec<(RequestId, Done)>,
        /// What is newer at the receiver.
        wanted: Vec<(Bytes, Version)>,
    },
    /// A joining node, to a member of its slice: send what you have of this range.
    SnapshotA {
        /// Names the question.
        number: u64,
        /// The range.
        range: Range,
        /// Which records: those behind this key.
        after: Rest<Bytes>,
        /// Which requests: those before this event.
        ids_below: Rest<EventKey>,
    },
    /// The answer: one page, durable at the sender.
    SnapshotB(SnapshotB),
    /// A node with holes, to a member of its slice: what did these events do to our range?
    MissingA(Vec<(Incarnation, Sequence)>),
    /// The answer, of those that the sender has delivered.
    MissingB(Vec<Found>),
    /// The entry of a listing to a member of a slice: which keys are there from a place on?
    ListA(ListA),
    /// The answer, of keys whose versions are durable at the sender.
    ListB(ListB),
    /// A page of a snapshot, of who is in doubt of what it sends.
    SnapshotC {
        /// The page.
        page: SnapshotB,
        /// The parts of the range that the sender took over without a copy: it is none of them.
        lost: Vec<Range>,
    },
    /// A node that has taken something over without a copy, to a member that it compares with: of
    /// what of this range have you all?
    CopyA {
        /// Names the question.
        number: u64,
        /// The range.
        range: Range,
    },
    /// The answer, of who is ready there.
    CopyB {
        /// Names the question.
        number: u64,
        /// Those parts of the range of which the sender is not in doubt itself.
        parts: Vec<Range>,
    },
}

/// What a node has listed of a leaf, and is answered: a part of it may look like the whole, and an
/// answer to an earlier question like one to this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Page {
    /// Names the question.
    pub number: u64,
    /// The leaf.
    pub leaf: Leaf,
    /// Its last key; none where it is the end of the leaf.
    pub until: Option<Bytes>,
}

/// A request without order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flask {
    /// Its name.
    pub id: RequestId,
    /// How often its entry has sent it on its way while its client waited.
    pub attempt: u8,
    /// Whom replicas answer.
    pub entry: Incarnation,
    /// Which of all that its entry has sent on their way: each goes to every node anew.
    pub number: u64,
    /// How many nodes have passed it on.
    pub hops: u8,
    /// The key's wire form.
    pub key: Bytes,
    /// What it does.
    pub act: FlaskAct,
}

/// What a request without order does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FlaskAct {
    /// Reads a version, or the newest.
    Get {
        /// Which version.
        version: Option<u64>,
        /// How far the order must have come at who answers.
        after: Option<EventKey>,
    },
    /// Writes a version, unless it has another value already.
    Put(u64, Bytes),
}

/// One page of a snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotB {
    /// Names the question.
    pub number: u64,
    /// Whether the sender is ready in the whole range that was asked for.
    pub is_ready: bool,
    /// How far the sender has come; of a node that is not ready, the last event on its disk.
    pub horizon: Horizon,
    /// The parts of the range that the sender has not all of, or gave up, with what it has heard of
    /// them.
    pub noted: Vec<(Range, Heard)>,
    /// Records, ascending by key.
    pub records: Vec<Record>,
    /// Up to which event the sender has forgotten requests, as there were too many.
    pub forgotten: Option<EventKey>,
    /// Requests done, the newest first.
    pub ids: Vec<(RequestId, Done)>,
    /// What is left of the records: those behind this key.
    pub after: Rest<Bytes>,
    /// What is left of the requests: those before this event.
    pub ids_below: Rest<EventKey>,
}

/// What an event did at a member of the slice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Its source.
    pub source: Incarnation,
    /// Its place among those of its source.
    pub sequence: Sequence,
    /// Of which range this is all that it did; none if the sender had none when it delivered it.
    pub range: Option<Range>,
    /// Up to when the sender has heard of all that was deleted of the keys that it wrote.
    pub heard: LogicalTime,
    /// What the keys that it wrote have now, at the sender.
    pub records: Vec<Record>,
    /// Those of these keys that have no room here, with what they have.
    pub left: Vec<(Bytes, Version)>,
    /// What its requests came to.
    pub ids: Vec<(RequestId, Done)>,
}

impl Found {
    fn is_sound(&self) -> bool {
        let is_range = self.range.is_none_or(|range| range.is_sound());
        let is_left = self.left.len() <= RECORDS_MAX && are_keys(&self.left);
        is_range && is_left && are_sound(&self.records, &self.ids)
    }
}

fn are_sound(records: &[Record], ids: &[(RequestId, Done)]) -> bool {
    records.len() <= RECORDS_MAX
        && records.iter().all(|record| is_wire_key(&record.key) && record.version.is_sound())
        && are_done(ids)
}

fn are_done(ids: &[(RequestId, Done)]) -> bool {
    ids.len() <= RECORDS_MAX && ids.iter().all(|(_, done)| done.event.is_sound())
}

fn are_peers(peers: &[Peer]) -> bool {
    peers.iter().all(|peer| peer.address.len() <= ADDRESS_BYTES_MAX)
}

fn is_rest(rest: &Rest<Bytes>) -> bool {
    rest.begin().flatten().is_none_or(|key| is_wire_key(key))
}

fn are_keys(held: &[(Bytes, Version)]) -> bool {
    held.iter().all(|(key, version)| is_wire_key(key) && version.is_sound())
}

fn are_parts(parts: &[Range]) -> bool {
    parts.len() <= PARTS_MAX && parts.iter().all(Range::is_sound)
}

fn is_page(page: &SnapshotB) -> bool {
    let is_below = page.ids_below.begin().flatten().is_none_or(|event| event.is_sound());
    let are_noted =
        page.noted.len() <= PARTS_MAX && page.noted.iter().all(|(part, _)| part.is_sound());
    are_sound(&page.records, &page.ids)
        && are_noted
        && page.forgotten.is_none_or(EventKey::is_sound)
        && is_rest(&page.after)
        && is_below
        && page.horizon.is_sound()
}

impl Message {
    fn is_sound(&self) -> bool {
        match self {
            Message::Shuffle { entries, told } | Message::ShuffleReply { entries, told } => {
                let is_sound = told.groups.is_none_or(|groups| groups.is_sound());
                entries.len() <= CYCLON_VIEW_MAX && is_sound && are_peers(entries)
            }
            Message::Members(members) => members.len() <= MEMBERS_MAX && are_peers(members),
            Message::Flask(flask) => is_wire_key(&flask.key) && flask.hops <= HOPS_MAX,
            Message::Compare { range, sums, last, forgotten, .. } => {
                let is_cut = range.is_sound() && range.parts(sums.len()).is_some();
                is_cut && [last, forgotten].into_iter().flatten().all(|event| event.is_sound())
            }
            Message::Leaves { number: _, parts, sums, ids } => {
                let is_short = sums.len() <= SUMS_MAX && are_done(ids);
                let is_cut = parts.len() <= PARTS_MAX && parts.iter().all(|(a, b)| a <= b);
                is_short && is_cut
            }
            Message::Equal { .. } | Message::Epto(_) => true,
            Message::Listed { page, after, held } => {
                let mut ends = after.iter().chain(&page.until);
                let is_sound = |one: &Entry| is_wire_key(&one.key) && one.version.is_sound();
                let are_sound = held.len() <= 16 * LISTED_MAX && held.iter().all(is_sound);
                are_sound && ends.all(|key| is_wire_key(key))
            }
            Message::Records { page: _, heard: _, records, ids, wanted } => {
                are_sound(records, ids) && wanted.len() <= 16 * LISTED_MAX && are_keys(wanted)
            }
            Message::SnapshotA { range, after, .. } => range.is_sound() && is_rest(after),
            Message::SnapshotC { page, lost } => is_page(page) && are_parts(lost),
            Message::CopyA { number: _, range } => range.is_sound(),
            Message::CopyB { number: _, parts } => are_parts(parts),
            Message::SnapshotB(page) => is_page(page),
            Message::MissingA(wanted) => wanted.len() <= RECORDS_MAX,
            Message::MissingB(found) => {
                found.len() <= RECORDS_MAX && found.iter().all(Found::is_sound)
            }
            Message::Did { event, results, .. } => {
                let are_sound = results.iter().all(|(_, came)| came.is_sound());
                event.is_sound() && results.len() <= RECORDS_MAX && are_sound
            }
            Message::Flasked { result, .. } => result.is_sound(),
            Message::ListA(asked) => asked.is_sound(),
            Message::ListB(page) => page.listed.as_ref().is_none_or(Listed::is_sound),
        }
    }
}

impl Wire for Message {
    fn encode(&self, out: &mut Encoder<'_>) {
        let bytes = postcard::to_allocvec(self).expect("plain data always serializes");
        out.tail(0, &Bytes::from(bytes));
        if let Message::Epto(message) = self {
            out.tail(1, &message.tail());
        }
    }

    fn decode(input: &Decoder) -> Result<Message, WireError> {
        let message = match Decoder::value(&input.tail(0))? {
            Message::Epto(message) => Message::Epto(message.with_tail(input.tail(1))?),
            message => message,
        };
        let wrong = WireError::Malformed { what: "fields that do not go together" };
        if message.is_sound() { Ok(message) } else { Err(wrong) }
    }
}
