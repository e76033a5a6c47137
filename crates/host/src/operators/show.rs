//! What lanes show of their state, for metrics, `/status` and `/ring`.

use crate::cluster::sent::Sent;
use crate::metrics::KeyspaceCells;
use crate::ring::Row;
use quorate_kernel::ids::LaneId;
use quorate_kernel::process::Inspect;
use quorate_node::node::Node;
use std::fmt::Display;

/// Shows an engine's state to metrics and `/status`.
pub(crate) fn keyspace(node: &Node, lane: LaneId, sent: &Sent, cells: &KeyspaceCells) {
    cells.sent_bytes.set(sent.of(lane));
    let mut seen = Seen::default();
    node.inspect(lane, &mut seen);
    cells.groups.set(seen.groups);
    cells.groups_busy.set(seen.groups_busy);
    cells.moved_keys.set(seen.moved_keys);
    cells.moved_bytes.set(seen.moved_bytes);
    for (name, value) in &seen.fields {
        let Ok(number) = value.parse() else { continue };
        match *name {
            "view" => cells.view_version.set(number),
            "members" => cells.view_members.set(number),
            _ => {}
        }
    }
    cells.show(seen.fields);
}

/// What a lane shows, with its groups counted rather than listed.
#[derive(Default)]
struct Seen {
    fields: Vec<(&'static str, String)>,
    groups: u64,
    groups_busy: u64,
    moved_keys: u64,
    moved_bytes: u64,
}

impl Inspect for Seen {
    fn field(&mut self, name: &'static str, value: &dyn Display) {
        self.fields.push((name, value.to_string()));
    }

    fn row(&mut self, table: &'static str, cells: &[(&'static str, &dyn Display)]) {
        if table != "groups" {
            return;
        }
        self.groups += 1;
        for (name, cell) in cells {
            let number = || cell.to_string().parse::<u64>().unwrap_or(0);
            match *name {
                "status" => self.groups_busy += u64::from(cell.to_string() != "ready"),
                "moved_keys" => self.moved_keys += number(),
                "moved_bytes" => self.moved_bytes += number(),
                _ => {}
            }
        }
    }
}

/// The rows of one table that a lane shows.
pub(super) fn rows(node: &Node, lane: LaneId, table: &'static str) -> Vec<Row> {
    struct Rows(&'static str, Vec<Row>);
    impl Inspect for Rows {
        fn field(&mut self, _: &'static str, _: &dyn Display) {}

        fn row(&mut self, table: &'static str, cells: &[(&'static str, &dyn Display)]) {
            if table == self.0 {
                self.1.push(cells.iter().map(|(name, cell)| (*name, cell.to_string())).collect());
            }
        }
    }
    let mut rows = Rows(table, Vec::new());
    node.inspect(lane, &mut rows);
    rows.1
}
