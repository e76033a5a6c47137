//! Telling lanes the news that they hear, and who follows theirs; what it means to them, only they
//! know.

use super::Node;
use crate::host::Host;
use alloc::sync::Arc;
use quorate_kernel::ids::{LaneId, NodeId, Ticket};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::observe::Observation;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::ring::Weighed;
use quorate_kernel::time::Time;
use quorate_kernel::watch::Watch;

/// How often lanes are told in one turn that it ends.
const TOLD_MAX: u32 = 100_000;

impl Node {
    /// Whether a lane wants to be told of a topic.
    pub(super) fn hears(&self, index: usize, topic: Topic) -> bool {
        self.slots[index].lane.as_ref().is_some_and(|lane| lane.hears(topic))
    }

    /// Tells a lane, if it hears such news.
    pub(super) fn tell_one(&mut self, index: usize, news: News<'_>, host: &mut dyn Host) {
        if self.hears(index, news.topic()) {
            self.call(index, host, |lane, env| lane.on_news(news, env));
        }
    }

    /// Tells the lanes that hear such news, but for the one that it is from.
    pub(super) fn tell(&mut self, news: News<'_>, from: Option<usize>, host: &mut dyn Host) {
        for index in 0..self.slots.len() {
            if Some(index) != from {
                self.tell_one(index, news, host);
            }
        }
    }

    /// Whether there is no lane any more in a slot.
    pub(super) fn is_closed(&self, slot: u16) -> bool {
        self.slots[usize::from(slot)].lane.is_none()
    }

    /// A lane was closed: it has nothing to do any more, and observes nobody.
    pub(super) fn tell_closed(&mut self, lane: LaneId, host: &mut dyn Host) {
        self.tell(News::Load { lane, load: &Arc::new(Weighed::default()) }, None, host);
        self.tell(News::Observe { lane, observation: &Observation::none() }, None, host);
    }

    /// A connection to a peer has ended.
    pub fn unlinked(&mut self, peer: NodeId, host: &mut dyn Host) {
        self.tell(News::Unlinked(peer), None, host);
        self.drain(host);
    }

    /// What clients have sent since then may not have been handed on.
    pub fn unread(&mut self, since: Time, host: &mut dyn Host) {
        self.tell(News::Unread(since), None, host);
        self.drain(host);
    }

    /// A client follows what a lane tells.
    pub fn watch(&mut self, lane: LaneId, ticket: Ticket, watch: Watch, host: &mut dyn Host) {
        match self.slot_of(lane) {
            Some(index) => {
                self.call(index, host, |lane, env| lane.on_watch(ticket, watch, env));
                self.drain(host);
            }
            None => host.answer(ticket, Outcome::Refused(Refusal::NotOpen)),
        }
    }

    /// A client follows no more what a lane tells; the lane may be gone.
    pub fn unwatch(&mut self, lane: LaneId, ticket: Ticket, host: &mut dyn Host) {
        if let Some(index) = self.slot_of(lane) {
            self.call(index, host, |lane, env| lane.on_unwatch(ticket, env));
            self.drain(host);
        }
    }

    /// A lane was called: if it wants to know, it is told when the turn ends.
    pub(super) fn touch(&mut self, index: usize) {
        if !self.slots[index].is_touched && self.hears(index, Topic::TurnEnd) {
            self.slots[index].is_touched = true;
            self.touched.push(index);
        }
    }

    /// Tells the lanes that this turn touched that it ends, until none has more to do.
    pub(super) fn tell_touched(&mut self, host: &mut dyn Host) {
        let mut told = 0;
        while let Some(index) = self.touched.pop() {
            self.tell_one(index, News::TurnEnd, host);
            // Being told is no reason to be told again; what it sent to itself is.
            self.touched.retain(|touched| *touched != index);
            self.slots[index].is_touched = false;
            self.drain(host);
            told += 1;
            assert!(told < TOLD_MAX, "lane {} never ends its turn", self.slots[index].id.0);
        }
    }
}
