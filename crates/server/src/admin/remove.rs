//! `POST /control/remove?node=..[&lose_data=true]`: a host is counted as gone for good.
//!
//! What that would cost is asked of every group of every keyspace as it is now. It is refused with
//! the groups' names if anything would be lost or stuck: a group whose majority would not answer
//! any more, a position of a keyspace that nobody else holds, the system group. `lose_data` skips
//! that, for a cluster that lost its data already.

use super::Door;
use super::holds::{Group, Survey, parse};
use super::operate::{Pairs, answer, ask, failure, parameter, unexpected};
use crate::host::{Question, Reply};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use quorate_kernel::ids::NodeId;
use quorate_kernel::ring::{Ring, Standing};
use quorate_protocols::catalog::moves;
use serde_json::json;
use std::sync::Arc;

/// How many reasons against a removal are told.
const TOLD_MAX: usize = 8;

/// `POST /control/remove?node=..[&lose_data=true]`.
pub(super) async fn remove(State(door): State<Arc<Door>>, pairs: Pairs) -> Response {
    let Some(host) = parameter(&pairs, "node") else {
        let text = "say which host: node=NODE, its node id, address or number";
        return failure(StatusCode::BAD_REQUEST, text);
    };
    let force = match parameter(&pairs, "lose_data") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return failure(StatusCode::BAD_REQUEST, "lose_data is true or false"),
    };
    if !force && let Err(response) = check(&door, host).await {
        return response;
    }
    match ask(&door, Question::Remove { host: host.to_owned(), force }).await {
        Ok(_) => answer(StatusCode::OK, &json!({ "noted": true })),
        Err(response) => response,
    }
}

/// Refuses a removal that costs something.
async fn check(door: &Door, host: &str) -> Result<(), Response> {
    let Reply::Ring(report) = ask(door, Question::Ring).await? else { return Err(unexpected()) };
    let known = report.ring.hosts().iter();
    let is_meant = |node: NodeId| {
        let number = report.numbers.iter().find(|(other, _)| *other == node);
        parse(host) == Some(node) || number.is_some_and(|(_, number)| number.to_string() == host)
    };
    let meant = known.clone().find(|it| is_meant(it.who.node) || it.address == host);
    // The overlay refuses what is unknown, and has no objection to what has left already.
    let Some(meant) = meant.filter(|it| it.standing != Standing::Left) else { return Ok(()) };
    let node = meant.who.node;
    if meant.standing == Standing::Up && !meant.is_suspected {
        // Refused here too: it may be suspected by when the overlay is asked.
        let why = format!("host {node} answers; drain it first, or stop it");
        return Err(failure(StatusCode::CONFLICT, why));
    }
    let survey = Survey::of(door, node).await?;
    let held = survey.held(node);
    let against = if !meant.is_suspected && meant.standing == Standing::Leaving && held > 0 {
        vec![format!("it answers and still is a member of {held} groups: wait until it is drained")]
    } else {
        losses(&survey, &report.ring, node)
    };
    if against.is_empty() {
        return Ok(());
    }
    let more = against.len().saturating_sub(TOLD_MAX);
    let mut text = against[..against.len() - more].join("; ");
    if more > 0 {
        text.push_str(&format!("; and {more} more"));
    }
    let why = format!(
        "host {node} is not removed: {text}. Bring hosts back or add some first; --lose-data \
         removes it all the same and gives up what it alone holds"
    );
    Err(failure(StatusCode::CONFLICT, why))
}

