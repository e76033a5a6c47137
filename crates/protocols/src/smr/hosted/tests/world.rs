//! The world of [`crate::testing::hosts`], with hosts of a machine over partitions, and clients at
//! all of them, whose history is judged.

use super::{Executed, Read};
use crate::multicast::{Decision, RingId};
use crate::smr::hosted::{Action, Context, Hosted, Message, Settings, carry_out, decided, ring};
use crate::smr::partitioned::{Answered, CommandId, Machine, PartitionId, Placement, Replica};
use crate::testing::hosts::{self, Simulated};
use crate::testing::partitions::{Ended, Key, Seen, Witness};
use crate::vsr::{self, Kept, Op, TICK};
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Ticket};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::process::{self, Process, Recovery, Request};
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::vec::Vec;

/// As long as anything takes where all is well.
pub const SOON: Span = Span::secs(10);

/// What all clients saw, and all replicas have executed, in the order in which it happened.
#[derive(Debug)]
pub struct Recorder<M: Machine> {
    pub executed: Vec<Executed<M>>,
    /// Each with the time.
    pub read: Vec<(u64, Read<M>)>,
    pub history: Vec<Seen<M>>,
    /// Where in the history a command is that is open.
    open: BTreeMap<CommandId, usize>,
    /// What clients were answered since this was last looked at.
    pub heard: Vec<(usize, M::Command, M::Output)>,
    clock: u64,
}

impl<M: Machine> Recorder<M> {
    fn new() -> Recorder<M> {
        let (executed, read) = (Vec::new(), Vec::new());
        let (history, heard) = (Vec::new(), Vec::new());
        Recorder { executed, read, history, open: BTreeMap::new(), heard, clock: 0 }
    }

    fn asked(&mut self, id: CommandId, command: M::Command) {
        self.clock += 1;
        self.open.insert(id, self.history.len());
        self.history.push(Seen { id, command, asked: self.clock, ended: Ended::Unknown });
    }

    fn answered(&mut self, id: CommandId, answer: Answered<M>) {
        self.clock += 1;
        let Answered::Done(output) = answer else { panic!("no object moves: {answer:?}") };
        let at = self.open.remove(&id).expect("a command is answered once");
        let seen = &mut self.history[at];
        seen.ended = Ended::Answered { at: self.clock, output: output.clone() };
        self.heard.push((id.client.node.0 as usize - 1, seen.command.clone(), output));
    }

    /// How many commands of a start of a host are open.
    pub fn open(&self, client: Incarnation) -> usize {
        self.open.keys().filter(|id| id.client == client).count()
    }

    /// Whether a command was answered.
    pub fn output(&self, id: CommandId) -> Option<M::Output> {
        let seen = self.history.iter().find(|seen| seen.id == id)?;
        match &seen.ended {
            Ended::Answered { output, .. } => Some(output.clone()),
            Ended::Unknown => None,
        }
    }
}

/// The lane of a host.
pub struct Node<M: Machine> {
    pub hosted: Hosted<M>,
    recorder: Rc<RefCell<Recorder<M>>>,
}

/// Its timers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timer {
    Tick,
    Again,
}

impl process::Timer for Timer {
    fn code(self) -> u32 {
        self as u32
    }

    fn from_code(code: u32) -> Option<Timer> {
        [Timer::Tick, Timer::Again].get(code as usize).copied()
    }
}

impl<M: Machine> Node<M> {
    fn call<T>(
        &mut self,
        cx: &mut process::Context<'_, Node<M>>,
        call: impl FnOnce(&mut Hosted<M>, &mut Context<'_, M>) -> T,
    ) -> T {
        let mut out: Vec<Action<M>> = Vec::new();
        let (me, now, table) = (cx.me, cx.now, cx.table);
        let told = call(&mut self.hosted, &mut Context { me, now, table, out: &mut out });
        let left = carry_out(&mut out, cx.fx, |message| message);
        let mut recorder = self.recorder.borrow_mut();
        recorder.executed.append(&mut self.hosted.executed);
        for read in self.hosted.read.drain(..) {
            recorder.clock += 1;
            let clock = recorder.clock;
            recorder.read.push((clock, read));
        }
        for (number, answer) in left.answers {
            recorder.answered(CommandId { client: me, number }, answer);
        }
        if left.goes_on {
            cx.fx.arm(Timer::Again, now);
        }
        told
    }
}

impl<M: Machine> Process for Node<M> {
    type Message = Message<M>;
    type Timer = Timer;
    const HEARS: &'static [Topic] = &[Topic::TurnEnd, Topic::Unlinked];

