//! `POST /join`: what a host that joins must know, for one that proves to know the cluster's
//! secret.
//!
//! The secret crosses the network on neither way, and what the host is told nobody else can read.

use super::Door;
use super::invitation::Invitation;
use super::operate::{Pairs, answer, ask, failure};
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use quorate_host::proof::envelope;
use quorate_host::{OperatorReply, OperatorRequest};
use quorate_kernel::wire::VERSION;
use serde_json::json;
use std::sync::Arc;

/// `POST /join?protocol=N`; the body is that of [`envelope`].
pub(super) async fn join(State(door): State<Arc<Door>>, pairs: Pairs, body: Bytes) -> Response {
    let cluster = door.identity.cluster;
    let Some(proven) = envelope::reply(&door.secrets.accepted(), &body) else {
        let text = format!("that proves no knowledge of the secret of cluster {cluster}");
        return failure(StatusCode::FORBIDDEN, text);
    };
    let protocol = pairs.0.iter().find(|(name, _)| name == "protocol");
    let protocol = protocol.map_or("", |(_, text)| text.as_str());
    if protocol != VERSION.to_string() {
        let text = format!("cluster {cluster} speaks protocol {VERSION}, not {protocol}");
        return answer(StatusCode::CONFLICT, &json!({ "error": text, "protocol": VERSION }));
    }
    match ask(&door, OperatorRequest::Ring).await {
        Ok(OperatorReply::Ring(report)) => {
            let invitation = Invitation::of(&door.identity, &report, VERSION);
            let text = serde_json::to_string(&invitation).expect("texts and numbers");
            let kind = [(header::CONTENT_TYPE, "application/octet-stream")];
            (kind, proven.tell(&text)).into_response()
        }
        Ok(_) => failure(StatusCode::INTERNAL_SERVER_ERROR, "the host answered another question"),
        Err(response) => response,
    }
}
