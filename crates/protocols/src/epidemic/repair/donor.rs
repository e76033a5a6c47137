//! Who was asked for a snapshot, and what it says of itself.

use super::behind::Heard;
use super::told::{Reach, has_place, reach};
use crate::epidemic::Level;
use crate::epidemic::message::{Message, Rest, SnapshotB};
use crate::epidemic::replica::range::{PARTS_MAX, Range};
use crate::epto::{EventKey, Horizon, LogicalTime};
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::ids::Incarnation;
use quorate_kernel::mutant;

/// After how many rounds without an answer another member is asked.
const SILENT_ROUNDS: u64 = 6;

/// A member that was asked for a snapshot.
#[derive(Clone, Debug)]
pub(super) struct Donor {
    /// In which round it was asked last, or has sent a page that was taken.
    pub asked_at: u64,
    /// Names the question that was asked last: the answer to an earlier one is dropped.
    pub number: u64,
    /// Which page that asks for: behind this record, and below this request.
    pub page: (Rest<Bytes>, Rest<EventKey>),
    /// What was said with the first page of this one.
    pub begun: Option<Said>,
    /// The same of the last snapshot that came whole.
    pub whole: Option<Said>,
    /// Whether it is of the slice: others know no more than a place in the order.
    pub is_member: bool,
    /// Whether it was asked beside the others, for what nobody else is known to have.
    pub is_beside: bool,
}

/// What a donor says of itself.
#[derive(Clone, Debug)]
pub(super) struct Said {
    horizon: Horizon,
    /// Whether it had a place in the order.
    has_place: bool,
    pub is_ready: bool,
    /// Whether it was away for so long that nothing of it was taken.
    lags: bool,
    /// What it has noted of parts of the range, in any of its pages.
    pub noted: Vec<(Range, Heard)>,
}

impl Said {
    /// What a page says, of whose sender nothing is taken if it lags.
    pub fn of(page: &SnapshotB, lags: bool) -> Said {
        let (horizon, is_ready) = (page.horizon.clone(), page.is_ready);
        let mut said =
            Said { horizon, has_place: has_place(page), is_ready, lags, noted: Vec::new() };
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

/// Whether who has noted this had all of a part.
pub(super) fn had_all(noted: &[(Range, Heard)], part: &Range) -> bool {
    let is_whole = |heard: &Heard| match heard {
        Heard::Own(_) => true,
        Heard::Taken(_) => mutant!("epidemic_some_is_all"),
        Heard::Nothing => mutant!("epidemic_nothing_is_a_copy"),
    };
    noted.iter().all(|(range, heard)| !range.meets(part) || is_whole(heard))
}

/// Whether it has all of a part, or had when it stopped: nothing is noted of it.
pub(super) fn has_all(noted: &[(Range, Heard)], part: &Range) -> bool {
    !noted.iter().any(|(range, _)| range.meets(part))
}

/// Whether it had all of a part that counts. Without an order nothing tells whether something was
/// written since a part was given up.
pub(super) fn had_part(noted: &[(Range, Heard)], part: &Range, is_unordered: bool) -> bool {
    match is_unordered && !mutant!("epidemic_given_up_is_a_copy_without_order") {
        true => has_all(noted, part),
        false => had_all(noted, part),
    }
}

/// Up to when it has heard of a part that it had; none if it has it.
fn until(noted: &[(Range, Heard)], part: &Range) -> Option<LogicalTime> {
    let of_part = noted.iter().filter(|(range, _)| range.meets(part));
    of_part.filter_map(|(_, heard)| heard.until()).min()
}

/// How far who has noted this, and has come so far itself, has come with a part: up to this event
/// at least, as of what was given up the time alone is known.
pub(super) fn reached(
    noted: &[(Range, Heard)],
    part: &Range,
    last: Option<EventKey>,
) -> Option<EventKey> {
    let event = |time| EventKey { time, source: Incarnation::default() };
    until(noted, part).map_or(last, |until| match last {
        Some(last) if until < last.time => Some(event(until)),
        _ => last,
    })
}

/// Whether it has come as far as an event with a part. What was given up at a time has all events
/// of that time which its node has come to ([`super::behind::Behind::reopen`]).
pub(super) fn has_reached(
    noted: &[(Range, Heard)],
    (part, last): (&Range, Option<EventKey>),
    floor: Option<EventKey>,
) -> bool {
    let until = until(noted, part);
    if mutant!("epidemic_time_is_below_its_event") {
        let event = |time| EventKey { time, source: Incarnation::default() };
        return until.map_or(last, |until| last.min(Some(event(until)))) >= floor;
    }
    let is_far = |floor: EventKey| until.is_none_or(|until| until >= floor.time);
    last >= floor && floor.is_none_or(is_far)
}

impl Donor {
    /// One that is asked for the first time, in this round.
    pub fn new(number: u64, round: u64) -> Donor {
        let page = (Rest::All, Rest::All);
        let (begun, whole) = (None, None);
        let (is_member, is_beside) = (false, false);
        Donor { asked_at: round, number, page, begun, whole, is_member, is_beside }
    }

    /// The question that it was asked last, or is asked again: one that is late goes on where it
    /// was.
    pub fn question(&self, range: Range) -> Message {
        let (after, ids_below) = self.page.clone();
        Message::SnapshotA { number: self.number, range, after, ids_below }
    }

    /// Another page is asked for.
    pub fn turn(&mut self, number: u64, page: (Rest<Bytes>, Rest<EventKey>)) {
        (self.number, self.page) = (number, page);
    }

    /// Its snapshot begins anew.
    pub fn begin_anew(&mut self, number: u64) {
        self.begun = None;
        self.turn(number, (Rest::All, Rest::All));
    }

    /// One that has said all, which has come so far, is not ready, and has noted this.
    #[cfg(test)]
    pub fn said(horizon: Horizon, noted: Vec<(Range, Heard)>) -> Donor {
        let said = Said { horizon, has_place: false, is_ready: false, lags: false, noted };
        Donor { whole: Some(said), is_member: true, ..Donor::new(0, 0) }
    }

    /// The same of one that never had an event.
    #[cfg(test)]
    pub fn forget_last(&mut self) {
        self.whole.iter_mut().for_each(|said| said.horizon.last = None);
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

    /// How far it had come with a part; none if it was not heard to the end.
    pub fn reach(&self, part: &Range) -> Option<Reach> {
        let said = self.whole.as_ref()?;
        Some(reach(&said.noted, part, (said.has_place, said.horizon.last)))
    }

    /// The last event that it had when it began to send what has come whole.
    pub fn last(&self) -> Option<EventKey> {
        self.whole.as_ref().and_then(|said| said.horizon.last)
    }

    /// How far it had come with a part.
    pub fn reached(&self, part: &Range) -> Option<EventKey> {
        reached(self.noted(), part, self.last())
    }

    /// Whether it has said so, in this snapshot or in the last one.
    pub fn is_ready(&self) -> bool {
        self.begun.iter().chain(&self.whole).any(|said| said.is_ready)
    }

    /// Whether it has not gone on for long.
    pub fn is_silent(&self, round: u64) -> bool {
        self.whole(true).is_none() && round >= self.asked_at + SILENT_ROUNDS
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
