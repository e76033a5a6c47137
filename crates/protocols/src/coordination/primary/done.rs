//! Answers of commands: a gateway is told them as it takes them.
//!
//! A gateway says up to where it has them, and so many bytes behind that are on their way to it at
//! a time: few at first, and more with each that it has. If it asks everything anew, as its link is
//! slow, only those are told twice, and what was told before counts until something behind it has
//! come. And what all gateways are told in one turn is bounded: of a primary that has just begun
//! all of them ask at once. What waits for its turn is still with the machine, so nothing is copied
//! for it.
//!
//! An answer that waits holds back all changes behind it. If those come to be so many that some
//! would be forgotten, it is told as the state keeps it: its client alone loses what it has read.

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

/// About the most bytes of answers that are on their way to one gateway; one answer always may be.
const ON_WAY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// As many are when it begins, and when it asks everything anew.
const ON_WAY_BYTES_MIN: usize = 1024 * 1024;
/// About the most bytes of answers of commands that all gateways are told in one turn.
pub const TURN_BYTES_MAX: usize = 8 * 1024 * 1024;

/// How far a gateway was told the answers of its commands.
#[derive(Debug)]
pub struct Done {
    /// Up to which command.
    told: u64,
    /// Those of which it has not said that it has them, and how many bytes they are.
    on_way: VecDeque<(u64, usize)>,
    bytes: usize,
    /// How many bytes of what was told before it asked everything anew may be on their way yet.
    earlier: usize,
    /// How many bytes may be on their way.
    window: usize,
    /// The number of the last change before the first answer that is not told.
    waits_at: Option<u64>,
    /// Whether that one waits until the gateway says that it has others.
    is_full: bool,
}

impl Default for Done {
    fn default() -> Done {
        Done {
            told: 0,
            on_way: VecDeque::new(),
            bytes: 0,
            earlier: 0,
            window: ON_WAY_BYTES_MIN,
            waits_at: None,
            is_full: false,
        }
    }
}

impl Done {
    /// The gateway has the answers up to here, and those behind are told, again if they were.
    pub fn resume(&mut self, acked: u64) {
        self.acknowledge(acked);
        let on_way = self.earlier + self.bytes;
        let earlier = if mutant!("tree_forgets_earlier_turns") { 0 } else { on_way };
        *self = Done { told: acked, earlier, ..Done::default() };
    }

    /// The gateway has the answers up to here.
    pub fn acknowledge(&mut self, acked: u64) {
        self.told = self.told.max(acked);
        while let Some((number, bytes)) = self.on_way.front().copied()
            && number <= acked
        {
            self.on_way.pop_front();
            self.bytes -= bytes;
            // What was told before it has come, or was lost.
            (self.earlier, self.is_full) = (0, false);
            self.window = (self.window + bytes).min(ON_WAY_BYTES_MAX);
        }
    }

    /// Where an answer is that is not told yet: behind the change of this number, and before all
    /// others.
    pub fn waits_at(&self) -> Option<u64> {
        self.waits_at
    }

    /// The answers that are told now to a gateway that was told the changes up to `upto`. `room` is
    /// what this turn has left.
    fn next(
        &mut self,
        client: Incarnation,
        machine: &Replicated<Tree>,
        upto: u64,
        room: &mut usize,
    ) -> Vec<(u64, News)> {
        let holds_up = |at: u64| {
            machine.changes().is_aging(at.max(upto)) && !mutant!("tree_answers_hold_up_changes")
        };
        if self.is_full && !self.waits_at.is_some_and(holds_up) {
            // Nothing has come of the gateway since.
            return Vec::new();
        }
        let done = machine.client(client).map_or(0, |client| client.done);
        let mut news = Vec::new();
        (self.waits_at, self.is_full) = (None, false);
        while self.told < done {
            let number = self.told + 1;
            let Some((at, answer)) = machine.reply(client, number) else {
                // The gateway has said that it has this one.
                self.told = number;
                continue;
            };
            let is_full = self.has_no_room() && !mutant!("tree_floods_slow_links");
            let is_over = *room == 0 && !mutant!("tree_tells_all_that_is_done");
            let mut answer = answer;
            if is_full || is_over {
                if !holds_up(at) {
                    probe!("coordination/done_waits");
                    (self.waits_at, self.is_full) = (Some(at), is_full);
                    break;
                }
                probe!("coordination/done_holds_up_changes");
                answer = machine.kept(client, number).map_or(answer, |(_, kept)| kept);
            }
            let bytes = 64 + answer.bytes();
            *room = room.saturating_sub(bytes);
            self.bytes += bytes;
            self.on_way.push_back((number, bytes));
            self.told = number;
            news.push((at, News::Done(number, answer.clone())));
        }
        debug_assert!(self.is_counted(), "each answer is counted");
        invariant!(self.told >= done || self.waits_at.is_some(), "what is not told waits");
        news
    }

