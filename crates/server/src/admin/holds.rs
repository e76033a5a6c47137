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
use quorate_kernel::explanation::Explanation;
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::{Keyspace, Keyspaces};
use quorate_kernel::view::View;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// How much longer than the lanes may take the door waits for the core thread.
const GRACE: Duration = Duration::from_secs(1);

/// A part of the ring whose group did not answer.
pub(super) struct Unknown {
    /// The keyspace.
    pub keyspace: String,
    /// From which position on.
    pub from: u64,
    /// Why.
    pub why: String,
}

/// A group that answered.
pub(super) struct Group {
    /// Its keyspace.
    pub keyspace: String,
    /// Its members.
    pub view: View,
    /// Those whose answers a read rested on: they have all that they have to hold. At least a
    /// majority of the view.
    pub answered: Vec<NodeId>,
}

/// What the whole cluster says of one node, as far as it answers.
pub(super) struct Survey {
    /// The keyspaces and the members of the system group.
    pub catalog: Arc<Keyspaces>,
    /// The groups that have the node as a member.
    pub groups: Vec<Group>,
    /// The parts whose groups did not answer.
    pub unknown: Vec<Unknown>,
}

impl Survey {
    /// Asks every group of the cluster.
    pub async fn of(door: &Door, node: NodeId) -> Result<Survey, Response> {
        let failed = |(status, why): (StatusCode, String)| failure(status, why);
        let asked = ask_within(door, Question::Keyspaces, door.timeout + GRACE).await;
        let Reply::Keyspaces(catalog) = asked.map_err(failed)? else { return Err(unexpected()) };
        let mut survey = Survey { catalog, groups: Vec::new(), unknown: Vec::new() };
        let all = Arc::clone(&survey.catalog);
        for (keyspace, _) in all.list.iter().filter(|(it, _)| it.positions.is_empty()) {
            survey.walk(door, &keyspace.name, node).await?;
        }
        Ok(survey)
    }

    /// Goes once along the ring of a keyspace, as far as groups answer.
    async fn walk(&mut self, door: &Door, keyspace: &str, node: NodeId) -> Result<(), Response> {
        let mut position = Some(0);
        while let Some(at) = position {
            let question = Question::Examine { keyspace: keyspace.to_owned(), position: at };
            match ask_within(door, question, door.timeout + GRACE).await {
                Ok(Reply::Explained(explanation)) => {
                    let Explanation { view, answered, .. } = *explanation;
                    position = view.range.after(at);
                    let is_new = || self.groups.iter().all(|known| known.view.id != view.id);
                    if view.members().contains(&node) && is_new() {
                        self.groups.push(Group { keyspace: keyspace.to_owned(), view, answered });
                    }
                }
                Ok(_) => return Err(unexpected()),
                Err((_, why)) => {
                    self.unknown.push(Unknown { keyspace: keyspace.to_owned(), from: at, why });
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// How many groups and positions the node has.
    pub fn held(&self, node: NodeId) -> usize {
        let positions = self.catalog.list.iter().map(|(keyspace, _)| positions(keyspace, node));
        let is_member = usize::from(self.catalog.members.contains(&node));
        self.groups.len() + positions.sum::<usize>() + is_member
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
        json!({ "keyspace": part.keyspace, "from": from, "why": part.why })
    });
    let unknown: Vec<Value> = unknown.collect();
    answer(StatusCode::OK, &json!({ "groups": survey.held(node), "unknown": unknown }))
}

/// How many positions a node has, or has not handed over.
fn positions(keyspace: &Keyspace, node: NodeId) -> usize {
    let has = keyspace.positions.iter().filter(|place| place.node == node).count();
    has + keyspace.former.iter().filter(|one| one.node == node).count()
}

/// Reads a node id.
pub(super) fn parse(text: &str) -> Option<NodeId> {
    let is_id = text.len() == 16 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    is_id.then(|| u64::from_str_radix(text, 16).ok().map(NodeId))?
}
