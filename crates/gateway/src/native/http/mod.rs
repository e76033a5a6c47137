//! HTTP/JSON under `/v1`, on the HTTP door.
//!
//! | path | method | what it does |
//! |---|---|---|
//! | `/v1/kv/{keyspace}/{key}` | GET, PUT, DELETE | `Kv.Get`, `Put`, `Delete` |
//! | `/v1/kv/{keyspace}` | GET | one page of `Kv.Scan` |
//! | `/v1/kv/{keyspace}` | POST | `Kv.BatchGet`, each key for itself |
//! | `/v1/transactions/{keyspace}` | POST | several keys as one operation |
//! | `/v1/transactions/{keyspace}/{token}` | GET | `Kv.HowEnded` |
//! | `/v1/tree/{keyspace}/{path}` | GET, POST, PUT, DELETE | `Tree.Get`, `Children`, `Watch`; `Create`; `Set`; `Delete` |
//! | `/v1/tree/{keyspace}` | POST | `Tree.Multi` |
//! | `/v1/keyspaces` | GET | `Admin.Keyspaces` |
//! | `/v1/events` | GET | what happens to keyspaces and hosts, as server-sent events |
//! | `/v1/openapi.json` | GET | this, for programs |
//!
//! | module | what it holds |
//! |---|---|
//! | `ask` | what a request says: path, parameters, headers, body |
//! | `answer` | what is answered: readings, errors, bytes as JSON |
//! | `expiry` | when keys expire, as parameters and items say it |
//! | `kv`, `batch`, `transact`, `ended`, `events` | the calls |
//! | `tree`, `multi` | the calls on trees |
//! | `conditions` | headers that would be ignored though they say when, or what, is written |
//! | `at_most` | lists that are no longer than they may be |

mod answer;
mod ask;
mod at_most;
mod batch;
mod conditions;
mod ended;
mod events;
mod expiry;
mod kv;
mod multi;
mod place;
mod transact;
mod tree;

use super::problem::{self, Problem};
use super::room;
use super::service::Native;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};

/// The description of this API for programs.
pub const OPENAPI: &str = include_str!("openapi.json");

/// The routes.
pub fn router(native: Native) -> Router {
    Router::new()
        .route("/v1/kv/{keyspace}/{*key}", get(kv::get).put(kv::put).delete(kv::delete))
        .route("/v1/kv/{keyspace}/", get(no_key).put(no_key).delete(no_key))
        .route("/v1/kv/{keyspace}", get(kv::scan).post(batch::get))
        .route("/v1/transactions/{keyspace}", post(transact::post))
        .route("/v1/transactions/{keyspace}/{token}", get(ended::get))
        .route("/v1/tree/{keyspace}/{*path}", tree_node())
        .route("/v1/tree/{keyspace}/", tree_node())
        .route("/v1/tree/{keyspace}", post(multi::post))
        .route("/v1/keyspaces", get(keyspaces))
        .route("/v1/events", get(events::get))
        .route("/v1/openapi.json", get(openapi))
        .route("/v1/{*path}", axum::routing::any(no_path))
        .method_not_allowed_fallback(no_method)
        .layer(from_fn(conditions::check))
        .layer(from_fn(no_pages))
        .layer(from_fn_with_state(native.clone(), room::make))
        .with_state(native)
}

/// The methods of a node of a tree.
fn tree_node() -> MethodRouter<Native> {
    get(tree::get).post(tree::create).put(tree::set).delete(tree::delete)
}

/// The answer on a connection beyond those that the door serves.
pub fn full() -> Response {
    let problem = problem::full();
    answer::error(answer::status_of(problem.kind()), &problem)
}

async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

async fn keyspaces(State(native): State<Native>) -> Response {
    answer::json(StatusCode::OK, &answer::keyspaces(&native.keyspaces()))
}

/// A call failed.
fn failed(native: &Native, problem: Problem) -> Response {
    let problem = native.sign(problem);
    answer::error(answer::status_of(problem.kind()), &problem)
}

async fn no_key(State(native): State<Native>) -> Response {
    let right = "give a key behind the keyspace, percent-encoded; the empty key has no path here, \
                 and gRPC and RESP take it";
    failed(&native, problem::invalid("key", "the key is empty", right))
}

async fn no_path() -> Response {
    let problem = problem::invalid("path", "there is no such path", "see /v1/openapi.json");
    answer::error(StatusCode::NOT_FOUND, &problem)
}

async fn no_method(request: Request) -> Response {
    let what = format!("{} is no method of this path", request.method());
    let problem = problem::invalid("method", what, "see /v1/openapi.json");
    answer::error(StatusCode::METHOD_NOT_ALLOWED, &problem)
}

/// Refuses writes that a web page asks for: a browser on somebody's machine reaches this door too,
/// and must not write because another's page says so.
async fn no_pages(request: Request, next: Next) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if is_read || !request.headers().contains_key(header::ORIGIN) {
        return next.run(request).await;
    }
    let what = "a web page asked for it, and pages may not change anything here";
    let problem = problem::invalid("origin", what, "send the request without an Origin");
    answer::error(StatusCode::FORBIDDEN, &problem)
}

/// The answer to a request that did not arrive in time.
#[must_use]
pub fn late() -> axum::http::Response<Body> {
    let what = "the request did not arrive in time";
    let problem = problem::invalid("body", what, "send all of it at once");
    answer::error(StatusCode::REQUEST_TIMEOUT, &problem)
}

/// The answer to a request that arrived and was not answered in time.
#[must_use]
pub fn unanswered(method: &Method, path: &str) -> Response {
    // A POST to a keyspace asks for several keys.
    let is_batch = *method == Method::POST && path.starts_with("/v1/kv/");
    let is_read = is_batch || matches!(*method, Method::GET | Method::HEAD);
    let problem = if is_read { problem::no_answer() } else { problem::unanswered() };
    answer::error(answer::status_of(problem.kind()), &problem)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn only_what_may_write_ends_unknown_when_it_is_not_answered() {
        let (kv, transactions) = ("/v1/kv/default", "/v1/transactions/default");
        for (method, path, status) in [
            (Method::GET, kv, StatusCode::SERVICE_UNAVAILABLE),
            (Method::POST, kv, StatusCode::SERVICE_UNAVAILABLE),
            (Method::POST, transactions, StatusCode::GATEWAY_TIMEOUT),
            (Method::POST, "/control/drain", StatusCode::GATEWAY_TIMEOUT),
            (Method::PUT, "/v1/kv/default/k", StatusCode::GATEWAY_TIMEOUT),
            (Method::DELETE, "/v1/kv/default/k", StatusCode::GATEWAY_TIMEOUT),
        ] {
            assert_eq!(unanswered(&method, path).status(), status, "{method} {path}");
        }
    }

    #[test]
    fn every_kind_of_error_is_described() {
        let document: Value = serde_json::from_str(OPENAPI).expect("it is JSON");
        let kinds = &document["components"]["schemas"]["Error"]["properties"]["kind"]["enum"];
        let described: Vec<&str> =
            kinds.as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        let all = (1..).map_while(|number| quorate_api::v1::Kind::try_from(number).ok());
        let words: Vec<String> = all.map(problem::word).collect();
        assert_eq!(described, words);
    }
}
