//! Questions that go ahead of a command of their client.
//!
//! What a session asks is done in its order, so a command must not be executed before the questions
//! in front of it are answered, and need not wait for their answers. So these questions become
//! commands themselves, in front of it in the gateway's stream. All members look for the answer at
//! that place of the log: behind all that was done when it was asked, and in front of the command.
//! As answers of commands are, it is told once and at its place among changes, whoever leads by
//! then. A question that no command of its session follows costs no entry.
//!
//! A question may be on its way as one already. That answer is not heard any more: it may be found
//! behind the command.
//!
//! Answers of commands are kept until their gateway has them, and these would be many bytes. So the
//! state keeps the small ones alone, and members have the others in memory ([`crate::smr`]). Where
//! the primary has started or copied the state since, it may know one no more. Then it cannot be
//! found again, and its client's connection ends, as ZooKeeper's do where another server leads.
//!
//! Many questions do not go ahead: to execute them costs more than to wait for their answers. And
//! the memory for answers is bounded. The gateway estimates what it would be answered, by what it
//! was answered lately, and does not ask for more: then a command waits for the answers.

use super::Gateway;
use super::stream::COMMANDS_MAX;
use crate::coordination::NODE_BYTES_MAX;
use crate::smr::ANSWERS_BYTES_MAX;
use core::mem;
use quorate_kernel::ids::Ticket;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::Time;

/// About the most bytes of answers that are waited for: half of what a member keeps, as it keeps
/// an answer a while longer than its gateway waits for it.
const WAITED_BYTES_MAX: usize = ANSWERS_BYTES_MAX / 2;
/// The most questions that go ahead of commands: there is room for as many commands beside them.
const AHEAD_MAX: usize = COMMANDS_MAX / 2;
/// The most of them that one command does not wait for. As a command each costs every member more
/// than its answer, so where there are many the command waits for those.
const AHEAD_OF_ONE_MAX: usize = 8;

/// How many bytes an answer has at most, by those that were heard lately.
#[derive(Debug)]
pub struct Expected(usize);

impl Default for Expected {
    /// Nothing was heard: as many as it can have.
    fn default() -> Expected {
        Expected(NODE_BYTES_MAX)
    }
}

impl Expected {
    /// An answer is heard. Lists may be larger, and do not go ahead.
    pub fn hear(&mut self, bytes: usize) {
        self.0 = bytes.min(NODE_BYTES_MAX).max(self.0 - self.0.div_ceil(16));
    }

    /// There was no room for an answer: others are not to be lost for the same reason.
    pub fn lose(&mut self) {
        *self = Expected::default();
    }

    /// Whether so many answers may be waited for.
    fn has_room(&self, answers: usize) -> bool {
        let fits = answers.saturating_mul(self.0) <= WAITED_BYTES_MAX;
        answers <= AHEAD_MAX && (fits || mutant!("tree_expects_nothing_large"))
    }
}

impl Gateway {
    /// Puts the questions of a client that are not answered into the stream of commands; whether a
    /// command of its may follow. If one of them cannot be there, or there is no room, it may not,
    /// and waits for the answers.
    pub(super) fn put_ahead(&mut self, client: Ticket, now: Time) -> bool {
        let Gateway { connections, stream, expected, .. } = self;
        let Some(connection) = connections.get_mut(&client) else { return false };
        let may_go = |number: &u64| stream.asked(*number).is_some_and(|it| it.may_go_ahead());
        let count = connection.questions.len();
        if count == 0 {
            return true;
        }
        let has_room = stream.has_room()
            && stream.commands() + count < COMMANDS_MAX
            && expected.has_room(stream.ahead() + count);
        if count > AHEAD_OF_ONE_MAX || !has_room || !connection.questions.iter().all(may_go) {
            probe!("coordination/waits_for_answers");
            return false;
        }
        for question in mem::take(&mut connection.questions) {
            let command = stream.put_ahead(question, now);
            invariant!(command.is_some(), "a client's questions are not answered");
            connection.last = command.unwrap_or(connection.last);
        }
        invariant!(connection.last == stream.last(), "nothing comes between it and its command");
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_answers_are_expected_at_once_and_forgotten_slowly() {
        let mut expected = Expected::default();
        let most = WAITED_BYTES_MAX / NODE_BYTES_MAX;
        assert!(expected.has_room(most) && !expected.has_room(most + 1));
        (0..200).for_each(|_| expected.hear(1000));
        assert!(expected.has_room(AHEAD_MAX) && !expected.has_room(AHEAD_MAX + 1));
        expected.hear(1_000_000);
        assert!(expected.has_room(8) && !expected.has_room(9));
        (0..10).for_each(|_| expected.hear(0));
        assert!(expected.has_room(9) && !expected.has_room(20));
        expected.lose();
        assert!(expected.has_room(most) && !expected.has_room(most + 1));
        expected.hear(usize::MAX);
        assert!(expected.has_room(most), "a list is not expected");
        (0..1000).for_each(|_| expected.hear(0));
        assert!(expected.has_room(AHEAD_MAX) && !expected.has_room(usize::MAX));
    }
}
