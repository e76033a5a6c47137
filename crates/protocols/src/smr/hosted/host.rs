//! A host of a machine over partitions: its rings and partitions, and what clients of it ask.

use super::action::{Action, Context};
use super::frames::frames;
use super::letters::Letters;
use super::message::Message;
use super::orders::Orders;
use super::partition::Partition;
use super::ring::{Ring, group};
use crate::groups::{Hint, Leads, Outbox, Routes};
use crate::multicast::RingId;
use crate::smr::partitioned::{
    Answered, Effect, Layout, Machine, PARTITIONS_MAX, PartitionId, Placement, ReplicaId,
};
use crate::vsr::{Kept, Op, Replica};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::operation::Refusal;
use quorate_kernel::time::{Span, Time};

/// How often all hosts are told who leads a ring, and what partitions hold.
const SPREAD: Span = Span::secs(1);
/// How many positions partitions learn in one turn.
const LEARNED_MAX: usize = 1024;

/// How many answers one frame has, and about how many bytes, if it is not one answer alone.
const ANSWERED_MAX: (usize, usize) = (1024, 2 * 1024 * 1024);

/// What a machine over partitions is set to on all its hosts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Who replicates each partition, and its ring's log; ascending.
    pub partitions: Vec<Arc<[NodeId]>>,
    /// Who replicates the log of the ring of all; nobody if there is one partition alone.
    pub all: Arc<[NodeId]>,
    /// What logs keep of what was executed, for members that lag.
    pub kept: Kept,
    /// After how many positions of a ring a partition is stored.
    pub stored_every: u64,
}

impl Settings {
    /// How many partitions there are.
    fn count(&self) -> u8 {
        let count = self.partitions.len();
        invariant!((1..=usize::from(PARTITIONS_MAX)).contains(&count), "1 to 16 partitions");
        count as u8
    }

    /// The rings, with their members.
    fn rings(&self) -> impl Iterator<Item = (RingId, &Arc<[NodeId]>)> {
        let own = (0..).map(PartitionId).map(PartitionId::ring).zip(&self.partitions);
        let all = (self.partitions.len() > 1).then_some((RingId::ALL, &self.all));
        own.chain(all)
    }
}

/// What a host has.
#[derive(Debug)]
pub struct Hosted<M: Machine> {
    pub(super) settings: Settings,
    pub(super) layout: Layout,
    pub(super) placement: Placement,
    pub(super) rings: BTreeMap<RingId, Ring<M>>,
    pub(super) partitions: BTreeMap<PartitionId, Partition<M>>,
    pub(super) routes: Routes,
    pub(super) orders: Orders<M>,
    pub(super) outbox: Outbox,
    pub(super) letters: Letters<M>,
    /// Answers of this turn, by the clients that wait for them.
    pub(super) answers: BTreeMap<Incarnation, Vec<(u64, Answered<M>)>>,
    /// How far each replica has the ring of all, durably.
    pub(super) holds: BTreeMap<(PartitionId, NodeId), Op>,
    /// When all were told last.
    spread: Time,
    /// What replicas here have answered, each in its order.
    #[cfg(test)]
    pub(crate) executed: Vec<super::tests::Executed<M>>,
    /// Questions that were answered here without being ordered.
    #[cfg(test)]
    pub(crate) read: Vec<super::tests::Read<M>>,
}

impl<M: Machine> Hosted<M> {
    /// Before its start.
    #[must_use]
    pub fn new(settings: Settings) -> Hosted<M> {
        let count = settings.count();
        let mut routes = Routes::default();
        for (ring, members) in settings.rings() {
            routes.found(group(ring), members);
        }
        let members = settings.partitions.iter().map(|it| it.iter().copied().collect());
        Hosted {
            layout: Layout::new(members.collect()),
            placement: Placement::even(count),
            rings: BTreeMap::new(),
            partitions: BTreeMap::new(),
            routes,
            orders: Orders::new(),
            outbox: Outbox::default(),
            letters: Letters::new(),
            answers: BTreeMap::new(),
            holds: BTreeMap::new(),
            spread: Time(0),
            #[cfg(test)]
            executed: Vec::new(),
            #[cfg(test)]
            read: Vec::new(),
            settings,
        }
    }

    /// Starts from what is stored of the rings and the partitions that this node replicates.
    pub fn start(&mut self, cx: &mut Context<'_, M>) {
        let (node, count) = (cx.me.node, self.settings.count());
        for (partition, members) in (0..).map(PartitionId).zip(&self.settings.partitions) {
            if members.contains(&node) {
                let own = ReplicaId { partition, incarnation: cx.me };
                let opened = Partition::open(own, &self.layout, cx.table, cx.now);
                self.partitions.insert(partition, opened);
            }
        }
        for (id, members) in self.settings.rings() {
            if members.contains(&node) {
                let mut ring = Ring::new(id, count, node, self.settings.kept);
                ring.start(members, cx, &mut self.outbox);
                self.rings.insert(id, ring);
            }
        }
        self.free_logs();
        self.see(cx);
    }

