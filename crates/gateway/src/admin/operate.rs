//! What operators ask of the running host: the ring, drains and removals, how a read was served.
//!
//! Each is answered by the core thread, within a time; what a lane refuses becomes a status.

use super::Door;
use super::svg;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use percent_encoding::percent_decode_str;
use quorate_host::ring::report;
use quorate_host::{Fault, OperatorReply, OperatorRequest, Silence};
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::CatalogRefusal;
use quorate_kernel::operation::Refusal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How much longer than the lanes may take the door waits for the core thread.
const GRACE: Duration = Duration::from_secs(1);
/// How long a shutdown may take: longer than the overlay waits for anybody.
const SHUTDOWN: Duration = Duration::from_secs(30);
/// The longest delay that frames can be given on purpose.
const DELAY_MAX: Duration = Duration::from_secs(60);

/// The parameters of a request, decoded.
pub(super) struct Pairs(pub Vec<(String, String)>);

impl Pairs {
    /// Reads a query. Bytes that are no text are refused: taken for other characters, they would
    /// name another key.
    fn of(query: &str) -> Result<Pairs, String> {
        let text = |part: &str| {
            let part = part.replace('+', " ");
            percent_decode_str(&part).decode_utf8().ok().map(String::from)
        };
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = text(name).ok_or("the name of a parameter is no UTF-8")?;
            let advice = if name == "key" { ": give it as key_hex" } else { "" };
            let value = text(value).ok_or_else(|| format!("{name} is no UTF-8{advice}"))?;
            Ok((name, value))
        });
        pairs.collect::<Result<_, String>>().map(Pairs)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Pairs {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Pairs, Response> {
        Pairs::of(parts.uri.query().unwrap_or_default())
            .map_err(|why| failure(StatusCode::BAD_REQUEST, why))
    }
}

pub(super) fn parameter<'a>(pairs: &'a Pairs, name: &str) -> Option<&'a str> {
    pairs.0.iter().find(|(other, _)| other == name).map(|(_, text)| text.as_str())
}

/// Refuses what an order does not know, and what it is told twice: passed over, a word that is
/// spelt wrong could make it the opposite.
pub(super) fn misfit(pairs: &Pairs, names: &[&str]) -> Option<Response> {
    let unknown = pairs.0.iter().find(|(name, _)| !names.contains(&name.as_str()));
    match unknown {
        Some((name, _)) => {
            let text = format!("there is no parameter {name}; there are {}", names.join(", "));
            Some(failure(StatusCode::BAD_REQUEST, text))
        }
        None => repeated(pairs),
    }
}

/// Refuses what an order is told twice.
pub(super) fn repeated(pairs: &Pairs) -> Option<Response> {
    let is_earlier = |at: usize, name: &str| pairs.0[..at].iter().any(|(other, _)| other == name);
    let mut names = pairs.0.iter().map(|(name, _)| name).enumerate();
    let (_, name) = names.find(|(at, name)| is_earlier(*at, name))?;
    Some(failure(StatusCode::BAD_REQUEST, format!("{name} is given twice")))
}

/// JSON with a status.
pub(super) fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}

/// A failure with a status and a reason.
pub(super) fn failure(status: StatusCode, why: impl Into<String>) -> Response {
    answer(status, &json!({ "error": why.into() }))
}

/// Refuses what a web page asks for: a browser on an operator's machine reaches this door too, and
/// must not change a cluster because somebody else's page says so.
pub(super) async fn no_browsers(request: Request, next: Next) -> Response {
    match request.headers().contains_key(header::ORIGIN) {
        true => failure(StatusCode::FORBIDDEN, "web pages may not change anything here"),
        false => next.run(request).await,
    }
}

/// Asks the core thread; a response that says so if it does not answer.
pub(super) async fn ask(door: &Door, request: OperatorRequest) -> Result<OperatorReply, Response> {
    let failed = |(status, why): (StatusCode, String)| failure(status, why);
    ask_within(door, request, door.timeout + GRACE).await.map_err(failed)
}

/// Asks the core thread; a status and the reason if it does not answer.
pub(super) async fn ask_within(
    door: &Door,
    request: OperatorRequest,
    within: Duration,
) -> Result<OperatorReply, (StatusCode, String)> {
    ask_by(door, request, within, None).await
}

/// The same, and a lane that must find the answer has no longer than until `of_lanes`.
pub(super) async fn ask_by(
    door: &Door,
    request: OperatorRequest,
    within: Duration,
    of_lanes: Option<Instant>,
) -> Result<OperatorReply, (StatusCode, String)> {
    let is_order = request.is_order();
    match tokio::time::timeout(within, door.calls.ask_by(request, of_lanes)).await {
        Ok(Ok(OperatorReply::Refused(refusal))) => Err((status_of(&refusal), refusal.to_string())),
        Ok(Ok(OperatorReply::Unknown(what))) => Err((StatusCode::NOT_FOUND, what)),
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(Silence::InHand)) if is_order => {
            let text = "the host is stopping, and the order may be carried out yet; look again";
            Err((StatusCode::GATEWAY_TIMEOUT, String::from(text)))
        }
        Ok(Err(_)) => Err((StatusCode::SERVICE_UNAVAILABLE, String::from("the host is stopping"))),
        Err(_) => {
            let text = format!("the host did not answer within {} s", within.as_secs());
            Err((StatusCode::GATEWAY_TIMEOUT, text))
        }
    }
}