/// What would be lost or stuck without the node, each with its name.
fn losses(survey: &Survey, ring: &Ring, node: NodeId) -> Vec<String> {
    let is_there = |member: &&NodeId| {
        let host = ring.host(**member);
        **member != node && host.is_some_and(|it| it.standing != Standing::Left && !it.is_suspected)
    };
    let mut all = Vec::new();
    for Group { keyspace, view, answered } in &survey.groups {
        let (staying, count) =
            (view.members().iter().filter(is_there).count(), view.members().len());
        if staying < view.majority() {
            all.push(format!(
                "group {:016x} of keyspace {keyspace} would have {staying} of its {count} members, \
                 fewer than a majority: it could never be read, written or changed again",
                view.id.group.0
            ));
        } else if answered.iter().filter(|member| **member != node).count() < view.majority() {
            // A member that restarted without its memory answers, but what it held may be at the
            // host alone.
            all.push(format!(
                "group {:016x} of keyspace {keyspace} was read with the host's help: it may hold \
                 what another member has yet to get; wait until all are ready, or stop the host",
                view.id.group.0
            ));
        }
    }
    for part in &survey.unknown {
        all.push(format!(
            "the groups of keyspace {} from {:016x} on do not answer ({}), and it may be that they \
             need it",
            part.keyspace, part.from, part.why
        ));
    }
    for (keyspace, _) in &survey.catalog.list {
        if let Some(home) = moves::bereft(keyspace, ring, node) {
            all.push(format!(
                "the keys at position {home} of keyspace {} are held by no other host that answers \
                 and has all of them: they would be lost",
                keyspace.name
            ));
        }
    }
    let members = &survey.catalog.members;
    let staying = members.iter().filter(is_there).count();
    if members.contains(&node) && staying < members.len() / 2 + 1 {
        all.push(format!(
            "the system group would have {staying} of its {} members: keyspaces could never be \
             made or changed again",
            members.len()
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::holds::Unknown;
    use super::*;
    use quorate_kernel::ids::{GroupId, Incarnation, Start};
    use quorate_kernel::keyspace::Keyspaces;
    use quorate_kernel::ring::RingHost;
    use quorate_kernel::view::{Range, View, ViewId};

    fn ring(hosts: u64, suspected: &[u64]) -> Ring {
        let host = |node: u64| RingHost {
            who: Incarnation { node: NodeId(node), start: Start(1) },
            address: format!("127.0.0.1:{node}"),
            zone: String::new(),
            tokens: vec![node],
            standing: Standing::Up,
            is_suspected: suspected.contains(&node),
        };
        Ring::new(1, (1..=hosts).map(host).collect())
    }

    fn survey(members: &[u64]) -> Survey {
        let members: Vec<NodeId> = members.iter().map(|node| NodeId(*node)).collect();
        let view = View::new(ViewId { group: GroupId(7), version: 1 }, Range::ALL, members.clone());
        let answered = members.iter().skip(1).copied().collect();
        let catalog = Keyspaces { members, ..Keyspaces::default() };
        let groups = vec![Group { keyspace: String::from("carts"), view, answered }];
        Survey { catalog: Arc::new(catalog), groups, unknown: Vec::new() }
    }

    #[test]
    fn a_group_that_keeps_its_majority_loses_nothing() {
        assert_eq!(losses(&survey(&[1, 2, 3]), &ring(4, &[1]), NodeId(1)), [""; 0]);
    }

    #[test]
    fn a_group_that_loses_its_majority_is_named() {
        // Four of the six hosts answer, which is more than any majority of three.
        let against = losses(&survey(&[1, 2, 3]), &ring(6, &[1, 2]), NodeId(1));
        assert_eq!(against.len(), 2, "{against:?}");
        assert!(against[0].contains("of keyspace carts would have 1 of its 3 members"));
        assert!(against[1].contains("the system group"));
    }

    #[test]
    fn a_group_that_was_read_with_the_hosts_help_may_need_it() {
        // Host 3 is refilling: the read rested on 1, which is suspected but answers, and on 2.
        let mut helped = survey(&[1, 2, 3]);
        helped.groups[0].answered = vec![NodeId(1), NodeId(2)];
        let against = losses(&helped, &ring(4, &[1]), NodeId(1));
        assert_eq!(against.len(), 1, "{against:?}");
        assert!(against[0].contains("of keyspace carts was read with the host's help"));
    }

    #[test]
    fn a_group_that_does_not_answer_may_need_the_host() {
        let mut silent = survey(&[1, 2, 3]);
        let (keyspace, why) = (String::from("carts"), String::from("no quorum"));
        silent.unknown.push(Unknown { keyspace, from: 16, why });
        let against = losses(&silent, &ring(6, &[1]), NodeId(1));
        assert!(against[0].contains("carts from 0000000000000010 on do not answer (no quorum)"));
    }
}
