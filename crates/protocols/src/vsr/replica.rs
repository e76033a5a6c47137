//! The replica: one match on messages, and what a lane calls.

use super::action::{Action, Context, Event, Proposed, Refused};
use super::keys;
use super::message::Message;
use super::number::ViewNumber;
use super::state::{Replica, Status, Vote};
use super::timer::TICK;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::limits::{VSR_IN_FLIGHT_MAX, VSR_PAGE_BYTES_MAX};
use quorate_kernel::mutant;
use quorate_kernel::storage::Class;
use quorate_kernel::time::Time;

/// The most pages that a tick stores: others wait meanwhile.
const STORED_PAGES_MAX: u64 = 32;
/// How many bytes may be in memory alone until they are stored however few entries they are of.
const UNSTORED_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Of more, so many ticks store about as much as there was.
const UNSTORED_TICKS: usize = 8;
/// The most that one tick stores for that: others wait meanwhile.
const UNSTORED_SHARE_MAX: usize = 8 * 1024 * 1024;

impl Replica {
    /// Notes that a member has what it has acknowledged, if its message says so.
    fn note_whole(&mut self, from: NodeId, message: &Message, now: Time) {
        if message.is_of_whole() && self.head.configuration.contains(from) {
            self.pulse.heard.insert(from, now);
            if !mutant!("keeps_what_the_whole_have_told") {
                self.recovery.without_log.remove(&from);
            }
        }
    }

    /// Takes a message of a peer, or of itself.
    pub fn on_message(&mut self, from: Incarnation, message: Message, cx: &mut Context<'_>) {
        if let Some(why) = self.refuses(&message) {
            return cx.out.push(Action::Refuse(why));
        }
        if !self.can_execute(&message, cx) {
            return cx.out.push(Action::Refuse("the machine can read every command of the log"));
        }
        self.note_whole(from.node, &message, cx.now);
        match message {
            Message::Prepare { view, from: first, entries, commit } => {
                self.on_prepare(from, view, first, entries, commit, cx);
            }
            Message::PrepareOk { view, end } => self.on_prepare_ok(from, view, end, cx),
            Message::Beat { view, commit, end, round, held } => {
                self.on_beat(from, view, (commit, end, held), round, cx);
            }
            Message::BeatOk { view, round } => self.on_beat_ok(from, view, round, cx),
            Message::StartViewChange { at, view } => {
                self.on_start_view_change(from, at, view, cx);
            }
            Message::DoViewChange { view, normal, end, commit, lost } => {
                let vote = Vote { normal, end, commit, lost, lacks_end: false };
                self.on_do_view_change(from, view, vote, cx);
            }
            Message::DoViewChangeWithoutEnd { view, normal, end, commit, lost } => {
                let vote = Vote { normal, end, commit, lost: Some(lost), lacks_end: true };
                self.on_do_view_change(from, view, vote, cx);
            }
            Message::StartView { view, last, commit } => {
                self.on_start_view(from, view, last, commit, cx);
            }
            Message::GetState { nonce, view, from: first, .. } => {
                self.on_get_state(from, nonce, (view, first), cx);
            }
            Message::NewState { nonce, asked, view, is_whole, before, entries, commit, end } => {
                let told = super::log::transfer::NewStateHead {
                    nonce,
                    asked,
                    view,
                    is_whole,
                    before,
                    commit,
                    end,
                };
                self.on_new_state(from, told, entries, cx);
            }
            Message::GetCheckpoint { nonce, at, page, cursor, .. } => {
                self.on_get_checkpoint(from, (nonce, at), (page, cursor.into()), cx);
            }
            Message::Checkpoint { nonce, at, configuration, applied, page, next, body } => {
                let page = (nonce, page);
                let piece =
                    super::log::checkpoint::Piece { at, configuration, applied, page, next };
                self.on_checkpoint(from, piece, &body, cx);
            }
            Message::Recovery { nonce, view } => self.on_recovery(from, nonce, view, cx),
            Message::RecoveryResponse { nonce, view, standing } => {
                self.on_recovery_response(from, nonce, view, standing, cx);
            }
            Message::StartEpoch { epoch } => self.on_start_epoch(from, epoch, cx),
            Message::EpochStarted { epoch } => self.on_epoch_started(from, epoch, cx),
            Message::Learned { end } => self.on_learned(from, end, cx),
            Message::EpochWithoutLog { nonce, configuration } => {
                self.on_epoch_without_log(from, nonce, configuration, cx);
            }
        }
    }

    /// Whether the machine can read what a message brings for the log.
    fn can_execute(&self, message: &Message, cx: &mut Context<'_>) -> bool {
        let (Message::Prepare { entries, .. } | Message::NewState { entries, .. }) = message else {
            return true;
        };
        let mut commands = entries.iter().filter(|entry| entry.new_members().is_none());
        commands.all(|entry| cx.machine.is_command(entry.bytes()))
            || mutant!("takes_what_nobody_reads")
    }

