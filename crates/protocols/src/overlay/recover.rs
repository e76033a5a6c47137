//! From stored records back to a member of the ring.

use super::state::State;
use super::timer::Timer;
use super::{Context, Overlay, keys};
use crate::detector;
use crate::gossip::record::{HostRecord, Load, News, Order, Version};
use alloc::vec::Vec;
use quorate_kernel::limits::{ADDRESS_BYTES_MAX, DOORS_MAX, TOKENS_PER_HOST_MAX, ZONE_BYTES_MAX};
use quorate_kernel::ring::{RingHost, Standing};
use quorate_kernel::time::Span;

impl Overlay {
    /// Loads what was stored, adds what is configured, says that this start is there, and asks
    /// others what it has missed.
    pub(super) fn recover(&mut self, cx: &mut Context<'_>) {
        self.state = State::new(cx.me, cx.now);
        let mut own = self.born(cx);
        for record in keys::load(cx.table) {
            if record.who.node == cx.me.node {
                // A restart keeps its tokens and how it stands; the rest is configured anew.
                own.tokens = record.tokens;
                (own.order, own.standing) = (record.order, record.standing);
            } else {
                self.state.hosts.learn(&News::of(record));
            }
        }
        for host in &self.settings.hosts {
            if host.who.node != cx.me.node && self.state.hosts.get(host.who.node).is_none() {
                self.state.hosts.learn(&News::of(configured(host)));
            }
        }
        cx.fx.put_state(keys::key(cx.me.node), keys::value(&own));
        let tokens = own.tokens.clone();
        self.state.hosts.learn(&News::of(own));
        self.state.ring.set_tokens(&tokens);
        self.fill_pointers();
        self.seed_view(cx);
        self.announce_now(cx);
        if !self.state.is_passive() {
            self.heat(cx.me.node, cx);
            self.knock(cx);
            // Hosts that start at one moment spread over the period.
            let phase = Span(1 + cx.rng.below(detector::PERIOD.0));
            self.state.periods = cx.rng.below(64);
            cx.fx.arm(Timer::Period, cx.now + phase);
        }
    }

    fn born(&self, cx: &Context<'_>) -> HostRecord {
        let settings = &self.settings;
        assert!(settings.address.len() <= ADDRESS_BYTES_MAX, "an address is bounded");
        assert!(settings.zone.len() <= ZONE_BYTES_MAX, "a zone is bounded");
        assert!(settings.doors.len() <= DOORS_MAX, "doors are bounded");
        let mut tokens = settings.tokens.clone();
        tokens.sort_unstable();
        tokens.dedup();
        assert!(tokens.len() <= TOKENS_PER_HOST_MAX, "tokens are bounded");
        HostRecord {
            who: cx.me,
            version: Version(1),
            address: settings.address.as_str().into(),
            zone: settings.zone.as_str().into(),
            tokens: tokens.into(),
            load: Load::default(),
            order: Order::default(),
            standing: Standing::Up,
            doors: settings.doors.as_slice().into(),
        }
    }

    /// Fills the view from the hosts known.
    pub(super) fn seed_view(&mut self, cx: &mut Context<'_>) {
        let state = &mut self.state;
        for _ in 0..2 * state.cyclon.shape().view {
            if let Some(news) = state.hosts.pick(cx.rng, News::is_alive) {
                let address = news.record.address.clone();
                let peer = crate::gossip::cyclon::Peer { who: news.record.who, age: 0, address };
                state.cyclon.seed(peer);
            }
        }
    }
}

/// What a configured host says before it was heard: anything that it says itself is newer.
fn configured(host: &RingHost) -> HostRecord {
    let mut tokens: Vec<u64> = host.tokens.clone();
    tokens.sort_unstable();
    tokens.dedup();
    HostRecord {
        who: host.who,
        version: Version(0),
        address: host.address.as_str().into(),
        zone: host.zone.as_str().into(),
        tokens: tokens.into(),
        load: Load::default(),
        order: Order::default(),
        standing: host.standing,
        doors: host.doors.as_slice().into(),
    }
}
