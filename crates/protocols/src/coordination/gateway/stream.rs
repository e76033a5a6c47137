//! What a gateway has asked and is not answered: one stream of commands, each of them once, and
//! questions beside it.
//!
//! Commands have numbers, and are sent in their order. When another host leads, or something was
//! missed, all that is not answered is sent again; the machine knows what it has executed.

mod asks;
mod heard;

use crate::coordination::tree::{Command, Question};
use crate::vsr::ViewNumber;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::mutant;
use quorate_kernel::time::{Span, Time};

/// The most commands of a gateway that are not answered, beside questions that go ahead of them.
pub const COMMANDS_MAX: usize = 4096;
/// Beside them so many by which sessions begin, go on and expire: they do not wait behind writes.
const OF_SESSIONS_MAX: usize = 1024;
/// The most bytes of them: one more always fits.
pub const COMMANDS_BYTES_MAX: usize = 32 * 1024 * 1024;
/// The most questions of a gateway that are not answered.
pub const QUESTIONS_MAX: usize = 65_536;
/// About the most bytes of one message.
const ASK_BYTES_MAX: usize = 1024 * 1024;
/// The most questions, and the most commands, of one message.
pub const ASK_MAX: usize = 1024;
/// How long something waits before it is asked again.
pub const SILENT: Span = Span::millis(300);
/// How long a gateway that waits for something waits for a word that rests on a majority, before it
/// asks another host; longer each time that no host has one, up to [`WAIT_MAX`].
const PATIENCE: Span = Span::millis(600);
/// How often a primary is asked for such a word while something waits.
const ASKED: Span = Span::millis(100);
/// The longest that something waits before it is asked again.
const WAIT_MAX: Span = Span::secs(2);
/// How often a primary is told that the gateway is there.
pub const TOUCH: Span = Span::millis(500);

/// Who tells something: a host in one of its starts, as the primary of a view.
pub type Source = (Incarnation, ViewNumber);

/// A question that is not answered.
#[derive(Debug)]
pub struct Open<O> {
    /// Who waits for it, and what is done with the answer.
    pub origin: O,
    after: u64,
    question: Question,
    /// When it was asked last.
    asked_at: Time,
}

/// What nobody waits for any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// A command: it may be executed.
    Command,
    /// A question that went ahead of a command.
    Ahead,
    /// A question, and its number.
    Question(u64),
}

/// Everything that is not answered; `O` says who waits.
#[derive(Debug)]
pub struct Stream<O> {
    /// Commands, the oldest first.
    commands: VecDeque<(Command, usize, Option<O>)>,
    /// How many bytes they have, without questions that go ahead of others; how many those are.
    bytes: usize,
    ahead: usize,
    /// The life of the tree in which numbers count, once it is known.
    life: Option<u64>,
    /// The number of the last command that was answered, with all before it.
    acked: u64,
    /// Answers of later ones, which have come before.
    questions: BTreeMap<u64, Open<O>>,
    /// How many questions were asked in this start.
    asked: u64,
    /// Up to which command was sent, and which questions were not.
    sent: u64,
    unsent: BTreeSet<u64>,
    /// Who is asked.
    primary: Option<NodeId>,
    /// Grows when all is asked anew, and how many messages have come since; whether the primary was
    /// told so.
    turn: u64,
    number: u64,
    is_told: bool,
    /// Who has sent them: a host in one of its starts, as the primary of a view.
    source: Option<Source>,
    /// When the oldest command became the oldest, and how long it waits before all is asked anew.
    oldest: Time,
    wait: Span,
    /// About how many bytes of answers of commands have come since something was last sent.
    unsaid: usize,
    /// Messages so far.
    touch: u64,
    /// When those were sent that no answer has named.
    touches: VecDeque<(u64, Time)>,
    /// The newest that an answer has named, and when it was sent.
    named: u64,
    /// See there.
    pub confirmed: Time,
    /// When something was last sent, and when the primary has last said something that rests on a
    /// majority.
    pub sent_at: Time,
    /// See there.
    pub heard_at: Time,
    /// How long it is asked yet while something waits.
    patience: Span,
}

