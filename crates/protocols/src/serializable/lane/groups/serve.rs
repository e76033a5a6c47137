//! What others ask of a group here, and what they are answered.
//!
//! Answers tell what a majority has: nothing of it waits for this node's own disk, so they leave at
//! once.

use super::hosted::Hosted;
use super::questions::PeerRequest;
use crate::serializable::lane::message::{LISTED_KEYS_MAX, Message};
use crate::serializable::lane::places::homes::Homes;
use crate::serializable::lane::places::place::{first_token, of_client};
use crate::serializable::lane::{Context, Serializable};
use crate::serializable::{Effect, State};
use crate::serializable::{Input, Raw, Refused, Reply, Request, bucket_of};
use alloc::vec::Vec;
use quorate_kernel::ids::{GroupId, Incarnation, Start, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::limits::{OPERATIONS_MAX, PAGE_BYTES_MAX};
use quorate_kernel::mutant;
use quorate_kernel::process::Table;

impl Serializable {
    /// Whoever serves a client asks a group.
    pub(crate) fn on_ask(
        &mut self,
        from: Incarnation,
        (question, group): (u64, GroupId),
        request: Request,
        cx: &mut Context<'_>,
    ) {
        if !Self::is_sound(group, &request) {
            return cx.fx.refuse("a group is asked for keys, of groups of the keyspace");
        }
        if matches!(request, Request::ReadAny { .. }) {
            return self.on_ask_any(from, (question, group), request, cx);
        }
        let coordinator = match &request {
            Request::Commit(commit) => commit.groups.first().copied(),
            _ => Some(group),
        };
        let asked = PeerRequest { from, question, list: None };
        let Some((ticket, is_new)) = self.take_in(group, asked, cx) else { return };
        let hosted = self.groups.get_mut(&group).filter(|hosted| hosted.member.leads());
        let Some(hosted) = hosted else { unreachable!("only a primary takes questions in") };
        invariant!(self.homes.knows(group), "who leads it knows of the group");
        hosted.heard.hear(&request, cx.now);
        invariant!(hosted.questions.get(ticket).is_some(), "what was taken in is answered");
        self.say_places(from, group, |note| _ = all_keys(&request, |key| note(key)), cx);
        // A read is in hand until it is answered. Of a transaction something may have been lost
        // since, which a repetition brings again.
        if is_new || matches!(request, Request::Commit(_) | Request::Outcome { .. }) {
            self.handle(group, Input::Request { ticket, request }, cx);
        }
        // The coordinator alone tells how it ends; others have refused at once, or say nothing.
        let hosted = self.groups.get_mut(&group).filter(|_| coordinator != Some(group));
        if let Some(hosted) = hosted.filter(|_| !mutant!("lane_share_stays_asked")) {
            hosted.questions.take(ticket);
        }
    }

    /// Whoever serves a client asks for keys as the replica here has them. One that has not lately
    /// executed all that was committed has what may be old for long: it says nothing.
    fn on_ask_any(
        &mut self,
        from: Incarnation,
        (question, group): (u64, GroupId),
        request: Request,
        cx: &mut Context<'_>,
    ) {
        invariant!(matches!(request, Request::ReadAny { .. }), "all else is for who leads");
        let hosted = self.groups.get_mut(&group);
        let is_current =
            |it: &Hosted| it.replica.is_current(cx.now) || mutant!("lane_reads_who_is_cut_off");
        let Some(hosted) = hosted.filter(|it| is_current(it)) else {
            let reply = Reply::Refused(Refused::NotReady);
            return cx.fx.send_early(from, Message::Told { question, group, reply });
        };
        if hosted.questions.find(from, question).is_some() {
            return cx.fx.refuse("a question is asked of any replica, or of the primary");
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        hosted.questions.add(ticket, PeerRequest { from, question, list: None });
        self.handle(group, Input::Request { ticket, request }, cx);
        let hosted = self.groups.get(&group);
        let is_answered = hosted.is_none_or(|it| it.questions.get(ticket).is_none());
        invariant!(is_answered, "what is here is told at once");
    }

    /// Whoever serves a client asks for keys of a group.
    pub(crate) fn on_list(
        &mut self,
        from: Incarnation,
        (question, group): (u64, GroupId),
        (start, limit): (Raw, u32),
        cx: &mut Context<'_>,
    ) {
        let asked = PeerRequest { from, question, list: Some((start, limit)) };
        let Some((ticket, is_new)) = self.take_in(group, asked, cx) else { return };
        let hosted = self.groups.get(&group);
        invariant!(hosted.is_some_and(|it| it.member.leads()), "only a primary takes questions in");
        let is_kept = hosted.is_some_and(|it| it.questions.get(ticket).is_some());
        invariant!(is_kept, "what was taken in is answered");
        if is_new && !self.confirm(group, ticket, cx) {
            self.reply(group, ticket, Reply::Refused(Refused::NotPrimary), cx);
        }
    }

    /// Takes a question in, if this node leads the group and has room; whether it is a new one.
    fn take_in(
        &mut self,
        group: GroupId,
        mut asked: PeerRequest,
        cx: &mut Context<'_>,
    ) -> Option<(Ticket, bool)> {
        let (to, question) = (asked.from, asked.question);
        if mutant!("lane_answers_any_start") {
            asked.from.start = Start(0);
        }
        let hosted = self.groups.get_mut(&group).filter(|hosted| hosted.member.leads());
        let Some(hosted) = hosted else {
            self.say_who_leads(to, group, cx);
            let reply = Reply::Refused(Refused::NotPrimary);
            cx.fx.send_early(to, Message::Told { question, group, reply });
            return None;
        };
        if let Some(ticket) = hosted.questions.find(asked.from, question) {
            return Some((ticket, false));
        }
        hosted.questions.drop_earlier(asked.from);
        if hosted.questions.len() >= OPERATIONS_MAX {
            let reply = Reply::Refused(Refused::Busy);
            cx.fx.send_early(to, Message::Told { question, group, reply });
            return None;
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        hosted.questions.add(ticket, asked);
        Some((ticket, true))
    }

    /// Whether a keyspace can have all that a request names. Where its keys are, the primary knows.
    fn is_sound(group: GroupId, request: &Request) -> bool {
        let of = |key: &Raw| of_client(key).is_some() || mutant!("lane_takes_foreign_keys");
        let groups = match request {
            Request::Commit(commit) => &commit.groups[..],
            _ => &[],
        };
        let mut groups = groups.iter().chain([&group]);
        all_keys(request, of) && groups.all(|group| Homes::may_be(*group))
    }

    /// Answers a question that was taken in.
    pub(crate) fn reply(
        &mut self,
        group: GroupId,
        ticket: Ticket,
        reply: Reply,
        cx: &mut Context<'_>,
    ) {
        let Some(hosted) = self.groups.get_mut(&group) else { return };
        // Whoever had asked was told to ask elsewhere.
        let Some(PeerRequest { from, question, .. }) = hosted.questions.take(ticket) else {
            return;
        };
        if reply == Reply::Refused(Refused::NotPrimary) {
            self.say_who_leads(from, group, cx);
        }
        cx.fx.send_early(from, Message::Told { question, group, reply });
    }

    /// The member leads no more: all that it has in hand is to be asked elsewhere.
    pub(super) fn turn_away(&mut self, group: GroupId, cx: &mut Context<'_>) {
        let Some(hosted) = self.groups.get_mut(&group) else { return };
        hosted.heard.forget();
        let tickets: Vec<Ticket> = hosted.questions.tickets().collect();
        for ticket in tickets {
            self.reply(group, ticket, Reply::Refused(Refused::NotPrimary), cx);
        }
    }

    /// This node has led after the question: what is there now is listed.
    pub(crate) fn list(
        &mut self,
        group: GroupId,
        ticket: Ticket,
        (from, limit): (&Raw, u32),
        cx: &mut Context<'_>,
    ) {
        let Some(hosted) = self.groups.get_mut(&group) else { return };
        if !hosted.state.has(from) {
            let is_awaited = hosted.state.head.moves.is_awaited(bucket_of(from));
            let refused = if is_awaited { Refused::Moving } else { Refused::Moved };
            return self.reply(group, ticket, Reply::Refused(refused), cx);
        }
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).clamp(1, LISTED_KEYS_MAX);
        let Some((keys, next)) = page(&hosted.state, from, limit, cx.table) else {
            return self.reply(group, ticket, Reply::Refused(Refused::Busy), cx);
        };
        let Some(PeerRequest { from, question, .. }) = hosted.questions.take(ticket) else {
            return;
        };
        cx.fx.send_early(from, Message::Listed { question, group, keys, next });
    }
}

/// Whether all keys that a request names fit.
fn all_keys(request: &Request, mut fits: impl FnMut(&Raw) -> bool) -> bool {
    match request {
        Request::Commit(commit) => {
            commit.reads.keys().chain(commit.acts.iter().map(|(key, _)| key)).all(fits)
        }
        Request::Read { keys } | Request::ReadAny { keys } => keys.iter().all(fits),
        Request::Check { reads } => reads.keys().all(&mut fits),
        Request::Outcome { .. } => true,
    }
}

/// Some keys of a group from one on, and where the next ones begin: at the latest where a
/// transaction that may be decided already is about to make one appear or vanish, as its client may
/// know. None while that is the first.
fn page(
    state: &State,
    from: &Raw,
    limit: usize,
    table: &dyn Table,
) -> Option<(Vec<Raw>, Option<Raw>)> {
    let (mut items, next) = state.items.range(from, (limit, PAGE_BYTES_MAX), table);
    // Behind the first bucket that another group has, that one goes on.
    let end = (bucket_of(from)..=u8::MAX).find(|bucket| !state.is_here(*bucket));
    let is_late = u8::from(mutant!("lane_listing_skips_border"));
    let end = end.filter(|_| !mutant!("lane_lists_what_is_away"));
    let end = end.map(|bucket| first_token(bucket.saturating_add(is_late)));
    let next = end.iter().chain(&next).min().cloned();
    let is_shown = |key: &Raw| key >= from && next.as_ref().is_none_or(|next| key < next);
    let shares = state.head.pending.values().filter_map(|prepared| prepared.vote.as_ref().ok());
    let shares = shares.filter(|_| !mutant!("lane_listing_skips_votes"));
    let changes = shares.flat_map(|share| &share.changes).filter(|it| is_shown(&it.key));
    let unsure = changes.filter(|change| {
        let is_there = state.item(&change.key, table).content.is_some();
        is_there != matches!(change.effect, Effect::Put { .. })
    });
    let unsure = unsure.map(|change| &change.key).min();
    if unsure == Some(from) {
        return None;
    }
    let next = unsure.cloned().or(next);
    items.retain(|(key, _)| next.as_ref().is_none_or(|next| key < next));
    let there = items.into_iter().filter(|(_, item)| item.content.is_some());
    Some((there.map(|(key, _)| key).collect(), next))
}
