//! The engine as a process: the one match on inputs.

use super::coordinate::coordinator::Phase;
use super::coordinate::explain::Tells;
use super::group::{Group, Status};
use super::message::Message;
use super::record::Head;
use super::replicate::replica::remembers;
use super::replicate::serve::TransferRequest;
use super::state::{Durable, Volatile};
use super::timer::Timer;
use super::views::install::is_split;
use super::{Context, ENGINE, Linearizable, Settings};
use crate::quorum::CrashVector;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Control, Cursor, Operation, Outcome, Refusal};
use quorate_kernel::part::{Here, Holds, Part};
use quorate_kernel::process::{Inspect, Process, Recovery, Request};
use quorate_kernel::time::Time;

impl Linearizable {
    /// The engine before its start.
    #[must_use]
    pub fn new(settings: Settings) -> Linearizable {
        let volatile = Volatile::new(CrashVector::default());
        Linearizable { settings, me: None, durable: Durable::default(), volatile }
    }

    /// What this node knows of a group, and has of it. One that was split goes on in its parts, but
    /// what it still owes them is the node's.
    fn part(&self, group: &Group) -> Part {
        let view = &group.view;
        let has_all = |node| node == self.me.unwrap_or_default() && group.is_serving();
        let holds = |node| if has_all(node) { Holds::Confirmed } else { Holds::Some };
        let quorum = (ENGINE.quorum)(view.members().len());
        let here = (!is_split(group)).then(|| self.here(group));
        let owes = !remembers(&group.record.status);
        Part { owes, here, ..Part::of_group(view, quorum, holds) }
    }

    fn here(&self, group: &Group) -> Here {
        let view = &group.view;
        let role = match (&group.record.status, &group.running, group.wished) {
            (Status::Learner { .. }, ..) => "learner",
            (Status::Retired { .. }, ..) => "source",
            (_, Some(_), _) => "proposer",
            (_, None, Some(_)) => "planner",
            (_, None, None) => "member",
        };
        let moving = match &group.transfer {
            Some(transfer) => {
                let awaited: Vec<String> = match group.lacks_data() {
                    true => transfer.awaited().map(|node| node.to_string()).collect(),
                    false => Vec::new(),
                };
                let waits = if awaited.is_empty() { "" } else { ", waits for " };
                format!("{} %{waits}{}", transfer.percent(&view.range), awaited.join(" "))
            }
            None => String::from("-"),
        };
        Here {
            status: format!("{:?}", group.standing()).to_ascii_lowercase(),
            role,
            moving,
            bytes: group.share.bytes(),
            moved_keys: group.moved.keys,
            moved_bytes: group.moved.bytes,
        }
    }
}

impl Linearizable {
    /// Sends a message of what members do when they have nothing else to do to its handler.
    fn dispatch_background(&mut self, from: Incarnation, message: Message, cx: &mut Context<'_>) {
        match message {
            Message::FloorA { view, generation } => self.on_floor(from, view, generation, cx),
            Message::FloorB { view, generation } => {
                self.on_floor_reply(from, view, generation, cx);
            }
            // Of a version that did not say in which generation it asks: it asks in vain.
            Message::TombsA { .. } | Message::TombsB { .. } => {}
            Message::TombstonesA { view, generation, from: begin } => {
                self.on_tombstones(from, (view, generation), &begin, cx);
            }
            Message::TombstonesB { view, generation, from: begin, next, page } => {
                self.on_tombstones_reply(from, (view, generation), (begin, next), page, cx);
            }
            Message::DropA { view, generation, page } => {
                self.on_drop(from, (view, generation), page, cx);
            }
            Message::DropB { view, generation, first } => {
                self.on_drop_reply(from, (view, generation), &first, cx);
            }
            Message::CompareA { round, view, from: begin, parts } => {
                self.on_question(
                    from,
                    TransferRequest::Compare { round, view, from: begin, parts },
                    cx,
                );
            }
            Message::CompareB { round, view, page, upto } => {
                self.on_compared(from, (round, view), (page, upto), cx);
            }
            Message::RecordsA { round, view, page } => {
                self.on_question(from, TransferRequest::Records { round, view, page }, cx);
            }
            Message::RecordsB { round, view, generation, epoch, page } => {
                self.on_records(from, (round, view), (generation, epoch), page, cx);
            }
            other => unreachable!("{other:?} is handled by `on_message`"),
        }
    }
}

