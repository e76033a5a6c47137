//! What the primary of the tree has in hand. Volatile: it ends with its view.
//!
//! It puts the commands of gateways into the log, each gateway's in their order and one entry for
//! all of a turn; answers questions when it is known to lead and the commands that they follow are
//! executed; and tells each gateway what has happened, in one numbered stream. What it has lost
//! gateways ask again.

mod ask;
mod news;
mod silent;

use super::message::{News, OpenQuestion};
use crate::coordination::tree::{Command, Tree};
use crate::smr::Part;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::time::Time;

/// What a primary has in hand.
#[derive(Debug)]
pub struct Primary {
    /// When it began: who was not heard since is not silent for longer.
    began: Time,
    /// The gateways that have said that they are there.
    gateways: BTreeMap<NodeId, Served>,
    /// What is to be put into the log, and about how many bytes that is.
    parts: VecDeque<(Part<Tree>, usize)>,
    /// What waits until it is known that this node leads.
    tickets: BTreeMap<Ticket, (Incarnation, Unconfirmed)>,
    /// When sessions of gateways that are gone were looked for, and nodes that end by themselves.
    looked: Time,
}

/// A gateway as its primary knows it.
#[derive(Debug)]
struct Served {
    client: Incarnation,
    heard: Time,
    /// The newest message that has come of it; that after which a majority has said that this node
    /// leads; and when that was asked last.
    heard_touch: u64,
    touch: u64,
    touched: Time,
    /// It has asked something since it was told something, and when that was.
    is_owed: bool,
    told_at: Time,
    turn: u64,
    number: u64,
    follows: bool,
    /// Up to which change it was told.
    upto: u64,
    /// Up to which command something was put into the log, or is about to be.
    proposed: u64,
    acked: u64,
    questions: BTreeMap<u64, Waiting>,
    /// What it is told at the end of the turn; each with the number of the change before it.
    news: Vec<(u64, News)>,
}

/// What is answered if this node leads after it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unconfirmed {
    /// A question.
    Question(u64),
    /// That the gateway is there: it rests on the answer that its clients' sessions go on. Of a
    /// primary that is cut off and does not know it, nobody may be told so.
    Touch(u64),
}

/// A question that is not answered.
#[derive(Debug)]
struct Waiting {
    asked: OpenQuestion,
    /// Whether this node has led after it was asked.
    is_confirmed: bool,
}

impl Primary {
    /// A primary begins.
    pub fn new(now: Time) -> Primary {
        Primary {
            began: now,
            gateways: BTreeMap::new(),
            parts: VecDeque::new(),
            tickets: BTreeMap::new(),
            looked: now,
        }
    }

    /// How many questions it has in hand.
    pub fn questions(&self) -> usize {
        self.gateways.values().map(|served| served.questions.len()).sum()
    }

    /// A command of its own.
    fn add_own(&mut self, command: Command) {
        let bytes = command.bytes();
        self.parts.push_back((Part { from: None, commands: Vec::from([command]) }, bytes));
    }

    /// Asserts what must hold.
    pub fn check(&self) {
        let waits = |(gateway, what): &(Incarnation, Unconfirmed)| {
            let served = self.gateways.get(&gateway.node);
            served.filter(|it| it.client == *gateway).is_none_or(|it| match what {
                Unconfirmed::Question(number) => {
                    it.questions.get(number).is_none_or(|it| !it.is_confirmed)
                }
                Unconfirmed::Touch(touch) => *touch <= it.heard_touch,
            })
        };
        invariant!(self.tickets.values().all(waits), "what is confirmed waits for its commands");
    }
}

impl Served {
    fn new(client: Incarnation, now: Time) -> Served {
        Served {
            client,
            heard: now,
            heard_touch: 0,
            touch: 0,
            touched: Time(0),
            is_owed: true,
            told_at: Time(0),
            turn: 0,
            number: 0,
            follows: false,
            upto: 0,
            proposed: 0,
            acked: 0,
            questions: BTreeMap::new(),
            news: Vec::new(),
        }
    }
}
