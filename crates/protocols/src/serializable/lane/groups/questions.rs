//! Questions of other hosts that a primary has in hand.

use crate::serializable::Raw;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, Start, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::mutant;

/// A question that is in hand here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerRequest {
    /// Who has asked.
    pub from: Incarnation,
    /// How it calls the question.
    pub question: u64,
    /// What is listed, if that was asked.
    pub list: Option<(Raw, u32)>,
}

/// All questions that are not answered yet. A question that is repeated is the same one.
#[derive(Debug, Default)]
pub struct Questions {
    of: BTreeMap<Ticket, PeerRequest>,
    tickets: BTreeMap<(Incarnation, u64), Ticket>,
}

impl Questions {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.of.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// A question.
    pub fn get(&self, ticket: Ticket) -> Option<&PeerRequest> {
        self.of.get(&ticket)
    }

    /// The ticket of a question that was asked before.
    pub fn find(&self, from: Incarnation, question: u64) -> Option<Ticket> {
        let ticket = self.tickets.get(&(from, question)).copied();
        ticket.filter(|_| !mutant!("lane_repeat_takes_new_ticket"))
    }

    /// Takes a question in, under a ticket that no other has.
    pub fn add(&mut self, ticket: Ticket, asked: PeerRequest) {
        self.tickets.insert((asked.from, asked.question), ticket);
        let before = self.of.insert(ticket, asked);
        invariant!(before.is_none(), "tickets are given out once");
    }

    /// Takes a question out: it is answered, or nobody waits for the answer.
    pub fn take(&mut self, ticket: Ticket) -> Option<PeerRequest> {
        let asked = self.of.remove(&ticket)?;
        self.tickets.remove(&(asked.from, asked.question));
        Some(asked)
    }

    /// A start of a host asks: nobody waits any more for what its earlier starts have asked.
    pub fn drop_earlier(&mut self, than: Incarnation) {
        if mutant!("lane_keeps_earlier_starts") {
            return;
        }
        let first = Incarnation { start: Start(0), ..than };
        let earlier = self.tickets.range((first, 0)..(than, 0)).map(|(_, ticket)| *ticket);
        let earlier: Vec<Ticket> = earlier.collect();
        earlier.into_iter().for_each(|ticket| _ = self.take(ticket));
    }

    /// The tickets of all questions.
    pub fn tickets(&self) -> impl Iterator<Item = Ticket> {
        self.of.keys().copied()
    }

    /// Asserts what must hold.
    pub fn check(&self) {
        invariant!(self.of.len() == self.tickets.len(), "a question is in hand once");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::ids::NodeId;

    #[test]
    fn a_later_start_of_a_host_ends_what_its_earlier_ones_have_asked() {
        let at = |node, start| Incarnation { node: NodeId(node), start: Start(start) };
        let mut questions = Questions::default();
        let all = [(1, 1), (2, 1), (2, 2), (2, 3), (3, 1)];
        for (number, (node, start)) in all.into_iter().enumerate() {
            let asked = PeerRequest { from: at(node, start), question: 7, list: None };
            questions.add(Ticket(number as u64), asked);
        }
        questions.drop_earlier(at(2, 3));
        questions.check();
        assert_eq!(questions.tickets().collect::<Vec<_>>(), [0, 3, 4].map(Ticket));
        assert_eq!(questions.find(at(2, 3), 7), Some(Ticket(3)));
        assert_eq!(questions.find(at(2, 2), 7), None);
        assert_eq!(questions.take(Ticket(3)).map(|asked| asked.question), Some(7));
        assert_eq!((questions.find(at(2, 3), 7), questions.len()), (None, 2));
    }
}
