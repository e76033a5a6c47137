//! What a loss takes of groups, and what it leaves undecided.

use super::{Groups, Row, have_moved, is_kept, newest, rows};
use crate::host::Host;
use crate::queue::HostIndex;
use quorate_kernel::ids::{GroupId, NodeId};
use std::collections::{BTreeMap, BTreeSet};

/// The fields that say that members change.
const CHANGING: [&str; 4] = ["transfers", "changes_wanted", "newcomers_awaited", "buckets_to_move"];

/// Hosts that lose all that they have, with the nodes that they are.
pub type Lost<'a> = (&'a [HostIndex], &'a [NodeId]);

/// Whether what lies at a token may be lost if these hosts, with these nodes, lose all that they
/// have: one of them has something of its group, or a group names it, and nowhere else a majority
/// of a group has it all. Where nobody says whose a token is, it may.
#[must_use]
pub fn may_lose(said: &[(HostIndex, Groups)], lost: Lost<'_>, token: u64) -> bool {
    // What has moved lies in other groups than the ranges tell.
    if have_moved(said) {
        return may_lose_some(said, lost);
    }
    let is_elsewhere = |row: &&Row| row.range.contains(token) && is_kept(said, lost.0, row);
    if newest(said).values().any(is_elsewhere) {
        return false;
    }
    let mut its = rows(said).filter(|(_, row)| row.range.contains(token)).peekable();
    its.peek().is_none() || its.any(|(host, row)| concerns(lost, host, row))
}

/// Whether anything at all may be lost if these hosts lose all that they have. Where nobody says
/// anything, it may.
#[must_use]
pub fn may_lose_some(said: &[(HostIndex, Groups)], lost: Lost<'_>) -> bool {
    let mut its = rows(said).filter(|(host, row)| concerns(lost, *host, row));
    if rows(said).next().is_none() {
        return true;
    }
    if have_moved(said) {
        let newest = newest(said);
        return its.any(|(_, row)| !is_kept(said, lost.0, newest[&row.view.group]));
    }
    // Ranges begin and end in these tokens: between two of them none is better off.
    let ends: Vec<u64> = rows(said).flat_map(|(_, row)| [row.range.low, row.range.high]).collect();
    its.any(|(_, row)| {
        let mut within = ends.iter().filter(|token| row.range.contains(**token));
        within.any(|token| may_lose(said, lost, *token))
    })
}

/// Whether one of these hosts says this of a group, or the group names it.
fn concerns((hosts, nodes): Lost<'_>, host: HostIndex, row: &Row) -> bool {
    hosts.contains(&host) || row.members.iter().any(|node| nodes.contains(node))
}

/// Whether nobody else has anything of any group, as a member, to become one or from before.
#[must_use]
pub fn have_all(said: &[(HostIndex, Groups)], hosts: &[HostIndex]) -> bool {
    rows(said).all(|(host, _)| hosts.contains(&host))
}

/// How many members of one group a host is: two of one that names the node that it is, and one that
/// it was before its disk was lost.
#[must_use]
pub fn seats(rows: &[Row], host: &Host) -> usize {
    let is_both = |row: &Row| {
        let was = row.members.iter().any(|node| host.lost.contains(node));
        was && row.members.contains(&host.node_id)
    };
    1 + usize::from(rows.iter().any(is_both))
}

