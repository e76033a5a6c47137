//! The engine as a process: the one match on inputs.

use super::groups::hosted::Hosted;
use super::message::Message;
use super::timer::Timer;
use super::{Context, Serializable};
use crate::serializable::Input;
use crate::serializable::settings::is_any;
use crate::vsr::{Replica, TICK, is_known};
use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, Incarnation, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Control, Outcome, Refusal};
use quorate_kernel::part::Part;
use quorate_kernel::process::{Inspect, Process, Recovery, Request};
use quorate_kernel::time::Time;

/// The most pages that are swept between two ticks beside the first one of each group.
const SWEEPS_MAX: usize = 16;

impl Serializable {
    /// Starts a group here. Of what is not stored founders begin, and others learn.
    pub(super) fn start_group(
        &mut self,
        group: GroupId,
        founders: Option<&Arc<[NodeId]>>,
        recovery: Recovery,
        cx: &mut Context<'_>,
    ) {
        let hosted =
            Hosted::new(group, self.homes.founding(), (cx.me.node, cx.now), &self.settings);
        let is_intact = mutant!("lane_memory_is_whole");
        let recovery = if is_intact { Recovery::Intact } else { recovery };
        let before = self.groups.insert(group, hosted);
        invariant!(before.is_none(), "a group is started once");
        let founders = founders.map(|members| &members[..]);
        self.call(group, cx, |log, on| log.start(founders, recovery, on));
        self.see(group, cx);
    }

    fn on_tick(&mut self, cx: &mut Context<'_>) {
        cx.fx.arm(Timer::Tick, cx.now + TICK);
        self.ticked = cx.now;
        let groups: Vec<GroupId> = self.groups.keys().copied().collect();
        for group in groups {
            self.tick(group, cx);
        }
        self.sweep(cx);
        self.tick_clients(cx);
        self.tick_examined(cx);
    }

    /// Removes what has expired and old tombstones: one page of each group is looked at, and more
    /// of those in which there is something to remove, so that no more can come than goes.
    fn sweep(&mut self, cx: &mut Context<'_>) {
        let mut groups: VecDeque<GroupId> = self.groups.keys().copied().collect();
        // Not always the same ones come first.
        let first = (cx.now.0 / TICK.0).checked_rem(groups.len() as u64);
        groups.rotate_left(first.unwrap_or_default() as usize);
        let pages = groups.len() + if mutant!("lane_sweeps_one_page") { 0 } else { SWEEPS_MAX };
        for _ in 0..pages {
            let Some(group) = groups.pop_front() else { return };
            if self.sweep_page(group, cx) {
                groups.push_back(group);
            }
        }
    }

    /// Whether something of that page is to be removed.
    fn sweep_page(&mut self, group: GroupId, cx: &mut Context<'_>) -> bool {
        let Some(hosted) = self.groups.get_mut(&group) else { return false };
        let applied = hosted.replica.applied();
        let purge = hosted.purge.upto(applied, self.settings.purged, cx.now);
        let from = hosted.swept.0.clone();
        self.handle(group, Input::Sweep { from, purge }, cx);
        self.groups.get(&group).is_some_and(|hosted| hosted.swept.1)
    }

    fn on_again(&mut self, cx: &mut Context<'_>) {
        self.touched.append(&mut self.late);
        for group in core::mem::take(&mut self.resumed) {
            self.call(group, cx, Replica::resume);
        }
    }

    fn on_turn_end(&mut self, cx: &mut Context<'_>) {
        self.is_ending = true;
        for group in core::mem::take(&mut self.touched) {
            self.call(group, cx, Replica::turn_end);
        }
        self.is_ending = false;
        self.touched.clear();
        self.outbox.flush(cx.fx, Message::Log);
    }
}

impl Process for Serializable {
    type Message = Message;
    type Timer = Timer;
    const HEARS: &'static [Topic] =
        &[Topic::Ring, Topic::Roll, Topic::Keyspace, Topic::TurnEnd, Topic::Unlinked];

