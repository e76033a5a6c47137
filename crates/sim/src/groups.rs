//! What the hosts say of their groups, and what must hold of all of them together.

mod losses;
mod stands;
mod taken;

pub use losses::{are_apart, have_all, may_lose, may_lose_some, members_change, seats};
pub use stands::{serve_all, standing_still};
pub use taken::{Forgetful, Taken, taken};

use crate::host::{Host, Running};
use crate::queue::HostIndex;
use quorate_kernel::ids::{GroupId, LaneId, NodeId};
use quorate_kernel::part::{Part, PartName};
use quorate_kernel::process::Inspect;
use quorate_kernel::view::{Range, ViewId};
use quorate_protocols::groups::CHANGING;
use std::collections::BTreeMap;
use std::fmt::Display;

/// What keeps groups from being settled.
const UNSETTLED: [&str; 5] =
    ["groups_lacking_data", "transfers", "changes_wanted", "newcomers_awaited", "buckets_to_move"];
/// What else is looked at, of groups and of the overlay.
const OTHERS: [&str; 5] =
    ["view", "balance_pending", "hosts_weighed", "tokens_moved", "buckets_moved"];

/// How one host stands in one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The group, and the version of the installed view.
    pub view: ViewId,
    /// The view's range.
    pub range: Range,
    /// The view's members.
    pub members: Vec<NodeId>,
    /// Whether the host is one of them and has not left.
    pub is_member: bool,
    /// Whether it has the end of its view in its log.
    pub is_ending: bool,
    /// Whether it holds all data and serves.
    pub is_ready: bool,
    /// Whether it is one of them and has all that it ever acknowledged, though it may not serve.
    pub has_all: bool,
    /// Whether it stands still, and waits for others.
    pub is_waiting: bool,
    /// Whether it copies to become a member, or has been one and was not told yet that it may drop
    /// what it has.
    pub is_learning: bool,
    /// About how many bytes it holds.
    pub bytes: u64,
}

impl Row {
    /// What a node says of a part; nothing unless it has something of a group.
    fn of(part: &Part, own: NodeId) -> Option<Row> {
        let (Some(here), PartName::Group(view)) = (&part.here, part.name) else { return None };
        let members: Vec<NodeId> = part.holders.iter().map(|holder| holder.node).collect();
        // A learner copies data for a view that it is not in.
        let is_in = members.contains(&own);
        let is_member = is_in && matches!(here.status.as_str(), "ready" | "busy" | "forgot");
        let is_ending = here.moving == CHANGING;
        let is_ready = is_in && here.status == "ready";
        let has_all = is_in && !part.owes;
        let has_all = has_all && matches!(here.status.as_str(), "ready" | "electing" | "waiting");
        let (range, is_waiting, bytes) = (part.range, here.status == "waiting", here.bytes);
        let is_learning = here.status == "learning";
        Some(Row {
            view,
            range,
            members,
            is_member,
            is_ending,
            is_ready,
            has_all,
            is_waiting,
            is_learning,
            bytes,
        })
    }
}

/// What one host says of its groups.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// The fields that are looked at, if they are numbers.
    fields: Vec<(&'static str, u64)>,
    /// The groups.
    pub rows: Vec<Row>,
}

impl Inspect for Groups {
    fn field(&mut self, name: &'static str, value: &dyn Display) {
        if !UNSETTLED.contains(&name) && !OTHERS.contains(&name) {
            return;
        }
        if let Ok(number) = value.to_string().parse() {
            self.fields.push((name, number));
        }
    }
}

impl Groups {
    /// What a running host says of a lane; `None` if it does not run.
    #[must_use]
    pub fn of(host: &Host, lane: LaneId) -> Option<Groups> {
        if host.running == Running::Down {
            return None;
        }
        let mut groups = Groups::default();
        host.inspect_state(lane, &mut groups);
        let parts = host.parts(lane);
        groups.rows = parts.iter().filter_map(|part| Row::of(part, host.node_id)).collect();
        Some(groups)
    }

    /// What a host says of a lane, or said last if it is down.
    #[must_use]
    pub fn last_of(host: &Host, lane: LaneId) -> Groups {
        let said = || host.said.get(&lane).cloned().unwrap_or_default();
        Groups::of(host, lane).unwrap_or_else(said)
    }

