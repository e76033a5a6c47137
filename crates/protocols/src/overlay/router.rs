//! The full-view one-hop router: the table of all hosts, as the other lanes see it (CATS §2).
//!
//! It is a hint. It is announced at once when nothing was announced recently, and otherwise once
//! when a pause has passed that grows with the table, so that a thousand hosts that join together
//! do not make a thousand copies of it.

use super::timer::Timer;
use super::{Context, Overlay};
use crate::gossip::record::News;
use crate::ring::pointers::Place;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_kernel::time::Span;

/// The shortest time between two announcements.
pub(super) const PAUSE: Span = Span::millis(50);
/// By how much each host lengthens it.
const PAUSE_PER_HOST: Span = Span::micros(100);

fn ring_host(news: &News) -> RingHost {
    let record = &news.record;
    RingHost {
        who: record.who,
        address: (*record.address).into(),
        zone: (*record.zone).into(),
        tokens: record.tokens.to_vec(),
        standing: record.standing,
        is_suspected: news.suspected_by.is_some(),
        doors: record.doors.to_vec(),
    }
}

impl Overlay {
    /// What this node believes has changed.
    pub(super) fn announce(&mut self, cx: &mut Context<'_>) {
        let state = &mut self.state;
        if state.is_announce_armed {
            return;
        }
        let pause = Span(PAUSE.0 + PAUSE_PER_HOST.0 * state.hosts.len() as u64);
        match state.announced_at.map(|at| at + pause) {
            Some(at) if at > cx.now => {
                state.is_announce_armed = true;
                cx.fx.arm(Timer::Announce, at);
            }
            _ => self.announce_now(cx),
        }
    }

    pub(super) fn on_announce(&mut self, cx: &mut Context<'_>) {
        if self.state.is_announce_armed {
            self.announce_now(cx);
        }
    }

    pub(super) fn announce_now(&mut self, cx: &mut Context<'_>) {
        let state = &mut self.state;
        state.is_announce_armed = false;
        state.announced_at = Some(cx.now);
        state.ring_version += 1;
        cx.fx.announce_ring(Arc::new(self.ring()));
    }

    /// The ring as this node believes it to be now.
    pub(super) fn ring(&self) -> Ring {
        let hosts: Vec<RingHost> = self.state.hosts.iter().map(ring_host).collect();
        let mut ring = Ring::new(self.state.ring_version, hosts);
        ring.closing = self.state.shutdown.stage();
        ring
    }

    /// Every token of a host that lives.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let alive = self.state.hosts.iter().filter(|news| news.is_alive());
        alive.flat_map(|news| {
            let node = news.node();
            news.record.tokens.iter().map(move |token| Place { token: *token, node })
        })
    }

    /// Whether a place is that of a token of a host that lives.
    pub(super) fn is_alive(hosts: &crate::gossip::hosts::Hosts, place: &Place) -> bool {
        hosts.get(place.node).is_some_and(|news| {
            news.is_alive() && news.record.tokens.binary_search(&place.token).is_ok()
        })
    }

    /// Whether a host is counted as taking part and reachable.
    pub(super) fn is_up(news: &News) -> bool {
        news.record.standing == Standing::Up && news.suspected_by.is_none()
    }
}