    /// A command of a client of this host; what names it until it is answered
    /// ([`Action::Answer`]). It is sent when the turn ends.
    ///
    /// # Errors
    /// There are too many; nothing was done.
    pub fn ask(&mut self, command: M::Command, cx: &Context<'_, M>) -> Result<u64, Refusal> {
        invariant!(M::is_sound(&command), "what no log takes is asked of nobody");
        self.orders.ask(cx.me, command, &self.placement)
    }

    /// Goes on, after [`Action::Resume`].
    pub fn resume(&mut self, cx: &mut Context<'_, M>) {
        self.rings.values_mut().for_each(|ring| ring.resume(cx, &mut self.outbox));
    }

    /// The link to a host was reset.
    pub fn unlinked(&mut self, peer: NodeId, cx: &mut Context<'_, M>) {
        for ring in self.rings.values_mut() {
            ring.call(cx, &mut self.outbox, |log, on| log.on_unlinked(peer, on));
        }
    }

    /// Time has passed: to be called every [`crate::vsr::TICK`].
    pub fn tick(&mut self, cx: &mut Context<'_, M>) {
        self.rings.values_mut().for_each(|ring| ring.tick(cx, &mut self.outbox));
        for partition in self.partitions.values_mut() {
            partition.replica.on_period();
            partition.tick_store(self.settings.stored_every, cx);
            partition.tick_copy(cx);
        }
        for (ring, (node, asked)) in self.orders.late(cx.now) {
            self.routes.is_late(group(ring), node, (asked, cx.now));
        }
        self.free_logs();
        self.see(cx);
        if cx.now - self.spread >= SPREAD {
            self.spread = cx.now;
            self.spread(cx);
        }
    }

    /// The turn ends: to be called as often as [`quorate_kernel::news::News::TurnEnd`] is told.
    pub fn turn_end(&mut self, cx: &mut Context<'_, M>) {
        let was_leading: Vec<RingId> = self.leading().collect();
        self.go_on(cx);
        let routes = &self.routes;
        for (to, ring, commands) in self.orders.due(cx.now, |ring| routes.primary(group(ring))) {
            if to == cx.me.node {
                self.on_order(cx.me, ring, commands, cx);
            } else {
                // A command that is not executed promises nothing.
                cx.send_early(to, Message::Order { ring, commands });
            }
        }
        self.rings.values_mut().for_each(|ring| ring.turn_end(cx, &mut self.outbox));
        if !self.leading().eq(was_leading) {
            self.see(cx);
        }
        self.flush(cx);
    }

    /// The rings that this node leads.
    pub fn leading(&self) -> impl Iterator<Item = RingId> {
        self.rings.values().filter(|ring| ring.leads()).map(|ring| ring.id)
    }

    /// Partitions learn what is decided, and execute it; what they ask for is handed on.
    fn go_on(&mut self, cx: &mut Context<'_, M>) {
        let mut left = LEARNED_MAX;
        let ids: Vec<PartitionId> = self.partitions.keys().copied().collect();
        for id in ids {
            let Some(partition) = self.partitions.get_mut(&id) else { continue };
            let leads = self.rings.get(&id.ring()).is_some_and(Ring::leads);
            partition.replica.designate(leads);
            left -= partition.learn(&self.rings, left, cx.table);
            let questions = partition.questions(cx.now);
            let effects = partition.take_effects(cx);
            effects.into_iter().for_each(|effect| self.carry_out(id, leads, effect));
            for lacking in questions {
                self.ask_for_slots(lacking.ring, lacking.until, cx);
            }
            self.answer_reads(id);
            self.follow(id, cx);
        }
        if left == 0 {
            cx.out.push(Action::Resume);
        }
    }

    /// Answers what is asked of a partition whose primary this node is, once it has executed what
    /// the answer must show.
    fn answer_reads(&mut self, id: PartitionId) {
        let (ring, partition) = (self.rings.get_mut(&id.ring()), self.partitions.get(&id));
        let Some((ring, partition)) = ring.zip(partition) else { return };
        let replica = &partition.replica;
        let is_executed =
            |until| replica.has_executed(until) || mutant!("reads_what_is_not_merged");
        for question in ring.take_reads(is_executed) {
            let (of, answer) = (question.id, replica.look(&question));
            #[cfg(test)]
            self.read.push((id, of, answer.clone(), replica.position()));
            self.answers.entry(of.client).or_default().push((of.number, answer));
        }
    }

