//! What the nodes of a roll say to each other. New variants are only appended.

use super::change::Change;
use super::configuration::{Configuration, Member};
use super::number::{Digest, NUMBER_MAX, RollId, Round};
use alloc::sync::Arc;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::NodeId;
use quorate_kernel::limits::{
    ROLL_ALERTS_MAX, ROLL_CHANGE_BYTES_MAX, ROLL_DECISIONS_BYTES_MAX, ROLL_DECISIONS_MAX,
    ROLL_RINGS_MAX,
};
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use serde::{Deserialize, Serialize};

/// A message of a roll.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The configuration that the sender is in; number 0 of one that has none. Whoever is in an
    /// earlier one may conclude that it lacks decisions.
    pub roll: RollId,
    /// What it says.
    pub body: Body,
}

/// What an observer says of a node: the edge between them, in these rings, is down, or up for one
/// that joins. Not taken back within a configuration (paper §4.2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alert {
    /// Whom it is about.
    pub subject: NodeId,
    /// The rings in which the sender observes it, one bit each.
    pub rings: u16,
    /// Who wants to join; none if a member shall leave.
    pub member: Option<Arc<Member>>,
}

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// Its node id was a member's, and is none's any more: it must draw a new one.
    Gone,
    /// There are as many members as there may be.
    Full,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    /// Observer to subject, every second: does it answer?
    Probe {
        /// Names the probe.
        nonce: u64,
    },
    /// The answer to a `Probe`, of a member or of one that joins. It waits for the sender's disk
    /// like other answers: a node that cannot write any more does not say that it is well.
    ProbeAck {
        /// The probe's.
        nonce: u64,
    },
    /// Observer to all members: what it has found in 100 ms, or finds still.
    Alerts {
        /// At least one.
        alerts: Vec<Alert>,
    },
    /// Member to all: its vote in the fast round. Durable.
    FastVote {
        /// What it votes for.
        digest: Digest,
    },
    /// Coordinator to all (Fast Paxos: phase 1a): a classic round begins. Durable: the coordinator
    /// begins no round twice.
    Phase1a {
        /// The round.
        round: Round,
    },
    /// Member to coordinator (phase 1b): it votes in no earlier round any more. Durable.
    Phase1b {
        /// The round.
        round: Round,
        /// The round in which it has voted last; `NONE` if in none.
        voted: Round,
        /// What it voted for.
        #[serde(skip)]
        value: Option<Arc<Change>>,
    },
    /// Coordinator to all (phase 2a): the value of its round.
    Phase2a {
        /// The round.
        round: Round,
        /// The value.
        #[serde(skip)]
        value: Arc<Change>,
    },
    /// Member to all (phase 2b): it has voted in this classic round. Durable.
    Phase2b {
        /// The round.
        round: Round,
        /// What it voted for.
        digest: Digest,
    },
    /// Member to coordinator: it takes part in a later round already.
    Outbid {
        /// The round.
        round: Round,
    },
    /// Whoever lacks something to whoever has it: the decisions behind the sender's configuration,
    /// or the change that was decided and that the sender knows by its digest alone.
    Ask {
        /// The change.
        digest: Option<Digest>,
    },
    /// The answer to an `Ask` for a change, of one that is in the same configuration.
    Value {
        /// The change.
        #[serde(skip)]
        value: Arc<Change>,
    },
    /// The answer to an `Ask`: changes that were decided one after the other.
    Decisions {
        /// The configuration that the first of them changes.
        since: RollId,
        /// At least one.
        #[serde(skip)]
        changes: Vec<Arc<Change>>,
    },
    /// The answer to an `Ask` of one that is further behind, or new: the sender's configuration.
    Whole {
        /// The configuration.
        #[serde(skip)]
        configuration: Arc<Configuration>,
    },
    /// Member to who was a member: it is none any more. That is no judgement on whether it is
    /// alive, nor on what it holds.
    Kicked,
    /// Joiner to a contact: who are to be its observers?
    PreJoin,
    /// The answer to a `PreJoin`.
    Observers {
        /// One for each ring, in their order.
        observers: Vec<Arc<Member>>,
    },
    /// Joiner to its observers, in the configuration that named them: it wants to be a member.
    Join {
        /// Itself.
        member: Arc<Member>,
        /// The rings in which the receiver observes it.
        rings: u16,
    },
    /// Member to whoever takes part and may not know it, or is behind: ask for what is new.
    Here,
    /// Member to a joiner: its configuration has changed, without letting the joiner in.
    Outside,
    /// Member to a joiner: it cannot be let in.
    Refused(Refusal),
    /// Member to the observers of a node: it leaves, or is sent away.
    Depart {
        /// The node; the sender itself if it leaves.
        node: NodeId,
    },
}

