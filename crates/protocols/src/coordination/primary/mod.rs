//! What the primary of the tree has in hand. Volatile: it ends with its view.
//!
//! It puts the commands of gateways into the log, each gateway's in their order and one entry for
//! all of a turn; answers questions when it is known to lead and the commands that they follow are
//! executed; and tells each gateway what has happened, in one numbered stream. What it has lost
//! gateways ask again.

mod ask;
mod done;
mod news;
mod questions;
pub mod silent;

use super::message::{News, OpenQuestion};
use crate::coordination::tree::{Command, Tree};
use crate::smr::Part;
use crate::vsr::{Op, ViewNumber};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use done::Done;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::time::Time;

/// What a primary has in hand.
#[derive(Debug)]
pub struct Primary {
    /// In which view it leads.
    view: ViewNumber,
    /// When it began: who was not heard since is not silent for longer.
    began: Time,
    /// The gateways that have said that they are there.
    gateways: BTreeMap<NodeId, Served>,
    /// When each start of a gateway was heard last: earlier ones have sessions yet.
    heard: BTreeMap<Incarnation, Time>,
    /// What is to be put into the log, and about how many bytes that is.
    parts: VecDeque<(Part<Tree>, usize)>,
    /// The gateway that is told first next time: for which the last turn had no room.
    first: Option<NodeId>,
    /// Questions that wait until it is known that this node leads.
    tickets: BTreeMap<Ticket, (NodeId, u64)>,
    /// Questions that can be answered, in the order in which they are: as many a turn as it should.
    ready: VecDeque<(NodeId, u64)>,
    /// The one question of its own whether it leads, on which rest the touches heard before it.
    touched: Option<Ticket>,
    /// When a majority has last said that it leads.
    confirmed: Time,
    /// The last entry with commands of its own.
    own: Op,
    /// When sessions of gateways that are gone were looked for, and nodes that end by themselves.
    looked: Time,
}

/// A gateway as its primary knows it.
#[derive(Debug)]
struct Served {
    client: Incarnation,
    /// The newest touch; the newest one before the question on its way; and the newest after which
    /// this node has led.
    touch: u64,
    touch_asked: u64,
    touch_confirmed: u64,
    /// How far the log was applied here when that was confirmed, until it is said.
    applied: Option<Op>,
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
    /// Those that wait for nothing but a command, each behind the number of that.
    behind: BTreeSet<(u64, u64)>,
    /// Those that could be answered, and are not as long as their answers would wait here.
    held: VecDeque<u64>,
    /// Those whose answers wait among the news: one that is asked again is not looked up again.
    looked_up: BTreeSet<u64>,
    /// What it is told at the end of the turn; each with the number of the change before it.
    news: Vec<(u64, News)>,
    /// About how many bytes of answers of questions that is.
    news_bytes: usize,
    /// Whether something of it is new since it was last looked what of it is to be told, and which
    /// answer of a command waited then.
    has_news: bool,
    waited_at: Option<u64>,
    /// How far it was told the answers of its commands.
    done: Done,
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
    pub fn new(view: ViewNumber, now: Time) -> Primary {
        Primary {
            view,
            began: now,
            gateways: BTreeMap::new(),
            heard: BTreeMap::new(),
            parts: VecDeque::new(),
            first: None,
            tickets: BTreeMap::new(),
            ready: VecDeque::new(),
            touched: None,
            confirmed: now,
            own: Op(0),
            looked: now,
        }
    }

    /// How many questions it has in hand.
    pub fn questions(&self) -> usize {
        self.gateways.values().map(|served| served.questions.len()).sum()
    }

    /// A command of its own.
    pub fn add_own(&mut self, command: Command) {
        let bytes = command.bytes();
        self.parts.push_back((Part { from: None, commands: Vec::from([command]) }, bytes));
    }

    /// Asserts what must hold.
    pub fn check(&self) {
        let waits = |(node, number): &(NodeId, u64)| {
            let question = self.gateways.get(node).and_then(|it| it.questions.get(number));
            question.is_some_and(|it| !it.is_confirmed)
        };
        invariant!(self.tickets.values().all(waits), "what is confirmed waits for its commands");
        let questions = self.gateways.values().flat_map(|it| it.questions.values());
        let unconfirmed = questions.filter(|it| !it.is_confirmed).count();
        invariant!(self.tickets.len() == unconfirmed, "a question is confirmed once");
        let is_behind = |served: &Served| {
            let waits = |(after, number): &(u64, u64)| {
                let question = served.questions.get(number);
                question.is_some_and(|it| it.is_confirmed && it.asked.after == *after)
            };
            let is_confirmed =
                |number: &u64| served.questions.get(number).is_some_and(|it| it.is_confirmed);
            served.behind.iter().all(waits) && served.held.iter().all(is_confirmed)
        };
        invariant!(self.gateways.values().all(is_behind), "a command is waited for once");
        self.gateways.values().for_each(Served::check);
    }
}

impl Served {
    fn new(client: Incarnation) -> Served {
        Served {
            client,
            touch: 0,
            touch_asked: 0,
            touch_confirmed: 0,
            applied: None,
            is_owed: true,
            told_at: Time(0),
            turn: 0,
            number: 0,
            follows: false,
            upto: 0,
            proposed: 0,
            acked: 0,
            questions: BTreeMap::new(),
            behind: BTreeSet::new(),
            held: VecDeque::new(),
            looked_up: BTreeSet::new(),
            news: Vec::new(),
            news_bytes: 0,
            has_news: false,
            waited_at: None,
            done: Done::default(),
        }
    }
}