fn status_of(refusal: &Refusal) -> StatusCode {
    match refusal {
        Refusal::Membership { .. }
        | Refusal::Siblings { .. }
        | Refusal::Unmet { .. }
        | Refusal::Node(_) => StatusCode::CONFLICT,
        Refusal::Catalog(why) => status_of_catalog(why),
        Refusal::NotOpen | Refusal::NoSession => StatusCode::NOT_FOUND,
        Refusal::TooLarge { .. }
        | Refusal::TooMany { .. }
        | Refusal::Value { .. }
        | Refusal::Context(_)
        | Refusal::Token(_) => StatusCode::BAD_REQUEST,
        Refusal::Lacking(_) | Refusal::Unsupported => StatusCode::NOT_IMPLEMENTED,
        Refusal::OutcomeUnknown
        | Refusal::OutcomeOpen { .. }
        | Refusal::OutcomeForgotten
        | Refusal::NameForgotten
        | Refusal::CatalogUnknown => StatusCode::GATEWAY_TIMEOUT,
        Refusal::NoQuorum { .. }
        | Refusal::Minority { .. }
        | Refusal::NoRoute
        | Refusal::Overloaded
        | Refusal::TooSlow
        | Refusal::Stopping => StatusCode::SERVICE_UNAVAILABLE,
    }
}

