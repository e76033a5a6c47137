//! A group here: its replica, its state and its member, and how each is told of the others.

use super::gone::Heard;
use super::purge::Purge;
use super::questions::Questions;
use crate::groups::{Hint, Leads, Seat};
use crate::serializable::lane::message::Message;
use crate::serializable::lane::places::homes::Homes;
use crate::serializable::lane::places::place::Shape;
use crate::serializable::lane::timer::Timer;
use crate::serializable::lane::{Context, Serializable};
use crate::serializable::{self, Input, Member, State, WallMs};
use crate::vsr::{self, Action, Event, Replica};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::limits::VSR_IN_FLIGHT_BYTES_MAX;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::{Span, Time};

/// How often all hosts are told who leads a group.
const SPREAD: Span = Span::secs(1);

/// A group on this node.
#[derive(Debug)]
pub struct Hosted {
    /// This node.
    pub me: NodeId,
    /// Its log.
    pub replica: Replica,
    /// What the log makes of it.
    pub state: State,
    /// What the primary has in hand.
    pub member: Member,
    /// What others have asked.
    pub questions: Questions,
    /// When clients have asked last.
    pub heard: Heard,
    /// Where the next sweep begins, and whether the last one has found something to remove.
    pub swept: (Bytes, bool),
    /// Which tombstones it drops.
    pub purge: Purge,
    /// When all hosts are told again that this node leads.
    pub told: Time,
    /// Who should be the members, and who counts on this node.
    pub seat: Seat,
}

impl Hosted {
    /// A group before its start.
    pub fn new(
        group: GroupId,
        founding: Shape,
        (me, now): (NodeId, Time),
        settings: &crate::serializable::lane::Settings,
    ) -> Hosted {
        let optimizations = settings.optimizations;
        let settings = vsr::Settings {
            durability: settings.durability,
            kept: settings.kept,
            in_flight_bytes: VSR_IN_FLIGHT_BYTES_MAX,
            by_membership: settings.by_membership,
        };
        Hosted {
            me,
            replica: Replica::new(group, me, settings),
            state: State::of(group, founding),
            member: Member::new(optimizations),
            questions: Questions::default(),
            heard: Heard::default(),
            swept: (Bytes::new(), false),
            purge: Purge::default(),
            told: Time(0),
            seat: Seat::new(now),
        }
    }
}

/// The wall clock in milliseconds.
pub(crate) fn wall(cx: &Context<'_>) -> WallMs {
    WallMs::try_from(cx.wall.0).unwrap_or_default()
}

