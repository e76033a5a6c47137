//! Executing what is committed, in order.

use crate::vsr::action::{Action, Context, Event};
use crate::vsr::configuration::Configuration;
use crate::vsr::log::entry::Kind;
use crate::vsr::number::{Op, ViewNumber};
use crate::vsr::state::{Replica, Status};
use quorate_kernel::invariant;
use quorate_kernel::limits::VSR_EXECUTE_MAX;
use quorate_kernel::mutant;
use quorate_kernel::probe;

impl Replica {
    /// Executes committed entries, as many as one turn should.
    pub(crate) fn execute(&mut self, cx: &mut Context<'_>) {
        if self.install.is_some() {
            return;
        }
        for _ in 0..VSR_EXECUTE_MAX {
            if self.applied == self.commit {
                break;
            }
            let op = self.applied.next();
            let entry = self.log.get(op, cx.table);
            self.applied = op;
            match entry.new_members() {
                Some(members) if entry.view.epoch >= self.epoch() => {
                    let is_left = matches!(entry.kind, Kind::Left(_));
                    let next = Configuration::after(entry.view.epoch, members, op);
                    let next = next.following(&self.head.configuration);
                    let next = if is_left { next.of_what_is_left() } else { next };
                    self.change_epoch(op, next, cx);
                }
                // It was executed before a restart, or a copy came from behind it.
                Some(_) => {}
                None => {
                    let (machine, mut store) = cx.machine();
                    machine.apply(op, entry.bytes(), &mut store);
                }
            }
        }
        if self.applied < self.commit {
            cx.out.push(Action::Resume);
        }
        self.serve(cx);
        self.answer_reads(cx);
    }

    /// The primary serves once it has executed what earlier views may have committed: all that its
    /// log had when the view began.
    pub(crate) fn serve(&mut self, cx: &mut Context<'_>) {
        let is_settled = self.is_settled() || mutant!("serve_before_replay");
        let applied = self.applied;
        let Some(primary) = &mut self.primary else { return };
        let has_replayed = applied >= primary.began.op || mutant!("serve_before_replay");
        if !primary.is_serving && has_replayed && is_settled {
            primary.is_serving = true;
            cx.tell(Event::Serving);
        }
    }

    /// A change of members was executed: the next epoch begins with the log up to here. A newcomer
    /// to what is left of a log may not have heard of the one that has ended.
    fn change_epoch(&mut self, op: Op, configuration: Configuration, cx: &mut Context<'_>) {
        invariant!(op == self.log.end(), "a change of members is the last entry of its epoch");
        invariant!(
            crate::vsr::configuration::are_members(&configuration.members),
            "only members were proposed"
        );
        self.send_last_beat(cx);
        self.step_down(cx);
        let was_member = self.is_member();
        if self.head.settled >= op && !mutant!("lost_pages_stay") {
            self.copy_anew(cx);
        }
        self.head.is_held = configuration.is_handed_over() && self.settings.may_forget();
        self.head.configuration = configuration;
        cx.tell(Event::Members(self.head.configuration.clone()));
        self.begin_epoch(was_member, cx);
    }

    /// Takes its place in an epoch whose log up to its begin is here.
    pub(crate) fn begin_epoch(&mut self, was_member: bool, cx: &mut Context<'_>) {
        let first = ViewNumber::first(self.epoch());
        // A copy may be of a later view of the epoch; then that view's log is not here.
        let view = first.max(self.log.last().view);
        self.election = crate::vsr::state::Election::default();
        self.stage = None;
        self.asked = None;
        self.owes_ack = false;
        self.has_started = false;
        self.started.clear();
        self.pulse = crate::vsr::views::pulse::Pulse::new(cx.now);
        self.head.view = view;
        let owed = core::mem::take(&mut self.head.owes);
        self.head.end = self.log.end();
        // What was forgotten is of earlier epochs, and their log is here again.
        self.head.has_forgotten = false;
        self.head.lost = None;
        if !self.is_member() {
            probe!("vsr/removed");
            self.head.owes = was_member;
            if owed && !was_member && !mutant!("owed_in_silence") {
                // A later epoch has begun where a majority of that one had ended it.
                cx.tell(Event::Released);
            }
            self.head.normal = ViewNumber::default();
            self.status = Status::Learner;
            self.save(cx);
            return self.tick_learner(cx);
        }
        // The log up to here is that of the epoch's first view, whoever leads it.
        self.head.normal = first;
        let has_log = self.log.end() == self.head.configuration.since;
        if has_log && view == first && self.known_primary() != Some(self.me) {
            self.status = Status::Normal;
            self.owes_ack = true;
        } else {
            self.status = Status::ViewChange;
        }
        self.save(cx);
        if self.status == Status::ViewChange && has_log {
            self.start_epoch(cx);
        }
    }
}
