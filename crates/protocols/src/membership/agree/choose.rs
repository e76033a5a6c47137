//! The rule by which the coordinator of a classic round chooses its value (Fast Paxos, §2.2 and
//! §3.1): whatever may have been decided in an earlier round is chosen again.

use super::super::change::Change;
use super::super::number::{Digest, Round};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use quorate_kernel::ids::NodeId;
use quorate_kernel::mutant;

/// What a member has told a coordinator: its last vote and the round of it, if it has voted.
pub type Promise = Option<(Round, Arc<Change>)>;

/// The value of a round, from the promises of a majority, one of each member. `spare` is how many
/// members may be missing in the fast round; `wish` is the coordinator's own proposal. None while
/// nobody has proposed anything.
pub fn choose(
    promises: &BTreeMap<NodeId, Promise>,
    spare: usize,
    wish: Option<&Arc<Change>>,
) -> Option<Arc<Change>> {
    if let Some(wish) = wish.filter(|_| mutant!("roll_chooses_any_value")) {
        return Some(Arc::clone(wish));
    }
    let votes = || promises.values().flatten();
    let latest = votes().map(|(round, _)| *round).max();
    let Some(latest) = latest else { return wish.cloned() };
    let mut counts: BTreeMap<Digest, (usize, &Arc<Change>)> = BTreeMap::new();
    for (_, value) in votes().filter(|(round, _)| *round == latest) {
        counts.entry(value.digest()).or_insert((0, value)).0 += 1;
    }
    // Of a classic round there is one value. Of the fast round, one that was decided has the votes
    // of all here but those that may be missing; no two have so many. If none has, none was
    // decided, and any will do: the one that most members have found.
    let most = counts.values().map(|(count, _)| *count).max()?;
    let (count, value) = counts.values().find(|(count, _)| *count == most)?;
    let may_be_decided = latest.is_classic() || count + spare >= promises.len();
    Some(Arc::clone(if may_be_decided { value } else { wish.unwrap_or(value) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn value(node: u64) -> Arc<Change> {
        Arc::new(Change::new(Vec::new(), [NodeId(node)].into()))
    }

    fn classic(number: u64) -> Round {
        Round { number, coordinator: NodeId(1) }
    }

    fn chosen(votes: &[Option<(Round, u64)>], spare: usize, wish: Option<u64>) -> Option<u64> {
        let promises = votes.iter().enumerate().map(|(node, vote)| {
            (NodeId(node as u64), vote.map(|(round, node)| (round, value(node))))
        });
        let wish = wish.map(value);
        let chosen = choose(&promises.collect(), spare, wish.as_ref())?;
        Some(chosen.leaves[0].0)
    }

    const FAST: Round = Round::FAST;

    #[test]
    fn what_may_have_been_decided_in_the_fast_round_is_chosen() {
        // Five members, one may be missing, four decide: of three, two may be of such a four.
        let (seven, eight) = (Some((FAST, 7)), Some((FAST, 8)));
        assert_eq!(chosen(&[seven, seven, eight], 1, Some(8)), Some(7));
        assert_eq!(chosen(&[seven, seven, None], 1, Some(8)), Some(7));
        // One of three cannot: anything may be chosen, the coordinator's own first.
        assert_eq!(chosen(&[seven, None, None], 1, Some(8)), Some(8));
        assert_eq!(chosen(&[seven, None, None], 1, None), Some(7));
        // Where nobody may be missing, one vote that is not for it rules a value out.
        assert_eq!(chosen(&[seven, eight], 0, Some(8)), Some(8));
        assert_eq!(chosen(&[seven, seven], 0, Some(8)), Some(7));
    }

    #[test]
    fn the_latest_classic_round_wins_over_every_count() {
        let fast = Some((FAST, 7));
        let votes = [fast, fast, Some((classic(2), 8))];
        assert_eq!(chosen(&votes, 1, Some(9)), Some(8));
        let votes = [Some((classic(2), 8)), Some((classic(2), 8)), Some((classic(3), 9))];
        assert_eq!(chosen(&votes, 1, Some(7)), Some(9));
    }

    #[test]
    fn nothing_is_chosen_where_nobody_has_proposed_anything() {
        assert_eq!(chosen(&[None, None, None], 1, None), None);
        assert_eq!(chosen(&[None, None, None], 1, Some(3)), Some(3));
    }

    /// All ways in which up to seven members can have voted for two values: if one has been
    /// decided, every majority chooses it.
    #[test]
    fn a_decided_value_is_chosen_by_every_majority() {
        for count in 1_usize..=7 {
            let spare = (count - 1) / 4;
            for votes in 0..3_usize.pow(count as u32) {
                let vote = |node: usize| votes / 3_usize.pow(node as u32) % 3;
                let of = |value| (0..count).filter(|node| vote(*node) == value).count();
                let Some(decided) = [1, 2].into_iter().find(|value| of(*value) >= count - spare)
                else {
                    continue;
                };
                for quorum in 0_u32..1 << count {
                    if (quorum.count_ones() as usize) < count / 2 + 1 {
                        continue;
                    }
                    let heard: Vec<_> = (0..count)
                        .filter(|node| quorum & 1 << node != 0)
                        .map(|node| Some((FAST, vote(node) as u64)).filter(|vote| vote.1 > 0))
                        .collect();
                    let wish = Some(3 - decided as u64);
                    assert_eq!(chosen(&heard, spare, wish), Some(decided as u64), "{heard:?}");
                }
            }
        }
    }
}
