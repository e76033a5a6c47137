//! What nodes have seen of each other's starts, and how one that comes back is measured by it.
//!
//! A directory may be put back from a copy, or lose the end of its log: then the node lacks
//! what it acknowledged, and its own disk cannot tell. Others can. Each process draws a **run**, a
//! random number, and notes it with its start before it sends anything else ([`Past`]). Whoever
//! hears from it keeps start, run and the highest batch that was synced when it spoke
//! ([`Sighting`]). When the node is started again the others tell it what they have seen; it goes
//! on only if all of that lies in its own past.

use crate::ids::{Lsn, NodeId, Start};
use crate::mutant;
use alloc::vec::Vec;
use thiserror::Error;

/// How many starts a directory remembers. Only those count in which it spoke to others.
pub const STARTS_REMEMBERED: usize = 256;

/// What a node has seen of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Whom.
    pub node: NodeId,
    /// In which of its starts, the highest that spoke.
    pub start: Start,
    /// Which run of that start.
    pub run: u64,
    /// The highest batch that it had synced when it spoke last.
    pub synced: Lsn,
}

impl Sighting {
    /// Takes in a newer sighting of the same node; returns whether it says more.
    pub fn raise(&mut self, newer: &Sighting) -> bool {
        assert_eq!(self.node, newer.node, "sightings of one node are compared");
        let is_more = (newer.start, newer.synced) > (self.start, self.synced);
        if is_more {
            *self = *newer;
        }
        is_more
    }
}

/// One start in which a directory's node spoke to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spoken {
    /// Which start.
    pub start: Start,
    /// The number that the process drew in that start.
    pub run: u64,
    /// The last batch that the directory had when it was opened the next time; none while the start
    /// lasts.
    pub end: Option<Lsn>,
}

/// The starts in which a directory's node spoke to others, as the directory has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Past {
    spoken: Vec<Spoken>,
}

/// Why a directory is not what others have seen of its node. Nothing of it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Disowned {
    /// A later start was seen.
    #[error("this is start {start} of the node, the others have seen start {seen}")]
    Older {
        /// The one that the directory is in now.
        start: u32,
        /// The one they have seen.
        seen: u32,
    },
    /// Another process spoke in a start of this number.
    #[error("another process spoke for the node in start {start}")]
    Another {
        /// Which start.
        start: u32,
    },
    /// Batches that were synced when the node spoke are not there.
    #[error(
        "in start {start} the node had synced its writes up to batch {synced}, the directory has \
         those up to {kept} ({} missing)",
        synced.saturating_sub(*kept)
    )]
    Lost {
        /// Which start.
        start: u32,
        /// What it had synced, and perhaps acknowledged.
        synced: u64,
        /// What is left of it.
        kept: u64,
    },
}

impl Past {
    /// A past read from a directory, oldest start first; nothing if it makes no sense.
    #[must_use]
    pub fn of(spoken: Vec<Spoken>) -> Option<Past> {
        let ascends =
            spoken.windows(2).all(|pair| pair[0].start < pair[1].start && pair[0].end.is_some());
        let is_bounded = spoken.len() <= STARTS_REMEMBERED;
        (ascends && is_bounded).then_some(Past { spoken })
    }

    /// The starts, oldest first.
    #[must_use]
    pub fn spoken(&self) -> &[Spoken] {
        &self.spoken
    }

    /// The directory was opened again and has batches up to this one: that is what is left of the
    /// start before. To be called before anything more is written; returns whether it changed.
    pub fn end(&mut self, recovered: Lsn) -> bool {
        match self.spoken.last_mut() {
            Some(last) if last.end.is_none() => {
                last.end = Some(recovered);
                true
            }
            _ => false,
        }
    }

    /// The node is about to speak in a new start. To be made durable before it does.
    pub fn begin(&mut self, start: Start, run: u64) {
        let last = self.spoken.last();
        assert!(last.is_none_or(|last| last.start < start), "starts only rise");
        assert!(last.is_none_or(|last| last.end.is_some()), "the start before has ended");
        if self.spoken.len() == STARTS_REMEMBERED {
            self.spoken.remove(0);
        }
        self.spoken.push(Spoken { start, run, end: None });
    }

    /// Whether the past has all that another node saw of this one, which is now in this start.
    ///
    /// # Errors
    /// The directory is not the one that the other node met, or has lost what it had then.
    pub fn judge(&self, now: Start, run: u64, seen: &Sighting) -> Result<(), Disowned> {
        let start = seen.start.0;
        if mutant!("restored_accepted") {
            return Ok(());
        }
        if seen.start > now {
            return Err(Disowned::Older { start: now.0, seen: start });
        }
        if seen.start == now {
            return if seen.run == run { Ok(()) } else { Err(Disowned::Another { start }) };
        }
        let found = self.spoken.iter().find(|spoken| spoken.start == seen.start);
        let kept = match found {
            Some(spoken) if spoken.run != seen.run => return Err(Disowned::Another { start }),
            Some(spoken) => spoken.end,
            // So long ago that the directory has forgotten it: what came next began there.
            None if self.has_forgotten(seen.start) => self.spoken[0].end,
            None => return Err(Disowned::Another { start }),
        };
        let kept = kept.unwrap_or_default();
        if kept < seen.synced {
            return Err(Disowned::Lost { start, synced: seen.synced.0, kept: kept.0 });
        }
        Ok(())
    }

