//! What a catalog knows: durable and volatile apart.

use super::chain::decree::{Decree, Entry, Origin};
use super::keys::Stored;
use super::newcomer::Newcomer;
use crate::reconfigure::{Ballot, Ground, Proposer, Rounds};
use alloc::boxed::Box;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::sync::Arc;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::invariant;
use quorate_kernel::keyspace::KeyspaceOrder;
use quorate_kernel::limits::{CATALOG_ORDERS_MAX, DECREES_KEPT};
use quorate_kernel::ring::Ring;
use quorate_kernel::time::Time;

/// What somebody wants of the catalog.
#[derive(Clone, Debug)]
pub(crate) enum Want {
    /// What an operator asks.
    Order(KeyspaceOrder),
    /// What this host itself holds to be due.
    Due(Decree),
    /// A link that this host has accepted and nobody completes.
    Complete(Entry),
}

/// A wish that is not fulfilled yet.
#[derive(Clone, Debug)]
pub(crate) struct Wish {
    /// Who waits for the answer; nobody if it is the host's own wish.
    pub ticket: Option<Ticket>,
    /// When it must be answered.
    pub deadline: Time,
    pub want: Want,
    pub origin: Origin,
    /// Whether a member may have accepted it where nothing was decided yet.
    pub is_sent: bool,
    /// Whether a majority of the system group knows no more than this host.
    pub is_confirmed: bool,
    /// Which hosts have answered, where a new keyspace begins on those that do.
    pub there: Option<BTreeSet<NodeId>>,
}

/// What is done for a wish.
#[derive(Clone, Debug)]
pub(crate) enum Doing {
    /// It is proposed.
    Propose(Box<Proposer<Entry>>),
    /// It cannot be, as far as this host knows; whether that is all there is to know is asked.
    Confirm {
        /// The number of the question.
        question: u64,
    },
    /// Before a keyspace is made, hosts are asked whether they are there.
    Muster {
        /// The number of the question.
        question: u64,
        /// Who was asked.
        asked: BTreeSet<NodeId>,
    },
}

/// The wish in hand.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub wish: Wish,
    pub doing: Doing,
    pub attempts: u32,
    /// Who of those asked has answered.
    pub heard: BTreeSet<NodeId>,
}

/// Everything.
pub(super) struct State {
    pub stored: Stored,
    pub rounds: Rounds,
    pub ring: Arc<Ring>,
    pub running: Option<Running>,
    pub waiting: VecDeque<Wish>,
    /// How many wishes were given an origin in this start.
    pub wishes: u64,
    /// How many questions were asked in this start.
    pub questions: u64,
    /// Who was asked in the last period whether it is there.
    pub newcomer: Option<Newcomer>,
    /// For how many periods a link is accepted here and not decided.
    pub periods_accepted: u32,
    /// For how many periods nobody has come, gone, started anew or fallen silent.
    pub periods_calm: u32,
    /// How many snapshots were taken over.
    pub snapshots: u64,
}

impl State {
    pub fn new(me: Incarnation, stored: Stored) -> State {
        State {
            stored,
            rounds: Rounds::new(me),
            ring: Arc::default(),
            running: None,
            waiting: VecDeque::new(),
            wishes: 0,
            questions: 0,
            newcomer: None,
            periods_accepted: 0,
            periods_calm: 0,
            snapshots: 0,
        }
    }

    /// How many links are known.
    pub fn version(&self) -> u64 {
        self.stored.catalog.as_ref().map_or(0, |catalog| catalog.version())
    }

    /// How many links are known, and what is promised of the next one. It never goes back.
    pub fn promised(&self) -> (u64, Ballot) {
        (self.version(), self.stored.acceptor.promised())
    }

    /// Whether the newest link that is kept made the catalog.
    pub fn is_newest_kept(&self) -> bool {
        let version = self.version();
        self.stored.entries.back().is_none_or(|(number, _)| *number == version)
    }

    /// Whether what is proposed follows the newest link.
    pub fn is_proposal_current(&self) -> bool {
        let running = self.running.as_ref().map(|running| &running.doing);
        match running {
            Some(Doing::Propose(proposer)) => proposer.ground().version() == self.version(),
            Some(Doing::Confirm { .. } | Doing::Muster { .. }) | None => true,
        }
    }

    /// Whether what this node has accepted follows a link that it knows.
    pub fn knows_ground(&self) -> bool {
        self.stored.catalog.is_some() || self.stored.acceptor.accepted().is_none()
    }

    /// Asserts what must hold between two inputs.
    pub fn check(&self) {
        let stored = &self.stored;
        stored.acceptor.check();
        invariant!(stored.entries.len() <= DECREES_KEPT, "old links are dropped");
        let mut follows = stored.entries.iter().zip(stored.entries.iter().skip(1));
        invariant!(follows.all(|((a, _), (b, _))| a + 1 == *b), "the links kept have no gap");
        invariant!(self.is_newest_kept(), "the newest link made the catalog");
        invariant!(self.waiting.len() <= CATALOG_ORDERS_MAX, "orders are bounded");
        if let Some(catalog) = &stored.catalog {
            let mut lanes = catalog.keyspaces().map(|keyspace| keyspace.lane);
            invariant!(lanes.all(|lane| stored.opened.contains_key(&lane)), "all are opened");
        }
        invariant!(self.is_proposal_current(), "it proposes what follows");
        if let Some(Running { doing: Doing::Propose(proposer), .. }) = &self.running {
            invariant!(proposer.view().id == proposer.ground().view().id, "one ground");
        }
    }
}
