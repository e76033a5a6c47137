//! Groups that serve, and groups that stand still.

use super::{Groups, Row, alive, covers, have_moved, newest, rows, without_ranges};
use crate::queue::HostIndex;
use quorate_kernel::ids::GroupId;
use std::collections::BTreeSet;

/// Whether every part of the ring has a group that serves; where buckets have moved, every group.
#[must_use]
pub fn serve_all(said: &[(HostIndex, Groups)]) -> bool {
    if !have_moved(said) {
        return covers(said);
    }
    let serving = alive(said, |row| row.is_ready);
    let newest = newest(said);
    let serves = |row: &&Row| serving.iter().any(|other| other.view == row.view);
    !newest.is_empty() && newest.values().all(serves)
}

/// The groups of which a member waits for others, and for whose data no group serves. That one
/// member waits while a majority goes on is no standstill.
#[must_use]
pub fn standing_still(said: &[(HostIndex, Groups)]) -> BTreeSet<GroupId> {
    let mut said = said.to_vec();
    without_ranges(&mut said);
    let serving = alive(&said, |row| row.is_ready);
    let waiting = rows(&said).filter(|(_, row)| row.is_waiting);
    let unserved = waiting
        .filter(|(_, row)| !serving.iter().any(|other| other.range.contains(row.range.high)));
    unserved.map(|(_, row)| row.view.group).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::{row, said};
    use super::*;
    use quorate_kernel::view::ViewId;

    #[test]
    fn a_group_stands_still_if_no_majority_serves() {
        let serves = row(1, (0, 0), &[1, 2, 3]);
        let waits = Row { is_member: false, is_ready: false, is_waiting: true, ..serves.clone() };
        let still = |rows: &[Row]| standing_still(&said(rows)).len();
        let elects = Row { is_waiting: false, ..waits.clone() };
        assert_eq!(still(&[serves.clone(), serves.clone(), waits.clone()]), 0, "two go on");
        assert_eq!(still(&[serves.clone(), waits.clone(), waits.clone()]), 1);
        assert_eq!(still(&[elects.clone(), elects.clone(), elects.clone()]), 0, "nobody waits");
        // Others have taken over what one has that waits.
        let next = row(2, (0, 0), &[4, 5, 6]);
        assert_eq!(still(&[waits.clone(), next.clone(), next.clone()]), 0);
        // Of two groups one stands still; buckets have moved between them.
        let view = ViewId { group: GroupId(8), version: 1 };
        let other = Row { view, ..waits };
        let mut both = said(&[serves.clone(), serves, other.clone(), other]);
        both[0].1.fields.push(("buckets_moved", 1));
        assert_eq!(standing_still(&both), BTreeSet::from([GroupId(8)]));
        assert!(!serve_all(&both) && serve_all(&both[..2]));
        assert!(!serve_all(&said(&[])), "nobody serves");
        assert!(serve_all(&said(&[next.clone(), next])) && !serve_all(&said(&[elects])));
    }
}
