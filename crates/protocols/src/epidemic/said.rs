//! What replicas have said, and the answer that follows from it.

use super::message::FlaskAct;
use super::ordered::batch::Act;
use super::pending::{Pending, Way};
use super::replica::version::Version;
use crate::epto::LogicalTime;
use alloc::collections::BTreeMap;
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::receipt::Receipt;
use serde::{Deserialize, Serialize};

/// What came of a request at a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Came {
    /// The write is done, under this version.
    Wrote {
        /// The version.
        version: Version,
        /// Whether the key had a value before.
        existed: bool,
    },
    /// The key has this.
    Read {
        /// The version; none if the key was never written, as far as the replica knows.
        version: Option<Version>,
        /// The value; none if it was never written, or deleted.
        value: Option<Bytes>,
        /// Whether a hole was known that may concern the key.
        is_degraded: bool,
    },
    /// Another value is there under the version that the client has chosen, which stays, or all
    /// that are kept are larger.
    Refused,
    /// The write was sent again, and the replica does not remember so far back whether it was done:
    /// it has not done it now.
    Forgotten,
    /// The read would have to wait for a hole, as too many others do already: it was not done.
    Overloaded,
}

/// What an answer carries for its client beside the value.
fn receipt(
    version: Option<Version>,
    acks: usize,
    is_degraded: bool,
    seal: &dyn Fn(Version) -> Bytes,
) -> Bytes {
    let token = seal(version.unwrap_or(Version::Explicit(0)));
    let acks = u8::try_from(acks).unwrap_or(u8::MAX);
    Receipt { token, acks, is_degraded }.to_context()
}

impl Pending {
    pub(super) fn is_write(&self) -> bool {
        match &self.way {
            Way::Ordered(asked) => asked.is_write(),
            Way::Flask(_, act) => matches!(act, FlaskAct::Put(..)),
        }
    }

    fn is_delete(&self) -> bool {
        matches!(&self.way, Way::Ordered(asked) if asked.act == Act::Delete)
    }

    /// How many replicas have said something at one event, at most; who had no room for a read has
    /// said nothing of it.
    pub(super) fn reached(&self) -> usize {
        self.said.values().map(told).max().unwrap_or(0)
    }

    /// Whether a replica had no room for a read.
    pub(super) fn is_overloaded(&self) -> bool {
        let mut said = self.said.values().flat_map(BTreeMap::values);
        said.any(|came| *came == Came::Overloaded)
    }

    /// Whether so many of these replicas had no room for a read at one event that too few are left.
    pub(super) fn is_hopeless(&self, needed: usize, members: usize) -> bool {
        let full = |said: &BTreeMap<_, _>| said.len() - told(said);
        self.said.values().any(|said| full(said) > 0 && full(said) + needed > members)
    }

    /// Whether a replica has another value of the version, which stays there.
    pub(super) fn is_refused(&self) -> bool {
        let mut said = self.said.values().flat_map(BTreeMap::values);
        said.any(|came| *came == Came::Refused)
    }

    /// Why a value of a chosen version is refused, of so many replicas, if one has refused it and
    /// no more need be heard. Only what all have refused was changed nowhere: who has not heard of
    /// the value that wins takes this one, until it does.
    pub(super) fn refused(&self, members: usize) -> Option<Refusal> {
        let expected = "one value for each version, and the 16 largest versions of a key; this one \
                        has another value already, or is too small";
        let said = self.said.get(&None).filter(|_| self.is_refused())?;
        let refused = said.values().filter(|came| **came == Came::Refused).count();
        if refused < said.len() || self.attempt > 0 {
            return Some(Refusal::OutcomeUnknown);
        }
        (refused >= members).then_some(Refusal::Value { expected })
    }

    /// The answer, if so many replicas have said what it takes.
    pub(super) fn outcome(&self, acks: usize, seal: &dyn Fn(Version) -> Bytes) -> Option<Outcome> {
        let is_write = self.is_write();
        let is_enough = |said: &BTreeMap<_, _>| told(said) >= acks && !self.is_refused();
        let (event, said) = self.said.iter().find(|(_, said)| is_enough(said))?;
        if is_write {
            return written(said, acks, self.is_delete(), seal);
        }
        // Of what was read at one event the newest is right: others have a hole.
        let reads = said.values().filter_map(|came| match came {
            Came::Read { version, value, .. } => Some((*version, value)),
            _ => None,
        });
        let (version, value) = reads.max_by_key(|(version, _)| *version)?;
        let token = event.map(Version::Ordered).or(version);
        let is_degraded = said.values().any(|came| came.is_degraded());
        let context = receipt(token, told(said), is_degraded, seal);
        Some(Outcome::Values { values: value.clone().into(), context })
    }
}

/// How many have said what came of it.
fn told(said: &BTreeMap<NodeId, Came>) -> usize {
    said.values().filter(|came| **came != Came::Overloaded).count()
}

/// What has come of a write. Who has forgotten whether it was done has no copy of it: if all that
/// are needed have, nobody will know; else the others may have been slower.
fn written(
    said: &BTreeMap<NodeId, Came>,
    acks: usize,
    is_delete: bool,
    seal: &dyn Fn(Version) -> Bytes,
) -> Option<Outcome> {
    let wrote = said.values().filter_map(|came| match came {
        Came::Wrote { version, existed } => Some((*version, *existed)),
        _ => None,
    });
    let copies = wrote.clone().count();
    // A replica with a hole may have taken a repetition for the first: the first event counts.
    let Some((version, existed)) = wrote.min() else {
        return Some(Outcome::Refused(Refusal::NameForgotten));
    };
    let context = receipt(Some(version), copies, false, seal);
    let outcome = match is_delete {
        true => Outcome::Deleted { existed, context },
        false => Outcome::Written { context },
    };
    (copies >= acks).then_some(outcome)
}

impl Came {
    pub(super) fn is_sound(&self) -> bool {
        match self {
            Came::Wrote { version, .. } => version.is_sound(),
            Came::Read { version, .. } => version.is_none_or(Version::is_sound),
            Came::Refused | Came::Forgotten | Came::Overloaded => true,
        }
    }

    fn is_degraded(&self) -> bool {
        matches!(self, Came::Read { is_degraded: true, .. })
    }

    /// The time of the event that wrote what was found, or was written.
    pub(super) fn time(&self) -> LogicalTime {
        match self {
            Came::Wrote { version, .. } | Came::Read { version: Some(version), .. } => {
                version.time()
            }
            Came::Read { version: None, .. }
            | Came::Refused
            | Came::Forgotten
            | Came::Overloaded => LogicalTime(0),
        }
    }
}
