//! The memory of a door grows with the longest value that a keyspace takes.

use super::Native;
use crate::web::Allowance;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, Response};
use axum::middleware::Next;
use std::sync::Arc;

/// Sees to it that a request finds the room that the keyspaces ask for at the moment.
pub(super) async fn make(
    State(native): State<Native>,
    request: Request<Body>,
    next: Next,
) -> Response<Body> {
    if let Some(allowance) = request.extensions().get::<Arc<Allowance>>() {
        allowance.budget().grow(native.budget_bytes());
    }
    next.run(request).await
}