    fn start(&mut self, recovery: Recovery, cx: &mut Context<'_>) {
        self.clients.names.begin(cx.me, cx.rng.next(), super::groups::hosted::wall(cx));
        let founders = self.settings.founders.clone();
        for (group, members) in self.homes.founding().groups().zip(&founders) {
            let founds = members.contains(&cx.me.node);
            if founds || is_known(group, cx.table) {
                self.start_group(group, founds.then_some(members), recovery, cx);
            }
            // It was let go in an earlier start.
            if self.groups.get(&group).is_some_and(|it| it.replica.is_empty()) {
                self.groups.remove(&group);
            }
        }
        self.start_added(recovery, cx);
        cx.fx.arm(Timer::Tick, cx.now + TICK);
    }

    fn on_message(&mut self, from: Incarnation, message: Message, cx: &mut Context<'_>) {
        match message {
            Message::Log(parts) => {
                for (group, message) in parts {
                    self.hear_for(group, &message, cx);
                    self.call(group, cx, |log, on| log.on_message(from, message, on));
                }
            }
            Message::Between { to, message } => self.on_between(from, to, message, cx),
            Message::Ask { question, group, request } => {
                self.on_ask(from, (question, group), request, cx);
            }
            Message::Told { question, group, reply } => {
                self.on_told(from, (question, group), reply, cx);
            }
            Message::Leads(leads) => self.learn(Some(from.node), &leads, cx),
            Message::List { question, group, from: start, limit } => {
                self.on_list(from, (question, group), (start, limit), cx);
            }
            Message::Listed { question, group, keys, next } => {
                self.on_listed(from, (question, group), keys, next, cx);
            }
            Message::Stand { question, group, leaver } => {
                self.on_stand(from, (question, group), leaver, cx);
            }
            Message::Stands { question, group, stands } => {
                self.on_stands(from, (question, group), stands, cx);
            }
            Message::WhoLeads { group } => self.say_who_leads(from, group, cx),
            Message::Placed { group, list } => self.on_placed(from, group, &list, cx),
            Message::Founded(founded) => self.on_founded(from, founded, cx),
            Message::Recall { question, tx } => self.on_recall(from, question, tx, cx),
            Message::Recalled { question, tx, ended } => {
                self.on_recalled(from, question, (tx, ended), cx);
            }
        }
    }

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        self.begin(ticket, request, cx);
    }

    fn on_control(
        &mut self,
        ticket: Ticket,
        control: Control,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        match control {
            Control::Examine { from, leaver } => {
                self.examine(ticket, (from, leaver), deadline, cx);
            }
            // Nothing was done.
            _ => cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Unsupported)),
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_>) {
        match timer {
            Timer::Tick => self.on_tick(cx),
            Timer::Again => self.on_again(cx),
        }
    }

    fn on_news(&mut self, news: News<'_>, cx: &mut Context<'_>) {
        match news {
            News::TurnEnd => self.on_turn_end(cx),
            News::Unlinked(peer) => {
                let groups: Vec<GroupId> = self.groups.keys().copied().collect();
                for group in groups {
                    self.call(group, cx, |log, on| log.on_unlinked(peer, on));
                }
            }
            News::Ring(ring) => {
                self.clients.see(ring);
                self.hosts.see(ring, cx.now);
            }
            News::Roll(roll) => self.hosts.follow(roll, cx.now),
            News::Keyspace(keyspace) => {
                self.settings.replicas = keyspace.replicas();
                self.homes.want(keyspace.setting("groups").parse().unwrap_or(0));
                self.settings.value_bytes_max = keyspace.value_bytes_max();
                self.settings.reads_any = is_any(&keyspace.settings);
            }
            _ => unreachable!("a lane is told what it hears"),
        }
    }

    fn parts(&self) -> Vec<Part> {
        self.known_parts()
    }

    fn inspect(&self, into: &mut dyn Inspect) {
        self.show(into);
    }

    fn check(&self) {
        for hosted in self.groups.values() {
            hosted.replica.check();
            hosted.questions.check();
            let is_asked = !hosted.questions.is_empty();
            invariant!(!is_asked || hosted.member.leads(), "only who leads has questions in hand");
        }
        self.clients.check();
    }
}
