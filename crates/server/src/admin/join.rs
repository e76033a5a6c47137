//! `POST /join`: what a host that joins must know, for one that shows the cluster's secret.

use super::Door;
use super::operate::{Pairs, answer, ask, failure};
use crate::host::{Question, Reply};
use crate::provision::{Invitation, secret};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use quorate_kernel::wire::VERSION;
use serde_json::{Value, json};
use std::sync::Arc;

/// The header that carries the secret.
pub const SECRET_HEADER: &str = "x-quorate-secret";

/// `POST /join?protocol=N`.
pub(super) async fn join(
    State(door): State<Arc<Door>>,
    pairs: Pairs,
    headers: HeaderMap,
) -> Response {
    let cluster = door.identity.cluster;
    let shown = headers.get(SECRET_HEADER).and_then(|value| secret::parse(value.to_str().ok()?));
    let is_known = shown.is_some_and(|shown| secret::is_same(&shown, &door.identity.secret));
    if !is_known {
        let text = format!("that is not the secret of cluster {cluster}");
        return failure(StatusCode::FORBIDDEN, text);
    }
    let protocol = pairs.0.iter().find(|(name, _)| name == "protocol");
    let protocol = protocol.map_or("", |(_, text)| text.as_str());
    if protocol != VERSION.to_string() {
        let text = format!("cluster {cluster} speaks protocol {VERSION}, not {protocol}");
        return answer(StatusCode::CONFLICT, &json!({ "error": text, "protocol": VERSION }));
    }
    match ask(&door, Question::Ring).await {
        Ok(Reply::Ring(report)) => {
            let invitation = Invitation::of(&door.identity, &report, VERSION);
            let body = serde_json::to_value(&invitation).unwrap_or(Value::Null);
            answer(StatusCode::OK, &body)
        }
        Ok(_) => failure(StatusCode::INTERNAL_SERVER_ERROR, "the host answered another question"),
        Err(response) => response,
    }
}