    /// Whether so much is on its way that nothing more is told. One answer may be in any case.
    fn has_no_room(&self) -> bool {
        self.bytes + self.earlier >= self.window && !self.on_way.is_empty()
    }

    fn is_counted(&self) -> bool {
        self.bytes == self.on_way.iter().map(|(_, bytes)| bytes).sum::<usize>()
    }
}

impl Served {
    /// Adds what there is to tell of commands, as far as there is room.
    pub(super) fn tell_done(&mut self, machine: &Replicated<Tree>, room: &mut usize) {
        if self.upto > machine.changes().last() {
            // It knows more than this node, and is told nothing yet.
            return;
        }
        let news = self.done.next(self.client, machine, self.upto, room);
        self.has_news |= !news.is_empty();
        self.news.extend(news);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::coordination::message::OpenQuestion;
    use crate::coordination::primary::{Primary, Waiting};
    use crate::coordination::tree::tests::world::{World, anybody, create, gateway, get, set};
    use crate::coordination::tree::{Answer, Command, Question};
    use crate::smr::Origin;
    use crate::vsr::ViewNumber;
    use quorate_kernel::time::Time;

    const MIB: usize = 1 << 20;

    /// A gateway has read so many times 1 MiB in front of a write, and made a node in the middle.
    pub fn read(world: &mut World, client: Incarnation, count: u64) -> Served {
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
        let mut served = Served { follows: true, upto: 1, ..Served::new(client) };
        served.done.resume(1);
        served
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
        all.iter_mut().for_each(|served| {
            (served.upto, served.done.window) = (machine.changes().last(), ON_WAY_BYTES_MAX);
        });
        let mut room = TURN_BYTES_MAX;
        all.iter_mut().for_each(|served| served.tell_done(machine, &mut room));
        let bytes: usize = all.iter().map(|served| served.done.bytes).sum();
        assert!((TURN_BYTES_MAX..TURN_BYTES_MAX + 2 * MIB).contains(&bytes), "{bytes}");
        let mut room = 2 * TURN_BYTES_MAX;
        all.iter_mut().for_each(|served| served.tell_done(machine, &mut room));
        assert!(all.iter().all(|served| numbers(&served.news) == [2, 3, 4, 5]));
    }

    #[test]
    fn what_was_told_in_earlier_turns_is_on_its_way_until_something_behind_it_has_come() {
        let mut world = World::new();
        let mut served = read(&mut world, gateway(5), 12);
        let machine = &world.member.machine;
        let told = |served: &mut Served| {
            served.tell_done(machine, &mut usize::MAX.clone());
            numbers(&core::mem::take(&mut served.news))
        };
        // As much more at a time as it says to have.
        assert_eq!(told(&mut served), [2]);
        served.done.acknowledge(2);
        assert_eq!(told(&mut served), [3, 4]);
        served.done.acknowledge(4);
        assert_eq!(told(&mut served), [5, 6, 7, 8, 9], "one of them is small");
        // Its link is slow: it asks everything anew, and what is on the link delays that.
        served.done.resume(4);
        assert!(served.done.earlier > ON_WAY_BYTES_MIN, "{} bytes", served.done.earlier);
        assert_eq!(told(&mut served), [5], "one may be on its way in any case");
        served.done.resume(4);
        assert_eq!(told(&mut served), [5]);
        served.done.acknowledge(5);
        assert_eq!(told(&mut served), [6, 7], "what was told before has come, or is lost");
        served.done.resume(7);
        assert_eq!((served.done.earlier, told(&mut served)), (0, Vec::from([8, 9])));
    }

    /// Another gateway changes a node so often that changes before that are soon forgotten.
    fn change_much(world: &mut World) {
        let changed = Command::One(anybody(), set("/5", "", None));
        for count in 0..33 {
            let from = Origin { client: gateway(6), first: 1 + count * 1024, acked: count * 1024 };
            world.member.ask(1, from, &[(); 1024].map(|()| changed.clone()));
        }
    }

    #[test]
    fn an_answer_that_would_hold_up_too_many_changes_is_told_as_it_is_kept() {
        let mut world = World::new();
        let mut served = read(&mut world, gateway(5), 4);
        let (mut whole, mut lost, mut changes) = (Vec::new(), Vec::new(), Vec::new());
        for turn in 0..5 {
            let machine = &world.member.machine;
            served.tell_done(machine, &mut usize::MAX.clone());
            for told in served.told(machine.changes(), Time(0)) {
                assert!(!told.lacks, "other clients of the host go on");
                for news in told.news {
                    match news {
                        News::Done(number, Answer::Lost) => lost.push(number),
                        News::Done(number, _) => whole.push(number),
                        News::Change(number, _) => changes.push(number),
                        News::Answer(..) => panic!("nobody asks"),
                    }
                }
            }
            if turn == 0 {
                assert_eq!((&whole[..], lost.len(), changes.len()), (&[2][..], 0, 0));
                change_much(&mut world);
            }
        }
        // One answer was on its way all the time, and those of writes are not lost.
        assert_eq!((whole, lost), (Vec::from([2, 4]), Vec::from([3, 5, 6])));
        assert!(changes.into_iter().eq(2..=world.member.machine.changes().last()));
    }

    #[test]
    fn nothing_is_done_while_an_answer_waits() {
        let mut world = World::new();
        let mut served = read(&mut world, gateway(5), 4);
        let machine = &world.member.machine;
        let mut room = usize::MAX;
        served.tell_done(machine, &mut room);
        assert_eq!(served.told(machine.changes(), Time(0)).len(), 1);
        let waits = |served: &Served| (served.done.waits_at(), served.waited_at, served.has_news);
        let before = waits(&served);
        assert_eq!(before, (Some(1), Some(1), false));
        served.tell_done(machine, &mut room);
        assert!(served.told(machine.changes(), Time(0)).is_empty() && waits(&served) == before);
        served.done.acknowledge(2);
        served.tell_done(machine, &mut room);
        assert!(!served.told(machine.changes(), Time(0)).is_empty());
    }

    #[test]
    fn answers_of_questions_come_behind_that_of_a_command_before_them() {
        let mut world = World::new();
        let served = read(&mut world, gateway(5), 2);
        let machine = &world.member.machine;
        let mut primary = Primary::new(ViewNumber::default(), Time(0));
        let node = served.client.node;
        primary.gateways.insert(node, served);
        let ask = |primary: &mut Primary, number| {
            let question = Question::One(anybody(), get("/5b"));
            let asked = OpenQuestion { number, after: 0, question };
            let served = primary.gateways.get_mut(&node).expect("it is there");
            served.questions.insert(number, Waiting { asked, is_confirmed: true });
            primary.ready.push_back((node, number));
        };
        let turn = |primary: &mut Primary, acked| {
            assert!(primary.answer_some(machine));
            let served = primary.gateways.get_mut(&node).expect("it is there");
            served.done.acknowledge(acked);
            served.tell_done(machine, &mut usize::MAX.clone());
            let told = served.told(machine.changes(), Time(0)).into_iter().flat_map(|it| it.news);
            let told = told.filter_map(|news| match news {
                News::Answer(number, _) => Some(number),
                _ => None,
            });
            let told: Vec<u64> = told.collect();
            (told, primary.release(node))
        };
        assert_eq!(turn(&mut primary, 1), (Vec::new(), false));
        (1..=3).for_each(|number| ask(&mut primary, number));
        assert_eq!(turn(&mut primary, 1), (Vec::new(), false));
        primary.check();
        let served = &primary.gateways[&node];
        assert!(served.questions.is_empty() && served.held.is_empty(), "they are looked up");
        ask(&mut primary, 4);
        assert_eq!(turn(&mut primary, 4), (Vec::from([1, 2, 3, 4]), false), "in their order");
    }
}
