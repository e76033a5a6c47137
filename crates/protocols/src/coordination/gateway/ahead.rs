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
use quorate_kernel::time::{Span, Time};

/// About the most bytes of answers that are waited for: half of what a member keeps, as it keeps
/// an answer a while longer than its gateway waits for it.
const WAITED_BYTES_MAX: usize = ANSWERS_BYTES_MAX / 2;
/// The most questions that go ahead of commands: half as many as there can be commands beside them.
const AHEAD_MAX: usize = COMMANDS_MAX / 2;
/// The most of them that one command does not wait for. As a command each costs every member more
/// than its answer, so where there are many the command waits for those.
const AHEAD_OF_ONE_MAX: usize = 8;

/// How long the largest answer is remembered at least, and at most twice as long.
const REMEMBERED: Span = Span::secs(10);

/// How many bytes an answer has at most, by those that were heard lately. Time forgets them, not
/// others: what a client reads next is as large, however many small answers come between.
#[derive(Debug, Default)]
pub struct Expected {
    /// The largest since `since`, and in as much time before it; none if nothing was heard.
    largest: Option<usize>,
    before: Option<usize>,
    since: Time,
}

impl Expected {
    /// An answer is heard. Lists may be larger, and do not go ahead.
    pub fn hear(&mut self, bytes: usize) {
        self.largest = self.largest.max(Some(bytes.min(NODE_BYTES_MAX)));
    }

    /// There was no room for an answer: others are not to be lost for the same reason.
    pub fn lose(&mut self) {
        self.hear(NODE_BYTES_MAX);
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Time) {
        let forgets = mutant!("tree_small_answers_forget_large_ones");
        if now - self.since >= REMEMBERED || forgets {
            (self.before, self.largest, self.since) = (self.largest.take(), None, now);
        }
    }

    /// Whether so many answers may be waited for. Where nothing was heard each is as large as it
    /// can be.
    fn has_room(&self, answers: usize) -> bool {
        let bytes = self.largest.max(self.before).unwrap_or(NODE_BYTES_MAX);
        let fits = answers.saturating_mul(bytes) <= WAITED_BYTES_MAX;
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
        let has_room = stream.has_room() && expected.has_room(stream.ahead() + count);
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
    use super::super::stream::Stream;
    use super::*;
    use crate::coordination::tree::tests::world::{anybody, get};
    use crate::coordination::tree::{Command, Question};

    #[test]
    fn who_reads_takes_no_places_of_those_who_write() {
        let mut stream = Stream::<()>::new(Time(0));
        let question = || Question::One(anybody(), get("/a"));
        for _ in 0..AHEAD_MAX {
            let number = stream.question(question(), 0, ());
            assert!(stream.put_ahead(number, Time(0)).is_some());
        }
        let mut writes = 0;
        while stream.has_room() {
            stream.command(Command::NOTHING, 1, None, Time(0));
            writes += 1;
        }
        assert_eq!((stream.ahead(), writes), (AHEAD_MAX, COMMANDS_MAX));
        for number in 1..=AHEAD_MAX as u64 {
            assert!(stream.done(number, Time(0)).is_some());
        }
        assert!(stream.ahead() == 0 && !stream.has_room(), "the writes wait yet");
        assert!(stream.done(AHEAD_MAX as u64 + 1, Time(0)).is_some());
        assert!(stream.has_room());
    }

    #[test]
    fn large_answers_are_expected_for_a_while_however_many_small_ones_come() {
        let (mut expected, most) = (Expected::default(), WAITED_BYTES_MAX / NODE_BYTES_MAX);
        let has =
            |expected: &Expected, most| expected.has_room(most) && !expected.has_room(most + 1);
        assert!(has(&expected, most), "nothing is known");
        expected.hear(1000);
        assert!(has(&expected, AHEAD_MAX), "they are small");
        for bytes in [1_000_000, usize::MAX] {
            expected.hear(bytes);
            // As often as a host looks at its clock, and all the time small answers.
            let (begin, tick) = (expected.since, Span::millis(50));
            for now in (1..REMEMBERED.0 / tick.0).map(|count| begin + Span(count * tick.0)) {
                (0..100).for_each(|_| expected.hear(10));
                expected.tick(now);
                assert!(has(&expected, most), "and no list is expected");
            }
            expected.tick(begin + REMEMBERED);
            assert!(has(&expected, most));
            expected.hear(10);
            expected.tick(begin + Span(2 * REMEMBERED.0));
            assert!(has(&expected, AHEAD_MAX), "they are small again");
        }
        expected.lose();
        assert!(has(&expected, most), "it may have been too large");
        (3..5).for_each(|it| expected.tick(expected.since + Span(it * REMEMBERED.0)));
        assert!(has(&expected, most), "nothing was heard for long");
    }
}
