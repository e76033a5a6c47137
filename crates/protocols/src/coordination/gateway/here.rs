//! Reads that a host answers by itself, where the keyspace is set to `reads=session`: what
//! ZooKeeper promises of them.
//!
//! What a session reads is looked up in what the replica here has executed, so it may be older than
//! what others know, and is never anything that was not committed. Each session has its order:
//!
//! - What it has asked before is answered, also by the primary: `sync` is, and whatever a session
//!   has moved here with was executed before the command that has moved it.
//! - Nothing is older than what any client of this host was told.
//! - Nothing is older than [`SURE`]. The primary says all the time how far it had applied the log
//!   after this host had said that it is there. Where the replica here has not applied as much, or
//!   this host had said so longer ago, it answers nothing by itself: that a replica is left behind,
//!   or a host halted or cut off, shows for so long at most.
//! - Who follows something was told of all that the answer may show. The primary tells of changes
//!   in their order, as for who reads there, so what the replica has executed and the primary has
//!   not told yet is not shown to followers.
//! - What an answer begins to follow is told from there on: the primary tells this host of changes
//!   as long as somebody here follows something. So a host's first watch begins at the primary.
//!
//! What cannot be answered so is asked of the primary, whose answers are linearizable: where no
//! replica is here, or it lags, copies the tree, recovers, or changes its view. Who has no session
//! has no order either, and is answered by the primary; so are checks of versions, which clients
//! fence themselves with: ZooKeeper asks its leader for each `multi`, also for one that changes
//! nothing.

use super::tick::SURE;
use super::{Asking, Then};
use crate::coordination::hosted::Hosted;
use crate::coordination::tree::{self, Answer, Change, Question, Tree, whole};
use crate::coordination::{Context, Coordination};
use crate::groups::is_ready;
use crate::smr::Replicated;
use crate::vsr::Op;
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::probe;
use quorate_kernel::time::Time;
use quorate_kernel::tree::{Failure, Item, TreeReply, Zxid};

/// About the most bytes of answers that one turn looks up here: others wait meanwhile.
const TURN_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What a host has answered by itself.
#[derive(Debug, Default)]
pub struct Here {
    /// The newest change that an answer may have shown.
    shown: Zxid,
    /// How far the primary had applied the log when this host had said that it is there, and when
    /// it had.
    applied: Option<(Time, Op)>,
    /// How much work this turn's answers were, in bytes.
    bytes: usize,
    /// How many there were in this start.
    count: u64,
}

impl Here {
    pub(super) fn turn_end(&mut self) {
        self.bytes = 0;
    }

    /// Entries of another life count from here on.
    pub(super) fn begin_life(&mut self) {
        self.applied = None;
    }
}

impl Coordination {
    /// The primary says how far it has applied the log: in which life, after which touch, up to
    /// which entry.
    pub(in crate::coordination) fn on_applied(
        &mut self,
        from: Incarnation,
        (life, touch, upto): (u64, u64, Op),
        cx: &mut Context<'_>,
    ) {
        invariant!(self.gateway.stream.is_in_order(), "what is answered was asked");
        let stream = &self.gateway.stream;
        let is_heard = stream.is_asked(from.node) && stream.life() == Some(life);
        let Some(sent_at) = stream.sent(touch).filter(|_| is_heard) else { return };
        let known = self.gateway.here.applied.map_or(Time(0), |(at, _)| at);
        if sent_at >= known {
            self.gateway.here.applied = Some((sent_at, upto));
        }
        invariant!(sent_at <= cx.now, "what is confirmed was sent");
    }

