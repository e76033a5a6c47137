//! The catalog: which keyspaces there are, and orders to make, alter and drop them.
//!
//! The list is what this host knows; an order is answered when it is decided and known here.

use super::Door;
use super::operate::{Pairs, answer, ask, failure, misfit, parameter, repeated, unexpected};
use crate::units::spelt;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use quorate_host::engines;
use quorate_host::{OperatorReply, OperatorRequest};
use quorate_kernel::engine::Engine;
use quorate_kernel::ids::LaneId;
use quorate_kernel::keyspace::{Birth, Keyspace, KeyspaceOrder, Keyspaces, NewKeyspace, Settings};
use quorate_kernel::ring::Standing;
use quorate_kernel::rules::Alter;
use serde_json::{Value, json};
use std::sync::Arc;

/// `GET /keyspaces`.
pub(super) async fn list(State(door): State<Arc<Door>>) -> Response {
    match ask(&door, OperatorRequest::Keyspaces).await {
        Ok(OperatorReply::Keyspaces(keyspaces)) => answer(StatusCode::OK, &json_of(&keyspaces)),
        Ok(_) => unexpected(),
        Err(response) => response,
    }
}

/// `POST /control/keyspace/create?name=..&engine=..`, with each setting as a parameter.
pub(super) async fn create(State(door): State<Arc<Door>>, pairs: Pairs) -> Response {
    if let Some(response) = repeated(&pairs) {
        return response;
    }
    let Some(name) = parameter(&pairs, "name") else { return nameless() };
    let order = KeyspaceOrder::Create(NewKeyspace {
        name: name.to_owned(),
        engine: parameter(&pairs, "engine").unwrap_or(engines::usual()).to_owned(),
        settings: settings(&pairs, &["name", "engine"]),
    });
    give_and_note(&door, name, order).await
}

/// `POST /control/keyspace/alter?name=..`, with each setting to change as a parameter.
pub(super) async fn alter(State(door): State<Arc<Door>>, pairs: Pairs) -> Response {
    if let Some(response) = repeated(&pairs) {
        return response;
    }
    let Some(name) = parameter(&pairs, "name") else { return nameless() };
    let settings = settings(&pairs, &["name"]);
    let order = KeyspaceOrder::Alter { name: name.to_owned(), settings };
    give_and_note(&door, name, order).await
}

/// `POST /control/keyspace/drop?name=..`.
pub(super) async fn drop(State(door): State<Arc<Door>>, pairs: Pairs) -> Response {
    if let Some(response) = misfit(&pairs, &["name"]) {
        return response;
    }
    let Some(name) = parameter(&pairs, "name") else { return nameless() };
    give(&door, OperatorRequest::Keyspace(KeyspaceOrder::Drop { name: name.to_owned() })).await
}

/// `POST /control/keyspace/replace?name=..&partition=..&node=..`.
pub(super) async fn replace(State(door): State<Arc<Door>>, pairs: Pairs) -> Response {
    if let Some(response) = misfit(&pairs, &["name", "partition", "node"]) {
        return response;
    }
    let partition = parameter(&pairs, "partition").and_then(|text| text.parse().ok());
    let (name, host) = (parameter(&pairs, "name"), parameter(&pairs, "node"));
    let (Some(keyspace), Some(partition), Some(host)) = (name, partition, host) else {
        let text = "say which partition and host: name=NAME, partition=NUMBER, node=NODE";
        return failure(StatusCode::BAD_REQUEST, text);
    };
    let (keyspace, host) = (keyspace.to_owned(), host.to_owned());
    give(&door, OperatorRequest::Replace { keyspace, partition, host }).await
}

fn nameless() -> Response {
    failure(StatusCode::BAD_REQUEST, "say which keyspace: name=NAME")
}

async fn give(door: &Door, request: OperatorRequest) -> Response {
    match ask(door, request).await {
        Ok(_) => answer(StatusCode::OK, &json!({ "noted": true })),
        Err(response) => response,
    }
}

/// Gives an order about a keyspace, and remarks on what it asks for and cannot have yet.
async fn give_and_note(door: &Door, name: &str, order: KeyspaceOrder) -> Response {
    if let Err(response) = ask(door, OperatorRequest::Keyspace(order)).await {
        return response;
    }
    let note = lack_of_hosts(door, name).await;
    answer(StatusCode::OK, &json!({ "noted": true, "note": note }))
}

/// Says so if a keyspace wants more replicas than there are hosts.
async fn lack_of_hosts(door: &Door, name: &str) -> Option<String> {
    let Ok(OperatorReply::Keyspaces(known)) = ask(door, OperatorRequest::Keyspaces).await else {
        return None;
    };
    let Ok(OperatorReply::Ring(report)) = ask(door, OperatorRequest::Ring).await else {
        return None;
    };
    let replicas = known.list.iter().find(|(it, _)| it.name == name)?.0.replicas();
    let hosts = report.ring.hosts().iter().filter(|it| it.standing == Standing::Up).count();
    (hosts < replicas).then(|| {
        format!(
            "the cluster has {hosts} hosts, so each key has {hosts} replicas until {replicas} \
             hosts are there"
        )
    })
}

/// Every parameter that is none of these: a setting.
fn settings(pairs: &Pairs, others: &[&str]) -> Settings {
    let is_setting = |(name, _): &&(String, String)| !others.contains(&name.as_str());
    spelt(pairs.0.iter().filter(is_setting).cloned())
}

fn json_of(keyspaces: &Keyspaces) -> Value {
    json!({
        "decrees": keyspaces.version,
        "members": keyspaces.members.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "keyspaces": keyspaces.list.iter().map(|(k, _)| keyspace(k)).collect::<Vec<_>>(),
        "engines": engines::all().iter().map(|each| engine(each)).collect::<Vec<_>>(),
    })
}

fn keyspace(keyspace: &Keyspace) -> Value {
    let partition = |place: &quorate_kernel::keyspace::Partition| {
        json!({
            "node": place.node.to_string(),
            "since": place.since,
            "settled": place.is_settled,
        })
    };
    let former = |one: &quorate_kernel::keyspace::Tenure| {
        json!({
            "partition": one.partition,
            "node": one.node.to_string(),
            "since": one.since,
        })
    };
    let first_groups = match &keyspace.birth {
        Birth::Groupless => Value::Null,
        Birth::Groups(views) => Value::from(views.len()),
    };
    json!({
        "name": keyspace.name,
        "number": keyspace.lane.0 - LaneId::KEYSPACES.0,
        "lane": keyspace.lane.0,
        "engine": keyspace.engine,
        "settings": keyspace.settings,
        "created": keyspace.created,
        "changed": keyspace.changed,
        "first_groups": first_groups,
        "partitions": keyspace.partitions.iter().map(partition).collect::<Vec<_>>(),
        "former": keyspace.former.iter().map(former).collect::<Vec<_>>(),
    })
}

/// What may be set, and what altering it does.
fn engine(engine: &Engine) -> Value {
    let setting = |setting: &quorate_kernel::rules::Setting| {
        let (is_live, meaning) = match setting.alter {
            Alter::Live(what) | Alter::Later(what) | Alter::Synced(what) => (true, what),
            Alter::Never(why) => (false, why),
        };
        json!({
            "name": setting.name,
            "default": setting.default,
            "alterable": is_live,
            "altering": meaning,
        })
    };
    json!({
        "name": engine.name,
        "settings": engine.settings.iter().map(setting).collect::<Vec<_>>(),
    })
}