    /// Puts a command into the log; it is sent when the turn ends. The machine executes it once it
    /// is committed, unless the replica is deposed before: then nobody here knows.
    ///
    /// # Errors
    /// Nothing was changed.
    pub fn propose(&mut self, command: Bytes, cx: &mut Context<'_>) -> Proposed {
        self.may_propose()?;
        let bytes = command.len();
        let entry = super::Entry::command(self.head.view, command);
        self.append(entry, cx);
        let op = self.log.end();
        if let Some(primary) = &mut self.primary {
            primary.propose(op, bytes);
        }
        Ok(op)
    }

    /// Whether a proposal would be taken now.
    ///
    /// # Errors
    /// It would not.
    pub fn may_propose(&self) -> Result<(), Refused> {
        let primary = self.primary.as_ref().ok_or(Refused::NotPrimary)?;
        if !primary.is_serving || !self.is_settled() {
            return Err(Refused::NotReady);
        }
        if self.closing().is_some() {
            return Err(Refused::Closing);
        }
        let in_flight = self.log.end().since(self.commit);
        let has_room = primary.in_flight_bytes < self.settings.in_flight_bytes
            || mutant!("in_flight_without_bytes");
        if in_flight >= VSR_IN_FLIGHT_MAX || !has_room {
            return Err(Refused::Full);
        }
        Ok(())
    }

    /// The turn ends: what it brought is sent, in one message to each. To be called as often as
    /// [`quorate_kernel::news::News::TurnEnd`] is told.
    pub fn turn_end(&mut self, cx: &mut Context<'_>) {
        self.log.evict();
        self.send_prepares(cx);
        self.send_round(cx);
        self.acknowledge(cx);
        self.check();
    }

    /// Time has passed: called every [`TICK`].
    pub fn tick(&mut self, cx: &mut Context<'_>) {
        self.pulse.tick(cx.now);
        match self.status {
            Status::Normal if self.primary.is_some() => self.tick_primary(cx),
            Status::Normal | Status::ViewChange => self.tick_member(cx),
            Status::Recovering => self.tick_recovering(cx),
            Status::Learner => self.tick_learner(cx),
        }
        self.tick_install(cx);
        self.maintain(cx);
        self.check();
    }

    /// Which members have left the cluster for good, as far as this node knows. Who has left never
    /// comes back.
    pub fn note_left(&mut self, has_left: impl Fn(NodeId) -> bool) {
        let members = self.head.configuration.members.iter().copied();
        self.left = members.filter(|node| *node != self.me && has_left(*node)).collect();
    }

    /// Which members the cluster's membership has removed, as far as this node knows. They may come
    /// back. Noted only where groups go by that, to measure one crash: a member that is started
    /// again does not know who was removed before, nor is one doubted that was away too shortly to
    /// be removed, and has forgotten; and where all were removed views change with every tick.
    pub fn note_removed(&mut self, is_removed: impl Fn(NodeId) -> bool) {
        let members = self.head.configuration.members.iter().copied();
        self.removed = members.filter(|node| is_removed(*node)).collect();
    }

    /// Goes on executing, after [`Action::Resume`].
    pub fn resume(&mut self, cx: &mut Context<'_>) {
        if !self.go_on_installing(cx) {
            self.execute(cx);
        }
    }

    /// Has the machine write down what it has not, and the log let go of what is stored.
    fn maintain(&mut self, cx: &mut Context<'_>) {
        if self.install.is_some() {
            return;
        }
        let (applied, kept) = (self.applied, self.settings.kept.entries);
        let (machine, mut store) = cx.machine();
        let waiting = applied.since(machine.stored());
        if let Some(bytes_max) = stored_bytes((waiting, kept), machine.unstored()) {
            machine.store(applied, bytes_max, &mut store);
        }
        self.trim(cx);
    }

    /// Appends an entry. Where data may be lost, the head remembers that the members change.
    pub(super) fn append(&mut self, entry: super::Entry, cx: &mut Context<'_>) {
        let changes_members = entry.new_members().is_some();
        self.log.append(entry, cx.out);
        if changes_members && self.settings.may_forget() {
            self.save(cx);
        }
    }

    /// Writes the head: it is durable before anything that rests on it leaves.
    pub(super) fn save(&mut self, cx: &mut Context<'_>) {
        self.head.base = self.log.base();
        let is_lost = self.head.lost.is_some() && !mutant!("forgets_a_lost_end");
        let is_unknown = (self.head.has_forgotten || is_lost) && self.head.is_closing;
        self.head.is_closing = self.may_be_followed(cx) || is_unknown;
        let (key, value) = (keys::head(self.group), Some(self.head.stored()));
        cx.out.push(Action::Write { class: Class::State, key, value });
    }

