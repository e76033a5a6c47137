//! The normal case: the primary proposes, members append and acknowledge, a majority commits
//! (Viewstamped Replication Revisited, §4.1).

use crate::vsr::action::{Action, Context};
use crate::vsr::log::entry::Entry;
use crate::vsr::message::Message;
use crate::vsr::number::{Op, ViewNumber};
use crate::vsr::state::Replica;
use alloc::vec::Vec;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::invariant;
use quorate_kernel::limits::{VSR_ENTRIES_BYTES_MAX, VSR_ENTRIES_MAX};
use quorate_kernel::mutant;
use quorate_kernel::probe;

impl Replica {
    /// The primary's entries of one turn.
    pub(crate) fn on_prepare(
        &mut self,
        from: Incarnation,
        view: ViewNumber,
        first: Op,
        entries: Vec<Entry>,
        commit: Op,
        cx: &mut Context<'_>,
    ) {
        if !self.follows(from, view, cx) || from.node == self.me {
            return;
        }
        invariant!(self.head.normal == view, "entries are appended to their view's log");
        invariant!(self.primary.is_none(), "a view has one primary");
        if first > self.log.end().next() {
            probe!("vsr/gap");
            return self.ask(from.node, cx);
        }
        // What is here already is the same: one view's log is one log.
        let known = self.log.end().next().since(first) as usize;
        let is_new = entries.len() > known;
        if !self.may_append(entries.get(known..).unwrap_or_default()) {
            return cx.out.push(Action::Refuse("an entry is not of its primary's view"));
        }
        entries.into_iter().skip(known).for_each(|entry| self.append(entry, cx));
        invariant!(!is_new || self.log.last().view == view, "a view's entries are appended");
        self.owes_ack = true;
        self.commit_as_told(commit, cx);
    }

    /// The primary tells how far entries are committed.
    pub(crate) fn commit_as_told(&mut self, commit: Op, cx: &mut Context<'_>) {
        self.commit_to(commit, cx);
        let all = commit.max(self.pulse.took_over);
        if self.applied >= all || mutant!("vsr_current_when_told") {
            self.pulse.executed = Some(cx.now);
        }
    }

    /// Whether entries can follow in the log of this replica's view: its primary has put them
    /// there, and nothing follows the end of the epoch.
    pub(crate) fn may_append(&self, entries: &[Entry]) -> bool {
        let is_of_view = |entry: &Entry| entry.view == self.head.view;
        let is_open = entries.is_empty() || self.closing().is_none();
        let before_last = entries.split_last().map_or(&[][..], |(_, before)| before);
        let ends = before_last.iter().any(|entry| entry.new_members().is_some());
        (is_open && !ends && entries.iter().all(is_of_view)) || mutant!("appends_what_comes")
    }

    /// A member's log is durable up to here, in this view.
    pub(crate) fn on_prepare_ok(
        &mut self,
        from: Incarnation,
        view: ViewNumber,
        end: Op,
        cx: &mut Context<'_>,
    ) {
        let is_of_view = view == self.head.view || mutant!("old_ack_counts");
        if self.is_behind(from.node, view, cx) && !mutant!("old_ack_counts") {
            return;
        }
        if !is_of_view || !self.head.configuration.contains(from.node) {
            return;
        }
        let log_end = self.log.end();
        let Some(primary) = &mut self.primary else { return };
        if end > log_end {
            return cx.out.push(Action::Refuse("nobody has more than the primary"));
        }
        let acked = primary.acked.entry(from.node).or_default();
        *acked = end.max(*acked);
        let commit = self.committed();
        invariant!(commit <= self.log.end(), "what is committed is in the primary's log");
        self.commit_to(commit, cx);
        invariant!(self.applied <= self.commit, "only what is committed is executed");
    }

    /// What a majority of the members has in this view, the primary's own part included once it is
    /// durable.
    fn committed(&self) -> Op {
        let Some(primary) = &self.primary else { return self.commit };
        let members = self.head.configuration.members.iter();
        let mut ends: Vec<Op> =
            members.map(|node| primary.acked.get(node).copied().unwrap_or_default()).collect();
        ends.sort_unstable_by(|one, other| other.cmp(one));
        ends[self.head.configuration.majority() - 1].max(self.commit)
    }

    /// Entries up to `commit` are committed, as far as they are here.
    pub(crate) fn commit_to(&mut self, commit: Op, cx: &mut Context<'_>) {
        let commit = commit.min(self.log.end());
        if commit > self.commit {
            self.commit = commit;
            if let Some(primary) = &mut self.primary {
                primary.commit(commit);
            }
            self.execute(cx);
        }
    }

    /// Sends what the primary has appended since it was last called, and asks for its own
    /// acknowledgement.
    pub(crate) fn send_prepares(&mut self, cx: &mut Context<'_>) {
        let Some(primary) = &mut self.primary else { return };
        let (view, commit, end) = (self.head.view, self.commit, self.log.end());
        let (mut sent, asks) = (primary.sent, primary.asked < end);
        primary.told = if sent < end { commit } else { primary.told };
        primary.sent = end;
        primary.asked = end;
        let others = self.others();
        while sent < end && !others.is_empty() {
            let most = (VSR_ENTRIES_MAX, VSR_ENTRIES_BYTES_MAX);
            let entries = self.log.read(sent.next(), end, most, cx.table);
            let from = sent.next();
            sent = Op(sent.0 + entries.len() as u64);
            // A proposal promises nothing, and a primary that restarts never goes on with its view:
            // what it has lost of this log it does not say otherwise.
            let message = Message::Prepare { view, from, entries, commit };
            cx.send(&others, message, Release::Early);
        }
        if asks {
            self.send_prepare_ok(cx);
        }
    }

    /// Members are told at once of what is committed, if nothing else tells them in this turn: they
    /// execute it, and whoever reads at one of them finds it. To be called when the turn has ended.
    pub fn tell_commit(&mut self, cx: &mut Context<'_>) {
        let (commit, others) = (self.commit, self.others());
        let Some(primary) = &mut self.primary else { return };
        let is_news = primary.told < commit && !mutant!("commit_told_late");
        if is_news && !others.is_empty() {
            primary.told = commit;
            // A beat promises nothing.
            cx.send(&others, self.beat(), Release::Early);
        }
    }

    /// Acknowledges what has come in this turn, once for all of it.
    pub(crate) fn acknowledge(&mut self, cx: &mut Context<'_>) {
        if core::mem::take(&mut self.owes_ack) {
            self.send_prepare_ok(cx);
        }
    }

    fn send_prepare_ok(&mut self, cx: &mut Context<'_>) {
        let Some(primary) = self.known_primary() else { return };
        invariant!(self.head.normal == self.head.view, "only its view's log is acknowledged");
        let message = Message::PrepareOk { view: self.head.view, end: self.log.end() };
        let release = Release::Lane;
        cx.send(primary, message, if mutant!("ok_before_sync") { Release::Early } else { release });
    }
}
