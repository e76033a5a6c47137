//! Who was asked for a snapshot, and what it says of itself.

use super::behind::Heard;
use super::enough::{had_all, reached};
use crate::epidemic::Level;
use crate::epidemic::message::SnapshotB;
use crate::epidemic::replica::range::{PARTS_MAX, Range};
use crate::epto::{EventKey, Horizon, LogicalTime};
use alloc::vec::Vec;

/// After how many rounds without an answer another member is asked.
const SILENT_ROUNDS: u64 = 6;

/// A member that was asked for a snapshot.
#[derive(Clone, Debug)]
pub(super) struct Donor {
    pub asked_at: u64,
    /// Names the questions for this snapshot: a page of an earlier one is dropped.
    pub number: u64,
    /// What was said with the first page of this one.
    pub begun: Option<Said>,
    /// The same of the last snapshot that came whole.
    pub whole: Option<Said>,
    /// Whether it is of the slice: others know no more than a place in the order.
    pub is_member: bool,
}

/// What a donor says of itself.
#[derive(Clone, Debug)]
pub(super) struct Said {
    horizon: Horizon,
    pub is_ready: bool,
    /// Whether it was away for so long that nothing of it was taken.
    lags: bool,
    /// What it has noted of parts of the range, in any of its pages.
    noted: Vec<(Range, Heard)>,
}

impl Said {
    /// What a page says, of whose sender nothing is taken if it lags.
    pub fn of(page: &SnapshotB, lags: bool) -> Said {
        let (horizon, is_ready) = (page.horizon.clone(), page.is_ready);
        let mut said = Said { horizon, is_ready, lags, noted: Vec::new() };
        said.hear(&page.noted);
        said
    }

    /// Another page says what is noted by then: what it has begun to drop it has not all of.
    pub fn hear(&mut self, noted: &[(Range, Heard)]) {
        for (part, heard) in noted {
            // How far what was taken goes tells nothing of what is missing.
            let noted = match heard {
                Heard::Taken(_) => taken(*part),
                other => (*part, *other),
            };
            if !self.noted.contains(&noted) {
                self.noted.push(noted);
            }
        }
        if self.noted.len() > PARTS_MAX {
            self.noted = Vec::from([(Range::ALL, Heard::Nothing)]);
        }
    }
}

impl Said {
    /// It has taken these parts over without a copy: it has some of them, however far it has come.
    pub fn hear_lost(&mut self, lost: Vec<Range>) {
        let lost: Vec<(Range, Heard)> = lost.into_iter().map(taken).collect();
        self.hear(&lost);
    }
}

/// What is noted of a part of which something may be missing.
pub(super) fn taken(part: Range) -> (Range, Heard) {
    (part, Heard::Taken(LogicalTime(0)))
}

impl Donor {
    /// One that has said all, which has come so far, is not ready, and has noted this.
    #[cfg(test)]
    pub fn said(horizon: Horizon, noted: Vec<(Range, Heard)>) -> Donor {
        let said = Said { horizon, is_ready: false, lags: false, noted };
        Donor { asked_at: 0, number: 0, begun: None, whole: Some(said), is_member: true }
    }

    /// How far it had come when it began to send what has come whole; only of a donor that was
    /// ready, if that is asked.
    pub fn whole(&self, is_ready: bool) -> Option<&Horizon> {
        let said = self.whole.as_ref().filter(|said| said.is_ready || !is_ready);
        said.map(|said| &said.horizon)
    }

    /// Whether nothing was taken of what it had.
    pub fn lags(&self) -> bool {
        self.whole.as_ref().is_some_and(|said| said.lags)
    }

    /// What it has noted of what it was asked for; nothing if it is ready, and in no doubt.
    pub fn noted(&self) -> &[(Range, Heard)] {
        self.whole.as_ref().map_or(&[], |said| &said.noted)
    }

    /// Whether it had all of a part.
    pub fn had_all(&self, part: &Range) -> bool {
        had_all(self.noted(), part)
    }

    /// Whether it has all of a part, or had when it stopped: nothing is noted of it.
    pub fn has_all(&self, part: &Range) -> bool {
        !self.noted().iter().any(|(range, _)| range.meets(part))
    }

    /// How far it had come with a part.
    pub fn reached(&self, part: &Range) -> Option<EventKey> {
        reached(self.noted(), part, self.whole.as_ref().and_then(|said| said.horizon.last))
    }

    /// Whether it has said so, in this snapshot or in the last one.
    pub fn is_ready(&self) -> bool {
        self.begun.iter().chain(&self.whole).any(|said| said.is_ready)
    }

    /// Whether it has not gone on for long.
    pub fn is_silent(&self, round: u64) -> bool {
        self.whole(true).is_none() && round >= self.asked_at + SILENT_ROUNDS
    }

    /// Whether it sends what it had all of in a part that some lack.
    pub fn sends(&self, part: &Range, round: u64) -> bool {
        let said = self.begun.as_ref().filter(|_| !self.is_silent(round));
        said.is_some_and(|said| had_all(&said.noted, part))
    }

    /// Whether some of it has come, and more is to come.
    pub fn is_coming(&self, round: u64) -> bool {
        self.begun.is_some() && !self.is_silent(round)
    }
}

/// Whether a page shows that anything was ever written. Where there are no events its sender would
/// else have had nothing of the range.
pub(super) fn is_life(page: &SnapshotB, range: &Range, level: Level) -> bool {
    let mut rest = Vec::from([*range]);
    for (part, _) in page.noted.iter().filter(|(_, heard)| *heard == Heard::Nothing) {
        rest = rest.iter().flat_map(|left| left.without(part)).collect();
    }
    let has_had = level == Level::None && !rest.is_empty();
    page.horizon.last.is_some() || !page.records.is_empty() || has_had
}
