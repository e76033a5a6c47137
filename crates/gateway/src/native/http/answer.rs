//! What is answered: readings, errors, bytes as JSON.
//!
//! Bytes that are UTF-8 stand in a string under their name, all others in base64 (the standard
//! alphabet, with padding) under their name and `_base64`.

use super::super::problem::{self, Problem, word};
use crate::web::Allowance;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use quorate_api::v1::reading::State;
use quorate_api::v1::{
    Coordinator, Error, Keyspace, KeyspacesResponse, Kind, NodeFailure, Reading, Receipt,
    ScanOrder, ScanPage, ScanPromise,
};
use serde_json::{Map, Value, json};

/// The header that says who answered.
pub const COORDINATOR: &str = "x-quorate-coordinator";

type Object = Map<String, Value>;

/// JSON with a status.
pub fn json(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}

/// JSON with values in it, whose text is counted as memory of the request. What stands in it was
/// counted before, with `held` bytes: the values are let go of before anything else is answered.
pub fn counted(
    body: &Value,
    held: usize,
    allowance: &Allowance,
    status: StatusCode,
) -> Result<Response, Problem> {
    let mut length = Length(1);
    serde_json::to_writer(&mut length, body).expect("counting does not fail");
    let Length(length) = length;
    allowance.give(held);
    if length > allowance.budget().bytes() {
        let right = "ask for fewer keys at a time, for a value as application/octet-stream, or \
                     over gRPC";
        return Err(problem::answer_too_large(allowance.budget().bytes(), right));
    }
    allowance.take(length).map_err(|_| problem::overloaded())?;
    let mut text = Vec::with_capacity(length);
    serde_json::to_writer(&mut text, body).expect("memory can be written to");
    text.push(b'\n');
    assert_eq!(text.len(), length, "what was counted is written");
    Ok((status, [(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// Counts the bytes of a text.
struct Length(usize);

impl std::io::Write for Length {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The status of a sort of failures.
pub fn status_of(kind: Kind) -> StatusCode {
    match kind {
        Kind::Invalid | Kind::BadContext => StatusCode::BAD_REQUEST,
        Kind::NoKeyspace | Kind::NoNode => StatusCode::NOT_FOUND,
        Kind::Denied => StatusCode::FORBIDDEN,
        Kind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        Kind::Unsupported => StatusCode::NOT_IMPLEMENTED,
        Kind::NoQuorum | Kind::Overloaded | Kind::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        Kind::OutcomeUnknown => StatusCode::GATEWAY_TIMEOUT,
        Kind::Exists | Kind::Conflict => StatusCode::CONFLICT,
        Kind::Unspecified | Kind::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// A failure with a status.
pub fn error(status: StatusCode, error: &Error) -> Response {
    json(status, &json!({ "error": problem(error) }))
}

/// Why something failed, as JSON.
pub fn problem(error: &Error) -> Value {
    let mut body = Object::new();
    body.insert(String::from("kind"), word(error.kind()).into());
    body.insert(String::from("what"), error.what.as_str().into());
    body.insert(String::from("right"), error.right.as_str().into());
    body.insert(String::from("may_have_applied"), error.may_have_applied.into());
    if let Some(who) = error.coordinator {
        body.insert(String::from("coordinator"), coordinator(who).into());
    }
    let numbers = [
        ("view", error.view),
        ("replicas_reached", u64::from(error.replicas_reached)),
        ("replicas_needed", u64::from(error.replicas_needed)),
    ];
    let is_quorum = error.kind() == Kind::NoQuorum;
    for (name, number) in numbers.into_iter().filter(|(_, number)| is_quorum || *number > 0) {
        body.insert(name.to_owned(), number.into());
    }
    if error.node_failure() != NodeFailure::Unspecified {
        body.insert(String::from("node_failure"), node_failure(error.node_failure()).into());
    }
    if !error.outcome_token.is_empty() {
        let token: String = error.outcome_token.iter().map(|byte| format!("{byte:02x}")).collect();
        body.insert(String::from("outcome_token"), token.into());
    }
    if !error.field.is_empty() {
        body.insert(String::from("field"), error.field.as_str().into());
    }
    Value::Object(body)
}

/// What a tree does not allow, as one word.
pub fn node_failure(failure: NodeFailure) -> String {
    failure.as_str_name().trim_start_matches("NODE_FAILURE_").to_ascii_lowercase()
}

/// A coordinator as one word.
pub fn coordinator(who: Coordinator) -> String {
    format!("{:016x}.{}", who.node, who.start)
}

/// A context as one word.
pub fn context(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Puts what an answer rests on into an object.
pub fn put_receipt(object: &mut Object, receipt: Option<&Receipt>) {
    if let Some(Receipt { token, acks, is_degraded }) = receipt {
        let told = json!({ "token": context(token), "acks": acks, "is_degraded": is_degraded });
        object.insert(String::from("receipt"), told);
    }
}

/// Puts bytes into an object.
pub fn put_bytes(object: &mut Object, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.to_owned(), text.into()),
        Err(_) => object.insert(format!("{name}_base64"), STANDARD.encode(bytes).into()),
    };
}

/// Puts the state of a key into an object.
pub fn put_reading(object: &mut Object, reading: &Reading) {
    put_receipt(object, reading.receipt.as_ref());
    match &reading.state {
        Some(State::Value(value)) => put_bytes(object, "value", value),
        Some(State::Siblings(siblings)) => {
            let one = |value: &bytes::Bytes| {
                let mut sibling = Object::new();
                put_bytes(&mut sibling, "value", value);
                Value::Object(sibling)
            };
            let all: Vec<Value> = siblings.values.iter().map(one).collect();
            object.insert(String::from("siblings"), all.into());
            object.insert(String::from("context"), context(&siblings.context).into());
        }
        Some(State::Absent(_)) | None => {
            object.insert(String::from("value"), Value::Null);
        }
    }
}

/// The word for an order.
fn order(order: ScanOrder) -> &'static str {
    match order {
        ScanOrder::Key => "key",
        ScanOrder::Hash | ScanOrder::Unspecified => "hash",
    }
}

fn promise(promise: &ScanPromise) -> Value {
    json!({
        "engine": promise.engine,
        "order": order(promise.order()),
        "is_snapshot": promise.is_snapshot,
        "is_complete": promise.is_complete,
        "may_repeat": promise.may_repeat,
        "text": promise.text,
    })
}

/// A page of a listing.
pub fn page(page: &ScanPage, promised: &ScanPromise) -> Value {
    let entries = page.entries.iter().map(|entry| {
        let mut object = Object::new();
        put_bytes(&mut object, "key", &entry.key);
        if let Some(reading) = &entry.reading {
            put_reading(&mut object, reading);
        }
        Value::Object(object)
    });
    let cursor = (!page.cursor.is_empty()).then(|| URL_SAFE_NO_PAD.encode(&page.cursor));
    json!({
        "promise": promise(promised),
        "entries": entries.collect::<Vec<_>>(),
        "cursor": cursor,
    })
}

/// A list of all of them in JSON, in the order given.
pub fn keyspaces(all: &KeyspacesResponse) -> Value {
    let one = |keyspace: &Keyspace| {
        json!({
            "name": keyspace.name,
            "engine": keyspace.engine,
            "durability": keyspace.durability,
            "replicas": keyspace.replicas,
            "value_bytes_max": keyspace.value_bytes_max,
            "order": order(keyspace.order()),
            "mode": keyspace.mode,
            "scan": keyspace.scan.as_ref().map(promise),
            "is_ready": keyspace.is_ready,
        })
    };
    json!({ "keyspaces": all.keyspaces.iter().map(one).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::Budget;
    use axum::body::HttpBody;
    use bytes::Bytes;
    use quorate_api::v1::Siblings;

    #[test]
    fn bytes_are_text_or_base64() {
        let of = |bytes: &[u8]| {
            let mut object = Object::new();
            put_bytes(&mut object, "value", bytes);
            Value::Object(object)
        };
        assert_eq!(of("ü\0".as_bytes()), json!({ "value": "ü\0" }));
        assert_eq!(of(b"\xff"), json!({ "value_base64": "/w==" }));
    }

    /// Every byte of the value is written with six, and one request alone must find room.
    #[test]
    fn the_text_of_an_answer_is_counted_as_long_as_it_is() {
        let value = "\u{1}".repeat(1_000);
        let told = |bytes: usize, others: usize| {
            let budget = Budget::new(bytes);
            let (allowance, other) = (budget.allowance(), budget.allowance());
            other.take(others).expect("there is room");
            allowance.take(value.len()).expect("there is room");
            let body = json!({ "value": value });
            let told = counted(&body, value.len(), &allowance, StatusCode::OK);
            told.map(|answer| (answer.into_body().size_hint().exact(), budget.left()))
        };
        let length = 6 * 1_000 + "{\"value\":\"\"}\n".len();
        assert_eq!(told(10_000, 0).expect("it fits"), (Some(length as u64), 10_000 - length));
        assert_eq!(told(10_000, 5_000).expect_err("no room now").kind(), Kind::Overloaded);
        assert_eq!(told(5_000, 0).expect_err("never").kind(), Kind::TooLarge);
    }

    #[test]
    fn siblings_stand_beside_their_context() {
        let values = vec![Bytes::from_static(b"a"), Bytes::from_static(b"\xff")];
        let siblings = Siblings { values, context: Bytes::from_static(b"\x01") };
        let mut object = Object::new();
        put_reading(
            &mut object,
            &Reading { state: Some(State::Siblings(siblings)), receipt: None },
        );
        let expected = json!({
            "siblings": [{ "value": "a" }, { "value_base64": "/w==" }],
            "context": "AQ==",
        });
        assert_eq!(Value::Object(object), expected);
    }
}
