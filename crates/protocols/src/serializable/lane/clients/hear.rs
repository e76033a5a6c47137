//! Operations of clients go on: what groups answer.

use super::begin::refusal;
use super::in_hand::{Doing, Phase};
use crate::serializable::lane::places::place;
use crate::serializable::lane::{Context, Serializable};
use crate::serializable::rules::READ_BYTES_MAX;
use crate::serializable::{self, Cause, Raw, Refused, Reply, TxId};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, Incarnation};
use quorate_kernel::invariant;
use quorate_kernel::mutant;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::probe;

/// How often what was only read may have changed before it is committed like what writes.
const CHECKS_MAX: u32 = 3;
/// It may have been done, or not.
const OUTCOME_UNKNOWN: Outcome = Outcome::Refused(Refusal::OutcomeUnknown);

impl Serializable {
    /// A group answers.
    pub(crate) fn on_told(
        &mut self,
        from: Incarnation,
        (question, group): (u64, GroupId),
        reply: Reply,
        cx: &mut Context<'_>,
    ) {
        let Some(doing) = self.clients.get_mut(question) else { return };
        // Questions are counted, so anybody can guess one.
        if !doing.has_asked(group, from.node) {
            return cx.fx.refuse("who was asked answers");
        }
        let is_of_any = doing.asks_any();
        if is_of_any && matches!(reply, Reply::Refused(_)) {
            return self.read_strictly(question, cx);
        }
        if !is_of_any && !matches!(reply, Reply::Refused(Refused::NotPrimary | Refused::NotReady)) {
            self.routes.answers(group, from.node, cx.now);
        }
        match (reply, &mut doing.phase) {
            (Reply::Refused(refused), _) => {
                self.on_refused(from, (question, group), &refused, cx);
            }
            (Reply::Items(items), Phase::Reading(waits)) => {
                let Some(keys) = waits.get(&group) else { return };
                if keys.len() != items.len() {
                    return cx.fx.refuse("each key that was asked for is answered");
                }
                let keys = waits.remove(&group).unwrap_or_default();
                invariant!(!keys.is_empty(), "a group is asked for some key");
                let is_done = waits.is_empty();
                doing.sheet.got.extend(keys.into_iter().zip(items));
                // Each group bounds what it tells; there are many groups.
                let bytes = doing.sheet.got_bytes();
                if bytes > READ_BYTES_MAX {
                    let Some(mut doing) = self.clients.remove(question) else { return };
                    return doing.refuse(reads_too_much(bytes as u64, READ_BYTES_MAX as u64), cx);
                }
                if is_done && let Some(doing) = self.clients.remove(question) {
                    self.has_read(doing, cx);
                }
            }
            (Reply::Current, Phase::Checking(waits)) => {
                waits.remove(&group);
                if waits.is_empty()
                    && let Some(doing) = self.clients.remove(question)
                {
                    self.has_checked(doing, cx);
                }
            }
            (Reply::Changed { .. }, Phase::Checking(waits)) if waits.contains_key(&group) => {
                if let Some(doing) = self.clients.remove(question) {
                    self.has_changed(doing, cx);
                }
            }
            (Reply::Outcome { tx, outcome }, Phase::Committing { tx: its, shares }) => {
                invariant!(!shares.is_empty(), "a transaction has a share");
                let is_told = shares[0].0 == group;
                if tx == *its {
                    self.on_outcome(question, (tx, is_told), outcome, cx);
                }
            }
            (Reply::Outcome { tx, outcome }, Phase::Asking(_) | Phase::Recalling(_)) => {
                self.on_end((question, group), tx, &outcome, cx);
            }
            // What answers another question than the one that is open is late.
            _ => {}
        }
    }

    /// A replica did not answer, whatever it is: primaries know better. They are asked anew, as
    /// what was asked of replicas may still be answered.
    pub(super) fn read_strictly(&mut self, question: u64, cx: &mut Context<'_>) {
        probe!("serializable/lane_reads_strictly");
        let Some(mut doing) = self.clients.remove(question) else { return };
        invariant!(doing.asks_any(), "it was asked of replicas");
        doing.reads_any = false;
        self.attempt(doing, cx);
    }

    /// A group tells how a transaction ended of which only that is asked.
    fn on_end(
        &mut self,
        (question, group): (u64, GroupId),
        tx: TxId,
        outcome: &serializable::Outcome,
        cx: &mut Context<'_>,
    ) {
        let Some(doing) = self.clients.get(question) else { return };
        invariant!(doing.sheet.items().is_empty(), "who asks for an end does nothing else");
        let (token, is_recalled) = match &doing.phase {
            Phase::Asking(token) => (token, false),
            Phase::Recalling(recalled) => (&recalled.token, true),
            _ => return,
        };
        invariant!(doing.ticket.is_some() == is_recalled, "who was answered only asks");
        if tx != token.tx || token.coordinator != group {
            return;
        }
        if is_recalled {
            return self.recalled_by_group(question, outcome, cx);
        }
        if !matches!(outcome, serializable::Outcome::Running) {
            self.clients.ended.note(tx, outcome);
            self.clients.remove(question);
            self.clients.names.close(tx);
        }
    }

