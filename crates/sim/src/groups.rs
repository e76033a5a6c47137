//! What the hosts say of their groups, and what must hold of all of them together.

use crate::host::{Host, Running};
use crate::queue::HostIndex;
use quorate_kernel::ids::LaneId;
use quorate_kernel::process::Inspect;
use quorate_kernel::view::Range;
use std::collections::BTreeMap;
use std::fmt::Display;

/// How one host stands in one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The group's name.
    pub group: String,
    /// The version of the installed view.
    pub version: u64,
    /// The view's range.
    pub range: Range,
    /// The view's members, as the console shows them.
    pub members: Vec<String>,
    /// Whether the host is one of them and has not left.
    pub is_member: bool,
    /// Whether it holds all data.
    pub is_ready: bool,
    /// About how many bytes it holds.
    pub bytes: u64,
}

/// What one host says of its groups.
#[derive(Clone, Debug, Default)]
pub struct Groups {
    /// Fields that are numbers.
    fields: BTreeMap<&'static str, u64>,
    /// The groups.
    pub rows: Vec<Row>,
}

impl Inspect for Groups {
    fn field(&mut self, name: &'static str, value: &dyn Display) {
        if let Ok(number) = value.to_string().parse() {
            self.fields.insert(name, number);
        }
    }

    fn row(&mut self, table: &'static str, cells: &[(&'static str, &dyn Display)]) {
        if table != "groups" {
            return;
        }
        let cell = |name: &str| {
            let found = cells.iter().find(|(known, _)| *known == name);
            found.map_or_else(String::new, |(_, value)| value.to_string())
        };
        let hex = |name: &str| u64::from_str_radix(&cell(name), 16).unwrap_or(0);
        let standing = cell("status");
        self.rows.push(Row {
            group: cell("group"),
            version: cell("version").parse().unwrap_or(0),
            range: Range { low: hex("low"), high: hex("high") },
            members: cell("members").split(',').map(str::to_owned).collect(),
            is_member: matches!(standing.as_str(), "ready" | "busy" | "forgot"),
            is_ready: standing == "ready",
            bytes: cell("bytes").parse().unwrap_or(0),
        });
    }
}

impl Groups {
    /// What a running host says of a lane; `None` if it does not run.
    #[must_use]
    pub fn of(host: &Host, lane: LaneId) -> Option<Groups> {
        let mut groups = Groups::default();
        host.inspect(lane, &mut groups);
        let own = host.node_id.to_string();
        for row in &mut groups.rows {
            // A learner copies data for a view that it is not in.
            row.is_member &= row.members.contains(&own);
            row.is_ready &= row.is_member;
        }
        (host.running != Running::Down).then_some(groups)
    }

    /// A field, 0 if it is not told.
    #[must_use]
    pub fn number(&self, name: &str) -> u64 {
        self.fields.get(name).copied().unwrap_or(0)
    }

    /// About how many bytes the host holds as a member.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.rows.iter().filter(|row| row.is_member).map(|row| row.bytes).sum()
    }

    /// What is moving or wished for here, if anything is.
    #[must_use]
    pub fn unsettled(&self) -> Option<String> {
        let names = ["groups_lacking_data", "transfers", "changes_wanted", "newcomers_awaited"];
        let name = names.into_iter().find(|name| self.number(name) > 0)?;
        Some(format!("{name} {}", self.number(name)))
    }
}

/// A group whose newest view has no majority of members that say they hold all data, of those that
/// name this member.
#[must_use]
pub fn lacking_a_majority<'a>(said: &'a [(HostIndex, Groups)], member: &str) -> Option<&'a str> {
    let mut newest: BTreeMap<&str, (&Row, usize)> = BTreeMap::new();
    for (_, row) in rows(said).filter(|(_, row)| row.is_member) {
        let entry = newest.entry(&row.group).or_insert((row, 0));
        if row.version > entry.0.version {
            *entry = (row, 0);
        }
        if row.version == entry.0.version {
            entry.1 += usize::from(row.is_ready);
        }
    }
    let names = |(_, row): &(HostIndex, &Row)| row.members.iter().any(|name| name == member);
    let mut named = rows(said).filter(names).map(|(_, row)| row.group.as_str());
    named.find(|group| {
        // A group that was split has members no more, its parts have.
        newest.get(group).is_some_and(|(row, ready)| *ready <= row.members.len() / 2)
    })
}

