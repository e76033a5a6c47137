//! `POST /control/remove?node=..[&lose_data=true]`: a host is counted as gone for good.
//!
//! What that would cost is asked of every group of every keyspace as it is now. It is refused with
//! the groups' names if anything would be lost or stuck: a group whose majority would not answer
//! any more, a partition of a keyspace that nobody else holds, the system group. `lose_data` skips
//! that, for a cluster that lost its data already.

use super::Door;
use super::holds::{Owner, Survey, Unknown, awaited_of, groups_of};
use super::operate::{Pairs, answer, ask, failure, misfit, parameter, unexpected};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use quorate_host::{OperatorReply, OperatorRequest};
use quorate_kernel::ids::NodeId;
use quorate_kernel::part::{Await, Awaited, Left, Part, PartName};
use quorate_kernel::ring::{Ring, RingHost, Standing};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many reasons against a removal are told.
const TOLD_MAX: usize = 8;

/// `POST /control/remove?node=..[&lose_data=true]`.
pub(super) async fn remove(State(door): State<Arc<Door>>, pairs: Pairs) -> Response {
    if let Some(response) = misfit(&pairs, &["node", "lose_data"]) {
        return response;
    }
    let Some(host) = parameter(&pairs, "node") else {
        let text = "say which host: node=NODE, its node id, address or number";
        return failure(StatusCode::BAD_REQUEST, text);
    };
    let force = match parameter(&pairs, "lose_data") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return failure(StatusCode::BAD_REQUEST, "lose_data is true or false"),
    };
    match remove_if(&door, host, force).await {
        Ok(()) => answer(StatusCode::OK, &json!({ "noted": true })),
        Err(response) => response,
    }
}

/// Removes the host that is meant, unless that costs something or it is forced.
async fn remove_if(door: &Arc<Door>, host: &str, force: bool) -> Result<(), Response> {
    let OperatorReply::Ring(report) = ask(door, OperatorRequest::Ring).await? else {
        return Err(unexpected());
    };
    let meant = report.meant(host).map_err(|why| failure(StatusCode::NOT_FOUND, why))?;
    // The overlay has no objection to what has left already.
    if !force && meant.standing != Standing::Left {
        check(door, meant, &report.ring).await?;
    }
    // The one that was looked at, whatever others are called.
    let host = meant.who.node.to_string();
    ask(door, OperatorRequest::Remove { host, force }).await.map(|_| ())
}

