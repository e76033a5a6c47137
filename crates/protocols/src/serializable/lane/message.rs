//! What the hosts of a keyspace say to each other, and how it is written.

use super::places::place::BUCKETS;
use super::places::spread::{Founded, Placed};
use crate::groups::{Leads, Stands, decode_parts, encode_parts};
use crate::serializable::{self, Raw, Reply, Request, TxId};
use crate::vsr::{self, are_members};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::limits::SCAN_KEYS_MAX;
use quorate_kernel::refusal::Ended;
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use serde::Serialize;

/// The most keys of one page of a listing.
pub const LISTED_KEYS_MAX: usize = SCAN_KEYS_MAX;

/// One message. New variants are only appended.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Replicas to replicas, those of several groups together: what one turn brought.
    Log(Vec<(GroupId, vsr::Message)>),
    /// A group to another: who gets it and leads the group hands it on; others say who does.
    Between {
        /// The group.
        to: GroupId,
        /// What it is told.
        message: serializable::Message,
    },
    /// Whoever serves a client to whom it takes for the primary of a group.
    Ask {
        /// Names the question at its sender.
        question: u64,
        /// The group.
        group: GroupId,
        /// What is asked.
        request: Request,
    },
    /// The answer to an `Ask`. What it tells rests on a majority.
    Told {
        /// The question's.
        question: u64,
        /// The group.
        group: GroupId,
        /// The answer.
        reply: Reply,
    },
    /// Who the members of a group are, and in which view: a hint of where its primary is. It is
    /// believed of members; whoever hears it of others asks those.
    Leads(Leads),
    /// Whoever serves a client to a primary: some keys of its group, in the order of tokens.
    List {
        /// Names the question at its sender.
        question: u64,
        /// The group.
        group: GroupId,
        /// Where to begin.
        from: Raw,
        /// How many keys are looked at, at most.
        limit: u32,
    },
    /// The answer to a `List`.
    Listed {
        /// The question's.
        question: u64,
        /// The group.
        group: GroupId,
        /// The keys.
        keys: Vec<Raw>,
        /// Where the group's next page begins; none after its last key.
        next: Option<Raw>,
    },
    /// The host that an operator has asked, to those who may hold a group: how they stand in it.
    Stand {
        /// Names the question at its sender.
        question: u64,
        /// The group.
        group: GroupId,
        /// A host that leaves.
        leaver: Option<NodeId>,
    },
    /// The answer to a `Stand`. What it says of its sender is durable there.
    Stands {
        /// The question's.
        question: u64,
        /// The group.
        group: GroupId,
        /// How the sender stands.
        stands: Stands,
    },
    /// A host that was told of a group's primary by who is no member, to its members: the answer is
    /// `Leads`.
    WhoLeads {
        /// The group.
        group: GroupId,
    },
    /// A primary to all hosts, and to who asks for what is not there: where buckets are, as the log
    /// of its group has it. A hint.
    Placed {
        /// The group.
        group: GroupId,
        /// Buckets, how often each was handed over, and who has it.
        list: Placed,
    },
    /// The primary of the first group to all hosts: who founds groups that were added. It is
    /// committed in that group's log, so founders begin by it.
    Founded(Founded),
    /// A host that is asked how a transaction ended, to the one that has asked for it.
    Recall {
        /// Names the question at its sender.
        question: u64,
        /// The transaction.
        tx: TxId,
    },
    /// The answer to a `Recall`, once it is known. What it tells a majority has said.
    Recalled {
        /// The question's.
        question: u64,
        /// The transaction.
        tx: TxId,
        /// How it ended; nothing if the sender does not know any more.
        ended: Option<Ended>,
    },
}

impl Message {
    /// The name of the variant, for traces.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Message::Log(_) => "Log",
            Message::Between { .. } => "Between",
            Message::Ask { .. } => "Ask",
            Message::Told { .. } => "Told",
            Message::Leads(_) => "Leads",
            Message::List { .. } => "List",
            Message::Listed { .. } => "Listed",
            Message::Stand { .. } => "Stand",
            Message::Stands { .. } => "Stands",
            Message::WhoLeads { .. } => "WhoLeads",
            Message::Placed { .. } => "Placed",
            Message::Founded(_) => "Founded",
            Message::Recall { .. } => "Recall",
            Message::Recalled { .. } => "Recalled",
        }
    }
}

const LOG: u8 = 0;
const BETWEEN: u8 = 1;
const ASK: u8 = 2;
const TOLD: u8 = 3;
const LEADS: u8 = 4;
const LIST: u8 = 5;
const LISTED: u8 = 6;
const STAND: u8 = 7;
const STANDS: u8 = 8;
const WHO_LEADS: u8 = 9;
const PLACED: u8 = 10;
const FOUNDED: u8 = 11;
const RECALL: u8 = 12;
const RECALLED: u8 = 13;

fn bytes_of<T: Serialize>(value: &T) -> Bytes {
    postcard::to_allocvec(value).expect("plain data always serializes").into()
}

fn malformed(what: &'static str) -> WireError {
    WireError::Malformed { what }
}

