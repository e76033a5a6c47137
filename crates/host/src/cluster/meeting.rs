//! Before a host speaks it meets the others: what they have seen of its node must lie in the past
//! of its directory.
//!
//! Until the meeting is over no frame leaves the host, and no client is served. It is over when
//! every host of the ring was met; when a majority was, after a second; and after five seconds
//! whoever was met, since hosts that are all away have nothing to compare with. A directory that
//! was moved must meet every host that has not left for good, as one of those says that it meets.

use super::handshake::{HelloError, Word};
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::mutant;
use quorate_kernel::sighting::{Disowned, Past};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long a majority waits for the others.
const MAJORITY_AFTER: Duration = Duration::from_secs(1);
/// How long less than a majority waits.
const ANYBODY_AFTER: Duration = Duration::from_secs(5);
/// How long another process of the same node may be said to be connected: an old connection is
/// silent, and counts no more, long before.
const RIVAL_WITHIN: Duration = Duration::from_secs(10);

/// Why this host must end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Its node was removed from the cluster.
    Removed,
    /// Its directory is not what the others have seen of its node.
    Disowned(Disowned),
}

/// What the others say of this host.
pub(crate) struct Meeting {
    me: Incarnation,
    run: u64,
    past: Past,
    began: Instant,
    must_meet_all: bool,
    met: BTreeSet<NodeId>,
    /// Who has left for good, as others say: the ring that this host knows may be old.
    left: BTreeSet<NodeId>,
    /// Who is connected to another process of this node, and since when it says so.
    rivals: BTreeMap<NodeId, Instant>,
    is_over: bool,
    has_warned: bool,
    verdict: Option<Verdict>,
}

impl Meeting {
    pub fn new(me: Incarnation, run: u64, past: Past, must_meet_all: bool) -> Meeting {
        Meeting {
            me,
            run,
            past,
            began: Instant::now(),
            must_meet_all,
            met: BTreeSet::new(),
            left: BTreeSet::new(),
            rivals: BTreeMap::new(),
            is_over: false,
            has_warned: false,
            verdict: None,
        }
    }

    /// Hears what another host has seen of this one. What comes after the meeting counts as well.
    pub fn hear(&mut self, from: NodeId, word: &Word, now: Instant) -> Result<(), HelloError> {
        if word.has_left {
            self.verdict.get_or_insert(Verdict::Removed);
            return Err(HelloError::Disowned { node: from });
        }
        let start = self.me.start;
        let mut judged = match word.highest > start {
            true => Err(Disowned::Older { start: start.0, seen: word.highest.0 }),
            false => Ok(()),
        };
        if let Some(seen) = &word.seen {
            judged = self.past.judge(start, self.run, seen).and(judged);
        }
        if judged.is_ok() && word.is_there {
            let since = *self.rivals.entry(from).or_insert(now);
            if now - since < RIVAL_WITHIN {
                return Err(HelloError::Rival { node: from });
            }
            judged = Err(Disowned::Another { start: start.0 });
        }
        if let Err(disowned) = judged {
            self.verdict.get_or_insert(Verdict::Disowned(disowned));
            return Err(HelloError::Disowned { node: from });
        }
        self.rivals.remove(&from);
        self.met.insert(from);
        Ok(())
    }

    /// A host that was met says who has left for good: nobody waits for those.
    pub fn leave_out(&mut self, left: &[NodeId]) {
        if !self.is_over && !mutant!("meets_who_has_left") {
            self.left.extend(left);
        }
    }