/// Two hosts know different views by one name: two changes were decided to follow one view (I2).
#[must_use]
pub fn differing(said: &[(HostIndex, Groups)]) -> Option<String> {
    let mut known: BTreeMap<(&str, u64), (&Row, HostIndex)> = BTreeMap::new();
    for (host, row) in rows(said) {
        let (other, first) = *known.entry((&row.group, row.version)).or_insert((row, host));
        if (&other.members, other.range) != (&row.members, row.range) {
            return Some(format!(
                "n{} and n{} know view {} of group {} differently: {other:?}; {row:?}",
                first + 1,
                host + 1,
                row.version,
                row.group
            ));
        }
    }
    None
}

/// Views of which a majority of the members are in, so that they could answer now.
fn alive(said: &[(HostIndex, Groups)], counts: impl Fn(&Row) -> bool) -> Vec<&Row> {
    let mut installed: BTreeMap<(&str, u64), (&Row, usize)> = BTreeMap::new();
    for (_, row) in rows(said).filter(|(_, row)| counts(row)) {
        installed.entry((&row.group, row.version)).or_insert((row, 0)).1 += 1;
    }
    let has_majority = |(row, count): &(&Row, usize)| *count > row.members.len() / 2;
    installed.into_values().filter(has_majority).map(|(row, _)| row).collect()
}

/// Two views of one token have a majority of their members at one moment, so that two disjoint
/// quorums could answer (I4, I8).
#[must_use]
pub fn rivals(said: &[(HostIndex, Groups)]) -> Option<String> {
    let alive = alive(said, |row| row.is_member);
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

fn rows(said: &[(HostIndex, Groups)]) -> impl Iterator<Item = (HostIndex, &Row)> {
    said.iter().flat_map(|(host, groups)| groups.rows.iter().map(|row| (*host, row)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(version: u64, range: (u64, u64), members: &[&str]) -> Row {
        Row {
            group: "g".to_owned(),
            version,
            range: Range { low: range.0, high: range.1 },
            members: members.iter().map(|name| (*name).to_owned()).collect(),
            is_member: true,
            is_ready: true,
            bytes: 0,
        }
    }

    fn said(rows: &[Row]) -> Vec<(HostIndex, Groups)> {
        let of = |row: &Row| Groups { rows: vec![row.clone()], ..Groups::default() };
        rows.iter().map(of).enumerate().collect()
    }

    #[test]
    fn two_decisions_after_one_view_are_found() {
        let (one, other) = (row(2, (0, 9), &["a", "b"]), row(2, (0, 9), &["a", "c"]));
        assert!(differing(&said(&[one.clone(), one.clone()])).is_none());
        assert!(differing(&said(&[one, other])).is_some());
    }

    #[test]
    fn two_views_that_could_answer_at_once_are_found() {
        let (old, new) = (row(1, (0, 9), &["a", "b", "c"]), row(2, (0, 9), &["a", "b", "d"]));
        // c has not heard of the change, b and d have.
        assert!(rivals(&said(&[new.clone(), new.clone(), old.clone()])).is_none());
        // d was let in before a majority had left, and e for it.
        let next = row(3, (0, 9), &["a", "d", "e"]);
        let both = [old.clone(), old.clone(), next.clone(), next.clone()];
        assert!(rivals(&said(&both)).is_some());
        // Who has retired counts for nothing.
        let retired = Row { is_member: false, ..old };
        assert!(rivals(&said(&[retired.clone(), retired, next.clone(), next])).is_none());
    }

    #[test]
    fn a_majority_that_holds_all_is_asked_for() {
        let view = row(1, (0, 9), &["a", "b", "c"]);
        let busy = Row { is_ready: false, ..view.clone() };
        let lacks = |rows: &[Row], member: &str| lacking_a_majority(&said(rows), member).is_some();
        assert!(!lacks(&[view.clone(), view.clone()], "c"));
        assert!(lacks(&[view.clone(), busy.clone()], "c"), "one still copies");
        assert!(!lacks(&[view.clone(), busy], "d"), "the group does not name it");
        let next = row(2, (0, 9), &["a", "b", "d"]);
        assert!(lacks(&[view.clone(), view.clone(), next], "c"), "one member has come so far");
        let split = Row { is_member: false, ..view };
        assert!(!lacks(&[split.clone(), split], "c"));
    }

    #[test]
    fn a_token_that_nobody_serves_is_found() {
        let members = ["a", "b", "c"];
        let (one, other) = (row(1, (0, 9), &members), row(1, (9, 0), &members));
        let rest = Row { group: "h".to_owned(), ..other };
        let all = [one.clone(), one.clone(), rest.clone(), rest.clone()];
        assert!(covers(&said(&all)));
        assert!(!covers(&said(&all[..3])), "a minority serves the rest");
        assert!(covers(&said(&[row(1, (5, 5), &["a"])])), "one group of all");
    }
}