impl<O> Stream<O> {
    /// A gateway begins.
    pub fn new(now: Time) -> Stream<O> {
        Stream {
            commands: VecDeque::new(),
            bytes: 0,
            ahead: 0,
            life: None,
            acked: 0,
            questions: BTreeMap::new(),
            asked: 0,
            sent: 0,
            unsent: BTreeSet::new(),
            primary: None,
            turn: 0,
            number: 0,
            is_told: false,
            source: None,
            oldest: now,
            wait: SILENT,
            unsaid: 0,
            touch: 0,
            touches: VecDeque::new(),
            named: 0,
            confirmed: now,
            sent_at: Time(0),
            heard_at: now,
            patience: PATIENCE,
        }
    }

    /// Whether there is room for one more command. Questions that go ahead take no writer's place:
    /// they have their own.
    pub fn has_room(&self) -> bool {
        let ahead = if mutant!("tree_readers_take_writers_places") { 0 } else { self.ahead };
        self.commands.len() - ahead < COMMANDS_MAX && self.bytes < COMMANDS_BYTES_MAX
    }

    /// Whether there is room for this one: commands of sessions have places of their own, too.
    pub fn has_room_for(&self, command: &Command) -> bool {
        let is_of_session = matches!(
            command,
            Command::Open { .. } | Command::Attach { .. } | Command::Expire { .. }
        );
        let has_place = self.commands.len() - self.ahead < COMMANDS_MAX + OF_SESSIONS_MAX;
        self.has_room() || (is_of_session && has_place && !mutant!("tree_sessions_wait_for_writes"))
    }

    /// How many questions are not answered.
    pub fn questions(&self) -> usize {
        self.questions.len()
    }

    /// How many questions that go ahead of commands, as commands, are not answered.
    pub fn ahead(&self) -> usize {
        self.ahead
    }

    /// How many commands are not answered.
    pub fn commands(&self) -> usize {
        self.commands.len()
    }

    /// Whether something is not answered.
    pub fn waits(&self) -> bool {
        !self.commands.is_empty() || !self.questions.is_empty()
    }

    /// A command; its number.
    pub fn command(&mut self, command: Command, bytes: usize, origin: Option<O>, now: Time) -> u64 {
        if self.commands.is_empty() {
            self.oldest = now;
        }
        match is_ahead(&command) {
            true => self.ahead += 1,
            false => self.bytes += bytes,
        }
        self.commands.push_back((command, bytes, origin));
        self.acked + self.commands.len() as u64
    }

    /// A question, to be answered with what this command of the gateway has left; its number.
    pub fn question(&mut self, question: Question, after: u64, origin: O) -> u64 {
        self.asked += 1;
        let open = Open { origin, after, question, asked_at: Time(0) };
        self.questions.insert(self.asked, open);
        self.unsent.insert(self.asked);
        self.asked
    }

    /// Whether somebody waits for a command that is picked.
    pub fn has_open(&self, pick: impl Fn(&Command, &O) -> bool) -> bool {
        let mut open = self.commands.iter();
        open.any(|(command, _, origin)| origin.as_ref().is_some_and(|it| pick(command, it)))
    }

    /// A question is answered: who waits for it.
    pub fn answered(&mut self, number: u64) -> Option<O> {
        self.unsent.remove(&number);
        self.questions.remove(&number).map(|open| open.origin)
    }

    /// Who waits for a question that is not answered.
    pub fn origin(&self, number: u64) -> Option<&O> {
        self.questions.get(&number).map(|open| &open.origin)
    }

    /// What is asked by a question that is not answered.
    pub fn asked(&self, number: u64) -> Option<&Question> {
        self.questions.get(&number).map(|open| &open.question)
    }

