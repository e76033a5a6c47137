//! What replicas have said, and the answer that follows from it.

use super::message::{Came, FlaskAct};
use super::ordered::batch::Act;
use super::pending::{Pending, Way};
use super::replica::version::Version;
use crate::epto::LogicalTime;
use alloc::collections::BTreeMap;
use bytes::Bytes;
use quorate_kernel::ids::NodeId;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::receipt::Receipt;

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

    /// How many replicas have said something at one event, at most.
    pub(super) fn reached(&self) -> usize {
        self.said.values().map(BTreeMap::len).max().unwrap_or(0)
    }

    /// The answer, if so many replicas have said what it takes.
    pub(super) fn outcome(&self, acks: usize, seal: &dyn Fn(Version) -> Bytes) -> Option<Outcome> {
        let is_write = self.is_write();
        let (event, said) = self.said.iter().find(|(_, said)| said.len() >= acks)?;
        if is_write {
            return Some(written(said, self.is_delete(), seal));
        }
        // Of what was read at one event the newest is right: others have a hole.
        let newest = said.values().max_by_key(|came| match came {
            Came::Read { version, .. } => *version,
            _ => None,
        })?;
        let Came::Read { version, value, .. } = newest else { return None };
        let token = event.map(Version::Ordered).or(*version);
        let is_degraded = said.values().any(|came| came.is_degraded());
        let context = receipt(token, said.len(), is_degraded, seal);
        Some(Outcome::Values { values: value.clone().into(), context })
    }
}

fn written(
    said: &BTreeMap<NodeId, Came>,
    is_delete: bool,
    seal: &dyn Fn(Version) -> Bytes,
) -> Outcome {
    let wrote = |came: &Came| match came {
        Came::Wrote { version, existed } => Some((*version, *existed)),
        _ => None,
    };
    // A replica with a hole may have taken a repetition for the first: the first event counts.
    match said.values().filter_map(wrote).min() {
        Some((version, existed)) => {
            let context = receipt(Some(version), said.len(), false, seal);
            match is_delete {
                true => Outcome::Deleted { existed, context },
                false => Outcome::Written { context },
            }
        }
        None => Outcome::Refused(Refusal::Unsupported),
    }
}

impl Came {
    fn is_degraded(&self) -> bool {
        matches!(self, Came::Read { is_degraded: true, .. })
    }

    /// The time of the event that wrote what was found, or was written.
    pub(super) fn time(&self) -> LogicalTime {
        match self {
            Came::Wrote { version, .. } | Came::Read { version: Some(version), .. } => {
                version.time()
            }
            Came::Read { version: None, .. } | Came::Refused => LogicalTime(0),
        }
    }
}