impl Serializable {
    /// Calls the replica of a group, and hands on what it tells.
    pub(crate) fn call(
        &mut self,
        group: GroupId,
        cx: &mut Context<'_>,
        call: impl FnOnce(&mut Replica, &mut vsr::Context<'_>),
    ) {
        let told = self.call_replica(group, cx, call);
        self.hand_on(group, told, cx);
    }

    /// Calls the replica of a group; what it tells is answered.
    fn call_replica(
        &mut self,
        group: GroupId,
        cx: &mut Context<'_>,
        call: impl FnOnce(&mut Replica, &mut vsr::Context<'_>),
    ) -> Vec<Event> {
        let Some(hosted) = self.groups.get_mut(&group) else { return Vec::new() };
        self.touched.insert(group);
        let mut out = Vec::new();
        let (me, now, table) = (cx.me, cx.now, cx.table);
        let machine = &mut hosted.state;
        call(&mut hosted.replica, &mut vsr::Context { me, now, table, machine, out: &mut out });
        let mut told = Vec::new();
        for action in out {
            match action {
                Action::Write { class, key, value } => cx.fx.write(class, key, value),
                Action::Send { to, message, release } => {
                    self.outbox.push(group, to, message, &release);
                }
                Action::Tell(event) => told.push(event),
                Action::Resume => {
                    self.resumed.insert(group);
                    cx.fx.arm(Timer::Again, cx.now);
                }
                Action::Refuse(what) => cx.fx.refuse(what),
            }
        }
        told
    }

    /// Hands on what a replica has told, and what it has executed.
    fn hand_on(&mut self, group: GroupId, told: Vec<Event>, cx: &mut Context<'_>) {
        let Some(hosted) = self.groups.get_mut(&group) else { return };
        let executed = hosted.state.take_executed();
        if told.contains(&Event::Deposed) {
            // What was executed in this call may be of the next primary.
            self.depose(group, cx);
        } else if !told.contains(&Event::Serving) && !executed.is_empty() {
            self.handle(group, Input::Executed(executed), cx);
        }
        for event in told {
            match event {
                Event::Serving => {
                    self.handle(group, Input::Serving, cx);
                    self.spread(group, cx);
                }
                Event::Readable(ticket) => self.readable(group, ticket, cx),
                Event::Members(_) => self.see(group, cx),
                Event::Released => self.release(group, cx),
                Event::Lost => {
                    probe!("serializable/lane_lost");
                    self.counters.losses += 1;
                }
                Event::Deposed => {}
            }
        }
    }

    fn readable(&mut self, group: GroupId, ticket: Ticket, cx: &mut Context<'_>) {
        let hosted = self.groups.get(&group);
        let asked = hosted.and_then(|hosted| hosted.questions.get(ticket));
        match asked.and_then(|asked| asked.list.clone()) {
            Some((from, limit)) => self.list(group, ticket, (&from, limit), cx),
            None => self.handle(group, Input::Readable(ticket), cx),
        }
    }

    /// An input of a group's member, and what it asks for.
    pub(crate) fn handle(&mut self, group: GroupId, input: Input, cx: &mut Context<'_>) {
        let Some(hosted) = self.groups.get_mut(&group) else { return };
        let mut out = Vec::new();
        let (state, table, now, wall) = (&hosted.state, cx.table, cx.now, wall(cx));
        let is_settled = hosted.replica.is_settled();
        let life = hosted.replica.configuration().life.0;
        let out_of = &mut out;
        let mut on =
            serializable::Context { state, is_settled, life, table, now, wall, out: out_of };
        hosted.member.handle(input, &mut on);
        // Nothing behind one that was refused is taken: the order would be another.
        let (mut not_taken, mut not_confirmed, mut is_placed) = (0, Vec::new(), false);
        for action in out {
            match action {
                serializable::Action::Propose(entry) => {
                    if not_taken > 0 || !self.propose(group, entry, cx) {
                        not_taken += 1;
                    }
                }
                serializable::Action::Confirm(ticket) => {
                    if !self.confirm(group, ticket, cx) {
                        not_confirmed.push(ticket);
                    }
                }
                serializable::Action::Send { to, message } => self.send_between(to, message, cx),
                serializable::Action::Reply { ticket, reply } => {
                    self.reply(group, ticket, reply, cx);
                }
                serializable::Action::Placed => is_placed = true,
                serializable::Action::Swept { next, has_found } => {
                    if let Some(hosted) = self.groups.get_mut(&group) {
                        hosted.swept = (next.unwrap_or_default(), has_found);
                    }
                }
            }
        }
        if not_taken > 0 {
            probe!("serializable/lane_refused");
            self.handle(group, Input::NotTaken(not_taken), cx);
        }
        // Behind that: what follows may propose more.
        for ticket in not_confirmed {
            self.handle(group, Input::NotConfirmed(ticket), cx);
        }
        if is_placed {
            let hosts = self.hearers(cx.me.node);
            self.spread_places(group, &hosts, cx);
            self.tick_places(group, cx);
        }
    }

    /// Puts an entry into the log; whether it was taken.
    fn propose(&mut self, group: GroupId, entry: Bytes, cx: &mut Context<'_>) -> bool {
        let mut is_taken = false;
        let told =
            self.call_replica(group, cx, |log, on| is_taken = log.propose(entry, on).is_ok());
        invariant!(told.is_empty(), "a proposal tells nothing");
        self.leave_for_later(group, cx);
        is_taken
    }

    /// Asks whether this node still leads; whether that was taken.
    pub(super) fn confirm(&mut self, group: GroupId, ticket: Ticket, cx: &mut Context<'_>) -> bool {
        if mutant!("lane_reads_unconfirmed") {
            self.readable(group, ticket, cx);
            return true;
        }
        let mut is_taken = false;
        let told = self.call_replica(group, cx, |log, _| is_taken = log.read(ticket).is_ok());
        invariant!(told.is_empty(), "a question tells nothing");
        self.leave_for_later(group, cx);
        is_taken
    }

    /// What comes up while the turn ends is sent by the next one.
    fn leave_for_later(&mut self, group: GroupId, cx: &mut Context<'_>) {
        if self.is_ending {
            self.late.insert(group);
            cx.fx.arm(Timer::Again, cx.now);
        }
    }

    /// The member leads no more: whoever waits for it is told to ask elsewhere.
    fn depose(&mut self, group: GroupId, cx: &mut Context<'_>) {
        self.handle(group, Input::Deposed, cx);
        self.turn_away(group, cx);
        if let Some(hosted) = self.groups.get_mut(&group) {
            hosted.seat.depose();
        }
    }

    /// A tick of a group.
    pub(crate) fn tick(&mut self, group: GroupId, cx: &mut Context<'_>) {
        if let Some(hosted) = self.groups.get_mut(&group) {
            hosted.replica.note_left(|node| self.hosts.has_left(node));
            if self.settings.by_membership {
                hosted.replica.note_removed(|node| self.hosts.is_removed(node));
            }
        }
        self.call(group, cx, Replica::tick);
        self.see(group, cx);
        self.handle(group, Input::Tick, cx);
        // What was said once may be lost, and another's vote waits for whoever knows it.
        let is_due = |it: &Hosted| it.member.leads() && cx.now - it.told >= SPREAD;
        if self.groups.get(&group).is_some_and(is_due) {
            self.spread(group, cx);
            self.drop_gone(group, cx);
            self.tick_seats(group, cx);
            self.tick_places(group, cx);
        }
        self.tick_outside(group, cx);
    }

    /// Sends a group something, to whoever seems to lead it. It rests on what was executed, so on a
    /// majority, and on nothing that this node still has to store.
    fn send_between(&mut self, to: GroupId, message: serializable::Message, cx: &mut Context<'_>) {
        if let Some(node) = self.routes.leader(to) {
            cx.fx.send_early(node, Message::Between { to, message });
        }
    }

    /// What the replica here knows of its group is known to who asks for clients.
    pub(crate) fn see(&mut self, group: GroupId, cx: &mut Context<'_>) {
        let Some(hosted) = self.groups.get(&group) else { return };
        let (members, view) = (&hosted.replica.configuration().members, hosted.replica.view());
        if members.is_empty() {
            return;
        }
        let (members, serves) = (members.clone(), hosted.member.leads());
        if !self.homes.knows(group) {
            self.homes.add(group);
            self.routes.found(group, &members);
        }
        self.learn(None, &Leads { group, members, view, serves }, cx);
    }

    /// Another host says where a primary is, or the replica here: what waits for its group is asked
    /// of it.
    pub(crate) fn learn(&mut self, from: Option<NodeId>, leads: &Leads, cx: &mut Context<'_>) {
        let group = leads.group;
        match self.routes.learn(from, leads, cx.now) {
            Hint::Known => {}
            Hint::News => self.ask_again(group, cx),
            Hint::Claim => {
                let known = self.routes.known(group);
                let others: Vec<NodeId> =
                    known.iter().copied().filter(|node| *node != cx.me.node).collect();
                if !others.is_empty() {
                    // A question promises nothing.
                    cx.fx.send_early(&others.into(), Message::WhoLeads { group });
                }
            }
        }
    }

    /// What this node says of who leads a group.
    fn leads(&self, group: GroupId) -> Option<Leads> {
        let serves = self.groups.get(&group).is_some_and(|hosted| hosted.member.leads());
        Some(Leads { serves, ..self.routes.leads(group)? })
    }

    /// This node leads a group: all hosts that may ask are told. It is a hint, and promises
    /// nothing.
    fn spread(&mut self, group: GroupId, cx: &mut Context<'_>) {
        self.see(group, cx);
        if let Some(hosted) = self.groups.get_mut(&group) {
            hosted.told = cx.now;
        }
        let hosts = self.hearers(cx.me.node);
        if let Some(leads) = self.leads(group).filter(|_| !hosts.is_empty()) {
            cx.fx.send_early(&hosts, Message::Leads(leads));
        }
        self.spread_places(group, &hosts, cx);
    }

    /// All other hosts that may ask.
    fn hearers(&self, me: NodeId) -> Arc<[NodeId]> {
        let mut hosts: Vec<NodeId> = self.routes.members().chain(self.clients.hosts()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.retain(|node| *node != me);
        hosts.into()
    }

    /// Whether a keyspace can have all groups that a message names. What another has to do with is
    /// never over: nobody would answer for it.
    fn names_groups(message: &serializable::Message) -> bool {
        let groups = match message {
            serializable::Message::Vote { groups, .. }
            | serializable::Message::RevokeVote { groups, .. } => &groups[..],
            _ => &[][..],
        };
        let mut named = groups.iter().copied().chain([message.group()]);
        named.all(Homes::may_be)
    }

    /// Other groups' messages; who does not lead the group says who does.
    pub(crate) fn on_between(
        &mut self,
        from: Incarnation,
        to: GroupId,
        message: serializable::Message,
        cx: &mut Context<'_>,
    ) {
        if !Self::names_groups(&message) && !mutant!("lane_hears_of_any_group") {
            return cx.fx.refuse("a group of the keyspace speaks, of groups of the keyspace");
        }
        // What a group says rests on its log, so one of its members says it. Who is none as far as
        // is known here may have become one since: it says it again, and by then that is known.
        if !self.routes.is_member(message.group(), from.node) && !mutant!("lane_any_host_speaks") {
            probe!("serializable/lane_speaks_for_another");
            return;
        }
        let leads = self.groups.get(&to).is_some_and(|hosted| hosted.member.leads());
        if leads {
            invariant!(self.homes.knows(to), "who leads a group knows that there is one");
            invariant!(self.routes.leads(to).is_some(), "every group has a route");
            return self.handle(to, Input::Message(message), cx);
        }
        self.say_who_leads(from, to, cx);
    }

    /// Tells somebody who seems to lead a group: a hint.
    pub(crate) fn say_who_leads(&mut self, to: Incarnation, group: GroupId, cx: &mut Context<'_>) {
        if let Some(leads) = self.leads(group).filter(|_| to.node != cx.me.node) {
            // It promises nothing.
            cx.fx.send_early(to, Message::Leads(leads));
        }
    }
}
