//! What a loss of what was not synced takes of groups.

use super::{Groups, Row, have_moved, is_kept, newest, rows};
use crate::queue::HostIndex;
use quorate_kernel::ids::NodeId;
use quorate_kernel::view::Range;

/// A host that has lost what it had not synced, and was not whole again since.
#[derive(Clone, Copy, Debug)]
pub struct Forgetful {
    /// Which.
    pub host: HostIndex,
    /// The node that it is.
    pub node: NodeId,
    /// From when on it may have lost writes, at first.
    pub first: u64,
    /// The same of the loss that is asked about, if it is one of its hosts.
    pub last: Option<u64>,
}

/// What may be gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// What was acknowledged from this time on.
    pub since: u64,
    /// Where it lies; everywhere if nobody knows.
    ranges: Option<Vec<Range>>,
    /// Where nothing is gone: there a majority has all.
    kept: Vec<Range>,
}

impl Taken {
    /// From this time on, of whatever key.
    #[must_use]
    pub fn everywhere(since: u64) -> Taken {
        Taken { since, ranges: None, kept: Vec::new() }
    }

    /// Whether what lies at a token may be gone.
    #[must_use]
    pub fn has(&self, token: u64) -> bool {
        let are_in = |ranges: &[Range]| ranges.iter().any(|range| range.contains(token));
        self.ranges.as_ref().is_none_or(|ranges| are_in(ranges) && !are_in(&self.kept))
    }
}

/// What may be gone of groups, now that hosts have lost something. A write is gone if a majority of
/// its group lost it: then it was acknowledged when the last of them had lost something already,
/// and one of those that lose now was among them. `least` are a majority of the smallest group.
#[must_use]
pub fn taken(said: &[(HostIndex, Groups)], forgetful: &[Forgetful], least: usize) -> Option<Taken> {
    let hosts: Vec<HostIndex> = forgetful.iter().map(|it| it.host).collect();
    let newest = newest(said);
    let is_kept = |row: &Row| is_kept(said, &hosts, row);
    let (mut since, mut ranges) = (None, Vec::new());
    for (group, row) in newest.iter().filter(|(_, row)| !is_kept(row)) {
        let its: Vec<(HostIndex, &Row)> =
            rows(said).filter(|(_, row)| row.view.group == *group).collect();
        let concerns = |one: &&Forgetful| {
            its.iter().any(|(host, row)| *host == one.host || row.members.contains(&one.node))
        };
        let members = || forgetful.iter().filter(concerns);
        let mut first: Vec<u64> = members().map(|one| one.first).collect();
        first.sort_unstable();
        let (Some(first), Some(last)) =
            (first.get(least - 1), members().filter_map(|one| one.last).min())
        else {
            continue;
        };
        let from = last.max(*first);
        since = Some(since.map_or(from, |known: u64| known.min(from)));
        ranges.push(row.range);
        ranges.extend(its.iter().map(|(_, row)| row.range));
    }
    let kept = newest.values().filter(|row| is_kept(row)).map(|row| row.range).collect();
    let ranges = (!have_moved(said)).then_some(ranges);
    since.map(|since| Taken { since, ranges, kept })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{row, said};
    use super::*;
    use quorate_kernel::ids::GroupId;
    use quorate_kernel::view::ViewId;

    fn forgetful(host: HostIndex, first: u64, last: Option<u64>) -> Forgetful {
        Forgetful { host, node: NodeId(host as u64 + 1), first, last }
    }

    /// Two groups of three, of the hosts 0 to 2 and 3 to 5; the host 6 is in none.
    fn two_groups() -> Vec<(HostIndex, Groups)> {
        let low = row(1, (0, 9), &[1, 2, 3]);
        let view = ViewId { group: GroupId(8), version: 1 };
        let high = Row { view, ..row(1, (9, 0), &[4, 5, 6]) };
        let mut all = said(&[low.clone(), low.clone(), low, high.clone(), high.clone(), high]);
        all.push((6, Groups::default()));
        all
    }

    #[test]
    fn a_majority_is_one_of_a_group_and_not_of_all_hosts() {
        let all = two_groups();
        let taken = |forgetful: &[Forgetful]| taken(&all, forgetful, 2);
        let (one, other) = (forgetful(0, 40, None), forgetful(3, 30, Some(30)));
        assert_eq!(taken(&[one, other]), None, "each group has lost one of three");
        assert_eq!(taken(&[one, forgetful(6, 30, Some(30))]), None, "one has nothing of it");
        let second = forgetful(1, 50, Some(60));
        let both = taken(&[one, other, second]).expect("two of three have lost something");
        assert_eq!(both.since, 60);
        assert!(both.has(5) && !both.has(20), "the other group has all");
        let late = forgetful(2, 90, Some(90));
        assert_eq!(taken(&[one, second, late]).map(|taken| taken.since), Some(60));
        assert_eq!(taken(&[one, forgetful(1, 50, None), other]), None, "that was known before");
    }

    #[test]
    fn of_five_members_three_must_have_lost_it() {
        let row = row(1, (0, 0), &[1, 2, 3, 4, 5]);
        let mut all = said(&[row.clone(), row.clone(), row.clone(), row.clone(), row]);
        let two = [forgetful(0, 40, None), forgetful(1, 50, Some(50))];
        assert_eq!(taken(&all, &two, 2), None);
        all[2].1.rows[0].has_all = false;
        assert_eq!(taken(&all, &two, 2).map(|taken| taken.since), Some(50), "one only copies");
    }

    #[test]
    fn of_an_only_copy_its_own_host_takes_the_keys_of_its_group() {
        let mut all = two_groups();
        all.iter_mut().flat_map(|(_, groups)| &mut groups.rows).for_each(|row| {
            row.members.truncate(1);
        });
        (1..3).chain(4..6).for_each(|host| all[host].1.rows.clear());
        let of = |host| taken(&all, &[forgetful(host, 40, Some(40))], 1);
        assert_eq!((of(1), of(6)), (None, None));
        assert!(of(0).is_some_and(|taken| taken.has(5) && !taken.has(20)));
        all[6].1.fields.push(("buckets_moved", 1));
        let of = |host| taken(&all, &[forgetful(host, 40, Some(40))], 1);
        assert!(of(0).is_some_and(|taken| taken.has(5) && taken.has(20)), "they lie anywhere");
        assert_eq!(of(6), None);
        assert!(Taken::everywhere(7).has(20));
    }
}
