//! The machine of the group, and questions that are answered between two of its commands.
//!
//! What a session asks is done in its order, and nothing waits for that: a command leaves while the
//! answers of questions before it are on their way. So, before a command of a session is executed,
//! what the session has asked before it, by the numbers of commands, is answered.
//!
//! Such an answer is right though nobody has confirmed that this node still leads. The command was
//! put into a log after the question was asked. What had been acknowledged before that was
//! committed by then. If that was in the command's view or an earlier one, it was in the log to
//! which the command was added, so it is in front of it. If it was in a later view, that one had
//! begun without the command, which is in no log that is committed, and is not executed. So the
//! state in front of the command shows it, and nothing that comes behind the command.

use super::ask::ANSWERS_MAX;
use super::{Primary, Served};
use crate::coordination::message::News;
use crate::coordination::tree::{self, Answer, Command, Question, Tree};
use crate::smr::{Executed, Replicated};
use crate::vsr::{Machine, Op, Page, Store, Stored};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;
use quorate_kernel::process::Table;
use quorate_kernel::tree::SessionId;

/// About the most bytes of answers of one turn, those between commands among them: what cannot wait
/// for the next turn is lost to its client, so there is more room for it.
const BETWEEN_MAX: usize = 4 * ANSWERS_MAX;

/// The machine, and who has asked what of it.
pub struct Between<'a> {
    /// The machine.
    pub machine: &'a mut Replicated<Tree>,
    /// Who has asked, if this node leads.
    pub primary: Option<&'a mut Primary>,
    /// What was answered.
    pub answered: Vec<Answered>,
}

/// An answer that was found between two commands.
#[derive(Debug)]
pub struct Answered {
    /// How many commands were executed before, of those that are told with it.
    pub(super) place: usize,
    /// Whom it is for, and the number of its question.
    pub(super) gateway: NodeId,
    pub(super) number: u64,
    /// The number of the last change that it shows.
    pub(super) at: u64,
    pub(super) answer: Answer,
}

impl Primary {
    /// Answers what a session has asked before a command that is about to be executed. A turn does
    /// not answer more than it should for that: what is left out is given up by its gateway.
    fn answer_before(
        &mut self,
        machine: &Replicated<Tree>,
        executed: Executed,
        command: &Command,
        answered: &mut Vec<Answered>,
    ) {
        let Executed { client, number: before } = executed;
        let Some(session) = command.who().and_then(|who| who.session) else { return };
        let served = self.gateways.get_mut(&client.node);
        let Some(served) = served.filter(|served| served.client == client) else { return };
        while let Some(number) = served.first_of(session)
            && served.questions.get(&number).is_some_and(|it| it.asked.after < before)
            && !mutant!("tree_write_overtakes_read")
        {
            let Some(waiting) = served.remove(number) else { return };
            if let Some(ticket) = waiting.ticket {
                self.tickets.remove(&ticket);
            }
            if self.spent >= BETWEEN_MAX {
                continue;
            }
            let question = &waiting.asked.question;
            let answer = machine.look(|on| tree::ask(question, on));
            self.spent += question.bytes() + answer.work();
            let (place, at) = (machine.executed(), machine.changes().last());
            answered.push(Answered { place, gateway: client.node, number, at, answer });
        }
    }
}

impl Served {
    /// The first question of a session that is not answered.
    fn first_of(&self, session: SessionId) -> Option<u64> {
        self.of_session.get(&session)?.first().copied()
    }

    /// A question is taken up.
    pub(super) fn add(&mut self, waiting: super::Waiting) {
        let number = waiting.asked.number;
        if let Some(session) = session_of(&waiting.asked.question) {
            self.of_session.entry(session).or_default().insert(number);
        }
        self.questions.insert(number, waiting);
    }

    /// A question is answered, or given back.
    pub(super) fn remove(&mut self, number: u64) -> Option<super::Waiting> {
        let waiting = self.questions.remove(&number)?;
        self.behind.remove(&(waiting.asked.after, number));
        if let Some(session) = session_of(&waiting.asked.question)
            && let Some(all) = self.of_session.get_mut(&session)
        {
            all.remove(&number);
            if all.is_empty() {
                self.of_session.remove(&session);
            }
        }
        Some(waiting)
    }

    /// How many questions are known to be of sessions.
    pub(super) fn are_of_sessions(&self) -> usize {
        self.of_session.values().map(BTreeSet::len).sum()
    }

    /// What was answered between commands is told at its place among them.
    pub(super) fn tell_answered(&mut self, answered: Answered) {
        self.tell(answered.at, News::Answer(answered.number, answered.answer));
    }
}

/// The session that asks.
pub(super) fn session_of(question: &Question) -> Option<SessionId> {
    question.who()?.session
}

impl Machine for Between<'_> {
    fn is_command(&mut self, command: &Bytes) -> bool {
        self.machine.is_command(command)
    }

    fn apply(&mut self, op: Op, command: &Bytes, _store: &mut Store<'_>) {
        let Between { machine, primary, answered } = self;
        let Some(primary) = primary else {
            return machine.apply_with(op, command, &mut |_, _, _| {});
        };
        machine.apply_with(op, command, &mut |machine, executed, command| {
            primary.answer_before(machine, executed, command, answered);
        });
    }

    fn load(&mut self, store: &mut Store<'_>) -> Stored {
        self.machine.load(store)
    }

    fn store(&mut self, applied: Op, bytes_max: usize, store: &mut Store<'_>) {
        self.machine.store(applied, bytes_max, store);
    }

    fn stored(&self) -> Op {
        self.machine.stored()
    }

    fn unstored(&self) -> usize {
        self.machine.unstored()
    }

    fn head(&mut self, at: Op) -> Bytes {
        self.machine.head(at)
    }

    fn page(&self, at: Op, cursor: &Bytes, bytes_max: usize, table: &dyn Table) -> Option<Page> {
        self.machine.page(at, cursor, bytes_max, table)
    }

    fn keep(&mut self, heads: &BTreeSet<Op>) {
        self.machine.keep(heads);
    }

    fn begin_install(&mut self, op: Op, head: &Bytes, store: &mut Store<'_>) -> bool {
        self.machine.begin_install(op, head, store)
    }

    fn install(&mut self, items: &Bytes, store: &mut Store<'_>) -> bool {
        self.machine.install(items, store)
    }

    fn clear_away(&mut self, store: &mut Store<'_>) -> bool {
        self.machine.clear_away(store)
    }

    fn end_install(&mut self, op: Op, store: &mut Store<'_>) {
        self.machine.end_install(op, store);
    }
}