    /// What the replica here answers to a session's question behind a command of this gateway, if
    /// it can be told.
    pub(super) fn found_here(
        &mut self,
        question: &Question,
        after: u64,
        asking: &Asking,
        now: Time,
    ) -> Option<Answer> {
        if !self.settings.session_reads || !is_read(question) {
            return None;
        }
        let client = asking.client?;
        let hosted = self.settled()?;
        let machine = &hosted.machine;
        let is_next = self.is_next_of(client, after);
        let is_new = self.is_new_enough(hosted, now);
        let begins = !matches!(asking.then, Then::Nothing);
        let is_told = self.was_told(client, begins, machine);
        let has_room = self.gateway.here.bytes < TURN_BYTES_MAX;
        if !is_next || !is_new || !is_told || !has_room {
            probe!("coordination/reads_there");
            return None;
        }
        let answer = machine.look(|on| tree::ask(question, on));
        let Answer::Told(TreeReply { zxid, told }) = &answer else { return None };
        let is_over = matches!(told, Err(Failure::SessionExpired | Failure::SessionMoved));
        // While the tree is copied sessions come last, so this alone shows nothing of it mostly.
        let shows_all = mutant!("session_read_while_copying") || mutant!("session_read_ends_it");
        if is_over && !shows_all {
            // Its client is told so by the change that has done it.
            return None;
        }
        probe!("coordination/reads_here");
        if let Some(connection) = self.gateway.connections.get_mut(&client) {
            connection.shown = connection.shown.max(*zxid);
        }
        let here = &mut self.gateway.here;
        here.shown = here.shown.max(*zxid);
        here.bytes += question.bytes() + answer.work();
        here.count += 1;
        Some(answer)
    }

    /// The group here, if it has a tree that some entry of the log has left, in the life in which
    /// this gateway counts.
    fn settled(&self) -> Option<&Hosted> {
        let hosted = self.hosted.as_ref()?;
        let is_settled = is_ready(&hosted.replica) || mutant!("session_read_while_copying");
        let is_of_life = self.gateway.stream.life() == Some(hosted.life());
        (is_settled && is_of_life).then_some(hosted)
    }

    /// Whether the tree here is no older than what clients here were told, nor than what the
    /// primary had applied lately.
    fn is_new_enough(&self, hosted: &Hosted, now: Time) -> bool {
        let shown = self.gateway.zxid.max(self.gateway.here.shown);
        let goes_back = whole(hosted.machine.objects()).zxid < shown;
        let Some((sent_at, applied)) = self.gateway.here.applied else { return false };
        let is_behind = hosted.replica.applied() < applied;
        let heard = if mutant!("session_read_relies_on_words") {
            self.gateway.stream.confirmed
        } else {
            sent_at
        };
        let is_unsure = now - heard >= SURE;
        (!goes_back || mutant!("session_read_goes_back"))
            && (!is_behind || mutant!("session_read_left_behind"))
            && (!is_unsure || mutant!("session_read_unsure"))
    }

    /// Whether all is answered that a session has asked before.
    fn is_next_of(&self, client: Ticket, after: u64) -> bool {
        let connection = self.gateway.connections.get(&client);
        let overtakes = connection.is_none_or(|it| !it.questions.is_empty());
        let is_done = self.gateway.stream.is_answered(after);
        (!overtakes || mutant!("session_read_overtakes"))
            && (is_done || mutant!("session_read_behind_own_write"))
    }

    /// Whether a client was told of all that it follows up to where the tree here is, and would be
    /// told of what comes behind.
    fn was_told(&self, client: Ticket, begins: bool, machine: &Replicated<Tree>) -> bool {
        let watches = &self.gateway.watches;
        let is_heard = !watches.is_empty() || mutant!("session_watch_unheard");
        if begins && !is_heard {
            return false;
        }
        if !begins && !watches.follows(client) {
            return true;
        }
        let is_of_node = |change: &Change| !matches!(change, Change::Session { .. });
        let behind = machine.changes().after(self.gateway.seen);
        let is_told = behind.is_some_and(|mut it| !it.any(|(_, change)| is_of_node(change)));
        is_told || mutant!("session_read_before_event")
    }

    /// How many reads this host has answered by itself in this start.
    pub(in crate::coordination) fn answered_here(&self) -> u64 {
        self.gateway.here.count
    }
}

/// Whether it asks for what nodes have, and no more.
fn is_read(question: &Question) -> bool {
    let is_check = |item: &Item| matches!(item, Item::Check { .. });
    match question {
        Question::One(_, item) => !is_check(item),
        Question::Each(_, items) => !items.iter().any(is_check),
        _ => mutant!("session_read_checks") && matches!(question, Question::All(..)),
    }
}