impl Wire for Message {
    fn encode(&self, out: &mut Encoder<'_>) {
        match self {
            Message::Log(parts) => {
                out.raw(&[LOG]);
                encode_parts(parts, out);
            }
            Message::Between { to, message } => {
                out.raw(&[BETWEEN]);
                out.head(to);
                message.encode(out);
            }
            Message::Ask { question, group, request } => {
                out.raw(&[ASK]);
                out.head(&(question, group));
                request.encode(out);
            }
            Message::Told { question, group, reply } => {
                out.raw(&[TOLD]);
                out.head(&(question, group));
                reply.encode(out);
            }
            Message::Leads(leads) => {
                out.raw(&[LEADS]);
                out.head(leads);
            }
            Message::List { question, group, from, limit } => {
                out.raw(&[LIST]);
                out.head(&(question, group, limit));
                out.tail(0, from);
            }
            Message::Listed { question, group, keys, next } => {
                out.raw(&[LISTED]);
                out.head(&(question, group));
                out.tail(0, &bytes_of(&(keys, next)));
            }
            Message::Stand { question, group, leaver } => {
                out.raw(&[STAND]);
                out.head(&(question, group, leaver));
            }
            Message::Stands { question, group, stands } => {
                out.raw(&[STANDS]);
                out.head(&(question, group, stands));
            }
            Message::WhoLeads { group } => {
                out.raw(&[WHO_LEADS]);
                out.head(group);
            }
            Message::Placed { group, list } => {
                out.raw(&[PLACED]);
                out.head(group);
                out.tail(0, &bytes_of(list));
            }
            Message::Founded(founded) => {
                out.raw(&[FOUNDED]);
                let plain = founded.iter().map(|(group, members)| (*group, &members[..]));
                out.tail(0, &bytes_of(&plain.collect::<Vec<_>>()));
            }
            Message::Recall { question, tx } => {
                out.raw(&[RECALL]);
                out.head(&(question, tx));
            }
            Message::Recalled { question, tx, ended } => {
                out.raw(&[RECALLED]);
                out.head(&(question, tx, ended));
            }
        }
    }

    fn decode(input: &Decoder) -> Result<Message, WireError> {
        let Some((tag, head)) = input.head_bytes().split_first() else {
            return Err(malformed("message without a tag"));
        };
        match *tag {
            LOG => decode_parts(head, input.tail(0)).map(Message::Log),
            BETWEEN => {
                let to = Decoder::value(head)?;
                Ok(Message::Between { to, message: serializable::Message::decode(input)? })
            }
            ASK => {
                let (question, group) = Decoder::value(head)?;
                Ok(Message::Ask { question, group, request: Request::decode(input)? })
            }
            TOLD => {
                let (question, group) = Decoder::value(head)?;
                Ok(Message::Told { question, group, reply: Reply::decode(input)? })
            }
            LEADS => Leads::decode(head).map(Message::Leads),
            LIST => {
                let (question, group, limit) = Decoder::value(head)?;
                Ok(Message::List { question, group, from: Raw(input.tail(0)), limit })
            }
            LISTED => {
                let (question, group) = Decoder::value(head)?;
                let (keys, next): (Vec<Raw>, Option<Raw>) = Decoder::value(&input.tail(0))?;
                let fits = keys.len() <= LISTED_KEYS_MAX;
                let listed = fits.then_some(Message::Listed { question, group, keys, next });
                listed.ok_or_else(|| malformed("page of a listing"))
            }
            STAND => {
                let (question, group, leaver) = Decoder::value(head)?;
                Ok(Message::Stand { question, group, leaver })
            }
            STANDS => {
                let (question, group, stands): (u64, GroupId, Stands) = Decoder::value(head)?;
                let is_sound = are_members(&stands.members) && stands.epoch.0 > 0;
                let stands = is_sound.then_some(Message::Stands { question, group, stands });
                stands.ok_or_else(|| malformed("members of a group"))
            }
            PLACED => {
                let (group, list) = (Decoder::value(head)?, Decoder::value(&input.tail(0))?);
                let list: Placed = list;
                let fits = !list.is_empty() && list.len() <= BUCKETS as usize;
                let placed = fits.then_some(Message::Placed { group, list });
                placed.ok_or_else(|| malformed("places of buckets"))
            }
            FOUNDED => {
                let founded: Vec<(GroupId, Vec<NodeId>)> = Decoder::value(&input.tail(0))?;
                let are_sound = founded.iter().all(|(_, members)| are_members(members));
                let fits = (1..=BUCKETS as usize).contains(&founded.len()) && are_sound;
                let founded = founded.into_iter().map(|(group, members)| (group, members.into()));
                let founded = fits.then(|| Message::Founded(founded.collect()));
                founded.ok_or_else(|| malformed("founders of groups"))
            }
            RECALL => {
                let (question, tx) = Decoder::value(head)?;
                Ok(Message::Recall { question, tx })
            }
            RECALLED => {
                let (question, tx, ended) = Decoder::value(head)?;
                Ok(Message::Recalled { question, tx, ended })
            }
            WHO_LEADS => Ok(Message::WhoLeads { group: Decoder::value(head)? }),
            _ => Err(malformed("tag of a message")),
        }
    }
}