    /// A field, 0 if it is not told.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.fields.iter().find(|(its, _)| *its == name).map_or(0, |(_, number)| *number)
    }

    /// About how many bytes the host holds as a member.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.rows.iter().filter(|row| row.is_member).map(|row| row.bytes).sum()
    }

    /// What is moving or wished for here, if anything is.
    #[must_use]
    pub fn unsettled(&self) -> Option<String> {
        let name = UNSETTLED.into_iter().find(|name| self.number(name) > 0)?;
        Some(format!("{name} {}", self.number(name)))
    }
}

/// Takes the ranges out of what hosts say if buckets have moved between groups: ranges are hints
/// then, by what each host has heard, and no part of a view. Whether that is so.
pub fn without_ranges(said: &mut [(HostIndex, Groups)]) -> bool {
    let have_moved = have_moved(said);
    let rows = said.iter_mut().flat_map(|(_, groups)| &mut groups.rows);
    for row in rows.filter(|_| have_moved) {
        let group = row.view.group.0;
        row.range = Range { low: 2 * group, high: 2 * group + 1 };
    }
    have_moved
}

/// A group whose newest view has no majority of members that say they hold all data, of those that
/// name this member.
#[must_use]
pub fn lacking_a_majority(said: &[(HostIndex, Groups)], member: NodeId) -> Option<GroupId> {
    let mut newest: BTreeMap<GroupId, (&Row, usize)> = BTreeMap::new();
    for (_, row) in rows(said).filter(|(_, row)| row.is_member) {
        let entry = newest.entry(row.view.group).or_insert((row, 0));
        if row.view.version > entry.0.view.version {
            *entry = (row, 0);
        }
        if row.view.version == entry.0.view.version {
            entry.1 += usize::from(row.is_ready);
        }
    }
    let names = |(_, row): &(HostIndex, &Row)| row.members.contains(&member);
    let mut named = rows(said).filter(names).map(|(_, row)| row.view.group);
    named.find(|group| {
        // A group that was split has members no more, its parts have.
        newest.get(group).is_some_and(|(row, ready)| *ready <= row.members.len() / 2)
    })
}

/// Two hosts know different views by one name: two changes were decided to follow one view (I2).
#[must_use]
pub fn differing(said: &[(HostIndex, Groups)]) -> Option<String> {
    let mut known: BTreeMap<ViewId, (&Row, HostIndex)> = BTreeMap::new();
    for (host, row) in rows(said) {
        let (other, first) = *known.entry(row.view).or_insert((row, host));
        if (&other.members, other.range) != (&row.members, row.range) {
            return Some(format!(
                "n{} and n{} know view {} of group {:016x} differently: {other:?}; {row:?}",
                first + 1,
                host + 1,
                row.view.version,
                row.view.group.0
            ));
        }
    }
    None
}

/// Views of which a majority of the members are in, so that they could answer now.
fn alive(said: &[(HostIndex, Groups)], counts: impl Fn(&Row) -> bool) -> Vec<&Row> {
    let mut installed: BTreeMap<ViewId, (&Row, usize)> = BTreeMap::new();
    for (_, row) in rows(said).filter(|(_, row)| counts(row)) {
        installed.entry(row.view).or_insert((row, 0)).1 += 1;
    }
    let has_majority = |(row, count): &(&Row, usize)| *count > row.members.len() / 2;
    installed.into_values().filter(has_majority).map(|(row, _)| row).collect()
}

/// Two views of one token have a majority of their members at one moment, so that two disjoint
/// quorums could answer (I4, I8). Who has in its log that a view ends answers in it no more without
/// the others hearing of that.
#[must_use]
pub fn rivals(said: &[(HostIndex, Groups)]) -> Option<String> {
    let alive = alive(said, |row| row.is_member && !row.is_ending);
    let overlap = |one: Range, other: Range| one.contains(other.high) || other.contains(one.high);
    for (place, one) in alive.iter().enumerate() {
        for other in &alive[place + 1..] {
            if overlap(one.range, other.range) {
                return Some(format!("two views could answer at once: {one:?}; {other:?}"));
            }
        }
    }
    None
}

/// Whether the ranges of the groups that serve cover the whole ring (I8).
#[must_use]
pub fn covers(said: &[(HostIndex, Groups)]) -> bool {
    let width = |row: &Row| match row.range.high.wrapping_sub(row.range.low) {
        0 => 1 << 64,
        width => u128::from(width),
    };
    // They do not overlap, so it is enough to add up.
    alive(said, |row| row.is_ready).into_iter().map(width).sum::<u128>() == 1 << 64
}

