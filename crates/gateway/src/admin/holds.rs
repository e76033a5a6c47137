//! `GET /holds?node=..`: how many parts of the whole cluster have a node among their holders, and
//! what keeps it if it leaves.
//!
//! Every lane is asked the same ([`Control::Examine`](quorate_kernel::operation::Control)): of a
//! keyspace on groups a quorum of each group says who its members are, since each host knows its
//! own groups and some others, and those of others may be old. Every member is asked, and the node
//! itself, what keeps it: it may hold what a member has yet to get, and a member that has not heard
//! that it leaves may take it in again. A keyspace on partitions says who
//! has them, or has not handed them over yet; the catalog is asked for the system group. A part
//! that nobody answers for is reported as unknown.

use super::Door;
use super::operate::{Pairs, answer, ask_within, failure, parameter, unexpected};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use quorate_host::{OperatorReply, OperatorRequest};
use quorate_kernel::ids::NodeId;
use quorate_kernel::part::{Awaited, Part, PartName};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How much longer than the lanes may take the door waits for the core thread.
const GRACE: Duration = Duration::from_secs(1);

/// Whose part it is: a keyspace's by name, or the catalog's.
pub(super) type Owner = Option<String>;

/// What nobody answered for.
pub(super) struct Unknown {
    /// Whose.
    pub owner: Owner,
    /// From which partition on.
    pub from: u64,
    /// What kept this host from finding out, in words for an operator.
    pub why: String,
}

/// What the whole cluster says of one node, as far as it answers.
#[derive(Default)]
pub(super) struct Survey {
    /// The parts that the node holds, or some of them.
    pub parts: Vec<(Owner, Part)>,
    /// Whom the node waits for if it leaves, and in how many parts.
    pub awaited: BTreeMap<Awaited, usize>,
    /// What nobody answered for.
    pub unknown: Vec<Unknown>,
}

impl Survey {
    /// Asks every lane of the cluster that holds something.
    pub async fn of(door: &Door, node: NodeId) -> Result<Survey, Response> {
        let failed = |(status, why): (StatusCode, String)| failure(status, why);
        let asked = ask_within(door, OperatorRequest::Keyspaces, door.timeout + GRACE).await;
        let OperatorReply::Keyspaces(catalog) = asked.map_err(failed)? else {
            return Err(unexpected());
        };
        let names = catalog.list.iter().map(|(keyspace, _)| Some(keyspace.name.clone()));
        let mut survey = Survey::default();
        for owner in names.chain([None]) {
            survey.walk(door, owner, node).await?;
        }
        Ok(survey)
    }

    /// Goes once along the parts of a lane, as far as they answer.
    async fn walk(&mut self, door: &Door, owner: Owner, node: NodeId) -> Result<(), Response> {
        let (mut partition, mut known) = (Some(0), BTreeSet::new());
        while let Some(from) = partition {
            let request =
                OperatorRequest::Examine { keyspace: owner.clone(), from, leaver: Some(node) };
            let parts = match ask_within(door, request, door.timeout + GRACE).await {
                Ok(OperatorReply::Examined(examination)) => {
                    partition = examination.next;
                    examination.parts
                }
                Ok(_) => return Err(unexpected()),
                Err((_, why)) => {
                    self.unknown.push(Unknown { owner, from, why });
                    return Ok(());
                }
            };
            for part in parts {
                for awaited in &part.awaited {
                    *self.awaited.entry(*awaited).or_default() += 1;
                }
                if part.name == PartName::Unknown {
                    let why = String::from("this host has not learnt yet who holds it");
                    self.unknown.push(Unknown { owner: owner.clone(), from, why });
                } else if part.holders.iter().any(|it| it.node == node) && known.insert(part.name) {
                    self.parts.push((owner.clone(), part));
                }
            }
        }
        Ok(())
    }

    /// How many seats the node has in them.
    pub fn held(&self, node: NodeId) -> usize {
        self.parts.iter().map(|(_, part)| part.seats_of(node)).sum()
    }
}

/// For what a host waits that leaves, in words.
pub(super) fn awaited_of(&(Awaited { node, what }, parts): &(Awaited, usize)) -> String {
    format!("host {node} {} ({parts} groups)", what.text())
}

/// What the parts of a lane are called together.
pub(super) fn groups_of(owner: &Owner) -> String {
    match owner {
        Some(keyspace) => format!("the groups of keyspace {keyspace}"),
        None => String::from("the groups of the catalog"),
    }
}

/// `GET /holds?node=..`, a node id.
pub(super) async fn holds(State(door): State<Arc<Door>>, pairs: Pairs) -> Response {
    let Some(node) = parameter(&pairs, "node").and_then(parse) else {
        return failure(StatusCode::BAD_REQUEST, "say which host: node=NODE, its node id");
    };
    let survey = match Survey::of(&door, node).await {
        Ok(survey) => survey,
        Err(response) => return response,
    };
    let unknown = survey.unknown.iter().map(|part| {
        let from = format!("{:016x}", part.from);
        json!({ "keyspace": part.owner, "from": from, "why": part.why })
    });
    let unknown: Vec<Value> = unknown.collect();
    let awaited = survey.awaited.iter().map(|(it, parts)| {
        let host = it.node.to_string();
        json!({ "host": host, "what": it.what.text(), "groups": parts })
    });
    let awaited: Vec<Value> = awaited.collect();
    let held = survey.held(node);
    answer(StatusCode::OK, &json!({ "groups": held, "awaited": awaited, "unknown": unknown }))
}

/// Reads a node id.
pub(super) fn parse(text: &str) -> Option<NodeId> {
    let is_id = text.len() == 16 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_id.then(|| u64::from_str_radix(text, 16).ok().map(NodeId))?
}