    /// A group did not take the question, now at least.
    fn on_refused(
        &mut self,
        from: Incarnation,
        (question, group): (u64, GroupId),
        refused: &Refused,
        cx: &mut Context<'_>,
    ) {
        invariant!(self.clients.len() > 0, "somebody has asked");
        invariant!(self.homes.knows(group), "a group that there is was asked");
        match refused {
            Refused::NotPrimary | Refused::NotReady => {
                // If it knows better it has said so, and whoever leads was asked already.
                self.routes.is_silent(group, from.node);
                self.ask_other(question, cx);
            }
            // It is asked again in a while. Who counts ahead of a group is taken when time has come
            // there, or less is remembered; and a key that was held is free, or its holder is
            // known, once the group that decides is heard of again.
            Refused::Busy | Refused::Groups | Refused::Counter { .. } | Refused::Held { .. } => {}
            Refused::Moved => self.place_again(question, cx),
            Refused::Moving => self.ask_other(question, cx),
            Refused::Empty
            | Refused::Reused
            | Refused::TooManyKeys { .. }
            | Refused::KeyLength { .. }
            | Refused::TooLarge { .. } => {
                // Shares were checked here, so no correct primary says it of one.
                let Some(doing) = self.clients.get_mut(question) else { return };
                let asks_for_end = matches!(doing.phase, Phase::Asking(_) | Phase::Recalling(_));
                if asks_for_end || matches!(doing.phase, Phase::Committing { .. }) {
                    return cx.fx.refuse("a share within the limits is taken");
                }
                let has_read_only = matches!(
                    doing.phase,
                    Phase::Reading(_) | Phase::Checking(_) | Phase::Listing { .. }
                );
                invariant!(has_read_only, "nothing was done yet");
                let is_awaited = doing.ticket.is_some();
                invariant!(is_awaited, "who was answered only asks how it ended");
                if let Some(mut doing) = self.clients.remove(question) {
                    // Nothing was done.
                    doing.refuse(refusal(refused), cx);
                }
            }
        }
    }

    /// What was read is current no more: it is read again, and after some times committed then like
    /// what writes.
    fn has_changed(&mut self, mut doing: Doing, cx: &mut Context<'_>) {
        probe!("serializable/lane_read_again");
        self.counters.conflicts += 1;
        doing.conflicts += 1;
        doing.commits_reads |= doing.conflicts >= CHECKS_MAX;
        if doing.commits_reads && mutant!("lane_commits_what_has_changed") {
            return self.commit(doing, cx);
        }
        // What was read is not current, so nothing that rests on it commits.
        self.attempt(doing, cx);
    }

    /// A group tells how a transaction ended; the coordinator alone knows what all of them answer.
    fn on_outcome(
        &mut self,
        question: u64,
        (tx, is_coordinator): (TxId, bool),
        outcome: serializable::Outcome,
        cx: &mut Context<'_>,
    ) {
        invariant!(self.clients.names.is_own(tx), "only what was named here is asked for");
        let is_abort = matches!(outcome, serializable::Outcome::Aborted(_));
        if is_abort && !is_coordinator && !mutant!("lane_any_group_aborts") {
            return cx.fx.refuse("the group that decides says that a transaction has failed");
        }
        // What only reads changes nothing however it ends: it is read again.
        let doing = self.clients.get(question);
        let changes = doing.is_some_and(|doing| doing.changes());
        let is_partly_done = doing.is_some_and(|doing| doing.is_partly_done);
        let cause = match outcome {
            serializable::Outcome::Committed(results) if is_coordinator => {
                return self.has_committed(question, tx, &results, cx);
            }
            // Others may have done their shares, or say so: then this one has lost what it knew.
            serializable::Outcome::Aborted(cause)
                if changes && (cause == Cause::Lost || is_partly_done) =>
            {
                return self.end(question, tx, OUTCOME_UNKNOWN, cx);
            }
            serializable::Outcome::Aborted(Cause::Lost) => Cause::Asked,
            serializable::Outcome::Aborted(Cause::Elsewhere) => {
                return cx.fx.refuse("the group that decides says why a transaction has failed");
            }
            serializable::Outcome::Aborted(cause) => cause,
            // The coordinator is heard later, or asked again.
            serializable::Outcome::Committed(_) => {
                if let Some(doing) = self.clients.get_mut(question) {
                    doing.is_partly_done = true;
                }
                return;
            }
            serializable::Outcome::Running => return,
            serializable::Outcome::Forgotten { lowest } => {
                // What is named from now on is taken there.
                self.clients.names.count_from(tx.client, lowest);
                match is_coordinator {
                    true if !changes || mutant!("lane_forgotten_is_failed") => Cause::Asked,
                    true => {
                        return self.end(question, tx, OUTCOME_UNKNOWN, cx);
                    }
                    // Its vote will be missed: the coordinator says so.
                    false => return,
                }
            }
        };
        let Some(mut doing) = self.clients.remove(question) else { return };
        let is_committing = matches!(doing.phase, Phase::Committing { .. });
        invariant!(is_committing, "only what commits has an outcome");
        self.clients.names.close(tx);
        match cause {
            Cause::Version { by, .. } => self.clients.names.saw(by),
            Cause::Act { .. } | Cause::TooLarge | Cause::ReadsTooMuch { .. } | Cause::Exhausted => {
                return refuse_for_good(doing, &cause, cx);
            }
            Cause::Lost | Cause::Elsewhere => unreachable!("it was looked at before"),
            Cause::Timeout | Cause::Asked | Cause::Forgotten | Cause::Moved => {}
        }
        // It is known to have changed nothing: a new attempt cannot be done twice.
        probe!("serializable/lane_conflict");
        self.counters.conflicts += 1;
        doing.conflicts += 1;
        self.attempt(doing, cx);
    }