impl Message {
    /// Whether it is one of the many that only show that a node is there.
    #[must_use]
    pub fn is_probe(&self) -> bool {
        matches!(self.body, Body::Probe { .. } | Body::ProbeAck { .. })
    }

    /// The bytes that travel beside the head.
    #[must_use]
    pub fn tail(&self) -> Bytes {
        match &self.body {
            Body::Phase1b { value: Some(value), .. }
            | Body::Phase2a { value, .. }
            | Body::Value { value } => value.encode().into(),
            Body::Decisions { changes, .. } => {
                changes.iter().flat_map(|change| change.encode()).collect()
            }
            Body::Whole { configuration } => configuration.encode().into(),
            _ => Bytes::new(),
        }
    }

    /// A message whose head was read, with its tail; for a lane that writes the head beside its
    /// own.
    ///
    /// # Errors
    /// No correct peer sends it; nothing was changed.
    pub fn with_tail(mut self, tail: &[u8]) -> Result<Message, WireError> {
        let wrong = WireError::Malformed { what: "message of the roll" };
        if self.fill(tail).is_some() { Ok(self) } else { Err(wrong) }
    }

    /// Reads the tail, and checks what can be checked without a configuration.
    fn fill(&mut self, tail: &[u8]) -> Option<()> {
        let has_roll = self.roll.number.0 > 0;
        let is_sound = match &mut self.body {
            Body::Phase1b { round, voted, value } => {
                let has_voted = *voted == Round::FAST || voted.may_be_classic();
                *value = if tail.is_empty() { None } else { Some(change(tail)?) };
                let is_vote = if value.is_some() { has_voted } else { *voted == Round::NONE };
                has_roll && is_vote && *voted < *round && round.may_be_classic()
            }
            Body::Phase2a { round, value } => {
                *value = change(tail)?;
                has_roll && round.may_be_classic()
            }
            Body::Value { value } => {
                *value = change(tail)?;
                has_roll
            }
            Body::Decisions { since, changes } => {
                *changes = read_changes(tail)?;
                let count = changes.len() as u64;
                since.number.0 > 0 && self.roll.number.0.checked_sub(since.number.0)? >= count
            }
            Body::Whole { configuration } => {
                *configuration = Arc::new(Configuration::decode(tail)?);
                configuration.id == self.roll && self.roll.number.0 <= NUMBER_MAX
            }
            _ => tail.is_empty() && self.is_sound(has_roll),
        };
        is_sound.then_some(())
    }

    /// The same of what has no tail.
    fn is_sound(&self, has_roll: bool) -> bool {
        match &self.body {
            Body::Alerts { alerts } => {
                let is_sound = |alert: &Alert| {
                    let member = alert.member.as_ref();
                    alert.rings > 0
                        && member.is_none_or(|it| it.id == alert.subject && it.is_well_formed())
                };
                has_roll
                    && (1..=ROLL_ALERTS_MAX).contains(&alerts.len())
                    && alerts.iter().all(is_sound)
            }
            Body::Phase1a { round } | Body::Phase2b { round, .. } | Body::Outbid { round } => {
                has_roll && round.may_be_classic()
            }
            Body::Observers { observers } => {
                has_roll
                    && (3..=ROLL_RINGS_MAX).contains(&observers.len())
                    && observers.iter().all(|member| member.is_well_formed())
            }
            Body::Join { member, rings } => has_roll && *rings > 0 && member.is_well_formed(),
            // Those that join may ask, and answer probes; all else is a member's.
            Body::ProbeAck { .. } | Body::Ask { .. } | Body::PreJoin => true,
            _ => has_roll,
        }
    }
}

fn change(tail: &[u8]) -> Option<Arc<Change>> {
    let fits = tail.len() <= ROLL_CHANGE_BYTES_MAX;
    Change::decode(fits.then_some(tail)?).map(Arc::new)
}

fn read_changes(mut tail: &[u8]) -> Option<Vec<Arc<Change>>> {
    let mut changes = Vec::new();
    if tail.len() > ROLL_DECISIONS_BYTES_MAX.max(ROLL_CHANGE_BYTES_MAX) {
        return None;
    }
    while !tail.is_empty() {
        changes.push(Arc::new(Change::take(&mut tail)?));
        if changes.len() > ROLL_DECISIONS_MAX {
            return None;
        }
    }
    (!changes.is_empty()).then_some(changes)
}

impl Wire for Message {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(self);
        out.tail(0, &self.tail());
    }

    fn decode(input: &Decoder) -> Result<Message, WireError> {
        input.head::<Message>()?.with_tail(&input.tail(0))
    }
}
