//! State transfer: entries for whoever lacks them (Viewstamped Replication Revisited, §5.2).
//!
//! What is committed is told to anybody, by anybody, and is taken over at once. What is not is told
//! within a view only. It takes the place of what is here when all of it has come: the paper cuts
//! the log off first, and a member that votes in between has lost what it acknowledged.

use super::entry::Entry;
use crate::vsr::action::{Action, Context};
use crate::vsr::message::Message;
use crate::vsr::number::{Op, Position, ViewNumber};
use crate::vsr::state::{EntriesRequest, Replica, Stage, Status};
use crate::vsr::timer::ASK_AGAIN;
use alloc::vec::Vec;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::invariant;
use quorate_kernel::limits::{VSR_ENTRIES_BYTES_MAX, VSR_ENTRIES_MAX};
use quorate_kernel::mutant;
use quorate_kernel::probe;

/// What a `NewState` tells beside entries.
#[derive(Clone, Copy, Debug)]
pub struct NewStateHead {
    /// The question's.
    pub nonce: u64,
    /// Where the entries were asked to begin.
    pub asked: Op,
    /// The view that the sender is in.
    pub view: ViewNumber,
    /// Whether the sender's whole log is told.
    pub is_whole: bool,
    /// The position before the first entry.
    pub before: Position,
    /// The sender's commit number.
    pub commit: Op,
    /// Where what is told of the sender's log ends.
    pub end: Op,
}

impl Replica {
    /// Asks a node for entries, unless that is under way.
    pub(crate) fn ask(&mut self, source: NodeId, cx: &mut Context<'_>) {
        let is_waiting = |asked: &EntriesRequest| cx.now - asked.at < ASK_AGAIN;
        if source == self.me || self.asked.as_ref().is_some_and(is_waiting) {
            return;
        }
        let from = match &self.stage {
            Some(stage) if stage.source == source => stage.end().next(),
            _ => self.log.end().next(),
        };
        self.ask_from(source, from, cx);
    }

    /// Asks a node of this epoch for what follows what it has told. Who leads the view if it starts
    /// asks nobody else than the member whose log was chosen, once one was.
    pub(crate) fn ask_further(&mut self, source: NodeId, cx: &mut Context<'_>) {
        if self.may_enter_with(source) {
            self.ask(source, cx);
        } else if let Some(chosen) = self.election.chosen {
            probe!("vsr/asks_the_chosen_instead");
            self.ask(chosen, cx);
        }
    }

    /// Whether the view that this replica is in can start here with the whole log of this node. Any
    /// voter tells its log to whoever leads the view if it starts; only the chosen one has all that
    /// was committed. Others hear of a log from those alone where the view has started.
    fn may_enter_with(&self, source: NodeId) -> bool {
        let leads = self.status == Status::ViewChange && self.known_primary() == Some(self.me);
        !leads || self.election.chosen == Some(source) || mutant!("leads_with_any_log")
    }

    /// A node knows of a later epoch than this one is in: it is asked. Who has missed how all that
    /// it knew were replaced would hear of it from nobody else.
    pub fn catch_up(&mut self, source: NodeId, cx: &mut Context<'_>) {
        self.ask(source, cx);
    }

    fn ask_from(&mut self, source: NodeId, from: Op, cx: &mut Context<'_>) {
        if self.install.is_some() {
            // The copy that is under way comes first: entries follow it.
            self.install_from(source, cx);
            let others = self.others().len();
            if self.install.as_ref().is_some_and(|install| install.may_come(others))
                || mutant!("copier_asks_nothing_else")
            {
                return;
            }
            // All may have lost what could be copied: then they say so, or tell their log.
        }
        let nonce = self.next_nonce(cx);
        self.asked = Some(EntriesRequest { nonce, source, at: cx.now });
        // A question promises nothing.
        let (view, has_forgotten) = (self.head.view, self.head.has_forgotten);
        let message = Message::GetState { nonce, view, from, has_forgotten };
        cx.send(source, message, Release::Early);
    }

