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
use super::operate::{Pairs, answer, ask, ask_by, failure, parameter, unexpected};
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
use tokio::task::JoinSet;
use tokio::time::Instant;

/// How much longer than the lanes may take the door waits for the core thread.
const GRACE: Duration = Duration::from_secs(1);
/// How long all lanes may take together: whoever asks waits a minute, the door as long as
/// [`Patience`](crate::web::Patience) says, and an order may have to follow.
const SURVEY_MAX: Duration = Duration::from_secs(45);

/// What a lane has answered, or a status and why it has not.
type LaneAnswer = Result<OperatorReply, (StatusCode, String)>;

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
    pub async fn of(door: &Arc<Door>, node: NodeId) -> Result<Survey, Response> {
        let until = Instant::now() + SURVEY_MAX;
        let OperatorReply::Keyspaces(catalog) = ask(door, OperatorRequest::Keyspaces).await? else {
            return Err(unexpected());
        };
        let names = catalog.list.iter().map(|(keyspace, _)| Some(keyspace.name.clone()));
        let door = Arc::clone(door);
        let ask = move |request| {
            let door = Arc::clone(&door);
            // Lanes say more than that they are silent, if they have the time.
            let of_lanes = (until - GRACE).into_std();
            async move { ask_by(&door, request, door.timeout + GRACE, Some(of_lanes)).await }
        };
        Survey::over(names.chain([None]).collect(), node, until, ask).await
    }

    /// Asks all these lanes at once: one after the other, a few that are silent would take longer
    /// than anybody waits.
    async fn over<A, F>(
        owners: Vec<Owner>,
        node: NodeId,
        until: Instant,
        ask: A,
    ) -> Result<Survey, Response>
    where
        A: Fn(OperatorRequest) -> F + Clone + Send + 'static,
        F: Future<Output = LaneAnswer> + Send + 'static,
    {
        let mut walks = JoinSet::new();
        for (place, owner) in owners.into_iter().enumerate() {
            let ask = ask.clone();
            walks.spawn(async move {
                let mut part = Survey::default();
                let walked = part.walk(owner, node, until, ask).await;
                (place, walked.map(|()| part))
            });
        }
        let mut walked = walks.join_all().await;
        // In their own order, whichever answered first.
        walked.sort_by_key(|(place, _)| *place);
        let mut survey = Survey::default();
        for (_, part) in walked {
            survey.add(part?);
        }
        Ok(survey)
    }

    fn add(&mut self, other: Survey) {
        self.parts.extend(other.parts);
        self.unknown.extend(other.unknown);
        for (awaited, parts) in other.awaited {
            *self.awaited.entry(awaited).or_default() += parts;
        }
    }

    /// Goes once along the parts of a lane, as far as they answer in time.
    async fn walk<F>(
        &mut self,
        owner: Owner,
        node: NodeId,
        until: Instant,
        ask: impl Fn(OperatorRequest) -> F,
    ) -> Result<(), Response>
    where
        F: Future<Output = LaneAnswer>,
    {
        let (mut partition, mut known) = (Some(0), BTreeSet::new());
        while let Some(from) = partition {
            let request =
                OperatorRequest::Examine { keyspace: owner.clone(), from, leaver: Some(node) };
            let asked = tokio::time::timeout_at(until, ask(request)).await;
            let late = || (StatusCode::GATEWAY_TIMEOUT, String::from("they take too long"));
            let parts = match asked.unwrap_or_else(|_| Err(late())) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::part::Examination;
    use tokio::sync::Barrier;

    fn owners(count: usize) -> Vec<Owner> {
        (0..count).map(|number| Some(format!("k{number}"))).chain([None]).collect()
    }

    #[tokio::test]
    async fn lanes_are_asked_at_once_and_told_in_order() {
        const LANES: usize = 20;
        let all_asked = Arc::new(Barrier::new(LANES + 1));
        let ask = move |_: OperatorRequest| {
            let all_asked = Arc::clone(&all_asked);
            async move {
                // The last one is the first to go on.
                all_asked.wait().await;
                Err((StatusCode::SERVICE_UNAVAILABLE, String::from("no quorum")))
            }
        };
        let until = Instant::now() + Duration::from_secs(60);
        let survey = Survey::over(owners(LANES), NodeId(1), until, ask).await.expect("it ends");
        assert!(survey.unknown.iter().all(|it| it.why == "no quorum"), "nobody was late");
        let told: Vec<Owner> = survey.unknown.into_iter().map(|it| it.owner).collect();
        assert_eq!(told, owners(LANES));
    }

    #[tokio::test]
    async fn who_is_silent_is_unknown_at_the_end_and_the_others_are_not() {
        let ask = |request: OperatorRequest| async move {
            match request {
                OperatorRequest::Examine { keyspace: Some(_), .. } => std::future::pending().await,
                _ => {
                    let end = Examination { parts: Vec::new(), next: None };
                    Ok(OperatorReply::Examined(Box::new(end)))
                }
            }
        };
        let until = Instant::now() + Duration::from_millis(50);
        let survey = Survey::over(owners(2), NodeId(1), until, ask).await.expect("it ends");
        let told: Vec<Owner> = survey.unknown.into_iter().map(|it| it.owner).collect();
        assert_eq!(told, owners(2)[..2]);
    }
}
