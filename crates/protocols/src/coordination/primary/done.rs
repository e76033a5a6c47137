//! Answers of commands: a gateway is told them as it takes them.
//!
//! A gateway says up to where it has them, and so many bytes behind that are on their way to it at
//! a time. If it asks everything anew, as its link is slow, only those are told twice. And what all
//! gateways are told in one turn is bounded: of a primary that has just begun all of them ask at
//! once. What waits for its turn is still with the machine, so nothing is copied for it.

use super::Served;
use crate::coordination::message::News;
use crate::coordination::tree::Tree;
use crate::smr::Replicated;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;

/// About the most bytes of answers that are on their way to one gateway.
const ON_WAY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// About the most bytes of answers of commands that all gateways are told in one turn.
pub const TURN_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How far a gateway was told the answers of its commands.
#[derive(Debug, Default)]
pub struct Done {
    /// Up to which command.
    told: u64,
    /// Those of which it has not said that it has them, and how many bytes they are.
    on_way: VecDeque<(u64, usize)>,
    bytes: usize,
    /// The number of the last change before the first answer that is not told.
    waits_at: Option<u64>,
}

impl Done {
    /// The gateway has the answers up to here, and those behind are told, again if they were.
    pub fn begin(acked: u64) -> Done {
        Done { told: acked, ..Done::default() }
    }

    /// The gateway has the answers up to here.
    pub fn acknowledge(&mut self, acked: u64) {
        self.told = self.told.max(acked);
        while let Some((number, bytes)) = self.on_way.front().copied()
            && number <= acked
        {
            self.on_way.pop_front();
            self.bytes -= bytes;
        }
    }

    /// Where an answer is that is not told yet: behind the change of this number, and before all
    /// others.
    pub fn waits_at(&self) -> Option<u64> {
        self.waits_at
    }

    /// The answers that are told now. `room` is what this turn has left; without it all are told.
    fn next(
        &mut self,
        client: Incarnation,
        machine: &Replicated<Tree>,
        mut room: Option<&mut usize>,
    ) -> Vec<(u64, News)> {
        let done = machine.client(client).map_or(0, |client| client.done);
        let mut news = Vec::new();
        self.waits_at = None;
        while self.told < done {
            let number = self.told + 1;
            let Some((at, answer)) = machine.reply(client, number) else {
                // The gateway has said that it has this one.
                self.told = number;
                continue;
            };
            let is_full = self.bytes >= ON_WAY_BYTES_MAX && !mutant!("tree_floods_slow_links");
            let is_over = |room: &usize| *room == 0 && !mutant!("tree_tells_all_that_is_done");
            if room.as_ref().is_some_and(|room| is_full || is_over(room)) {
                probe!("coordination/done_waits");
                self.waits_at = Some(at);
                break;
            }
            let bytes = 64 + answer.bytes();
            if let Some(room) = &mut room {
                **room = room.saturating_sub(bytes);
            }
            self.bytes += bytes;
            self.on_way.push_back((number, bytes));
            self.told = number;
            news.push((at, News::Done(number, answer.clone())));
        }
        debug_assert!(self.is_counted(), "each answer is counted");
        invariant!(self.told >= done || self.waits_at.is_some(), "what is not told waits");
        news
    }

    fn is_counted(&self) -> bool {
        self.bytes == self.on_way.iter().map(|(_, bytes)| bytes).sum::<usize>()
    }
}