/// Whether these tokens are of several groups, or may be: hosts do not say of which they are.
#[must_use]
pub fn are_apart(said: &[(HostIndex, Groups)], tokens: impl Iterator<Item = u64>) -> bool {
    let have_moved = have_moved(said);
    let mut groups = BTreeSet::new();
    let mut tokens = tokens.collect::<BTreeSet<u64>>().into_iter();
    let is_one = tokens.len() <= 1;
    let is_told = tokens.all(|token| {
        let mut its = rows(said).filter(|(_, row)| row.range.contains(token)).peekable();
        let is_told = its.peek().is_some();
        groups.extend(its.map(|(_, row)| row.view.group));
        is_told
    });
    !is_one && (have_moved || !is_told || groups.len() > 1)
}

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
    use super::super::tests::{row, said};
    use super::*;
    use quorate_kernel::view::ViewId;

    #[test]
    fn a_token_is_lost_with_the_only_hosts_that_have_it() {
        let (low, high) = (row(1, (0, 9), &[1]), row(1, (9, 0), &[2]));
        let high = Row { view: ViewId { group: GroupId(8), version: 1 }, ..high };
        let all = said(&[low.clone(), high.clone()]);
        let lose = |said: &[(HostIndex, Groups)], host: usize, token| {
            may_lose(said, (&[host], &[NodeId(host as u64 + 1)]), token)
        };
        assert!(lose(&all, 0, 5) && lose(&all, 1, 20));
        assert!(!lose(&all, 0, 20) && !lose(&all, 1, 5), "the other one has it");
        assert!(lose(&said(&[]), 0, 5), "nobody says who has it");
        // That something else moves is no reason for a loss.
        let newcomer = Row { is_member: false, is_learning: true, ..lacking(&high) };
        assert!(!lose(&said(&[low.clone(), high.clone(), newcomer.clone()]), 0, 20));
        assert!(lose(&said(&[low.clone(), high, newcomer]), 1, 20), "the newcomer only copies");
        assert!(have_all(&said(core::slice::from_ref(&low)), &[0]) && !have_all(&all, &[0]));
        // It has gone from the first host to the second one, or to all three.
        let gone = Row { is_member: false, is_ready: false, has_all: false, ..low };
        let here = row(2, (0, 9), &[2]);
        let both = said(&[gone, here.clone()]);
        assert!(!lose(&both, 0, 5) && lose(&both, 1, 5));
        let all = row(2, (0, 9), &[1, 2, 3]);
        let lacks = lacking(&all);
        assert!(
            !lose(&said(&[all.clone(), all.clone(), all.clone()]), 0, 5),
            "two of three are left"
        );
        assert!(lose(&said(&[all.clone(), all.clone(), lacks.clone()]), 0, 5), "one is not whole");
        assert!(!lose(&said(&[lacks, all.clone(), all.clone()]), 0, 5), "it has nothing to lose");
        // Buckets have moved: no range tells where they are.
        let mut moved = said(&[lacking(&here), here]);
        moved[0].1.fields.push(("buckets_moved", 1));
        assert!(lose(&moved, 1, 20));
        let mut moved = said(&[all.clone(), all.clone(), all]);
        moved[0].1.fields.push(("buckets_moved", 1));
        assert!(!lose(&moved, 1, 20), "two of three have whatever it is");
    }

    fn lacking(row: &Row) -> Row {
        Row { is_ready: false, has_all: false, ..row.clone() }
    }

    /// A disk of a host is nothing to a keyspace of which nothing was there, or of which others
    /// have all.
    #[test]
    fn a_host_that_has_no_only_copy_loses_nothing() {
        let (low, high) = (row(1, (0, 9), &[1]), row(1, (9, 0), &[2]));
        let high = Row { view: ViewId { group: GroupId(8), version: 1 }, ..high };
        let mut all = said(&[low.clone(), high.clone()]);
        all.push((2, Groups::default()));
        let lose = |said: &[(HostIndex, Groups)], host: usize| {
            may_lose_some(said, (&[host], &[NodeId(host as u64 + 1)]))
        };
        assert!(lose(&all, 0) && lose(&all, 1));
        assert!(!lose(&all, 2), "it has nothing");
        assert!(lose(&said(&[]), 2), "nobody says anything");
        all[0].1.fields.push(("buckets_moved", 1));
        assert!(lose(&all, 0) && lose(&all, 1) && !lose(&all, 2));
        // One replica has become three.
        let three = row(2, (0, 9), &[1, 2, 3]);
        let rest = Row { view: ViewId { group: GroupId(8), version: 2 }, ..row(2, (9, 0), &[2]) };
        let mut both = said(&[three.clone(), three.clone(), three.clone()]);
        assert!(!lose(&both, 0) && !lose(&both, 1) && !lose(&both, 2));
        both[1].1.rows.push(rest);
        assert!(!lose(&both, 0) && lose(&both, 1) && !lose(&both, 2), "one of two groups");
        assert!(lose(&said(&[three.clone(), lacking(&three), three.clone()]), 0));
        let elects = Row { is_member: false, is_ready: false, ..three.clone() };
        assert!(!lose(&said(&[three, elects.clone(), elects]), 0), "they have it all the same");
    }

    #[test]
    fn tokens_are_apart_if_they_may_be_of_several_groups() {
        let (low, high) = (row(1, (0, 9), &[1]), row(1, (9, 0), &[2]));
        let high = Row { view: ViewId { group: GroupId(8), version: 1 }, ..high };
        let mut all = said(&[low.clone(), high]);
        let apart =
            |said: &[(HostIndex, Groups)], tokens: &[u64]| are_apart(said, tokens.iter().copied());
        assert!(apart(&all, &[5, 20]));
        assert!(!apart(&all, &[5, 6]) && !apart(&all, &[20, 21]) && !apart(&all, &[5, 5]));
        assert!(apart(&said(&[low]), &[20, 21]), "nobody says whose they are");
        all[0].1.fields.push(("buckets_moved", 1));
        assert!(apart(&all, &[5, 6]), "what has moved is where no range tells");
    }

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
