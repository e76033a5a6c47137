//! What time brings to a primary: gateways that are gone, and nodes that end by themselves.
//!
//! No replica looks at a clock. The primary proposes, by its own monotonic clock, guarded by what
//! it has seen; a new one waits anew. So a session may last longer than its client can be silent,
//! and never ends earlier. The same where no majority could be reached for a while.
//!
//! A gateway says that it is there each [`TOUCH`], and its clients may have been answered since. So
//! it is given as much longer; and that is longer than what passes between two touches if for
//! [`SURE`] no majority is reached, as no time-out is shorter than [`TIMEOUT_LEAST_MS`].

use crate::coordination::gateway::stream::TOUCH;
use crate::coordination::primary::Primary;
use crate::coordination::rules::TIMEOUT_LEAST_MS;
use crate::coordination::tree::{Command, Session, Tree, reapable, sessions, whole};
use crate::coordination::{Context, Coordination};
use crate::smr::{Objects, Origin, Part, Replicated};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::mutant;
use quorate_kernel::time::{Span, Time};

/// How often it is looked.
const LOOKED: Span = Span::secs(1);
/// How long ago a majority may have said that this node leads, for it to say who is silent.
const SURE: Span = Span::secs(1);
const _: () = assert!(
    TOUCH.0 + SURE.0 + TOUCH.0 < Span::millis(TIMEOUT_LEAST_MS).0 + TOUCH.0,
    "a gateway that is there touches in time"
);
/// The most that is proposed at a time.
const PROPOSED_MAX: usize = 1024;

impl Coordination {
    /// Time has passed.
    pub(crate) fn tick_primary(&mut self, cx: &mut Context<'_>) {
        self.confirm_touches(cx);
        let judged = self.judged;
        let Some(hosted) = &mut self.hosted else { return };
        let Some(primary) = &mut hosted.primary else { return };
        if cx.now - primary.looked < LOOKED {
            return;
        }
        primary.looked = cx.now;
        let objects = hosted.machine.objects();
        primary.forget_starts(objects);
        primary.wait_for_gateways(objects, cx.now);
        if primary.parts.is_empty() {
            primary.acknowledge_gone(&hosted.machine, |node| self.hosts.has_left(node));
        }
        if cx.now - primary.confirmed >= SURE && !mutant!("tree_ends_sessions_unsure") {
            // Nobody could show that it is there to who leads without a majority.
            return;
        }
        let heard = |gateway: Incarnation| -> Time {
            let heard = primary.heard.get(&gateway).copied();
            heard.unwrap_or(primary.began).max(primary.began)
        };
        let over = |timeout_ms: u32, gateway| {
            let longer = if mutant!("tree_counts_from_touches") { Span(0) } else { TOUCH };
            let patience = match mutant!("tree_new_primary_waits_no_more") {
                true => Span(0),
                false => Span(Span::millis(u64::from(timeout_ms)).0 + longer.0),
            };
            judged - heard(gateway) >= patience
        };
        let is_queued = primary.parts.iter().any(|(part, _)| part.from.is_none());
        let waits = is_queued || hosted.replica.applied() < primary.own;
        if waits && !mutant!("tree_piles_up_ends") {
            // Nothing more is executed at present, or taken by the log.
            return;
        }
        let tree = whole(objects);
        // Their clients may not know it yet, and are given time as if nothing had been heard.
        let is_over = |session, it: &Session| match tree.outlives(session) {
            true => judged - primary.began >= Span::millis(u64::from(it.timeout_ms)),
            false => over(it.timeout_ms, it.gateway),
        };
        let gone = sessions(objects).filter(|(session, it)| is_over(*session, it));
        let mut commands: Vec<Command> = gone
            .take(PROPOSED_MAX)
            .map(|(session, it)| Command::Expire { session, attached: it.attached })
            .collect();
        let now_ms = u64::try_from(cx.wall.0).unwrap_or_default();
        let found = reapable(objects, &hosted.reaped, PROPOSED_MAX, now_ms);
        hosted.reaped = found.next.unwrap_or_default();
        let due = found.due.into_iter();
        commands.extend(due.map(|(path, seen)| Command::Reap { path, seen }));
        commands.into_iter().for_each(|command| primary.add_own(command));
    }
}

impl Primary {
    /// Gateways that have sessions, and have not been heard or are forgotten, have from now on to
    /// say that they are there.
    fn wait_for_gateways(&mut self, objects: &Objects<Tree>, now: Time) {
        if mutant!("tree_waits_for_nobody_new") {
            return;
        }
        for (_, session) in sessions(objects) {
            self.heard.entry(session.gateway).or_insert(now);
        }
    }

    /// A majority says that it leads. If none has for a while, all wait anew, as for a new primary.
    pub(super) fn confirm(&mut self, now: Time) {
        if now - self.confirmed >= SURE && !mutant!("tree_ends_sessions_unsure") {
            self.began = now;
        }
        self.confirmed = now;
    }

    /// Hosts that have left say no more that they have their answers: nobody waits for those.
    fn acknowledge_gone(&mut self, machine: &Replicated<Tree>, is_gone: impl Fn(NodeId) -> bool) {
        let gone = machine.unacknowledged().filter(|(client, _)| is_gone(client.node));
        for (client, done) in gone.filter(|_| !mutant!("tree_keeps_answers_of_the_gone")) {
            let from = Some(Origin { client, first: done + 1, acked: done });
            self.parts.push_back((Part { from, commands: Vec::new() }, 0));
        }
    }

    /// Earlier starts of gateways are forgotten when they have no sessions any more.
    fn forget_starts(&mut self, objects: &Objects<Tree>) {
        let is_newest = |start: &Incarnation| {
            self.gateways.get(&start.node).is_some_and(|served| served.client == *start)
        };
        if self.heard.keys().all(is_newest) {
            return;
        }
        let have: BTreeSet<Incarnation> = sessions(objects).map(|(_, it)| it.gateway).collect();
        let gateways = &self.gateways;
        self.heard.retain(|start, _| {
            let served = gateways.get(&start.node);
            let is_newest = served.is_some_and(|served| served.client == *start);
            is_newest || (have.contains(start) && !mutant!("tree_forgets_earlier_starts"))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordination::tree::tests::world::{World, gateway};
    use crate::vsr::ViewNumber;

    #[test]
    fn a_gateway_that_was_forgotten_has_as_long_as_any() {
        let mut primary = Primary::new(ViewNumber::default(), Time(0));
        let mut world = World::new();
        let later = Time(0) + Span::secs(60);
        // It has no session, and another start of its host asks.
        primary.heard.insert(gateway(5), Time(0));
        primary.forget_starts(world.member.machine.objects());
        assert!(primary.heard.is_empty());
        // What it had asked for long ago is executed after all.
        world.open(5);
        primary.forget_starts(world.member.machine.objects());
        primary.wait_for_gateways(world.member.machine.objects(), later);
        assert_eq!(primary.heard.get(&gateway(5)), Some(&later));
        primary.wait_for_gateways(world.member.machine.objects(), later + Span::secs(1));
        assert_eq!(primary.heard.get(&gateway(5)), Some(&later), "it is counted from once");
    }
}
