//! An oracle that knows the whole world and decides the views of the group, in place of the
//! consensus among its members.
//!
//! A view replaces one member by a host that is none. The oracle decides the next one only when the
//! newcomer of the last one is ready, and tells every host every view, each at its own time, and
//! all of them again after a restart: mostly in order, sometimes one before the view it follows.

use crate::queue::{Event, HostIndex, Queue};
use quorate_kernel::ids::NodeId;
use quorate_kernel::rng::Rng;
use quorate_kernel::view::{View, ViewId};
use std::sync::Arc;

/// How long the oracle waits between two decisions.
const DECIDE_NS: (u64, u64) = (50_000_000, 1_500_000_000);
/// How long a view takes to reach a host: mostly short, sometimes long.
const TELL_NS: (u64, u64) = (100_000, 30_000_000);
const TELL_LATE_NS: (u64, u64) = (100_000_000, 3_000_000_000);
const LATE_PPM: u32 = 250_000;
/// How many of a million views that a host is told come one too early, if another is already
/// decided.
const AHEAD_PPM: u32 = 300_000;

/// The oracle of one run.
pub struct Oracle {
    /// Every view decided so far; the first is the one the cluster was born with.
    views: Vec<Arc<View>>,
    /// How many views each host was told in its present life.
    told: Vec<usize>,
    /// Whether a view is on its way to each host.
    is_telling: Vec<bool>,
    newcomer: Option<HostIndex>,
    rng: Rng,
}

impl Oracle {
    /// An oracle that has decided nothing.
    #[must_use]
    pub fn new(first: View, hosts: usize, rng: Rng) -> Oracle {
        Oracle {
            views: vec![Arc::new(first)],
            told: vec![1; hosts],
            is_telling: vec![false; hosts],
            newcomer: None,
            rng,
        }
    }

    /// The newest view.
    #[must_use]
    pub fn newest(&self) -> &Arc<View> {
        self.views.last().expect("there is always the first view")
    }

    /// How many views were decided after the first.
    #[must_use]
    pub fn decided(&self) -> u64 {
        self.views.len() as u64 - 1
    }

    /// When the oracle shall be asked for the next decision.
    pub fn next_decision(&mut self, now: u64) -> u64 {
        now + self.rng.between(DECIDE_NS.0, DECIDE_NS.1)
    }

    /// Decides a view if the newcomer of the last one is whole. `nodes` says which node each host
    /// is, `is_ready` which of them serves.
    pub fn decide(
        &mut self,
        nodes: &[NodeId],
        is_ready: &[bool],
        now: u64,
        queue: &mut Queue,
        lives: &[u32],
    ) -> bool {
        let count = self.views.len();
        if self.newcomer.is_some_and(|host| self.told[host] < count || !is_ready[host]) {
            return false;
        }
        let newest = Arc::clone(self.newest());
        let outside = |host: &HostIndex| newest.index_of(nodes[*host]).is_none();
        let candidates: Vec<HostIndex> = (0..nodes.len()).filter(outside).collect();
        if candidates.is_empty() {
            return false;
        }
        let newcomer = candidates[self.rng.below(candidates.len() as u64) as usize];
        let mut members = newest.members().to_vec();
        let leaving = self.rng.below(members.len() as u64) as usize;
        members[leaving] = nodes[newcomer];
        let id = ViewId { group: newest.id.group, version: newest.id.version + 1 };
        self.views.push(Arc::new(View::new(id, newest.range, members)));
        self.newcomer = Some(newcomer);
        (0..nodes.len()).for_each(|host| self.tell(host, lives[host], now, queue));
        true
    }

    /// A host has started: it may have lost what it was told.
    pub fn on_host_started(&mut self, host: HostIndex, life: u32, now: u64, queue: &mut Queue) {
        self.told[host] = 1;
        self.is_telling[host] = false;
        self.tell(host, life, now, queue);
    }

    fn tell(&mut self, host: HostIndex, life: u32, now: u64, queue: &mut Queue) {
        if self.is_telling[host] || self.told[host] == self.views.len() {
            return;
        }
        self.is_telling[host] = true;
        let is_late = self.rng.chance_ppm(LATE_PPM);
        let (low, high) = if is_late { TELL_LATE_NS } else { TELL_NS };
        queue.push(now + self.rng.between(low, high), Event::View { host, life });
    }

    /// A view has reached a host: the next one it was not told, or the one after that.
    pub fn take(
        &mut self,
        host: HostIndex,
        life: u32,
        now: u64,
        queue: &mut Queue,
    ) -> Option<Arc<View>> {
        self.is_telling[host] = false;
        let next = self.views.get(self.told[host]).cloned()?;
        let ahead = self.views.get(self.told[host] + 1).cloned();
        let view = match ahead {
            Some(ahead) if self.rng.chance_ppm(AHEAD_PPM) => ahead,
            _ => {
                self.told[host] += 1;
                next
            }
        };
        self.tell(host, life, now, queue);
        Some(view)
    }

    /// Everything a host was not told yet, at once.
    pub fn take_all(&mut self, host: HostIndex) -> Vec<Arc<View>> {
        let rest = self.views[self.told[host]..].to_vec();
        self.told[host] = self.views.len();
        rest
    }
}
