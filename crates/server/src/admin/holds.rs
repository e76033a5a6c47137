//! `GET /holds?node=..`: how many groups of the whole cluster have a node as a member.
//!
//! Each host knows its own groups and some others, and those of others may be old. So every range
//! of the ring is asked for, one after the other, and a quorum of its group says who its members
//! are. A range whose group has no quorum is reported as unknown. The system group of the catalog
//! counts as one more, as this host knows it, and so does each position of a keyspace that has
//! some, also one that the node had and has not handed over yet.

use super::Door;
use super::operate::{Pairs, answer, ask_within, failure, parameter, unexpected};
use crate::host::{Question, Reply};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::keyspace::Keyspace;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How much longer than the lanes may take the door waits for the core thread.
const GRACE: Duration = Duration::from_secs(1);

/// What one keyspace's groups say.
struct Walk {
    held: usize,
    /// From where on nobody answered, and why.
    unknown: Option<(u64, String)>,
}

/// `GET /holds?node=..`, a node id.
pub(super) async fn holds(State(door): State<Arc<Door>>, pairs: Pairs) -> Response {
    let Some(node) = parameter(&pairs, "node").and_then(parse) else {
        return failure(StatusCode::BAD_REQUEST, "say which host: node=NODE, its node id");
    };
    let (mut held, mut unknown, mut grouped) = (0, Vec::new(), Vec::new());
    match ask_within(&door, Question::Keyspaces, door.timeout + GRACE).await {
        Ok(Reply::Keyspaces(known)) => {
            held += usize::from(known.members.contains(&node));
            for (keyspace, _) in &known.list {
                if keyspace.positions.is_empty() {
                    grouped.push(keyspace.name.clone());
                }
                held += positions(keyspace, node);
            }
        }
        _ => return unexpected(),
    }
    for keyspace in &grouped {
        let Some(walk) = walk(&door, keyspace, node).await else { return unexpected() };
        held += walk.held;
        unknown.extend(walk.unknown.map(|(from, why)| {
            json!({ "keyspace": keyspace, "from": format!("{from:016x}"), "why": why })
        }));
    }
    answer(StatusCode::OK, &json!({ "groups": held, "unknown": Value::from(unknown) }))
}

/// How many positions a node has, or has not handed over.
fn positions(keyspace: &Keyspace, node: NodeId) -> usize {
    let has = keyspace.positions.iter().filter(|place| place.node == node).count();
    has + keyspace.former.iter().filter(|one| one.node == node).count()
}

/// Goes once along the ring; none if the core thread answers another question.
async fn walk(door: &Door, keyspace: &str, node: NodeId) -> Option<Walk> {
    let mut groups: BTreeSet<GroupId> = BTreeSet::new();
    let mut position = Some(0);
    while let Some(at) = position {
        let question = Question::Examine { keyspace: keyspace.to_owned(), position: at };
        match ask_within(door, question, door.timeout + GRACE).await {
            Ok(Reply::Explained(explanation)) => {
                let view = &explanation.view;
                if view.members().contains(&node) {
                    groups.insert(view.id.group);
                }
                position = view.range.after(at);
            }
            Ok(_) => return None,
            Err((_, why)) => return Some(Walk { held: groups.len(), unknown: Some((at, why)) }),
        }
    }
    Some(Walk { held: groups.len(), unknown: None })
}

fn parse(text: &str) -> Option<NodeId> {
    let is_id = text.len() == 16 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_id.then(|| u64::from_str_radix(text, 16).ok().map(NodeId))?
}