    /// Somebody lacks entries.
    pub(crate) fn on_get_state(
        &mut self,
        from: Incarnation,
        nonce: u64,
        (view, first): (ViewNumber, Op),
        cx: &mut Context<'_>,
    ) {
        let is_removed = self.status == Status::Learner && mutant!("removed_stops_serving");
        // Who lacks what its epoch began with tells no entries to an earlier one: there it would be
        // taken for one whose members have lost that.
        if is_removed || self.tells_lost_begin(from.node, (nonce, view), cx) {
            return;
        }
        invariant!(self.commit <= self.log.end(), "what is committed is in the log");
        let is_chosen = self.primary_of(view) == Some(from.node);
        let is_member = self.head.configuration.contains(from.node);
        let is_whole = is_member
            && view == self.head.view
            && match self.status {
                Status::Normal => true,
                // It votes for this log, which stays as it is until the view starts.
                Status::ViewChange => is_chosen && !self.has_started,
                Status::Recovering | Status::Learner => false,
            };
        // Who has forgotten still knows of what is left that it was committed.
        let end = if is_whole { self.log.end() } else { self.tellable() };
        // Of what it has let go it tells where the log begins.
        let asked = first;
        let first = first.min(end.next()).max(self.log.base().op.next());
        let before = Position {
            op: first.before(),
            view: self.log.view_at(first.before()).expect("the log begins with its base"),
        };
        let entries = self.log.read(first, end, (VSR_ENTRIES_MAX, VSR_ENTRIES_BYTES_MAX), cx.table);
        invariant!(entries.is_empty() || before.op < end, "entries follow the position before");
        let (view, commit) = (self.head.view, self.commit.min(end));
        let message =
            Message::NewState { nonce, asked, view, is_whole, before, entries, commit, end };
        // What is committed rests on a majority. What is not is of a proposal, which promises
        // nothing, or of a log that was voted for and durable then.
        cx.send(from.node, message, self.as_durable_as_its_epoch());
    }

    /// Entries have come.
    pub(crate) fn on_new_state(
        &mut self,
        from: Incarnation,
        told: NewStateHead,
        entries: Vec<Entry>,
        cx: &mut Context<'_>,
    ) {
        let is_asked = |asked: &EntriesRequest| {
            let is_answer = asked.nonce == told.nonce || mutant!("answers_outlive_a_start");
            asked.source == from.node && is_answer
        };
        if self.asked.take_if(|asked| is_asked(asked)).is_none() {
            return;
        }
        if self.holds_what_was_lost(told.view, told.commit) {
            self.start_over(cx);
            return self.ask(from.node, cx);
        }
        if self.install.is_some() {
            return self.install_from(from.node, cx);
        }
        let begins_later = told.before.op.next() > told.asked;
        if begins_later && (!self.log.has(told.before) || mutant!("copies_what_it_has")) {
            // A majority without this node has what the source's log has let go of: this node has
            // never had the last of that. So its state may be dropped for a copy of another's.
            return self.install_from(from.node, cx);
        }
        let staged = self.stage.as_ref().filter(|stage| {
            stage.source == from.node && stage.last(&self.log) == Some(told.before)
        });
        let is_next = staged.is_some();
        if !is_next {
            self.stage = None;
            if !self.log.has(told.before) {
                return self.on_mismatch(from.node, &told, cx);
            }
        }
        if !is_next && !self.are_of_epoch(&entries) {
            return cx.out.push(Action::Refuse("a command is of no epoch that has not begun"));
        }
        if !is_next && !self.agrees(&told, &entries) {
            return self.on_disagreement(from.node, &told, cx);
        }
        invariant!(self.install.is_none(), "entries follow a copy");
        let epoch = self.epoch();
        let (op, rest) = if is_next {
            (told.before.op, entries)
        } else {
            self.take_committed(&told, entries, cx)
        };
        // If the epoch has ended with what has come, this replica is in another view now.
        if self.epoch() == epoch && told.is_whole && told.view == self.head.view {
            self.take_whole(from.node, op, rest, told.end, cx);
        }
        invariant!(self.commit <= self.log.end(), "what is committed is in the log");
        self.ask_on(from.node, &told, cx);
    }