    /// A question becomes a command, so that others may follow it at once; the command's number.
    /// An answer of the question, if it was asked before, is not heard any more: it may show what
    /// comes behind.
    pub fn put_ahead(&mut self, question: u64, now: Time) -> Option<u64> {
        self.unsent.remove(&question);
        let Open { origin, question, .. } = self.questions.remove(&question)?;
        let command = Command::Ask(question);
        let bytes = command.bytes();
        Some(self.command(command, bytes, Some(origin), now))
    }

    /// A question is asked once more, with what is sent next.
    pub fn ask_again(&mut self, number: u64) {
        if self.questions.contains_key(&number) {
            self.unsent.insert(number);
        }
    }

    /// Nobody waits any more for those that are picked: commands stay, as they may be executed.
    pub fn give_up(&mut self, mut pick: impl FnMut(&O) -> bool) -> Vec<(O, GivenUp)> {
        let mut given_up = Vec::new();
        for (command, _, origin) in &mut self.commands {
            let what = if is_ahead(command) { GivenUp::Ahead } else { GivenUp::Command };
            given_up.extend(origin.take_if(|origin| pick(origin)).map(|origin| (origin, what)));
        }
        let over: Vec<u64> =
            self.questions.iter().filter(|(_, it)| pick(&it.origin)).map(|(n, _)| *n).collect();
        for number in over {
            let origin = self.answered(number);
            given_up.extend(origin.map(|origin| (origin, GivenUp::Question(number))));
        }
        given_up
    }

    /// Nobody wants commands that are picked any more: unless they are executed already, or are on
    /// their way, others take their places.
    pub fn withdraw(&mut self, pick: impl Fn(&O) -> bool, instead: &Command) {
        for (command, _, origin) in &mut self.commands {
            if origin.as_ref().is_some_and(&pick) {
                command.clone_from(instead);
            }
        }
    }

    /// Everything is asked anew, of whoever leads now.
    pub fn resume(&mut self) {
        self.turn += 1;
        self.number = 0;
        self.source = None;
        self.is_told = false;
        self.sent = self.acked;
        self.unsent = self.questions.keys().copied().collect();
    }

    /// The life of the tree in which numbers count, once it is known.
    pub fn life(&self) -> Option<u64> {
        self.life
    }

    /// Numbers count in this life from now on. What of this gateway's was done before it, up to
    /// `done`, is left in it; nobody waits for anything.
    pub fn begin_life(&mut self, life: u64, done: u64) {
        if self.life.is_some() || done > 0 {
            self.commands.clear();
            self.questions.clear();
            (self.bytes, self.ahead) = (0, 0);
            self.acked = done;
            self.resume();
        }
        (self.life, self.is_told) = (Some(life), false);
    }

    /// Whoever is asked next begins anew.
    pub fn renew(&mut self) {
        self.primary = None;
    }

    /// The link to a host was reset: what was on its way is lost.
    pub fn unlinked(&mut self, node: NodeId) {
        if self.primary == Some(node) {
            self.resume();
        }
    }

    /// Whether this is who is asked.
    pub fn is_asked(&self, node: NodeId) -> bool {
        self.primary == Some(node)
    }

    /// Whether what is answered was sent, and nothing else is waited for.
    pub fn is_in_order(&self) -> bool {
        let are_asked = self.unsent.iter().all(|number| self.questions.contains_key(number));
        self.sent >= self.acked && self.sent <= self.last() && are_asked
    }

    /// Whether a command was answered, with all before it.
    pub fn is_answered(&self, command: u64) -> bool {
        command <= self.acked
    }

    /// The number of the last command.
    pub fn last(&self) -> u64 {
        self.acked + self.commands.len() as u64
    }
}

fn is_ahead(command: &Command) -> bool {
    matches!(command, Command::Ask(_))
}

/// The ticket of an operation, which is answered by its deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Whose operation it is.
    pub ticket: Ticket,
    /// When it must have been answered.
    pub deadline: Time,
}
