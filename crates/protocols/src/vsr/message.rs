//! What the replicas of a group say to each other. New variants are only appended.
//!
//! A lane that carries several groups names the group beside the message.

use super::configuration::Configuration;
use super::log::entry::{self, Entry};
use super::number::{Epoch, Op, Position, ViewNumber};
use super::state::Standing;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::limits::{VSR_CURSOR_BYTES_MAX, VSR_ENTRIES_MAX};
use quorate_kernel::mutant;
use quorate_kernel::wire::{Decoder, Encoder, Wire};
use serde::{Deserialize, Serialize};

/// One message of the replicas of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Primary to the members, at the end of a turn: the entries that the turn brought. It leaves
    /// early and promises nothing. The receiver may conclude that entries up to `commit` are.
    Prepare {
        /// The primary's view.
        view: ViewNumber,
        /// Where the first entry stands.
        from: Op,
        /// The entries.
        entries: Vec<Entry>,
        /// The primary's commit number.
        commit: Op,
    },
    /// Member to the primary, and the primary to itself: the log up to `end` is the primary's, and
    /// is durable here. Counts in this view alone.
    PrepareOk {
        /// The view that the sender is in.
        view: ViewNumber,
        /// Where its log ends.
        end: Op,
    },
    /// Primary to the members and to newcomers, every 50 ms, and when reads wait (the paper's
    /// COMMIT): the primary is there. It promises nothing.
    Beat {
        /// The primary's view.
        view: ViewNumber,
        /// The primary's commit number.
        commit: Op,
        /// Where its log ends.
        end: Op,
        /// The newest round of reads.
        round: u64,
        /// Up to where all members have acknowledged the log in this view: what is behind it a
        /// member may still ask for, of whoever leads then.
        held: Op,
    },
    /// Member to the primary: it is in this view now, and has begun no later one. Rests on nothing
    /// stored: who has begun a later view says so to nobody else either before that is durable.
    BeatOk {
        /// The view that both are in.
        view: ViewNumber,
        /// The round of the beat.
        round: u64,
    },
    /// Member to the members, while it hears no primary: it would begin this view. It promises
    /// nothing, and the sender goes on in its view until a majority says so.
    StartViewChange {
        /// The view that the sender is in: it goes back to no earlier one.
        at: ViewNumber,
        /// The view to begin.
        view: ViewNumber,
    },
    /// Member to the primary of a view that it has begun, itself included: it takes no part in
    /// earlier views any more. Durable, like the log that it tells of.
    DoViewChange {
        /// The view that has begun.
        view: ViewNumber,
        /// The last view in which the sender's status was normal (the paper's v').
        normal: ViewNumber,
        /// Where its log ends.
        end: Op,
        /// Its commit number.
        commit: Op,
        /// Since which view the sender goes on with what it has not lost, if its status was not
        /// normal since.
        lost: Option<ViewNumber>,
    },
    /// The new primary to the members, and again to a member that it would count on and has heard
    /// no acknowledgement of: the view has started with this log. Durable.
    StartView {
        /// The view.
        view: ViewNumber,
        /// Where its log ends, and the view of the entry there: who has the same has the log.
        last: Position,
        /// The primary's commit number.
        commit: Op,
    },
    /// Whoever lacks entries to whoever has them.
    GetState {
        /// Names the question: no answer to an earlier one counts, nor to one of an earlier start.
        nonce: u64,
        /// The view that the sender is in.
        view: ViewNumber,
        /// Where the entries shall begin.
        from: Op,
        /// Whether the sender is a member that has forgotten: it has no vote yet.
        has_forgotten: bool,
    },
    /// The answer to a `GetState`: entries that are committed, and others only to who is in the
    /// same view. The receiver may conclude that entries up to `commit` are committed.
    NewState {
        /// The question's.
        nonce: u64,
        /// The question's.
        asked: Op,
        /// The view that the sender is in.
        view: ViewNumber,
        /// Whether the sender's whole log is told, because both are in one view.
        is_whole: bool,
        /// The position before the first entry. A later one than was asked for: the log begins
        /// here.
        before: Position,
        /// The entries behind it.
        entries: Vec<Entry>,
        /// The sender's commit number.
        commit: Op,
        /// Where the part of its log ends that the receiver may have.
        end: Op,
    },
    /// Whoever lacks more than logs hold to whoever has the state.
    GetCheckpoint {
        /// Names the copy: the pages of another one may begin elsewhere.
        nonce: u64,
        /// The entry of the copy that is under way; 0 begins one.
        at: Op,
        /// The number of the page; 0 is the head.
        page: u64,
        /// Where the page shall begin.
        cursor: Vec<u8>,
        /// As in a `GetState`.
        has_forgotten: bool,
    },
    /// The answer to a `GetCheckpoint`: the head of the state, or a page of its items. All of it
    /// was committed.
    Checkpoint {
        /// The question's.
        nonce: u64,
        /// The last entry that the head holds.
        at: Position,
        /// The members at that time.
        configuration: Configuration,
        /// The last entry that the page can hold.
        applied: Op,
        /// The question's: 0 is the head.
        page: u64,
        /// Where the next page begins; none after the last.
        next: Option<Vec<u8>>,
        /// The head or the page.
        #[serde(skip)]
        body: Bytes,
    },
    /// Member that has forgotten to all others: it takes no part until it has the log again.
    Recovery {
        /// Names the question: no answer to an earlier one counts.
        nonce: u64,
        /// The latest view that the sender has taken part in. Durable.
        view: ViewNumber,
    },
    /// The answer to a `Recovery`, of a member. Durable: the sender goes back to no earlier view.
    RecoveryResponse {
        /// The question's.
        nonce: u64,
        /// The view that the sender is in.
        view: ViewNumber,
        /// How the sender stands.
        standing: Standing,
    },
    /// Whoever is in a later epoch to who is not, and who was removed to the members: this epoch
    /// has begun. The entry that says so is committed; the sender has it.
    StartEpoch {
        /// The epoch.
        epoch: Epoch,
    },
    /// Member to who was removed, and the first primary of an epoch to itself: it is in this epoch.
    /// Durable, with the log up to there.
    EpochStarted {
        /// The epoch.
        epoch: Epoch,
    },
    /// Newcomer to the primary: it has the log up to here, durably.
    Learned {
        /// Where its log ends.
        end: Op,
    },
    /// The DOVIEWCHANGE of a member that has lost data, and with it the entry that ends the epoch:
    /// others may have gone on in the next one. It counts beside those that have lost nothing, and
    /// with it no view starts with what is left. Durable.
    DoViewChangeWithoutEnd {
        /// As in a `DoViewChange`.
        view: ViewNumber,
        /// As in a `DoViewChange`.
        normal: ViewNumber,
        /// As in a `DoViewChange`.
        end: Op,
        /// As in a `DoViewChange`.
        commit: Op,
        /// Since which view the sender goes on with what it has not lost.
        lost: ViewNumber,
    },
    /// The answer to a `GetState` of a member that is in an earlier epoch, and is one of this: it
    /// has begun, and the sender has lost what it began with. Its head is durable.
    EpochWithoutLog {
        /// The question's.
        nonce: u64,
        /// The epoch, and its members.
        configuration: Configuration,
    },
}