/// Whether buckets have moved, so that what lies where no range tells.
fn have_moved(said: &[(HostIndex, Groups)]) -> bool {
    said.iter().any(|(_, groups)| groups.number("buckets_moved") > 0)
}

/// The newest that anybody knows of each group.
fn newest(said: &[(HostIndex, Groups)]) -> BTreeMap<GroupId, &Row> {
    let mut newest: BTreeMap<GroupId, &Row> = BTreeMap::new();
    for (_, row) in rows(said) {
        let known = newest.entry(row.view.group).or_insert(row);
        if row.view.version > known.view.version {
            *known = row;
        }
    }
    newest
}

/// Whether a majority of a view's members has all of it, of hosts that are not among these.
fn is_kept(said: &[(HostIndex, Groups)], without: &[HostIndex], row: &Row) -> bool {
    let its = rows(said).filter(|(host, other)| other.view == row.view && !without.contains(host));
    its.filter(|(_, other)| other.has_all).count() > row.members.len() / 2
}

fn rows(said: &[(HostIndex, Groups)]) -> impl Iterator<Item = (HostIndex, &Row)> {
    said.iter().flat_map(|(host, groups)| groups.rows.iter().map(|row| (*host, row)))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row(version: u64, range: (u64, u64), members: &[u64]) -> Row {
        Row {
            view: ViewId { group: GroupId(7), version },
            range: Range { low: range.0, high: range.1 },
            members: members.iter().copied().map(NodeId).collect(),
            is_member: true,
            is_ending: false,
            is_ready: true,
            has_all: true,
            is_waiting: false,
            is_learning: false,
            bytes: 0,
        }
    }

    pub(crate) fn said(rows: &[Row]) -> Vec<(HostIndex, Groups)> {
        let of = |row: &Row| Groups { rows: vec![row.clone()], ..Groups::default() };
        rows.iter().map(of).enumerate().collect()
    }

    #[test]
    fn two_decisions_after_one_view_are_found() {
        let (one, other) = (row(2, (0, 9), &[1, 2]), row(2, (0, 9), &[1, 3]));
        assert!(differing(&said(&[one.clone(), one.clone()])).is_none());
        assert!(differing(&said(&[one, other])).is_some());
    }

    #[test]
    fn two_views_that_could_answer_at_once_are_found() {
        let (old, new) = (row(1, (0, 9), &[1, 2, 3]), row(2, (0, 9), &[1, 2, 4]));
        // 3 has not heard of the change, 2 and 4 have.
        assert!(rivals(&said(&[new.clone(), new.clone(), old.clone()])).is_none());
        // 4 was let in before a majority had left, and 5 for it.
        let next = row(3, (0, 9), &[1, 4, 5]);
        let both = [old.clone(), old.clone(), next.clone(), next.clone()];
        assert!(rivals(&said(&both)).is_some());
        // Who has retired counts for nothing.
        let retired = Row { is_member: false, ..old };
        assert!(rivals(&said(&[retired.clone(), retired, next.clone(), next])).is_none());
    }

    #[test]
    fn a_majority_that_holds_all_is_asked_for() {
        let view = row(1, (0, 9), &[1, 2, 3]);
        let busy = Row { is_ready: false, ..view.clone() };
        let lacks =
            |rows: &[Row], member: u64| lacking_a_majority(&said(rows), NodeId(member)).is_some();
        assert!(!lacks(&[view.clone(), view.clone()], 3));
        assert!(lacks(&[view.clone(), busy.clone()], 3), "one still copies");
        assert!(!lacks(&[view.clone(), busy], 4), "the group does not name it");
        let next = row(2, (0, 9), &[1, 2, 4]);
        assert!(lacks(&[view.clone(), view.clone(), next], 3), "one member has come so far");
        let split = Row { is_member: false, ..view };
        assert!(!lacks(&[split.clone(), split], 3));
    }

    #[test]
    fn a_token_that_nobody_serves_is_found() {
        let members = [1, 2, 3];
        let (one, other) = (row(1, (0, 9), &members), row(1, (9, 0), &members));
        let rest = Row { view: ViewId { group: GroupId(8), version: 1 }, ..other };
        let all = [one.clone(), one.clone(), rest.clone(), rest.clone()];
        assert!(covers(&said(&all)));
        assert!(!covers(&said(&all[..3])), "a minority serves the rest");
        assert!(covers(&said(&[row(1, (5, 5), &[1])])), "one group of all");
    }
}