    fn start(&mut self, _recovery: Recovery, cx: &mut process::Context<'_, Self>) {
        self.call(cx, Hosted::start);
        cx.fx.arm(Timer::Tick, cx.now + TICK);
    }

    fn on_message(
        &mut self,
        from: Incarnation,
        message: Message<M>,
        cx: &mut process::Context<'_, Self>,
    ) {
        self.call(cx, |hosted, on| hosted.on_message(from, message, on));
    }

    fn on_request(
        &mut self,
        ticket: Ticket,
        _request: Request,
        cx: &mut process::Context<'_, Self>,
    ) {
        cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Unsupported));
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut process::Context<'_, Self>) {
        match timer {
            Timer::Tick => {
                cx.fx.arm(Timer::Tick, cx.now + TICK);
                self.call(cx, Hosted::tick);
            }
            Timer::Again => self.call(cx, Hosted::resume),
        }
    }

    fn on_news(&mut self, news: News<'_>, cx: &mut process::Context<'_, Self>) {
        match news {
            News::TurnEnd => self.call(cx, Hosted::turn_end),
            News::Unlinked(peer) => self.call(cx, |hosted, on| hosted.unlinked(peer, on)),
            _ => unreachable!("a lane is told what it hears"),
        }
    }

    fn check(&self) {
        self.hosted.check();
    }
}

/// What the hosts of a world are set to, and who writes down what happens.
pub struct Set<M: Machine> {
    pub settings: Settings,
    pub recorder: Rc<RefCell<Recorder<M>>>,
}

impl<M: Machine> Clone for Set<M> {
    fn clone(&self) -> Set<M> {
        Set { settings: self.settings.clone(), recorder: Rc::clone(&self.recorder) }
    }
}

impl<M: Machine> Simulated for Node<M> {
    type Settings = Set<M>;

    fn born(set: &Set<M>) -> Node<M> {
        let recorder = Rc::clone(&set.recorder);
        Node { hosted: Hosted::new(set.settings.clone()), recorder }
    }

    fn durability(_: &Set<M>) -> Durability {
        Durability::Sync
    }

    fn name(message: &Message<M>) -> &'static str {
        message.name()
    }

    fn logs(&self) -> Vec<(GroupId, &vsr::Replica)> {
        self.hosted.logs().collect()
    }
}

pub type World<M> = hosts::World<Node<M>>;

fn members(nodes: &[u64]) -> Arc<[NodeId]> {
    nodes.iter().copied().map(NodeId).collect()
}

/// Little is kept and much is stored, so that who was away copies.
pub fn settings(partitions: &[&[u64]], all: &[u64]) -> Settings {
    Settings {
        partitions: partitions.iter().map(|nodes| members(nodes)).collect(),
        all: members(all),
        kept: Kept { entries: 8, bytes: 2000 },
        stored_every: 6,
    }
}

/// Hosts that are set so, after all rings have their primaries.
pub fn world<M: Machine>(seed: u64, hosts: u64, settings: Settings) -> World<M> {
    let recorder = Rc::new(RefCell::new(Recorder::new()));
    let mut world = World::new(seed, hosts, Set { settings, recorder });
    assert!(world.run_until(SOON, |world| world.are_led()), "somebody leads each ring");
    world
}

/// Two partitions of three replicas each on five hosts: one has both, and two have no log of the
/// ring of all.
pub fn five<M: Machine>(seed: u64) -> World<M> {
    world(seed, 5, settings(&[&[1, 2, 3], &[3, 4, 5]], &[1, 2, 5]))
}

impl<M: Machine> World<M> {
    /// Whether each ring has a primary.
    pub fn are_led(&self) -> bool {
        let leading = self.hosts.iter().filter_map(|host| host.process.as_ref());
        let leading: Vec<RingId> = leading.flat_map(|node| node.hosted.leading()).collect();
        let count = self.settings.settings.partitions.len();
        let mut rings = (0..count as u8).map(PartitionId).map(PartitionId::ring);
        rings.all(|ring| leading.contains(&ring)) && (count == 1 || leading.contains(&RingId::ALL))
    }

    /// The host that leads a ring, if one does.
    pub fn leader(&self, ring: RingId) -> Option<usize> {
        let leads = |at: &usize| {
            let node = self.hosts[*at].process.as_ref();
            node.is_some_and(|node| node.hosted.leading().any(|it| it == ring))
        };
        (0..self.hosts.len()).find(leads)
    }

