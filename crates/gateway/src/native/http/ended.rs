//! How a transaction ended.

use super::super::problem::{self, Problem};
use super::super::service::Native;
use super::ask::{self, Parameters};
use super::kv::{asking, signed};
use super::{answer, failed};
use crate::admin::operate::unhex;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use quorate_api::v1;
use serde_json::json;

/// `GET /v1/transactions/{keyspace}/{token}`.
pub async fn get(State(native): State<Native>, request: Request) -> Response {
    let parts = request.into_parts().0;
    how_ended(&native, &parts).await.unwrap_or_else(|problem| failed(&native, problem))
}

async fn how_ended(native: &Native, parts: &Parts) -> Result<Response, Problem> {
    let parameters = Parameters::of(&parts.uri, &["timeout_ms"])?;
    let (keyspace, token) = ask::path(&parts.uri)?;
    let timeout_ms = parameters.number("timeout_ms", 0, u32::MAX)?.unwrap_or(0);
    let token = str::from_utf8(&token).ok().and_then(unhex).ok_or_else(|| {
        let what = "the token is not written in hexadecimal";
        problem::invalid("token", what, "give the outcome_token of the error as it was")
    })?;
    let asked = v1::HowEndedRequest { keyspace, token: token.into(), timeout_ms };
    let told = native.how_ended(asked, &asking(parts)).await?;
    let word = told.ended().as_str_name().trim_start_matches("ENDED_").to_ascii_lowercase();
    let body = json!({ "ended": word });
    Ok(signed(answer::json(StatusCode::OK, &body), told.coordinator))
}