impl Process for Linearizable {
    type Message = Message;
    type Timer = Timer;
    const HEARS: &'static [Topic] = &[Topic::Ring, Topic::Keyspace];

    fn start(&mut self, recovery: Recovery, cx: &mut Context<'_>) {
        self.me = Some(cx.me.node);
        self.recover(recovery, cx);
    }

    fn on_message(&mut self, from: Incarnation, message: Message, cx: &mut Context<'_>) {
        match message {
            Message::ReadA { op, view, want, key } => {
                self.on_read(from, (op, view, want), &key, cx);
            }
            Message::ReadB { op, stamp, ts, live, record } => {
                self.on_read_reply(from, op, &stamp, Head { ts, live }, record, cx);
            }
            Message::WriteA { op, view, basis, key, record } => {
                self.on_write(from, (op, view, &basis), (&key, record), cx);
            }
            Message::WriteB { op, view, ok, stamp } => {
                self.on_write_reply(from, op, view, ok, &stamp, cx);
            }
            Message::PageA { op, view, from: begin, limit } => {
                self.on_page(from, (op, view), &begin, limit, cx);
            }
            Message::PageB { op, stamp, next, page } => {
                self.on_page_reply(from, op, &stamp, next, page, cx);
            }
            Message::ListA { round, since, epoch, forgot, from: begin } => {
                self.on_list(from, (round, since), (epoch, forgot), begin, cx);
            }
            Message::ListB { round, since, stamp, is_source, bounds, lost, page } => {
                let said = (is_source, lost);
                self.on_list_reply(from, (round, since, &stamp), said, (*bounds, page), cx);
            }
            Message::Lacks { round, since, awaits, epoch } => {
                self.on_source_lacks(from, (round, since), (&awaits, epoch), cx);
            }
            Message::FetchA { round, since, page } => {
                self.on_question(from, TransferRequest::Fetch { round, since, page }, cx);
            }
            Message::FetchB { round, since, page } => {
                self.on_fetch_reply(from.node, (round, since), page, cx);
            }
            Message::LocateA { token } => self.on_locate(from, token, cx),
            Message::LocateB { view } => self.on_located(from, view, cx),
            Message::Reconfigure(messages) => self.on_reconfigure(from, messages, cx),
            Message::Invite { next, old, known } => self.on_invite(from, (next, old), &known, cx),
            Message::Learn { view, known } => self.on_learn(from, view, known, cx),
            Message::Beats(beats) => self.on_beats(from, beats, cx),
            Message::Split { view, generation } => self.on_split(from, (view, generation), cx),
            Message::DecisionsA { view } => self.on_decisions_asked(from, view, cx),
            Message::DecisionsB { view, changes } => self.on_decisions(from, view, changes, cx),
            Message::ExamineA { op, view, token, leaver } => {
                self.on_examine(from, (op, view), token, leaver, cx);
            }
            Message::ExamineB { op, stamp, said } => self.on_examined(from, op, &stamp, said, cx),
            message @ (Message::FloorA { .. }
            | Message::FloorB { .. }
            | Message::TombsA { .. }
            | Message::TombsB { .. }
            | Message::TombstonesA { .. }
            | Message::TombstonesB { .. }
            | Message::DropA { .. }
            | Message::DropB { .. }
            | Message::CompareA { .. }
            | Message::CompareB { .. }
            | Message::RecordsA { .. }
            | Message::RecordsB { .. }) => self.dispatch_background(from, message, cx),
        }
    }

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        self.begin(ticket, request, None, cx);
    }

    fn on_control(
        &mut self,
        ticket: Ticket,
        control: Control,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        match control {
            Control::Explain { key } => {
                self.explain(ticket, Operation::get(key), Tells::How, deadline, cx);
            }
            // Each host knows its own groups and some others, and those may be old.
            Control::Examine { from, leaver } => {
                let question = Operation::Scan { from: Cursor::at(from), limit: 1 };
                self.explain(ticket, question, Tells::Who { leaver }, deadline, cx);
            }
            Control::Drain { .. }
            | Control::Remove { .. }
            | Control::Shutdown
            | Control::Idle
            | Control::Keyspace(_) => {
                // Nothing was done.
                cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Unsupported));
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_>) {
        match timer {
            Timer::Operations => self.on_alarm(cx),
            Timer::Transfer => self.on_transfer_timer(cx),
            Timer::Locate => self.on_locate_timer(cx),
            Timer::Propose => self.on_propose_timer(cx),
            Timer::Maintain => self.on_maintain(cx),
            Timer::Serve => self.serve(cx),
            Timer::Sweep => self.on_sweep(cx),
        }
    }

    fn on_news(&mut self, news: News<'_>, cx: &mut Context<'_>) {
        match news {
            News::Keyspace(keyspace) => self.alter(keyspace),
            News::Ring(ring) => {
                self.volatile.ring = Some(Arc::clone(ring));
                self.volatile.ring_at = cx.now;
                self.volatile.preference.forget();
                self.hurry(cx);
                self.maintain_at(cx.now, cx);
            }
            _ => unreachable!("a lane is told what it hears"),
        }
    }

    fn parts(&self) -> Vec<Part> {
        let groups = self.durable.groups.values().map(|group| self.part(group));
        let unknown = self.volatile.routes.is_empty().then(Part::unknown);
        groups.chain(unknown).collect()
    }

    fn inspect(&self, into: &mut dyn Inspect) {
        let counters = &self.volatile.counters;
        let members = || self.durable.groups.values().filter(|group| group.is_member());
        // Of a keyspace on one group these are the group's; otherwise the newest and the largest.
        let version = members().map(|group| group.view.id.version).max().unwrap_or(0);
        let most = members().map(|group| group.view.members().len()).max().unwrap_or(0);
        let lacking = members().filter(|group| !group.is_serving()).count();
        let owes = self.parts().iter().any(|part| part.owes);
        let transfers = self.durable.groups.values().filter_map(|group| group.transfer.as_ref());
        into.field("view", &version);
        into.field("members", &most);
        into.field("ready", &(!owes && lacking == 0));
        into.field("groups", &members().count());
        into.field("groups_lacking_data", &lacking);
        into.field("groups_kept_for_others", &(self.durable.groups.len() - members().count()));
        let kept = self.durable.groups.keys().map(|group| self.kept_slots(*group).count());
        into.field("slots_kept", &kept.sum::<usize>());
        let split = self.durable.groups.values().filter(|group| is_split(group)).count();
        into.field("groups_split", &split);
        into.field("groups_refused", &counters.groups_refused);
        into.field("transfers", &transfers.count());
        let wanted = self.durable.groups.values().filter(|group| group.wished.is_some());
        let awaited = members().filter(|group| !group.record.owed.is_empty());
        into.field("changes_wanted", &wanted.count());
        into.field("newcomers_awaited", &awaited.count());
        into.field("operations", &self.volatile.operations.len());
        into.field("rounds_read", &counters.reads_in_one_round);
        into.field("rounds_write_back", &counters.write_backs);
        into.field("fetches", &counters.fetches);
        into.field("rounds_query", &counters.queries);
        into.field("rounds_write", &counters.writes);
        into.field("rounds_scan", &counters.pages);
        into.field("retries", &counters.retries);
        into.field("expired", &counters.expired);
        into.field("failed_fast", &counters.failed_fast);
        into.field("retargets", &counters.retargets);
        into.field("installs", &counters.installs);
        into.field("moved_keys", &counters.moved_keys);
        into.field("moved_bytes", &counters.moved_bytes);
        into.field("tombstones_purged", &counters.purged);
        into.field("records_restored", &counters.restored);
    }

    fn check(&self) {
        self.check_state(self.me);
    }
}

const _: () = assert!(size_of::<Message>() <= 192, "messages move through the effects list");
const _: () = assert!(size_of::<Phase>() <= 1600, "operations stay small enough to keep many");
