//! What one host says of the ring: its hosts, and the groups that it knows.

use quorate_kernel::engine::Served;
use quorate_kernel::explanation::Explanation;
use quorate_kernel::ids::NodeId;
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_kernel::roll::Roll;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// One row that a lane shows of a table, cell by cell.
pub type Row = Vec<(&'static str, String)>;

/// Cells that are numbers to a reader but names to a program.
const NAMES: [&str; 4] = ["group", "low", "high", "members"];

/// What one host says of the ring.
#[derive(Clone, Debug)]
pub struct Report {
    /// The node that says so.
    pub me: NodeId,
    /// What it believes of the ring.
    pub ring: Arc<Ring>,
    /// The roll that it knows, if one is kept.
    pub roll: Option<Arc<Roll>>,
    /// The hosts that have numbers.
    pub numbers: Vec<(NodeId, u32)>,
    /// One for each lane that serves one here.
    pub keyspaces: Vec<KeyspaceReport>,
}

impl Report {
    /// The host that an operator means.
    ///
    /// # Errors
    /// Nobody is called so: a text that says which there are.
    pub fn meant(&self, text: &str) -> Result<&RingHost, String> {
        meant(&self.ring, &self.numbers, text)
    }
}

/// The host that an operator means by its node id, its address or its number, written as they are
/// shown. One that has left and joined again at its address is known as both: the one that is there
/// is meant.
///
/// # Errors
/// Nobody is called so: a text that says which there are.
pub(crate) fn meant<'r>(
    ring: &'r Ring,
    numbers: &[(NodeId, u32)],
    text: &str,
) -> Result<&'r RingHost, String> {
    let number = text.parse().ok().filter(|number: &u32| number.to_string() == text);
    let is_numbered = |node: NodeId| number.is_some_and(|number| numbers.contains(&(node, number)));
    let is_meant = |host: &&RingHost| {
        let node = host.who.node;
        node.to_string() == text || host.address == text || is_numbered(node)
    };
    let called = || ring.hosts().iter().filter(is_meant);
    let is_there = called().find(|host| host.standing != Standing::Left);
    is_there.or_else(|| called().next()).ok_or_else(|| {
        let known =
            ring.hosts().iter().map(|host| format!("{} at {}", host.who.node, host.address));
        format!("no host {text}; the ring has {}", known.collect::<Vec<String>>().join(", "))
    })
}

/// What one host says of a keyspace.
///
/// Each row of `groups` has the cells `group`, `low`, `high` (16 hexadecimal digits), `version`,
/// `members` (node ids with commas between), `status`, `role` and whatever else the engine shows.
#[derive(Clone, Debug)]
pub struct KeyspaceReport {
    /// The keyspace and its engine.
    pub entry: Served,
    /// The groups that this host knows.
    pub groups: Vec<Row>,
}

/// The word for how a host stands.
#[must_use]
pub fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Up => "up",
        Standing::Leaving => "leaving",
        Standing::Left => "left",
    }
}

/// A cell of a row; empty if there is none of this name.
#[must_use]
pub fn cell<'a>(row: &'a Row, name: &str) -> &'a str {
    row.iter().find(|(other, _)| *other == name).map_or("", |(_, text)| text.as_str())
}

impl Report {
    /// The number of a host, if it has one.
    #[must_use]
    pub fn number(&self, node: NodeId) -> Option<u32> {
        self.numbers.iter().find(|(other, _)| *other == node).map(|(_, number)| *number)
    }

    /// What a host is called where names are short: its number, or the end of its node id.
    #[must_use]
    pub fn label(&self, node: NodeId) -> String {
        match self.number(node) {
            Some(number) => number.to_string(),
            None => format!("…{}", &node.to_string()[12..]),
        }
    }

    /// The report as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        let hosts: Vec<Value> = self.ring.hosts().iter().map(|host| self.host(host)).collect();
        let keyspace = |keyspace: &KeyspaceReport| {
            let groups: Vec<Value> = keyspace.groups.iter().map(row).collect();
            json!({
                "name": keyspace.entry.keyspace.name,
                "replicas": keyspace.entry.keyspace.replicas(),
                "order": keyspace.entry.order(),
                "mode": keyspace.entry.mode(),
                "groups": groups,
            })
        };
        json!({
            "node": self.me.to_string(),
            "version": self.ring.version,
            "hosts": hosts,
            "roll": self.roll.as_ref().map(|roll| {
                json!({
                    "kind": roll.kind.name(),
                    "number": roll.number,
                    "members": roll.nodes.len(),
                    "goes_on": roll.goes_on,
                })
            }),
            "keyspaces": self.keyspaces.iter().map(keyspace).collect::<Vec<_>>(),
        })
    }

    fn host(&self, host: &RingHost) -> Value {
        let tokens: Vec<String> = host.tokens.iter().map(|token| format!("{token:016x}")).collect();
        let doors = host.doors.iter().map(|door| (door.name.clone(), door.address.clone().into()));
        json!({
            "host": self.number(host.who.node),
            "node": host.who.node.to_string(),
            "start": host.who.start.0,
            "address": host.address,
            "zone": host.zone,
            "tokens": tokens,
            "standing": standing(host.standing),
            "suspected": host.is_suspected,
            "on_roll": self.roll.as_ref().map(|roll| roll.contains(host.who.node)),
            "doors": Value::Object(doors.collect()),
        })
    }
}

fn row(row: &Row) -> Value {
    let value = |name: &str, text: &str| match text.parse::<u64>() {
        Ok(number) if !NAMES.contains(&name) => Value::from(number),
        _ if name == "members" => text.split(',').filter(|member| !member.is_empty()).collect(),
        _ => Value::from(text),
    };
    let cells = row.iter().map(|(name, text)| ((*name).to_owned(), value(name, text)));
    Value::Object(cells.collect::<Map<_, _>>())
}

/// How a read was served, as JSON.
#[must_use]
pub fn explanation(explanation: &Explanation) -> Value {
    let view = &explanation.view;
    let steps: Vec<Value> = explanation
        .steps
        .iter()
        .map(|step| {
            json!({
                "after_us": step.after.0 / 1_000,
                "member": step.member.map(|member| member.to_string()),
                "what": step.what,
            })
        })
        .collect();
    json!({
        "value_bytes": explanation.value_bytes,
        "token": format!("{:016x}", explanation.token),
        "coordinator": {
            "node": explanation.coordinator.node.to_string(),
            "start": explanation.coordinator.start.0,
        },
        "view": {
            "group": format!("{:016x}", view.id.group.0),
            "version": view.id.version,
            "low": format!("{:016x}", view.range.low),
            "high": format!("{:016x}", view.range.high),
            "members": view.members().iter().map(|node| node.to_string()).collect::<Vec<_>>(),
        },
        "steps": steps,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::report as sample;

    #[test]
    fn ids_stay_texts_and_counts_become_numbers() {
        let json = sample().json();
        assert_eq!(json["version"], 9);
        assert_eq!(json["hosts"][1]["suspected"], true);
        assert_eq!(json["hosts"][2]["standing"], "leaving");
        assert_eq!(json["hosts"][2]["host"], Value::Null);
        let group = &json["keyspaces"][0]["groups"][0];
        assert_eq!(group["version"], 4);
        assert_eq!(group["low"], "c000000000000000");
        assert_eq!(group["members"][2], "0000000000000003");
        assert_eq!(sample().label(NodeId(3)), "…0003");
    }
}