    /// Whether the log has an entry by which others may begin the next epoch. One that leaves the
    /// members as they are, as after a loss, is none: a majority of them would have begun it, and
    /// each keeps that, whatever it loses. So none has if all are heard that are in this epoch.
    fn may_be_followed(&self, cx: &Context<'_>) -> bool {
        let Some(end) = self.closing() else { return false };
        if end <= self.log.base().op {
            // A copy has taken its place: the next epoch begins here, too, in this very input.
            return true;
        }
        let entry = self.log.get(end, cx.table);
        let is_new = entry.new_members() != Some(&self.head.configuration.members[..]);
        is_new || mutant!("same_members_may_have_gone_on")
    }

    /// Takes part in a later view, whose log is not here yet. The log that is here stays as it is,
    /// and of the view that it is of.
    pub(super) fn raise(&mut self, view: ViewNumber, cx: &mut Context<'_>) {
        debug_assert!(view > self.head.view && view.epoch == self.epoch());
        self.step_down(cx);
        self.head.view = view;
        if !self.head.has_forgotten {
            self.status = Status::ViewChange;
        }
        self.election = super::state::Election::default();
        self.stage = None;
        self.asked = None;
        self.owes_ack = false;
        self.has_started = false;
        self.pulse.begin(cx.now);
        self.save(cx);
    }

    /// This node leads no longer.
    pub(super) fn step_down(&mut self, cx: &mut Context<'_>) {
        self.reads.clear();
        if self.primary.take().is_some() {
            cx.tell(Event::Deposed);
        }
    }

    /// Whether a message of the primary of a view that has started is to be acted on: this replica
    /// is in that view, and has its log. If not, what is missing is asked for.
    pub(super) fn follows(
        &mut self,
        from: Incarnation,
        view: ViewNumber,
        cx: &mut Context<'_>,
    ) -> bool {
        if view.epoch > self.epoch() {
            self.ask(from.node, cx);
            return false;
        }
        if self.is_behind(from.node, view, cx) || !self.is_member() {
            return false;
        }
        if self.primary_of(view) != Some(from.node) {
            cx.out.push(Action::Refuse("a view's primary is another member"));
            return false;
        }
        if self.status == Status::Recovering {
            return self.hears_while_recovering(from.node, view, cx);
        }
        if view > self.head.view {
            self.raise(view, cx);
        }
        self.hear_started(cx);
        if self.status == Status::ViewChange {
            self.ask(from.node, cx);
        }
        self.status == Status::Normal
    }

    /// Whether a message is of an earlier view than this replica is in. Who is in an earlier epoch
    /// is told that another has begun.
    pub(super) fn is_behind(&self, from: NodeId, view: ViewNumber, cx: &mut Context<'_>) -> bool {
        if view.epoch < self.epoch() && from != self.me {
            self.tell_epoch(from, cx);
        }
        view < self.head.view
    }

    /// Tells whoever is in an earlier epoch that another has begun. The entry that says so is
    /// committed, so this rests on nothing that is stored here, but for one that a loss has made.
    pub(super) fn tell_epoch(&self, to: NodeId, cx: &mut Context<'_>) {
        let message = Message::StartEpoch { epoch: self.epoch() };
        cx.send(to, message, self.as_durable_as_its_epoch());
    }
}

/// About how many bytes a tick stores where so many entries, and so many bytes, wait for it; none
/// while these are few. More where more wait, so that under load neither the log nor what is in
/// memory alone grows for ever: of bytes a share, so that no more wait than some ticks bring.
fn stored_bytes((waiting, kept): (u64, u64), unstored: usize) -> Option<usize> {
    let is_large = unstored > UNSTORED_BYTES_MAX && !mutant!("stores_by_entries_alone");
    if waiting <= kept && !is_large {
        return None;
    }
    let pages = waiting.checked_div(kept).unwrap_or(waiting);
    let pages = if mutant!("stores_at_one_pace") { 1 } else { pages.clamp(1, STORED_PAGES_MAX) };
    let share = if is_large { (unstored / UNSTORED_TICKS).min(UNSTORED_SHARE_MAX) } else { 0 };
    Some(share.max(pages as usize * VSR_PAGE_BYTES_MAX))
}

const _: () = assert!(TICK.0 > 0, "time passes between two ticks");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_stored_where_more_waits() {
        let pages =
            |waiting, kept| stored_bytes((waiting, kept), 0).unwrap_or(0) / VSR_PAGE_BYTES_MAX;
        assert_eq!([pages(1025, 1024), pages(2047, 1024), pages(5 * 1024, 1024)], [1, 1, 5]);
        let most = STORED_PAGES_MAX as usize;
        assert_eq!([pages(u64::MAX, 1024), pages(3, 0), pages(1024, 1024)], [most, 3, 0]);
        // Few entries may be of many bytes.
        let large = 2 * UNSTORED_BYTES_MAX;
        assert_eq!(stored_bytes((9, 1024), large), Some(large / UNSTORED_TICKS));
        assert_eq!(stored_bytes((9, 1024), 99 * large), Some(UNSTORED_SHARE_MAX));
        assert_eq!(stored_bytes((9, 1024), UNSTORED_BYTES_MAX), None);
    }
}
