//! What lanes show of their state, for metrics, `/status` and `/ring`.

use crate::metrics::{RoundKind, Shared};
use crate::ring::Row;
use quorate_kernel::ids::LaneId;
use quorate_kernel::process::Inspect;
use quorate_node::node::Node;
use std::fmt::Display;

/// Shows an engine's state to metrics and `/status`.
pub(super) fn keyspace(node: &Node, lane: LaneId, shared: &Shared, index: usize) {
    struct Fields(Vec<(&'static str, String)>);
    impl Inspect for Fields {
        fn field(&mut self, name: &'static str, value: &dyn Display) {
            self.0.push((name, value.to_string()));
        }
    }
    let mut fields = Fields(Vec::new());
    node.inspect(lane, &mut fields);
    let cells = &shared.keyspaces[index];
    for (name, value) in &fields.0 {
        let Ok(number) = value.parse() else { continue };
        match *name {
            "view" => cells.view_version.set(number),
            "members" => cells.view_members.set(number),
            "reads_in_one_round" => cells.rounds(RoundKind::Read).set(number),
            "write_backs" => cells.rounds(RoundKind::WriteBack).set(number),
            "writes" => cells.rounds(RoundKind::Write).set(number),
            "queries" => cells.rounds(RoundKind::Query).set(number),
            "pages" => cells.rounds(RoundKind::Scan).set(number),
            _ => {}
        }
    }
    cells.show(fields.0);
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
