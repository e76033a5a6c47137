//! What the hosts of a keyspace say to each other, and how it is written.

use crate::coordination::gateway::stream::ASK_MAX;
use crate::coordination::tree::{Answer, Change, Command, LIFE_MAX, Question, Tree};
use crate::groups::{Leads, Stands, decode_parts, encode_parts};
use crate::smr::{Machine, sized};
use crate::vsr::{self, Op, ViewNumber, are_members};
use alloc::vec::Vec;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// One message. New variants are only appended.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Replicas to replicas: what one turn brought.
    Log(Vec<(GroupId, vsr::Message)>),
    /// Who the members of a group are, and in which view: a hint of where its primary is.
    Leads(Leads),
    /// To the members of a group: the answer is `Leads`.
    WhoLeads {
        /// The group.
        group: GroupId,
    },
    /// A gateway to whom it takes for the primary.
    Ask(GatewayAsks),
    /// A primary to a gateway.
    Told(GatewayNews),
    /// The host that an operator has asked, to those who may hold the group: how they stand in it.
    Stand {
        /// Names the question at its sender.
        question: u64,
        /// A host that leaves.
        leaver: Option<NodeId>,
    },
    /// The answer to a `Stand`. What it says of its sender is durable there.
    Stands {
        /// The question's.
        question: u64,
        /// How the sender stands.
        stands: Stands,
    },
    /// A primary to the gateway of a member, where hosts answer what sessions read, in front of the
    /// first `Told` that names a touch. A replica that has applied as much shows all that was
    /// acknowledged before that touch was sent.
    Applied {
        /// The life of the tree, in which all numbers count.
        life: u64,
        /// The newest `touch` after which the sender has led.
        touch: u64,
        /// The last entry of the log that the sender had applied when it knew that.
        upto: Op,
    },
}

/// What a gateway asks for its clients, and that it is there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayAsks {
    /// Grows with each message of a gateway's start: the answer says which was heard.
    pub touch: u64,
    /// Grows when the gateway begins with another primary, or has missed something: it is told
    /// again what it was told behind `seen`, and what is behind `acked`; it asks everything anew.
    pub turn: u64,
    /// The life of the tree in which all numbers count, if the gateway knows it: it asks nothing
    /// else before.
    pub life: Option<u64>,
    /// The number of the last change that the gateway knows of.
    pub seen: u64,
    /// Whether the gateway is told of all changes; otherwise of its own sessions' alone.
    pub follows: bool,
    /// The gateway has the answers of all commands up to here.
    pub acked: u64,
    /// The number of the first command.
    pub first: u64,
    /// Commands, in their order.
    pub commands: Vec<Command>,
    /// Questions.
    pub questions: Vec<OpenQuestion>,
}

/// One question of a gateway.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenQuestion {
    /// Names it at the gateway.
    pub number: u64,
    /// The command of the gateway that the answer must show.
    pub after: u64,
    /// What is asked.
    pub question: Question,
}

/// What a primary tells a gateway: all of it rests on a majority.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayNews {
    /// The newest `touch` after which the sender has led: no other primary has begun before it was
    /// sent.
    pub touch: u64,
    /// The life of the tree, in which all numbers count.
    pub life: u64,
    /// If the gateway has asked in another life: its last command that is left in this one.
    pub done: u64,
    /// In which view the sender leads. One that leads again begins anew.
    pub view: ViewNumber,
    /// The newest `turn` that was heard.
    pub turn: u64,
    /// Counts the messages of that turn and view from 1: one that is missing is noticed.
    pub number: u64,
    /// A later start of the gateway is known: nothing that this one asks is done any more.
    pub has_ended: bool,
    /// The gateway is told of all changes that it follows up to this one.
    pub upto: u64,
    /// Some changes are not known any more, and are missing: of nodes, or of the gateway's own
    /// sessions.
    pub lacks: bool,
    /// Changes and answers. What an answer shows comes before it, and what it does not show behind.
    pub news: Vec<News>,
}

