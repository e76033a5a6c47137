//! `GET /v1/events`: what happens, as server-sent events.

use super::super::problem::Problem;
use super::super::service::Native;
use super::answer;
use super::failed;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use quorate_doors::events::json;
use quorate_kernel::watch;
use serde_json::json;
use std::convert::Infallible;
use std::time::Duration;
use tokio_stream::StreamExt;

/// How often a comment says to a client that hears nothing else that the host is there.
const ALIVE_EVERY: Duration = Duration::from_secs(15);

/// `GET /v1/events`.
pub async fn get(State(native): State<Native>) -> Response {
    let events = match native.events() {
        Ok(events) => events,
        Err(problem) => return failed(&native, problem),
    };
    let told = events.map(move |next| Ok::<Event, Infallible>(told(&native, next)));
    Sse::new(told).keep_alive(KeepAlive::new().interval(ALIVE_EVERY)).into_response()
}

fn told(native: &Native, next: Result<watch::Event, Problem>) -> Event {
    match next {
        Ok(event) => Event::default().event(event.word()).data(json(&event)),
        Err(problem) => {
            let error = json!({ "error": answer::problem(&native.sign(problem)) });
            Event::default().event("ended").data(error.to_string())
        }
    }
}
