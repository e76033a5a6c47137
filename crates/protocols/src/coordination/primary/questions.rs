//! Questions of a gateway that a primary has in hand: those that are open, and those whose answers
//! wait to be told.
//!
//! A gateway that waits for long asks the same again and again. As long as the answer waits here
//! nothing is done for that: the answer is of a time after the question was asked first, so it
//! serves. Once it was told it may be lost, and is looked up again.

use super::{Served, Waiting};
use crate::coordination::message::{News, OpenQuestion};
use crate::coordination::tree::{self, Tree};
use crate::smr::Replicated;
use alloc::vec::Vec;
use quorate_kernel::invariant;
use quorate_kernel::limits::{OPERATIONS_MAX, TRANSACTION_BYTES_MAX};
use quorate_kernel::mutant;

/// The most that one answer counts for.
pub const ANSWER_MAX: usize = 2 * TRANSACTION_BYTES_MAX;

impl Served {
    /// Which of these questions are new, as far as there is room for them: whether this node leads
    /// is to be confirmed for each.
    pub(super) fn take_questions(&mut self, asked: Vec<OpenQuestion>) -> Vec<u64> {
        let mut taken = Vec::new();
        for asked in asked {
            let number = asked.number;
            if self.is_new(number) && self.in_hand() < OPERATIONS_MAX {
                taken.push(number);
                self.questions.insert(number, Waiting { asked, is_confirmed: false });
            }
        }
        taken
    }

    fn is_new(&self, number: u64) -> bool {
        let waits = self.looked_up.contains(&number) && !mutant!("tree_looks_up_each_repeat");
        !waits && !self.questions.contains_key(&number)
    }

    fn in_hand(&self) -> usize {
        self.questions.len() + self.looked_up.len()
    }

    /// Answers a question that can be answered, and says how much work that was, in bytes. One that
    /// was asked anew meanwhile is not confirmed yet.
    pub(super) fn answer(&mut self, number: u64, machine: &Replicated<Tree>) -> usize {
        let done = machine.client(self.client).map_or(0, |client| client.done);
        let can_be = |it: &Waiting| it.is_confirmed && it.asked.after <= done;
        if !self.questions.get(&number).is_some_and(can_be) {
            return 0;
        }
        let Some(waiting) = self.questions.remove(&number) else { return 0 };
        self.behind.remove(&(waiting.asked.after, number));
        let question = &waiting.asked.question;
        let answer = machine.look(|on| tree::ask(question, on));
        let work = question.bytes() + answer.work();
        self.tell(machine.changes().last(), News::Answer(number, answer));
        work.min(ANSWER_MAX)
    }

    /// Asserts what must hold of answers that wait to be told.
    pub(super) fn check(&self) {
        let answers = self.news.iter().filter_map(|(_, news)| match news {
            News::Answer(number, _) => Some(number),
            _ => None,
        });
        let (mut count, mut are_known) = (0, true);
        for number in answers {
            count += 1;
            are_known &= self.looked_up.contains(number);
        }
        invariant!(are_known, "an answer that waits is known to wait");
        invariant!(count == self.looked_up.len(), "a question is answered once until that is told");
        let are_open = self.looked_up.iter().any(|number| self.questions.contains_key(number));
        invariant!(!are_open, "what is answered is not open");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::primary::done::tests::read;
    use crate::coordination::tree::Question;
    use crate::coordination::tree::tests::world::{World, anybody, gateway, get};
    use quorate_kernel::time::Time;

    fn asked(numbers: impl Iterator<Item = u64>) -> Vec<OpenQuestion> {
        let question = |number| {
            let question = Question::One(anybody(), get("/5b"));
            OpenQuestion { number, after: 0, question }
        };
        numbers.map(question).collect()
    }

    /// The answers of questions that are told now.
    fn told(served: &mut Served, machine: &Replicated<Tree>) -> Vec<u64> {
        served.tell_done(machine, &mut usize::MAX.clone());
        let told = served.told(machine.changes(), Time(0)).into_iter().flat_map(|it| it.news);
        let number = |news| match news {
            News::Answer(number, _) => Some(number),
            _ => None,
        };
        told.filter_map(number).collect()
    }

    fn answer_all(served: &mut Served, machine: &Replicated<Tree>) {
        served.questions.values_mut().for_each(|it| it.is_confirmed = true);
        for number in served.questions.keys().copied().collect::<Vec<_>>() {
            assert!(served.answer(number, machine) > 0);
        }
        served.check();
    }

    #[test]
    fn a_question_whose_answer_waits_is_not_looked_up_again() {
        let mut world = World::new();
        let mut served = read(&mut world, gateway(5), 2);
        let machine = &world.member.machine;
        let none: [u64; 0] = [];
        // From here on the answer of a command waits, and holds back those of questions.
        assert_eq!(told(&mut served, machine), none);
        let ask = |served: &mut Served| served.take_questions(asked(1..4));
        assert_eq!(ask(&mut served), [1, 2, 3]);
        assert_eq!(ask(&mut served), none, "they are open");
        answer_all(&mut served, machine);
        for _ in 0..5 {
            assert_eq!(ask(&mut served), none, "their answers wait");
            answer_all(&mut served, machine);
            assert_eq!(told(&mut served, machine), none);
        }
        assert_eq!(served.news.len(), 3);
        served.done.acknowledge(4);
        assert_eq!(told(&mut served, machine), [1, 2, 3]);
        // What was told may be lost.
        assert_eq!(ask(&mut served), [1, 2, 3]);
        answer_all(&mut served, machine);
        assert_eq!(told(&mut served, machine), [1, 2, 3]);
    }

    #[test]
    fn a_gateway_that_asks_everything_anew_is_answered_anew() {
        let mut world = World::new();
        let mut served = read(&mut world, gateway(5), 2);
        let machine = &world.member.machine;
        assert_eq!(told(&mut served, machine).len(), 0);
        assert_eq!(served.take_questions(asked(1..4)), [1, 2, 3]);
        answer_all(&mut served, machine);
        served.resume((1, machine.changes().last(), 4), machine);
        served.check();
        assert_eq!(served.take_questions(asked(2..4)), [2, 3]);
        answer_all(&mut served, machine);
        assert_eq!(told(&mut served, machine), [2, 3]);
    }

    #[test]
    fn answers_that_wait_count_among_the_questions_in_hand() {
        let mut world = World::new();
        let mut served = read(&mut world, gateway(5), 2);
        assert_eq!(served.take_questions(asked(0..2)), [0, 1]);
        served.looked_up.extend(2..OPERATIONS_MAX as u64 - 1);
        let last = OPERATIONS_MAX as u64 - 1;
        assert_eq!(served.take_questions(asked(last..last + 2)), [last]);
    }
}