    /// The logs differ at the position before what was asked for: what is committed is equal.
    fn on_mismatch(&mut self, source: NodeId, told: &NewStateHead, cx: &mut Context<'_>) {
        probe!("vsr/logs_differ");
        invariant!(self.commit <= self.log.end(), "what is committed is in the log");
        if told.before.op > self.commit {
            return self.ask_from(source, self.commit.next(), cx);
        }
        // Both were committed, and one was lost with its epoch.
        let is_lost = self.log.view_at(told.before.op).is_some() && told.view.epoch > self.epoch();
        if is_lost && !mutant!("lost_log_stays") {
            self.start_over(cx);
            self.ask(source, cx);
            invariant!(self.commit == Op(0), "what was lost is dropped");
        }
    }

    /// Whether commands before the end of this epoch are of no later one. The log is equal up to
    /// the position before.
    fn are_of_epoch(&self, entries: &[Entry]) -> bool {
        let epoch = self.epoch();
        let mut of_epoch = entries.iter().take_while(|entry| !self.ends_epoch(entry));
        self.closing().is_some() || of_epoch.all(|entry| entry.view.epoch <= epoch)
    }

    /// Whether what has come is equal to what is committed here. The log is equal up to the
    /// position before.
    fn agrees(&self, told: &NewStateHead, entries: &[Entry]) -> bool {
        let known = self.commit.since(told.before.op) as usize;
        let places = (told.before.op.0 + 1..).map(Op);
        let mut both = entries.iter().take(known).zip(places);
        both.all(|(entry, op)| self.log.has(Position { op, view: entry.view }))
    }

    /// Both are committed, and differ: what is here was lost with its epoch, or the other one is no
    /// correct peer.
    fn on_disagreement(&mut self, source: NodeId, told: &NewStateHead, cx: &mut Context<'_>) {
        if told.view.epoch <= self.epoch() {
            return cx.out.push(Action::Refuse("what is committed is equal everywhere"));
        }
        self.start_over(cx);
        self.ask(source, cx);
        invariant!(self.commit == Op(0), "what was lost is dropped");
        invariant!(self.status == Status::Learner, "who begins anew has no vote");
    }

    /// Takes over what is committed, up to the end of the epoch. The log is equal up to the
    /// position before. Answered is up to where it is equal now, and what follows there.
    fn take_committed(
        &mut self,
        told: &NewStateHead,
        entries: Vec<Entry>,
        cx: &mut Context<'_>,
    ) -> (Op, Vec<Entry>) {
        let mut op = told.before.op;
        let mut commit = self.commit.max(told.commit.min(op));
        let upto = told.commit.max(self.commit);
        let mut rest = entries.into_iter();
        let mut is_of_other_view = false;
        while op < upto && self.closing().is_none_or(|last| last > op) {
            let Some(entry) = rest.next() else { break };
            op = op.next();
            if op > self.commit && !self.log.has(Position { op, view: entry.view }) {
                // What conflicts with a committed entry was never committed, nor will it be.
                self.log.truncate(op.before(), cx.out);
                is_of_other_view |= entry.view != self.head.normal;
                self.log.append(entry, cx.out);
            }
            commit = commit.max(op);
        }
        if self.log.end() > self.head.end && is_of_other_view {
            // It is of another view than the log, but committed: it counts.
            self.head.end = self.log.end();
            self.save(cx);
        }
        self.keep_up(cx);
        self.commit_to(commit, cx);
        (op.max(self.commit), rest.collect())
    }

    /// What has come may be of a later view than this replica knew of: then that view has started,
    /// and the log that is here is not the one of an earlier view any more.
    pub(super) fn keep_up(&mut self, cx: &mut Context<'_>) {
        let view = self.log.last().view;
        if self.is_member() && view.epoch == self.epoch() && view > self.head.view {
            probe!("vsr/entries_of_a_later_view");
            self.raise(view, cx);
            self.has_started = true;
        }
    }

