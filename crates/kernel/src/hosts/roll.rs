//! What a node knows of the roll: who takes part, as those who do say.
//!
//! Nothing may rest on it that must not be lost: it says whom to wish for, and who holds what is
//! for groups to decide.

use crate::ids::NodeId;
use alloc::vec::Vec;

/// How the roll is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Rapid: by agreement of a majority of its members. What two hosts know of one number is the
    /// same.
    #[default]
    Rapid,
    /// PRIME: by reports that nearly always all hosts take in, in one order. What two hosts know of
    /// one number may differ for a while, by changes that one of them has missed.
    Prime,
}

impl Kind {
    /// Its name in settings and answers.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kind::Rapid => "rapid",
            Kind::Prime => "prime",
        }
    }
}

/// The newest configuration of the roll that a node knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roll {
    /// How it is kept.
    pub kind: Kind,
    /// Its number; 0 before there is one.
    pub number: u64,
    /// Who is in it, ascending.
    pub nodes: Vec<NodeId>,
    /// Whether changes are decided, as far as this node knows: it is a member itself, and none
    /// waits for members that do not answer. If not, the roll says nothing of who has come or
    /// failed since.
    pub goes_on: bool,
}

impl Roll {
    /// Whether a node is on it.
    #[must_use]
    pub fn contains(&self, node: NodeId) -> bool {
        self.nodes.binary_search(&node).is_ok()
    }
}
