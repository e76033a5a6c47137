//! Headers that say when something is written, or what, and that are not looked at here: a write
//! that has one is refused.
//!
//! A method whose precondition is false must not be performed (RFC 9110, section 13.1), a part of
//! a value is not the value (section 14.5), and a coded value is another one (section 8.4). Of
//! nodes of a tree `If-Match` is looked at. `If-Modified-Since` is ignored on writes, as section
//! 13.1.3 has it. `If-Unmodified-Since` might be ignored too, as nothing here has a date (section
//! 13.1.4); a client that sends it wants a condition all the same. Reads may ignore them all:
//! they are answered in full.

use super::super::problem::{self, Problem};
use super::answer;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;

/// The preconditions that a write can have.
const CONDITIONS: [HeaderName; 3] =
    [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_UNMODIFIED_SINCE];

/// Refuses writes with headers that would be ignored.
pub(super) async fn check(request: Request, next: Next) -> Response {
    match heeded(request.method(), request.uri().path(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err((status, problem)) => answer::error(status, &problem),
    }
}

/// Whether all is looked at that a request says of what it writes.
fn heeded(method: &Method, path: &str, headers: &HeaderMap) -> Result<(), (StatusCode, Problem)> {
    if matches!(*method, Method::GET | Method::HEAD) {
        return Ok(());
    }
    if headers.contains_key(header::CONTENT_RANGE) {
        let what = "a part of a value is sent, and values are written whole";
        let right = "send all of it, or `set_range` in a transaction";
        let problem = problem::invalid(header::CONTENT_RANGE.as_str(), what, right);
        return Err((StatusCode::BAD_REQUEST, problem));
    }
    if is_coded(headers, &header::CONTENT_ENCODING, "identity") {
        let (name, what) = (header::CONTENT_ENCODING, "the body is coded");
        let right = "send the bytes that are to be written, without Content-Encoding";
        let problem = problem::invalid(name.as_str(), what, right);
        return Err((StatusCode::UNSUPPORTED_MEDIA_TYPE, problem));
    }
    if is_coded(headers, &header::TRANSFER_ENCODING, "chunked") {
        let what = "the body has another transfer-encoding than chunked";
        return Err(unsupported(what, "send it chunked, or with its length"));
    }
    let is_node = path.starts_with("/v1/tree/") && matches!(*method, Method::PUT | Method::DELETE);
    for name in CONDITIONS {
        let is_known = is_node && name == header::IF_MATCH;
        if headers.contains_key(&name) && !is_known {
            let what = format!("the precondition {name} is not looked at here");
            return Err(unsupported(&what, instead(method, path)));
        }
    }
    Ok(())
}

fn unsupported(what: &str, right: &str) -> (StatusCode, Problem) {
    (StatusCode::NOT_IMPLEMENTED, problem::unsupported(what, right))
}

/// Whether a header names a coding beside the one that means nothing.
fn is_coded(headers: &HeaderMap, name: &HeaderName, plain: &str) -> bool {
    let is_plain =
        |coding: &str| coding.trim().is_empty() || coding.trim().eq_ignore_ascii_case(plain);
    headers.get_all(name).iter().any(|value| match value.to_str() {
        Ok(codings) => !codings.split(',').all(is_plain),
        Err(_) => true,
    })
}

/// What to do instead of a precondition.
fn instead(method: &Method, path: &str) -> &'static str {
    let is_node = path.strip_prefix("/v1/tree/").is_some_and(|rest| rest.contains('/'));
    match (is_node, *method == Method::POST) {
        (true, true) => "leave it out: POST makes a node only where there is none",
        (true, false) => {
            "give If-Match with the ETag of an earlier answer, or make the node by POST"
        }
        (false, true) => "leave it out; items with the op `check` say what must hold",
        (false, false) => {
            "use `check` or `put_if` in a transaction, or X-Quorate-Context where keys have \
             siblings; by what the engine of the keyspace can do"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::body::Body;
    use axum::http::HeaderValue;
    use axum::middleware::from_fn;
    use axum::routing::any;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tower::ServiceExt;

    const KEY: &str = "/v1/kv/default/k";
    const NODE: &str = "/v1/tree/config/a";
    const ROOT: &str = "/v1/tree/config/";
    const MULTI: &str = "/v1/tree/config";
    const ITEMS: &str = "/v1/transactions/default";

    /// The status of a request with this header, and whether it has come to what serves it.
    async fn asked(method: &Method, path: &str, name: HeaderName, value: &str) -> (u16, bool) {
        let reached = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&reached);
        let serve = any(move || {
            count.fetch_add(1, Ordering::Relaxed);
            std::future::ready(())
        });
        let router = Router::new().route("/{*path}", serve).layer(from_fn(check));
        let mut request = Request::builder().method(method).uri(path).body(Body::empty());
        let headers = request.as_mut().expect("a request").headers_mut();
        headers.insert(name, HeaderValue::from_str(value).expect("a value"));
        let answer = router.oneshot(request.expect("a request")).await.expect("it is answered");
        (answer.status().as_u16(), reached.load(Ordering::Relaxed) == 1)
    }

    #[tokio::test]
    async fn a_write_with_what_is_not_looked_at_is_not_done() {
        let all = [
            (Method::PUT, KEY),
            (Method::DELETE, KEY),
            (Method::POST, "/v1/kv/default"),
            (Method::POST, ITEMS),
            (Method::PUT, NODE),
            (Method::DELETE, NODE),
            (Method::POST, NODE),
            (Method::POST, ROOT),
            (Method::POST, MULTI),
        ];
        let date = "Tue, 01 Jan 2030 00:00:00 GMT";
        for (method, path) in &all {
            for (name, value, status) in [
                (header::IF_NONE_MATCH, "*", 501),
                (header::IF_NONE_MATCH, "\"3\"", 501),
                (header::IF_UNMODIFIED_SINCE, date, 501),
                (header::CONTENT_RANGE, "bytes 0-1/9", 400),
                (header::CONTENT_ENCODING, "gzip", 415),
                (header::CONTENT_ENCODING, "identity, br", 415),
                (header::TRANSFER_ENCODING, "gzip, chunked", 501),
            ] {
                let told = asked(method, path, name.clone(), value).await;
                assert_eq!(told, (status, false), "{method} {path} with {name}: {value}");
            }
            let is_node = *path == NODE && *method != Method::POST;
            for value in ["*", "\"3\""] {
                let told = asked(method, path, header::IF_MATCH, value).await;
                let expected = if is_node { (200, true) } else { (501, false) };
                assert_eq!(told, expected, "{method} {path} if it matches {value}");
            }
        }
    }

    #[tokio::test]
    async fn what_changes_nothing_of_a_request_is_let_through() {
        let date = "Tue, 01 Jan 2030 00:00:00 GMT";
        for (method, name, value) in [
            (Method::GET, header::IF_NONE_MATCH, "*"),
            (Method::HEAD, header::IF_MATCH, "\"3\""),
            (Method::GET, header::IF_MODIFIED_SINCE, date),
            (Method::PUT, header::IF_MODIFIED_SINCE, date),
            (Method::PUT, header::CONTENT_ENCODING, "Identity"),
            (Method::PUT, header::TRANSFER_ENCODING, "chunked"),
            (Method::PUT, header::RANGE, "bytes=0-1"),
        ] {
            let told = asked(&method, KEY, name.clone(), value).await;
            assert_eq!(told, (200, true), "{method} with {name}: {value}");
        }
    }

    #[test]
    fn a_refusal_names_the_header_and_what_is_right() {
        for (method, path, right) in [
            (Method::PUT, KEY, "put_if"),
            (Method::DELETE, KEY, "X-Quorate-Context"),
            (Method::POST, ITEMS, "check"),
            (Method::POST, MULTI, "check"),
            (Method::POST, NODE, "only where there is none"),
            (Method::POST, ROOT, "only where there is none"),
            (Method::PUT, NODE, "If-Match"),
        ] {
            let headers = [(header::IF_NONE_MATCH, HeaderValue::from_static("*"))];
            let told = heeded(&method, path, &headers.into_iter().collect());
            let problem = told.expect_err("it is not looked at").1;
            assert!(problem.what.contains("if-none-match"), "{problem:?}");
            assert!(problem.right.contains(right), "{method} {path}: {problem:?}");
        }
    }
}