    /// A client of a host asks; what names the command, if it is taken.
    pub fn asks(&mut self, at: usize, command: M::Command) -> Option<CommandId> {
        let recorder = Rc::clone(&self.settings.recorder);
        let client = self.hosts[at].me;
        let mut asked = None;
        self.turn(at, |node, cx| {
            let taken = command.clone();
            if let Ok(number) = node.call(cx, |hosted, on| hosted.ask(taken, on)) {
                let id = CommandId { client, number };
                recorder.borrow_mut().asked(id, command);
                asked = Some(id);
            }
        });
        asked
    }

    /// The answer of a command, if it is answered in time.
    pub fn told(&mut self, id: CommandId, most: Span) -> Option<M::Output> {
        let recorder = Rc::clone(&self.settings.recorder);
        let has = || recorder.borrow().output(id);
        self.run_until(most, |_| has().is_some());
        has()
    }

    /// A client asks, and is answered.
    pub fn done(&mut self, at: usize, command: M::Command) -> M::Output {
        let id = self.asks(at, command.clone()).expect("there is room");
        let told = self.told(id, SOON);
        told.unwrap_or_else(|| panic!("{command:?} is answered"))
    }

    /// The replica of a partition at a host.
    pub fn replica(&self, at: usize, partition: PartitionId) -> Option<&Replica<M>> {
        let node = self.hosts[at].process.as_ref()?;
        Some(&node.hosted.partitions.get(&partition)?.replica)
    }

    /// How far the log of a ring at a host is trimmed.
    pub fn base(&self, at: usize, of: RingId) -> Op {
        let node = self.hosts[at].process.as_ref().expect("it is up");
        node.hosted.rings[&of].base()
    }

    /// Whether all replicas of each partition have the same objects, and all have executed what
    /// they have learned.
    pub fn are_alike(&self) -> bool {
        (0..self.settings.settings.partitions.len() as u8).map(PartitionId).all(|partition| {
            let replicas = (0..self.hosts.len()).filter_map(|at| self.replica(at, partition));
            let replicas: Vec<&Replica<M>> = replicas.collect();
            let members = self.settings.settings.partitions[usize::from(partition.0)].len();
            let first = replicas.first().map(|it| it.objects());
            replicas.len() == members
                && replicas.iter().all(|it| it.is_idle() && Some(it.objects()) == first)
        })
    }

    /// What clients have asked, with what it was answered, in an order that one place could have
    /// executed; see [`Witness::order`].
    pub fn order(&self) -> Option<Vec<(Seen<M>, M::Output)>> {
        let count = self.settings.settings.partitions.len() as u8;
        let mut witness = Witness::new(Placement::even(count));
        let rings = (0..count).map(PartitionId).map(PartitionId::ring);
        for id in rings.chain((count > 1).then_some(RingId::ALL)) {
            let Some(log) = self.logs.get(&ring::group(id)) else { continue };
            let (mut slot, mut decided_here) = (0, Vec::new());
            for ((op, entry), expected) in log.iter().zip(1..) {
                assert_eq!(op.0, expected, "some host was seen at each position");
                let Some(bytes) = entry else {
                    slot += 1;
                    continue;
                };
                let decision = decided::read::<M>(bytes, id, count).expect("it was decided");
                if let Decision::Commands(batch) = &decision {
                    let is_all = id == RingId::ALL;
                    let key = |index| Key { slot, is_all, ring: id, index };
                    let batch = (0..).zip(batch.iter().cloned());
                    decided_here.extend(batch.map(|(index, it)| (key(index), it)));
                }
                slot += decision.slots();
            }
            witness.decides(decided_here);
        }
        let recorder = self.settings.recorder.borrow();
        for (by, id, answer) in &recorder.executed {
            witness.answers(*by, *id, answer);
        }
        for (place, seen) in (0..).zip(&recorder.history) {
            let Ended::Answered { at, output } = &seen.ended else { continue };
            // Of the times that it was answered the last one that the client can have heard of.
            let mut of = recorder
                .read
                .iter()
                .rev()
                .filter(|(clock, (_, id, ..))| *id == seen.id && clock < at);
            let is_heard = |(_, (_, _, answer, _)): &&(u64, Read<M>)| {
                *answer == Answered::Done(output.clone())
            };
            let Some((_, (by, id, answer, (slot, next)))) = of.find(is_heard) else { continue };
            let is_behind = *next == RingId::ALL;
            let key = Key {
                slot: if is_behind { slot.0 } else { slot.0.saturating_sub(1) },
                is_all: !is_behind,
                ring: if is_behind { by.ring() } else { RingId::ALL },
                index: (1 << 31) + place,
            };
            witness.reads(*by, *id, answer, key);
        }
        witness.order(&recorder.history)
    }
}
