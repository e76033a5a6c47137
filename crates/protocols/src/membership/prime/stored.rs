//! What a node must know again after a restart: its view, if it is a member, or that it is out.

use super::super::codec::take;
use super::super::configuration::Member;
use super::ledger::Ledger;
use super::node::Prime;
use crate::epto::Scale;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::Incarnation;
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;

/// How a node stands, durably.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Standing {
    Member,
    Out,
}

impl Prime {
    /// What is to be stored, in place of what was stored before; none for one that was never a
    /// member, which begins anew. It changes with the view, and when the node is out.
    #[must_use]
    pub fn stored(&self) -> Option<Bytes> {
        let standing = match (self.is_out, self.is_member) {
            (true, _) => Standing::Out,
            (false, true) => Standing::Member,
            (false, false) => return None,
        };
        let mut out = Vec::from([VERSION, standing as u8]);
        out.extend(self.ledger.iter().flat_map(Ledger::encode));
        Some(out.into())
    }

    /// The node in its next start, with what it has stored.
    ///
    /// # Panics
    /// These are no bytes that [`Prime::stored`] has made.
    #[must_use]
    pub fn restart(me: Incarnation, member: Member, stored: &[u8], scale: Scale) -> Prime {
        let (version, mut rest) = stored.split_first().expect("a state value has a version");
        assert_eq!(*version, VERSION, "the store's format version guards the values' versions");
        let standing: Standing = take(&mut rest).expect("the store returns what was put into it");
        let mut prime = Prime::join(me, member, &[], scale);
        if standing == Standing::Out {
            (prime.is_out, prime.joins) = (true, None);
        } else {
            prime.set_ledger(Ledger::decode(rest).expect("the store returns what was put into it"));
            (prime.is_member, prime.joins) = (true, None);
        }
        prime
    }
}