    fn carry_out(&mut self, id: PartitionId, leads: bool, effect: Effect<M>) {
        match effect {
            Effect::Send(to, message) => self.letters.send(to, message),
            Effect::Tell(to, message) => self.letters.tell(to, message),
            Effect::Answer(of, answer) => {
                #[cfg(test)]
                self.executed.push((id, of, answer.clone()));
                // Each replica knows the answer; whoever leads tells it, and a command that comes
                // again is answered again.
                if leads {
                    self.answers.entry(of.client).or_default().push((of.number, answer));
                }
            }
            Effect::Keep(_) | Effect::Lost(_) | Effect::Halt(_) => {
                unreachable!("they are partition {}'s own", id.0)
            }
        }
    }

    fn flush(&mut self, cx: &mut Context<'_, M>) {
        for (client, answers) in core::mem::take(&mut self.answers) {
            for answers in frames(answers, ANSWERED_MAX) {
                // What was executed rests on majorities of the rings, not on this node's disk.
                cx.send_early(client, Message::Answered(answers));
            }
        }
        self.letters.flush(&self.layout, cx);
        for (to, release, parts) in self.outbox.take() {
            cx.out.push(Action::Send { to, message: Message::Log(parts), release });
        }
    }

    /// What the logs here know of who leads is known to who sends commands.
    pub(super) fn see(&mut self, cx: &mut Context<'_, M>) {
        let hints: Vec<Leads> = self.rings.values().filter_map(Ring::hint).collect();
        hints.iter().for_each(|leads| self.learn(None, leads, cx));
    }

    /// Another host says who leads a ring, or the log here.
    pub(super) fn learn(&mut self, from: Option<NodeId>, leads: &Leads, cx: &Context<'_, M>) {
        let ring = self.settings.rings().map(|(ring, _)| ring).find(|it| group(*it) == leads.group);
        let Some(ring) = ring else { return };
        if self.routes.learn(from, leads, cx.now) == Hint::News
            && let Some(primary) = self.routes.primary(leads.group)
        {
            self.orders.renew(ring, primary, leads.serves.then_some(leads.view));
        }
    }

    /// Tells all who leads, as a hint, and what is stored here of the ring of all.
    fn spread(&mut self, cx: &mut Context<'_, M>) {
        let mut hosts: Vec<NodeId> = self.routes.members().collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.retain(|node| *node != cx.me.node);
        let hosts: Arc<[NodeId]> = hosts.into();
        let leading = self.rings.values().filter(|ring| ring.leads()).filter_map(Ring::hint);
        for leads in leading.filter(|_| !hosts.is_empty()) {
            // It is a hint, and promises nothing.
            cx.send_early(&hosts, Message::Leads(leads));
        }
        for partition in self.partitions.values() {
            let Some(upto) = partition.stored(RingId::ALL) else { continue };
            // Logs are trimmed by it.
            cx.send(&self.settings.all, Message::Holds { partition: partition.id, upto });
        }
    }

    /// Logs may let go of what those have stored that would ask for it: of a partition's ring this
    /// very replica, as each member has one; of the ring of all a majority of each partition, so
    /// that who lacks it finds a copy, whatever a minority has lost.
    pub(super) fn free_logs(&mut self) {
        for partition in self.partitions.values() {
            let stored = partition.stored(partition.id.ring()).unwrap_or_default();
            if let Some(ring) = self.rings.get_mut(&partition.id.ring()) {
                ring.set_free(stored);
            }
        }
        let free = self.held_by_majorities();
        if let Some(all) = self.rings.get_mut(&RingId::ALL) {
            all.set_free(free);
        }
    }

    fn held_by_majorities(&self) -> Op {
        let partitions = (0..self.layout.count()).map(PartitionId);
        let held = partitions.map(|of| {
            let upto = |node| self.holds.get(&(of, node)).copied().unwrap_or_default();
            let mut all: Vec<Op> = self.layout.members(of).map(upto).collect();
            all.sort_unstable_by(|one, other| other.cmp(one));
            let majority = all.len() / 2 + 1;
            let majority = if mutant!("rings_forget_for_one") { 1 } else { majority };
            all[majority - 1]
        });
        held.min().unwrap_or_default()
    }

    /// The logs of this host, by their groups.
    pub fn logs(&self) -> impl Iterator<Item = (GroupId, &Replica)> {
        self.rings.values().map(|ring| (group(ring.id), &ring.log))
    }

    /// The partitions of this host.
    pub fn partitions(&self) -> impl Iterator<Item = &crate::smr::partitioned::Replica<M>> {
        self.partitions.values().map(|it| &it.replica)
    }

    /// Whether commands of this host are in hand.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.orders.is_empty()
    }

    /// Asserts what must hold between two inputs.
    pub fn check(&self) {
        self.rings.values().for_each(Ring::check);
        for (id, partition) in &self.partitions {
            invariant!(partition.id == *id, "a partition is under its number");
            invariant!(!partition.replica.is_halted(), "who differs goes on in no case");
        }
    }
}