/// One thing that a gateway is told. New variants are only appended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum News {
    /// Something has happened; its number.
    Change(u64, Change),
    /// A command was executed; its number.
    Done(u64, Answer),
    /// A question is answered; its number.
    Answer(u64, Answer),
}

impl Message {
    /// The name of the variant, for traces.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Message::Log(_) => "Log",
            Message::Leads(_) => "Leads",
            Message::WhoLeads { .. } => "WhoLeads",
            Message::Ask(_) => "Ask",
            Message::Told(_) => "Told",
            Message::Stand { .. } => "Stand",
            Message::Stands { .. } => "Stands",
            Message::Applied { .. } => "Applied",
        }
    }
}

/// No start of a host asks so many commands: a million a second take nine years.
const DONE_MAX: u64 = 1 << 48;

const LOG: u8 = 0;
const LEADS: u8 = 1;
const WHO_LEADS: u8 = 2;
const ASK: u8 = 3;
const TOLD: u8 = 4;
const STAND: u8 = 5;
const STANDS: u8 = 6;
const APPLIED: u8 = 7;

fn value_of<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, WireError> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        _ => Err(WireError::Malformed { what: "message of a tree's gateway or primary" }),
    }
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
            Message::Leads(leads) => {
                out.raw(&[LEADS]);
                out.head(leads);
            }
            Message::WhoLeads { group } => {
                out.raw(&[WHO_LEADS]);
                out.head(group);
            }
            Message::Ask(ask) => {
                out.raw(&[ASK]);
                out.tail(0, &sized(&[], ask));
            }
            Message::Told(told) => {
                out.raw(&[TOLD]);
                out.tail(0, &sized(&[], told));
            }
            Message::Stand { question, leaver } => {
                out.raw(&[STAND]);
                out.head(&(question, leaver));
            }
            Message::Stands { question, stands } => {
                out.raw(&[STANDS]);
                out.head(&(question, stands));
            }
            Message::Applied { life, touch, upto } => {
                out.raw(&[APPLIED]);
                out.head(&(life, touch, upto));
            }
        }
    }

    fn decode(input: &Decoder) -> Result<Message, WireError> {
        let Some((tag, head)) = input.head_bytes().split_first() else {
            return Err(malformed("message without a tag"));
        };
        match *tag {
            LOG => decode_parts(head, input.tail(0)).map(Message::Log),
            LEADS => Leads::decode(head).map(Message::Leads),
            WHO_LEADS => Ok(Message::WhoLeads { group: Decoder::value(head)? }),
            ASK => {
                let ask: GatewayAsks = value_of(&input.tail(0))?;
                let is_sound = ask.commands.len() <= ASK_MAX
                    && ask.questions.len() <= ASK_MAX
                    && ask.commands.iter().all(Tree::is_sound)
                    && ask.first.checked_add(ask.commands.len() as u64).is_some();
                let ask = is_sound.then_some(Message::Ask(ask));
                ask.ok_or_else(|| malformed("commands of a tree"))
            }
            TOLD => {
                let told: GatewayNews = value_of(&input.tail(0))?;
                let is_sound = told.life <= LIFE_MAX && told.done <= DONE_MAX;
                let told = is_sound.then_some(Message::Told(told));
                told.ok_or_else(|| malformed("life of a tree, or number of a command"))
            }
            STAND => {
                let (question, leaver) = Decoder::value(head)?;
                Ok(Message::Stand { question, leaver })
            }
            STANDS => {
                let (question, stands): (u64, Stands) = Decoder::value(head)?;
                let is_sound = are_members(&stands.members) && stands.epoch.0 > 0;
                let stands = is_sound.then_some(Message::Stands { question, stands });
                stands.ok_or_else(|| malformed("members of a group"))
            }
            APPLIED => {
                let (life, touch, upto): (u64, u64, Op) = Decoder::value(head)?;
                let applied = (life <= LIFE_MAX).then_some(Message::Applied { life, touch, upto });
                applied.ok_or_else(|| malformed("life of a tree"))
            }
            _ => Err(malformed("tag of a message")),
        }
    }
}