impl Served {
    /// Adds what there is to tell of commands, as far as there is room. If too much waits behind
    /// that, all of it.
    pub(super) fn tell_done(&mut self, machine: &Replicated<Tree>, room: &mut usize) {
        if self.upto > machine.changes().last() {
            // It knows more than this node, and is told nothing yet.
            return;
        }
        let is_full = self.has_too_much();
        let news = self.done.next(self.client, machine, (!is_full).then_some(room));
        self.news.extend(news);
        invariant!(!is_full || self.done.waits_at.is_none(), "nothing waits behind too much");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::tree::tests::world::{World, anybody, create, gateway, get};
    use crate::coordination::tree::{Answer, Command, Question};
    use crate::smr::Origin;
    use quorate_kernel::time::Time;

    const MIB: usize = 1 << 20;

    /// A gateway has read so many times 1 MiB in front of a write, and made a node in the middle.
    fn read(world: &mut World, client: Incarnation, count: u64) -> Served {
        let path = std::format!("/{}", client.node.0);
        let data = "x".repeat(MIB);
        let read = Command::Ask(Question::One(anybody(), get(&path)));
        let made = Command::One(anybody(), create(&path, &data));
        world.member.ask(1, Origin { client, first: 1, acked: 0 }, &[made]);
        let reads = (0..count).map(|_| read.clone()).collect::<Vec<Command>>();
        let (half, rest) = reads.split_at(reads.len() / 2);
        world.member.ask(1, Origin { client, first: 2, acked: 1 }, half);
        let made = Command::One(anybody(), create(&std::format!("{path}b"), ""));
        let from = |first: usize| Origin { client, first: 2 + first as u64, acked: 1 };
        world.member.ask(1, from(half.len()), &[made]);
        world.member.ask(1, from(half.len() + 1), rest);
        Served { follows: true, done: Done::begin(1), upto: 1, ..Served::new(client) }
    }

    fn numbers(news: &[(u64, News)]) -> Vec<u64> {
        let of = news.iter().map(|(_, news)| match news {
            News::Done(number, answer) if *answer != Answer::Lost => *number,
            other => panic!("{other:?} is no whole answer"),
        });
        of.collect()
    }

    #[test]
    fn so_much_is_on_its_way_to_a_gateway_and_the_rest_when_it_has_that() {
        let mut world = World::new();
        let mut served = read(&mut world, gateway(5), 8);
        let machine = &world.member.machine;
        let (mut told, mut changes, mut turns) = (Vec::new(), Vec::new(), 0);
        while told.len() < 9 {
            let mut room = usize::MAX;
            served.tell_done(machine, &mut room);
            let before = told.len();
            for news in served.told(machine.changes(), Time(0)).into_iter().flat_map(|it| it.news) {
                match news {
                    News::Done(number, _) => told.push(number),
                    News::Change(number, _) => changes.push((number, told.len())),
                    News::Answer(..) => panic!("nobody asks"),
                }
            }
            // One of them is small.
            assert!(told.len() - before <= ON_WAY_BYTES_MAX / MIB + 1, "in one turn");
            served.tell_done(machine, &mut room);
            assert!(served.news.is_empty(), "no more before it has these");
            served.done.acknowledge(told.last().copied().expect("some are told"));
            turns += 1;
        }
        assert!(told.iter().copied().eq(2..=10), "each once, in their order: {told:?}");
        assert!(turns >= 2 && served.done.waits_at().is_none());
        // The node in the middle is told between the answers that show it and those before.
        assert_eq!(changes, [(2, 4)]);
        assert_eq!(served.upto, machine.changes().last());
    }

    #[test]
    fn what_is_told_in_a_turn_is_bounded_for_all_gateways_together() {
        let mut world = World::new();
        let mut all: Vec<Served> = (5..10).map(|it| read(&mut world, gateway(it), 3)).collect();
        let machine = &world.member.machine;
        all.iter_mut().for_each(|served| served.upto = machine.changes().last());
        let mut room = TURN_BYTES_MAX;
        all.iter_mut().for_each(|served| served.tell_done(machine, &mut room));
        let bytes: usize = all.iter().map(|served| served.done.bytes).sum();
        assert!((TURN_BYTES_MAX..TURN_BYTES_MAX + 2 * MIB).contains(&bytes), "{bytes}");
        let mut room = 2 * TURN_BYTES_MAX;
        all.iter_mut().for_each(|served| served.tell_done(machine, &mut room));
        assert!(all.iter().all(|served| numbers(&served.news) == [2, 3, 4, 5]));
    }

    #[test]
    fn where_too_much_waits_behind_answers_all_of_them_are_told() {
        let mut world = World::new();
        let mut served = read(&mut world, gateway(5), 12);
        let machine = &world.member.machine;
        served.tell_done(machine, &mut 0);
        assert!(served.news.is_empty() && served.done.waits_at().is_some());
        served.waiting_bytes = usize::MAX;
        served.tell_done(machine, &mut 0);
        assert!(numbers(&served.news).into_iter().eq(2..=14));
    }
}