    /// Why this host must end, if it must.
    pub fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// Whether it has just come to its end, with these other hosts on the ring.
    pub fn comes_to_its_end(&mut self, others: &[NodeId], now: Instant) -> bool {
        if self.is_over || self.verdict.is_some() {
            return false;
        }
        let waited = now - self.began;
        let there: Vec<NodeId> =
            others.iter().copied().filter(|node| !self.left.contains(node)).collect();
        let others = &there;
        let met = others.iter().filter(|node| self.met.contains(node)).count();
        let has_majority = met + 1 > others.len().div_ceil(2);
        self.is_over = met == others.len()
            || !self.must_meet_all
                && (has_majority && waited >= MAJORITY_AFTER || waited >= ANYBODY_AFTER);
        if !self.has_warned && met < others.len() && waited >= ANYBODY_AFTER {
            self.has_warned = true;
            let missing = others.iter().filter(|node| !self.met.contains(node));
            let missing: Vec<String> = missing.map(NodeId::to_string).collect();
            let (missing, goes_on) = (missing.join(", "), self.is_over);
            tracing::warn!(event = "hosts_not_met", missing, goes_on, "see the other hosts");
        }
        self.is_over
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::ids::{Lsn, Start};
    use quorate_kernel::sighting::Sighting;

    const ME: NodeId = NodeId(1);

    /// Start 6 of a directory that spoke in start 5 and kept 154 batches of it.
    fn meeting(must_meet_all: bool) -> Meeting {
        let mut past = Past::default();
        past.begin(Start(5), 55);
        assert!(past.end(Lsn(154)));
        let me = Incarnation { node: ME, start: Start(6) };
        Meeting::new(me, 66, past, must_meet_all)
    }

    fn saw(start: u32, run: u64, synced: u64) -> Word {
        let seen = Sighting { node: ME, start: Start(start), run, synced: Lsn(synced) };
        Word { highest: Start(start), seen: Some(seen), ..Word::default() }
    }

    fn others(count: u64) -> Vec<NodeId> {
        (2..2 + count).map(NodeId).collect()
    }

    #[test]
    fn it_ends_when_all_were_met_and_sooner_or_later_without() {
        let over_after = |all: bool, met: u64, count: u64, after: Duration| {
            let mut meeting = meeting(all);
            let now = Instant::now();
            for node in others(met) {
                assert_eq!(meeting.hear(node, &Word::default(), now), Ok(()));
            }
            meeting.comes_to_its_end(&others(count), meeting.began + after)
        };
        let (second, moment) = (MAJORITY_AFTER, Duration::ZERO);
        assert!(over_after(false, 0, 0, moment) && over_after(true, 2, 2, moment));
        assert!(!over_after(false, 1, 2, moment) && over_after(false, 1, 2, second));
        assert!(!over_after(false, 1, 3, second), "two of four are no majority");
        assert!(over_after(false, 2, 3, second) && over_after(false, 2, 4, second));
        assert!(!over_after(false, 0, 1, second) && over_after(false, 0, 1, ANYBODY_AFTER));
        assert!(!over_after(true, 3, 4, 10 * ANYBODY_AFTER), "a directory was moved");
    }

    #[test]
    fn nobody_waits_for_who_has_left_as_the_others_say() {
        let (now, mut meeting) = (Instant::now(), meeting(true));
        assert_eq!(meeting.hear(NodeId(2), &Word::default(), now), Ok(()));
        assert!(!meeting.comes_to_its_end(&others(3), now), "two others are on the ring");
        meeting.leave_out(&[NodeId(3)]);
        assert!(!meeting.comes_to_its_end(&others(3), now), "one is there, and was not met");
        assert_eq!(meeting.hear(NodeId(4), &Word::default(), now), Ok(()));
        assert!(meeting.comes_to_its_end(&others(3), now));
    }

    #[test]
    fn it_ends_once() {
        let mut meeting = meeting(false);
        assert!(meeting.comes_to_its_end(&[], Instant::now()));
        assert!(!meeting.comes_to_its_end(&[], Instant::now()));
    }

    #[test]
    fn a_host_that_lacks_what_others_saw_must_end() {
        let now = Instant::now();
        let mut known = meeting(false);
        assert_eq!(known.hear(NodeId(2), &saw(5, 55, 154), now), Ok(()));
        let lost = Disowned::Lost { start: 5, synced: 155, kept: 154 };
        let refused = Err(HelloError::Disowned { node: NodeId(3) });
        assert_eq!(known.hear(NodeId(3), &saw(5, 55, 155), now), refused);
        assert_eq!(known.verdict(), Some(&Verdict::Disowned(lost)));
        assert!(!known.comes_to_its_end(&[], now), "it never speaks");

        let heard = Word { highest: Start(7), ..saw(5, 55, 154) };
        let mut older = meeting(false);
        assert!(older.hear(NodeId(2), &heard, now).is_err());
        let seen = Disowned::Older { start: 6, seen: 7 };
        assert_eq!(older.verdict(), Some(&Verdict::Disowned(seen)));

        let mut removed = meeting(false);
        let left = Word { has_left: true, ..saw(5, 55, 154) };
        assert!(removed.hear(NodeId(2), &left, now).is_err());
        assert_eq!(removed.verdict(), Some(&Verdict::Removed));
    }

    #[test]
    fn a_rival_that_stays_is_not_an_old_connection() {
        let (now, mut meeting) = (Instant::now(), meeting(false));
        let there = Word { is_there: true, ..saw(5, 55, 154) };
        let rival = Err(HelloError::Rival { node: NodeId(2) });
        assert_eq!(meeting.hear(NodeId(2), &there, now), rival);
        assert_eq!(meeting.hear(NodeId(2), &there, now + RIVAL_WITHIN / 2), rival);
        assert_eq!(meeting.hear(NodeId(2), &saw(5, 55, 154), now + RIVAL_WITHIN), Ok(()));
        assert_eq!(meeting.hear(NodeId(2), &there, now + RIVAL_WITHIN), rival, "counted anew");
        assert!(meeting.hear(NodeId(2), &there, now + 2 * RIVAL_WITHIN).is_err());
        let another = Disowned::Another { start: 6 };
        assert_eq!(meeting.verdict(), Some(&Verdict::Disowned(another)));
    }
}