impl Message {
    /// Whether it is one of the small ones that are sent every 50 ms: a lane with many groups puts
    /// those to one host into one frame.
    #[must_use]
    pub fn is_beat(&self) -> bool {
        matches!(self, Message::Beat { .. } | Message::BeatOk { .. })
    }

    /// Whether its sender, if it is a member, has what it has acknowledged.
    pub(super) fn is_of_whole(&self) -> bool {
        match self {
            Message::GetState { has_forgotten, .. }
            | Message::GetCheckpoint { has_forgotten, .. } => {
                !has_forgotten || mutant!("who_asks_is_whole")
            }
            Message::RecoveryResponse { standing, .. } => standing.is_whole(),
            // Who has forgotten answers these too, and asks.
            Message::Recovery { .. }
            | Message::NewState { .. }
            | Message::Checkpoint { .. }
            | Message::StartEpoch { .. }
            | Message::EpochStarted { .. }
            | Message::EpochWithoutLog { .. } => false,
            _ => true,
        }
    }

    /// Whether it asks for what may be sent at the pace that clients leave it.
    #[must_use]
    pub fn is_background(&self) -> bool {
        matches!(self, Message::GetCheckpoint { .. })
    }

    /// The bytes that travel beside the head.
    #[must_use]
    pub fn tail(&self) -> Bytes {
        match self {
            Message::Prepare { entries, .. } | Message::NewState { entries, .. } => {
                entry::join(entries)
            }
            Message::Checkpoint { body, .. } => body.clone(),
            _ => Bytes::new(),
        }
    }

    /// A message whose head was read, with its tail; for a lane that writes the head beside its
    /// own.
    ///
    /// # Errors
    /// No correct peer sends it; nothing was changed.
    pub fn with_tail(mut self, tail: Bytes) -> Result<Message, WireError> {
        let is_sound = match &mut self {
            Message::Prepare { view, entries, .. } => {
                entries.len() <= VSR_ENTRIES_MAX
                    && entry::split(entries, tail)
                    && entry::may_follow(entries, *view)
            }
            Message::NewState { before, entries, .. } => {
                entries.len() <= VSR_ENTRIES_MAX
                    && entry::split(entries, tail)
                    && entry::may_follow(entries, before.view)
            }
            Message::Checkpoint { body, next, configuration, .. } => {
                *body = tail;
                next.as_ref().is_none_or(|cursor| cursor.len() <= VSR_CURSOR_BYTES_MAX)
                    && configuration.is_well_formed()
            }
            Message::EpochWithoutLog { configuration, .. } => {
                configuration.is_well_formed() && tail.is_empty()
            }
            Message::GetCheckpoint { cursor, .. } => {
                cursor.len() <= VSR_CURSOR_BYTES_MAX && tail.is_empty()
            }
            _ => tail.is_empty(),
        };
        let wrong = WireError::Malformed { what: "message of a replicated log" };
        if is_sound { Ok(self) } else { Err(wrong) }
    }
}

impl Wire for Message {
    fn encode(&self, out: &mut Encoder<'_>) {
        out.head(self);
        out.tail(0, &self.tail());
    }

    fn decode(input: &Decoder) -> Result<Message, WireError> {
        input.head::<Message>()?.with_tail(input.tail(0))
    }
}