fn status_of_catalog(why: &CatalogRefusal) -> StatusCode {
    match why {
        CatalogRefusal::Unknown { .. } => StatusCode::NOT_FOUND,
        CatalogRefusal::Name { .. }
        | CatalogRefusal::Engine { .. }
        | CatalogRefusal::Setting { .. }
        | CatalogRefusal::Value { .. } => StatusCode::BAD_REQUEST,
        CatalogRefusal::Exists { .. }
        | CatalogRefusal::Unset { .. }
        | CatalogRefusal::Fixed { .. }
        | CatalogRefusal::Partitions { .. }
        | CatalogRefusal::Full { .. } => StatusCode::CONFLICT,
        CatalogRefusal::Hosts { .. } | CatalogRefusal::NotLearnt => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// `GET /ring`.
pub(super) async fn ring(State(door): State<Arc<Door>>) -> Response {
    match ask(&door, OperatorRequest::Ring).await {
        Ok(OperatorReply::Ring(report)) => answer(StatusCode::OK, &report.json()),
        Ok(_) => unexpected(),
        Err(response) => response,
    }
}

/// `GET /ring.svg`.
pub(super) async fn ring_svg(State(door): State<Arc<Door>>) -> Response {
    match ask(&door, OperatorRequest::Ring).await {
        Ok(OperatorReply::Ring(report)) => {
            ([(header::CONTENT_TYPE, "image/svg+xml")], svg::render(&report)).into_response()
        }
        Ok(_) => unexpected(),
        Err(response) => response,
    }
}

/// `GET /explain?keyspace=..&key=..`, or `key_hex=..` for keys that are no text.
pub(super) async fn explain(State(door): State<Arc<Door>>, pairs: Pairs) -> Response {
    let key = match (parameter(&pairs, "key"), parameter(&pairs, "key_hex")) {
        (Some(key), None) => Ok(Bytes::copy_from_slice(key.as_bytes())),
        (None, Some(hex)) => unhex(hex)
            .map(Bytes::from)
            .ok_or("key_hex is not two hexadecimal digits for each byte of the key"),
        (Some(_), Some(_)) => Err("both key and key_hex are given: give one of them"),
        (None, None) => Err("give the key as key=.. or, in hexadecimal, as key_hex=.."),
    };
    let key = match key {
        Ok(key) => key,
        Err(why) => return failure(StatusCode::BAD_REQUEST, why),
    };
    let named = parameter(&pairs, "keyspace").map(str::to_owned);
    let first = || door.shared.keyspaces().first().map(|keyspace| keyspace.name().to_owned());
    let keyspace = named.or_else(first).unwrap_or_default();
    match ask(&door, OperatorRequest::Explain { keyspace, key }).await {
        Ok(OperatorReply::Explained(explanation)) => {
            answer(StatusCode::OK, &report::explanation(&explanation))
        }
        Ok(_) => unexpected(),
        Err(response) => response,
    }
}

/// `POST /control/drain?node=..[&undo=true]`.
pub(super) async fn drain(State(door): State<Arc<Door>>, pairs: Pairs) -> Response {
    if let Some(response) = misfit(&pairs, &["node", "undo"]) {
        return response;
    }
    let undo = match parameter(&pairs, "undo") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return failure(StatusCode::BAD_REQUEST, "undo is true or false"),
    };
    control(&door, &pairs, |host| OperatorRequest::Drain { host, undo }).await
}

/// `POST /control/shutdown[?force=true]`.
pub(super) async fn shutdown(State(door): State<Arc<Door>>, pairs: Pairs) -> Response {
    if let Some(response) = misfit(&pairs, &["force"]) {
        return response;
    }
    let force = match parameter(&pairs, "force") {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return failure(StatusCode::BAD_REQUEST, "force is true or false"),
    };
    match ask_within(&door, OperatorRequest::Shutdown { force }, SHUTDOWN).await {
        Ok(OperatorReply::Closed(silent)) => {
            let silent: Vec<String> = silent.iter().map(ToString::to_string).collect();
            answer(StatusCode::OK, &json!({ "silent": silent }))
        }
        Ok(_) => unexpected(),
        Err((status, why)) => failure(status, why),
    }
}

async fn control(
    door: &Door,
    pairs: &Pairs,
    request: impl Fn(String) -> OperatorRequest,
) -> Response {
    let Some(host) = parameter(pairs, "node") else {
        let text = "say which host: node=NODE, its node id, address or number";
        return failure(StatusCode::BAD_REQUEST, text);
    };
    match ask(door, request(host.to_owned())).await {
        Ok(_) => answer(StatusCode::OK, &json!({ "noted": true })),
        Err(response) => response,
    }
}

/// `POST /dev/faults?NODE=cut|MILLISECONDS`: the faults that frames to other hosts meet from now
/// on, each by its node id; without parameters there are none.
pub(super) async fn faults(State(door): State<Arc<Door>>, pairs: Pairs) -> Response {
    if !door.takes_faults {
        let text = "this host takes no faults; only hosts of `quorate dev` do";
        return failure(StatusCode::FORBIDDEN, text);
    }
    let table: Option<BTreeMap<NodeId, Fault>> =
        pairs.0.iter().map(|(node, fault)| Some((node_id(node)?, parse_fault(fault)?))).collect();
    let Some(table) = table else {
        let text = "each fault is NODE=cut or NODE=MILLISECONDS, up to 60000";
        return failure(StatusCode::BAD_REQUEST, text);
    };
    match ask(&door, OperatorRequest::Faults(table)).await {
        Ok(_) => answer(StatusCode::OK, &json!({ "noted": true })),
        Err(response) => response,
    }
}

fn node_id(text: &str) -> Option<NodeId> {
    u64::from_str_radix(text, 16).ok().map(NodeId)
}

fn parse_fault(text: &str) -> Option<Fault> {
    if text == "cut" {
        return Some(Fault { is_cut: true, delay: Duration::ZERO });
    }
    let delay = Duration::from_millis(text.parse().ok()?);
    (delay <= DELAY_MAX).then_some(Fault { is_cut: false, delay })
}

/// Bytes that are written in hexadecimal.
pub(crate) fn unhex(text: &str) -> Option<Vec<u8>> {
    let is_digits = text.bytes().all(|digit| digit.is_ascii_hexdigit());
    let digits = is_digits && text.len().is_multiple_of(2);
    let byte = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).ok();
    digits.then(|| (0..text.len()).step_by(2).map(byte).collect())?
}

pub(super) fn unexpected() -> Response {
    failure(StatusCode::INTERNAL_SERVER_ERROR, "the host answered another question")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_and_keys_are_read_or_refused() {
        assert_eq!(parse_fault("cut").map(|fault| fault.is_cut), Some(true));
        assert_eq!(parse_fault("50").map(|fault| fault.delay), Some(Duration::from_millis(50)));
        assert!(parse_fault("60001").is_none() && parse_fault("-1").is_none());
        assert_eq!(unhex("00ff"), Some(vec![0, 255]));
        assert_eq!((unhex("0"), unhex("zz"), unhex("é1")), (None, None, None));
        assert_eq!(unhex("+f"), None);
    }

    #[test]
    fn parameters_are_text_or_refused() {
        let read = |query: &str| Pairs::of(query).map(|pairs| pairs.0);
        let pair = |name: &str, value: &str| (String::from(name), String::from(value));
        let read_well = read("a=b+c%2B%C3%BC&&key=&flag");
        assert_eq!(read_well, Ok(vec![pair("a", "b c+ü"), pair("key", ""), pair("flag", "")]));
        assert_eq!(read(""), Ok(Vec::new()));
        let key = read("keyspace=x&key=%FF").expect_err("it is no text");
        assert!(key.contains("give it as key_hex"), "{key}");
        assert!(read("node=%FF").is_err() && read("%FF=1").is_err());
    }
}
