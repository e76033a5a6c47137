//! `GET /holds?node=..`: how many groups of the whole cluster have a node as a member.
//!
//! Each host knows its own groups and some others, and those of others may be old. So every range
//! of the ring is asked for, one after the other, and a quorum of its group says who its members
//! are. A range whose group has no quorum is reported as unknown. The system group of the catalog
//! counts as one more, as this host knows it.

use super::Door;
use super::operate::{Pairs, answer, ask_within, failure, parameter, unexpected};
use crate::host::{Question, Reply};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use quorate_kernel::ids::{GroupId, NodeId};
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
    let (mut held, mut unknown) = (0, Vec::new());
    match ask_within(&door, Question::Keyspaces, door.timeout + GRACE).await {
        Ok(Reply::Keyspaces(known)) => held += usize::from(known.members.contains(&node)),
        _ => return unexpected(),
    }
    for keyspace in door.shared.keyspaces().iter().map(|keyspace| &keyspace.name) {
        let Some(walk) = walk(&door, keyspace, node).await else { return unexpected() };
        held += walk.held;
        unknown.extend(walk.unknown.map(|(from, why)| {
            json!({ "keyspace": keyspace, "from": format!("{from:016x}"), "why": why })
        }));
    }
    answer(StatusCode::OK, &json!({ "groups": held, "unknown": Value::from(unknown) }))
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
