//! What a loss takes of groups, and what it leaves undecided.

use super::{Groups, rows};
use crate::queue::HostIndex;
use quorate_kernel::ids::{GroupId, NodeId};
use std::collections::BTreeMap;

/// The fields that say that members change.
const CHANGING: [&str; 4] = ["transfers", "changes_wanted", "newcomers_awaited", "buckets_to_move"];

/// Whether the members of groups are changing, or a change is to be expected at once: somebody
/// copies to become one or was one, hosts know different views, or a group has not as many members
/// as it is to have, or one of those that are to go.
#[must_use]
pub fn members_change(
    said: &[(HostIndex, Groups)],
    replicas: Option<usize>,
    going: &[NodeId],
) -> bool {
    let mut versions: BTreeMap<GroupId, u64> = BTreeMap::new();
    let is_moving =
        |(_, groups): &(HostIndex, Groups)| CHANGING.iter().any(|name| groups.number(name) > 0);
    said.iter().any(is_moving)
        || rows(said).any(|(_, row)| {
            let version = *versions.entry(row.view.group).or_insert(row.view.version);
            row.is_learning
                || version != row.view.version
                || replicas.is_some_and(|replicas| row.members.len() != replicas)
                || row.members.iter().any(|node| going.contains(node))
        })
}

#[cfg(test)]
mod tests {
    use super::super::Row;
    use super::super::tests::{row, said};
    use super::*;

    #[test]
    fn a_change_of_members_is_seen_while_it_lasts() {
        let view = row(1, (0, 9), &[1, 2, 3]);
        let all = [view.clone(), view.clone(), view.clone()];
        let change = |rows: &[Row], replicas| members_change(&said(rows), replicas, &[NodeId(7)]);
        assert!(!change(&all, Some(3)));
        assert!(!change(&all, None), "how many there are to be is not known");
        assert!(change(&all, Some(5)), "there are to be more");
        let learner = Row { is_member: false, is_ready: false, is_learning: true, ..view.clone() };
        assert!(change(&[view.clone(), learner], Some(3)), "a newcomer copies");
        let next = row(2, (0, 9), &[1, 2, 4]);
        assert!(change(&[view.clone(), next.clone()], Some(3)), "one has not heard of it");
        assert!(!change(&[next.clone(), next], Some(3)), "it is over");
        let leaves = row(1, (0, 9), &[1, 2, 7]);
        assert!(change(&[leaves.clone(), leaves], Some(3)), "one is to go");
        // That data is lacking is no change of members.
        let empty = Row { is_ready: false, ..view };
        let lacking = Groups { fields: vec![("groups_lacking_data", 1)], rows: vec![empty] };
        assert!(!members_change(&[(0, lacking)], Some(3), &[]));
    }
}