    /// Takes over what is not committed yet: `rest` follows `op`, up to where the logs are equal or
    /// staged; the source's log ends at `end`.
    fn take_whole(
        &mut self,
        source: NodeId,
        op: Op,
        rest: Vec<Entry>,
        end: Op,
        cx: &mut Context<'_>,
    ) {
        let is_recovered = self.recovery.source == Some(source);
        match self.status {
            Status::Normal if self.primary.is_none() => {
                // Within a view logs only grow.
                let known = self.log.end().since(op) as usize;
                if !self.may_append(rest.get(known..).unwrap_or_default()) {
                    return cx.out.push(Action::Refuse("an entry is not of its log's view"));
                }
                for entry in rest.into_iter().skip(known) {
                    self.append(entry, cx);
                }
                self.owes_ack = true;
            }
            Status::ViewChange if self.may_enter_with(source) => {
                let (op, rest, end) = self.without_its_end(op, rest, end);
                self.stage_rest(source, op, rest, end, cx);
            }
            Status::Recovering if is_recovered => self.stage_rest(source, op, rest, end, cx),
            _ => {}
        }
    }

    /// Whether nothing of this replica's epoch can follow an entry.
    fn ends_epoch(&self, entry: &Entry) -> bool {
        entry.new_members().is_some() && entry.view.epoch >= self.epoch()
    }

    /// What of the chosen log counts: `rest` follows `op`, up to where it is here already; it ends
    /// at `end`.
    fn without_its_end(&self, op: Op, mut rest: Vec<Entry>, end: Op) -> (Op, Vec<Entry>, Op) {
        // What is gathered follows what is equal, and was looked at before.
        let upto = if self.stage.is_some() { op } else { self.without_end(op) };
        if upto < op {
            return (upto, Vec::new(), upto);
        }
        let last = rest.iter().position(|entry| self.ends_epoch(entry));
        match last.filter(|_| self.election.is_earlier) {
            Some(count) => {
                rest.truncate(count);
                let end = Op(op.0 + count as u64);
                (op, rest, end)
            }
            None => (op, rest, end),
        }
    }

    /// Keeps entries until the log is whole.
    fn stage_rest(
        &mut self,
        source: NodeId,
        matched: Op,
        rest: Vec<Entry>,
        end: Op,
        cx: &mut Context<'_>,
    ) {
        if !self.may_gather(matched, &rest) {
            self.stage = None;
            return cx.out.push(Action::Refuse("nothing follows the end of an epoch, or its view"));
        }
        let stage =
            self.stage.get_or_insert_with(|| Stage { source, matched, entries: Vec::new() });
        stage.entries.extend(rest);
        if stage.end() < end {
            return;
        }
        let Stage { matched, entries, .. } = self.stage.take().expect("it was just filled");
        self.enter(matched, entries, cx);
    }

    /// Whether entries can follow those that are gathered, in the log of the view that has begun.
    fn may_gather(&self, matched: Op, rest: &[Entry]) -> bool {
        let ends = |entry: &Entry| self.ends_epoch(entry);
        let has_ended = match &self.stage {
            Some(Stage { entries, .. }) if !entries.is_empty() => entries.last().is_some_and(ends),
            _ => self.closing().is_some_and(|last| last <= matched),
        };
        let (last, before) = rest.split_last().map_or((None, rest), |(one, all)| (Some(one), all));
        let is_of_view = last.is_none_or(|entry| entry.view <= self.head.view);
        let follows = has_ended && !rest.is_empty();
        (is_of_view && !follows && !before.iter().any(ends)) || mutant!("appends_what_comes")
    }

    /// Goes on with a transfer that has not ended.
    fn ask_on(&mut self, source: NodeId, told: &NewStateHead, cx: &mut Context<'_>) {
        if self.stage.is_some() || self.log.end() < told.end {
            let is_later = told.view.epoch > self.epoch();
            if is_later { self.ask(source, cx) } else { self.ask_further(source, cx) }
        } else if self.status == Status::Learner {
            self.tell_learned(source, cx);
        }
    }
}