    /// Whether a start was before all that are remembered, when some were dropped.
    fn has_forgotten(&self, start: Start) -> bool {
        self.spoken.len() == STARTS_REMEMBERED && start < self.spoken[0].start
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    fn seen(start: u32, run: u64, synced: u64) -> Sighting {
        Sighting { node: NodeId(1), start: Start(start), run, synced: Lsn(synced) }
    }

    /// A directory that spoke in starts 2 and 5 and is opened as start 6 with 154 batches.
    fn past() -> Past {
        let mut past = Past::default();
        assert!(!past.end(Lsn(3)), "nobody was spoken to");
        past.begin(Start(2), 22);
        assert!(past.end(Lsn(90)) && !past.end(Lsn(95)));
        past.begin(Start(5), 55);
        assert!(past.end(Lsn(154)));
        past
    }

    #[test]
    fn what_others_saw_lies_in_the_past_of_a_directory_that_is_whole() {
        let past = past();
        let judge = |seen: Sighting| past.judge(Start(6), 66, &seen);
        assert_eq!(judge(seen(2, 22, 90)), Ok(()));
        assert_eq!(judge(seen(5, 55, 154)), Ok(()));
        assert_eq!(judge(seen(6, 66, 1000)), Ok(()), "of this very run");
    }

    #[test]
    fn a_directory_that_lacks_what_was_synced_is_noticed() {
        let past = past();
        let lost = Disowned::Lost { start: 5, synced: 155, kept: 154 };
        assert_eq!(past.judge(Start(6), 66, &seen(5, 55, 155)), Err(lost.clone()));
        assert!(lost.to_string().contains("(1 missing)"), "{lost}");
        // It is none the better for what it wrote since.
        let mut later = past;
        later.begin(Start(6), 66);
        assert!(later.end(Lsn(900)));
        assert_eq!(later.judge(Start(7), 77, &seen(5, 55, 155)), Err(lost));
    }

    #[test]
    fn a_copy_is_noticed_by_the_runs_of_the_other_one() {
        let past = past();
        let judge = |seen: Sighting| past.judge(Start(6), 66, &seen);
        assert_eq!(judge(seen(6, 67, 1)), Err(Disowned::Another { start: 6 }));
        assert_eq!(judge(seen(7, 67, 1)), Err(Disowned::Older { start: 6, seen: 7 }));
        assert_eq!(judge(seen(5, 56, 1)), Err(Disowned::Another { start: 5 }));
        assert_eq!(judge(seen(4, 44, 1)), Err(Disowned::Another { start: 4 }), "it never spoke");
        assert_eq!(judge(seen(1, 11, 1)), Err(Disowned::Another { start: 1 }));
        let new = Past::default().judge(Start(1), 1, &seen(1, 2, 0));
        assert_eq!(new, Err(Disowned::Another { start: 1 }));
    }

    #[test]
    fn only_so_many_starts_are_remembered() {
        let mut past = Past::default();
        let many = STARTS_REMEMBERED as u32 + 10;
        for start in 1..=many {
            past.begin(Start(start), u64::from(start));
            assert!(past.end(Lsn(u64::from(start) * 10)));
        }
        assert_eq!(past.spoken().len(), STARTS_REMEMBERED);
        let judge = |seen: Sighting| past.judge(Start(many + 1), 7, &seen);
        assert_eq!(judge(seen(3, 3, 30)), Ok(()), "long forgotten");
        let lost = Disowned::Lost { start: 3, synced: 111, kept: 110 };
        assert_eq!(judge(seen(3, 3, 111)), Err(lost), "it is more than there was later");
        assert_eq!(Past::of(past.spoken().to_vec()), Some(past));
    }

    #[test]
    fn a_past_that_makes_no_sense_is_none() {
        let spoken =
            |start, end: Option<u64>| Spoken { start: Start(start), run: 1, end: end.map(Lsn) };
        assert!(Past::of([spoken(1, Some(5)), spoken(2, None)].to_vec()).is_some());
        assert!(Past::of([spoken(2, Some(5)), spoken(2, None)].to_vec()).is_none());
        assert!(Past::of([spoken(1, None), spoken(2, None)].to_vec()).is_none());
    }

    #[test]
    fn a_sighting_only_rises() {
        let mut known = seen(5, 55, 10);
        assert!(!known.raise(&seen(5, 55, 10)) && !known.raise(&seen(4, 44, 99)));
        assert!(known.raise(&seen(5, 55, 11)) && known.raise(&seen(6, 66, 3)));
        assert_eq!(known, seen(6, 66, 3));
    }
}