    fn has_committed(
        &mut self,
        question: u64,
        tx: TxId,
        results: &[(GroupId, serializable::Results)],
        cx: &mut Context<'_>,
    ) {
        let Some(doing) = self.clients.get_mut(question) else { return };
        let Phase::Committing { shares, .. } = &doing.phase else { return };
        // They may have moved since.
        let of = shares
            .iter()
            .flat_map(|(group, share)| share.acts.iter().map(|(key, _)| (key.clone(), *group)));
        let of: BTreeMap<Raw, GroupId> = of.collect();
        let asked = |key: &Raw| of.get(key).copied().unwrap_or_default();
        let outcome = doing.sheet.answer(results, asked);
        match outcome {
            Some(outcome) => self.end(question, tx, outcome, cx),
            None => cx.fx.refuse("each act of a transaction is answered"),
        }
    }

    /// It is known how it ended, and the client is told.
    fn end(&mut self, question: u64, tx: TxId, outcome: Outcome, cx: &mut Context<'_>) {
        let Some(doing) = self.clients.remove(question) else { return };
        self.clients.names.close(tx);
        if let Some(ticket) = doing.ticket {
            // The decision rests on a majority: nothing waits for this node's disk.
            cx.fx.answer_early(ticket, outcome);
        }
    }

    /// A group lists keys.
    pub(crate) fn on_listed(
        &mut self,
        from: Incarnation,
        (question, group): (u64, GroupId),
        keys: Vec<Raw>,
        next: Option<Raw>,
        cx: &mut Context<'_>,
    ) {
        let Some(doing) = self.clients.get_mut(question) else { return };
        if !doing.has_asked(group, from.node) {
            return cx.fx.refuse("who was asked answers");
        }
        self.routes.answers(group, from.node, cx.now);
        let Phase::Listing { group: asked, from, .. } = &doing.phase else { return };
        invariant!(self.homes.knows(*asked), "a group that there is is asked");
        let ascend = keys.windows(2).all(|pair| pair[0] < pair[1]);
        let has_begun = keys.iter().all(|key| key >= from);
        let goes_on =
            next.as_ref().is_none_or(|next| next > from && keys.iter().all(|it| it < next));
        let cursor = next.as_ref().and_then(|next| place::to_cursor(next, from, keys.last()));
        let listed: Option<Vec<_>> = keys.iter().map(place::of_client).collect();
        let (true, Some(keys)) = (*asked == group && ascend && goes_on && has_begun, listed) else {
            return cx.fx.refuse("a page has keys of its group, from where it was asked");
        };
        // A group says itself where its buckets end: what is known here of places may be of another
        // time.
        let next = cursor;
        let goes_on = next.as_ref().is_none_or(|next| place::from_cursor(next) > *from);
        invariant!(goes_on, "a listing goes on behind where it was");
        let Some(doing) = self.clients.remove(question) else { return };
        if let Some(ticket) = doing.ticket {
            // It tells what a majority has: nothing waits for this node's disk.
            cx.fx.answer_early(ticket, Outcome::Page { keys, next });
        }
    }
}
/// What the keys of an operation have is more than it may read.
fn reads_too_much(bytes: u64, bytes_max: u64) -> Refusal {
    let [length, limit] = [bytes, bytes_max].map(|it| usize::try_from(it).unwrap_or(usize::MAX));
    Refusal::TooLarge { what: "what the keys have now,", length, limit }
}

/// Tells a client that its transaction has changed nothing, and would not the next time.
fn refuse_for_good(mut doing: Doing, cause: &Cause, cx: &mut Context<'_>) {
    let refusal = match cause {
        // No group counts so far: a peer has said that a key had the last version of all.
        Cause::Exhausted => Refusal::Unsupported,
        Cause::ReadsTooMuch { bytes, bytes_max } => reads_too_much(*bytes, *bytes_max),
        _ => Refusal::TooLarge {
            what: "transaction",
            length: doing.sheet.items().iter().map(|item| item.bytes()).sum(),
            limit: crate::serializable::rules::BYTES_MAX,
        },
    };
    doing.refuse(refusal, cx);
}
