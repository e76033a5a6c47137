//! The engine's state: what is durable and what is volatile, apart, and what must always hold.

use super::coordinator::Operations;
use super::index::Index;
use super::preference::Preference;
use super::refill::Refill;
use super::rtt::RoundTrip;
use super::{Context, Linearizable};
use crate::quorum::CrashVector;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::limits::INDEX_KEYS_MAX;
use quorate_kernel::view::{View, ViewId};
use serde::{Deserialize, Serialize};

/// How far a member's answers may be counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Status {
    /// Its data is complete.
    Ready,
    /// New in the view: it must first hear from a majority of these, the members of the view
    /// before.
    Busy {
        /// The members of the view before.
        sources: Vec<NodeId>,
        /// Whether it also lost what it had acknowledged in the new view.
        forgot: bool,
    },
    /// It lost what it had acknowledged and must first refill from the others.
    Forgot,
}

/// What survives a restart.
#[derive(Debug)]
pub(super) struct Durable {
    pub view: Arc<View>,
    pub status: Status,
    /// Members that told this node that they forgot.
    pub crashes: CrashVector,
    /// The incarnations in which all members had forgot at one moment; empty if that never was.
    pub lost: Vec<Incarnation>,
}

/// What a restart begins anew.
#[derive(Debug)]
pub(super) struct Volatile {
    /// The newest view known; a hint for where to send, never the truth.
    pub route: Arc<View>,
    /// Decided views that cannot be installed yet, because the ones before are missing.
    pub install_queue: BTreeMap<u64, Arc<View>>,
    /// Members that forgot, from the durable ones and from every stamp seen.
    pub crashes: CrashVector,
    pub index: Index,
    pub operations: Operations,
    pub refill: Option<Refill>,
    pub rtt: RoundTrip,
    pub preference: Preference,
    pub counters: Counters,
    /// The highest view any reply of this start was stamped with.
    pub stamped: ViewId,
}

/// How operations went, for metrics.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Gets whose first quorum agreed, or agreed once the remaining reply was in.
    pub reads_in_one_round: u64,
    /// Gets that imposed what they read.
    pub write_backs: u64,
    /// Gets that asked again for a value after digests.
    pub fetches: u64,
    /// Read phases of puts and deletes that led to a write.
    pub queries: u64,
    /// Write phases that reached a quorum.
    pub writes: u64,
    /// Pages of scans merged.
    pub pages: u64,
    /// Questions repeated.
    pub retries: u64,
    /// Operations whose deadline passed.
    pub expired: u64,
    /// Operations moved to a newer view.
    pub retargets: u64,
}

impl Volatile {
    pub fn new(route: Arc<View>) -> Volatile {
        Volatile {
            stamped: route.id,
            route,
            install_queue: BTreeMap::new(),
            crashes: CrashVector::default(),
            index: Index::new(INDEX_KEYS_MAX),
            operations: Operations::default(),
            refill: None,
            rtt: RoundTrip::default(),
            preference: Preference::default(),
            counters: Counters::default(),
        }
    }
}

impl Linearizable {
    /// Whether this node is a member of its installed view.
    pub(super) fn is_member(&self, cx: &Context<'_>) -> bool {
        self.durable.view.index_of(cx.me.node).is_some()
    }

    /// What must hold between two inputs.
    pub(super) fn check_state(&self) {
        let Volatile { route, install_queue, operations, stamped, .. } = &self.volatile;
        assert!(route.id >= self.durable.view.id, "the route is never behind the installed view");
        assert!(*stamped <= self.durable.view.id, "no reply was stamped with a view not installed");
        let next = self.durable.view.id.version + 1;
        assert!(
            install_queue.keys().all(|version| *version > next),
            "what can be installed is installed"
        );
        let is_lacking = self.durable.status != Status::Ready;
        assert_eq!(
            self.volatile.refill.is_some(),
            is_lacking,
            "a member that lacks data, and no other, is refilling"
        );
        operations.check();
    }
}