/// Refuses a removal that costs something.
async fn check(door: &Arc<Door>, meant: &RingHost, ring: &Ring) -> Result<(), Response> {
    let node = meant.who.node;
    if meant.standing == Standing::Up && !meant.is_suspected {
        // Refused here too: it may be suspected by when the overlay is asked.
        let why = format!("host {node} answers; drain it first, or stop it");
        return Err(failure(StatusCode::CONFLICT, why));
    }
    let survey = Survey::of(door, node).await?;
    let against = match undrained(&survey, node) {
        Some(why) if meant.standing == Standing::Leaving && is_there(&survey, meant) => vec![why],
        _ => losses(&survey, ring, node),
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

/// Whether a host runs: it was asked with every group, and who was stopped a moment ago is not
/// suspected yet. Where it is in no group, the suspicion says it.
fn is_there(survey: &Survey, host: &RingHost) -> bool {
    let is_asked = survey
        .parts
        .iter()
        .any(|(owner, part)| owner.is_some() && matches!(part.name, PartName::Group(_)));
    let silent = Awaited { node: host.who.node, what: Await::Answer };
    !survey.awaited.contains_key(&silent) && (is_asked || !host.is_suspected)
}

/// Why a host that answers is not drained yet, if it is not.
fn undrained(survey: &Survey, node: NodeId) -> Option<String> {
    let held = survey.held(node);
    let awaited: Vec<String> =
        survey.awaited.iter().map(|(it, parts)| awaited_of(&(*it, *parts))).collect();
    let still = match held {
        0 if awaited.is_empty() => return None,
        0 => awaited.join(", "),
        _ => format!("it still is a member of {held} groups"),
    };
    Some(format!("it answers and is not drained yet ({still}): wait until it is drained"))
}

/// What would be lost or stuck without the node, each with its name.
fn losses(survey: &Survey, ring: &Ring, node: NodeId) -> Vec<String> {
    let is_absent = |holder: NodeId| {
        let host = ring.host(holder);
        host.is_none_or(|it| it.standing == Standing::Left || it.is_suspected)
    };
    let (mut all, mut bereft) = (Vec::new(), BTreeSet::new());
    for (owner, part) in &survey.parts {
        let left = part.without(&[node], is_absent);
        // Of partitions that lose all their keys the first one is told.
        let is_told = left != Left::Enough
            && (matches!(part.name, PartName::Group(_)) || bereft.insert(owner.clone()));
        if is_told {
            all.push(loss(owner, part, part.staying(&[node], is_absent)));
        }
    }
    for Unknown { owner, from, why } in &survey.unknown {
        all.push(format!(
            "{} from {from:016x} on do not answer ({why}), and it may be that they need it",
            groups_of(owner)
        ));
    }
    all
}

/// What becomes of a part of which too little is left, `staying` hosts among it.
fn loss(owner: &Owner, part: &Part, staying: usize) -> String {
    let count = part.holders.len();
    match (owner, part.name) {
        (None, _) => format!(
            "the system group would have {staying} of its {count} members: keyspaces could never \
             be made or changed again"
        ),
        (Some(keyspace), PartName::Group(id)) if staying < part.quorum => format!(
            "group {:016x} of keyspace {keyspace} would have {staying} of its {count} members, \
             fewer than a majority: it could never be read, written or changed again",
            id.group.0
        ),
        // A member that restarted without its memory answers, but what it held may be at the
        // host alone.
        (Some(keyspace), PartName::Group(id)) => format!(
            "group {:016x} of keyspace {keyspace} was read with the host's help: it may hold \
             what another member has yet to get; wait until all are ready, or stop the host",
            id.group.0
        ),
        (Some(keyspace), PartName::Partition(partition)) => format!(
            "the keys at partition {partition} of keyspace {keyspace} are held by no other host \
             that answers and has all of them: they would be lost"
        ),
        (Some(_), PartName::Unknown) => unreachable!("it is told as unknown"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_kernel::ids::LaneId;
    use quorate_kernel::ids::{GroupId, Incarnation, Start};
    use quorate_kernel::keyspace::{Keyspace, Partition, Settings};
    use quorate_kernel::part::Holds;
    use quorate_kernel::view::{Range, View, ViewId};

    fn ring(hosts: u64, suspected: &[u64]) -> Ring {
        let host = |node: u64| RingHost {
            who: Incarnation { node: NodeId(node), start: Start(1) },
            address: format!("127.0.0.1:{node}"),
            zone: String::new(),
            tokens: vec![node],
            standing: Standing::Up,
            is_suspected: suspected.contains(&node),
            doors: Vec::new(),
        };
        Ring::new(1, (1..=hosts).map(host).collect())
    }

    /// A group of these members, of which some were asked, and the system group.
    fn survey(members: &[u64], answered: &[u64]) -> Survey {
        let members = members.iter().map(|node| NodeId(*node)).collect();
        let view = View::new(ViewId { group: GroupId(7), version: 1 }, Range::ALL, members);
        let group =
            Part::of_group(&view, view.majority(), |node| match answered.contains(&node.0) {
                true => Holds::Confirmed,
                false => Holds::Some,
            });
        let system = Part::of_group(&view, view.majority(), |_| Holds::Recorded);
        let parts = vec![(Some(String::from("carts")), group), (None, system)];
        Survey { parts, ..Survey::default() }
    }

    #[test]
    fn a_host_that_answers_is_drained_when_nobody_needs_it() {
        let mut drained = survey(&[2, 3, 4], &[2, 3]);
        drained.parts.clear();
        assert_eq!(undrained(&drained, NodeId(1)), None);
        drained.awaited.insert(Awaited { node: NodeId(1), what: Await::Release }, 2);
        drained.awaited.insert(Awaited { node: NodeId(4), what: Await::Data }, 1);
        let why = undrained(&drained, NodeId(1)).expect("it keeps what 4 needs");
        assert!(why.contains("host 0000000000000001 keeps data for others (2 groups)"), "{why}");
        assert!(why.contains("host 0000000000000004 has yet to get data (1 groups)"), "{why}");
        let why = undrained(&survey(&[1, 2, 3], &[2, 3]), NodeId(1)).expect("it is a member");
        assert!(why.contains("still is a member of 2 groups"), "{why}");
    }

    #[test]
    fn who_was_stopped_a_moment_ago_is_not_there_and_who_is_suspected_may_be() {
        let (mut survey, ring) = (survey(&[2, 3, 4], &[2, 3]), ring(4, &[2]));
        let host = |node| ring.host(NodeId(node)).expect("it is there");
        assert!(is_there(&survey, host(1)) && is_there(&survey, host(2)), "they have answered");
        survey.awaited.insert(Awaited { node: NodeId(1), what: Await::Answer }, 2);
        assert!(!is_there(&survey, host(1)));
        survey.parts.clear();
        assert!(!is_there(&survey, host(1)), "it is a member of none, and was asked for release");
        survey.awaited.clear();
        assert!(is_there(&survey, host(1)) && !is_there(&survey, host(2)), "nobody was asked");
    }

    #[test]
    fn a_group_that_keeps_its_majority_loses_nothing() {
        assert_eq!(losses(&survey(&[1, 2, 3], &[2, 3]), &ring(4, &[1]), NodeId(1)), [""; 0]);
    }

    #[test]
    fn a_group_that_loses_its_majority_is_named() {
        // Four of the six hosts answer, which is more than any majority of three.
        let against = losses(&survey(&[1, 2, 3], &[2, 3]), &ring(6, &[1, 2]), NodeId(1));
        assert_eq!(against.len(), 2, "{against:?}");
        assert!(against[0].contains("of keyspace carts would have 1 of its 3 members"));
        assert!(against[1].contains("the system group"));
    }

    #[test]
    fn a_group_that_was_read_with_the_hosts_help_may_need_it() {
        // Host 3 is refilling: the read rested on 1, which is suspected but answers, and on 2.
        let helped = survey(&[1, 2, 3], &[1, 2]);
        let against = losses(&helped, &ring(4, &[1]), NodeId(1));
        assert_eq!(against.len(), 1, "{against:?}");
        assert!(against[0].contains("of keyspace carts was read with the host's help"));
    }

    #[test]
    fn a_group_that_does_not_answer_may_need_the_host() {
        let mut silent = survey(&[1, 2, 3], &[2, 3]);
        let (owner, why) = (Some(String::from("carts")), String::from("no quorum"));
        silent.unknown.push(Unknown { owner, from: 16, why });
        let against = losses(&silent, &ring(6, &[1]), NodeId(1));
        assert!(against[0].contains("carts from 0000000000000010 on do not answer (no quorum)"));
    }

    #[test]
    fn keys_that_nobody_else_has_are_named_by_the_first_of_their_partitions() {
        let settings = Settings::from([(String::from("replicas"), String::from("1"))]);
        let mut carts = Keyspace::new("carts", LaneId(17), "any", settings, 1);
        let place = |node| Partition { node: NodeId(node), since: 1, is_settled: true };
        carts.partitions = [2, 1, 1].map(place).to_vec();
        let parts = carts.parts(|_| 1).into_iter().filter(|part| part.seats_of(NodeId(1)) > 0);
        let parts = parts.map(|part| (Some(String::from("carts")), part)).collect();
        let survey = Survey { parts, ..Survey::default() };
        assert_eq!(survey.held(NodeId(1)), 2);
        let against = losses(&survey, &ring(3, &[1]), NodeId(1));
        assert_eq!(against.len(), 1, "{against:?}");
        assert!(against[0].contains("the keys at partition 1 of keyspace carts are held by no"));
    }
}
