//! The calls.

use super::super::map;
use super::super::problem::{self, Problem};
use super::super::scan::{Listing, PAGE_KEYS_MAX};
use super::super::service::{Asking, Native};
use super::answer::{self, COORDINATOR};
use super::ask::{self, Form, Parameters};
use super::{expiry, failed, place};
use crate::web::Allowance;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use quorate_api::v1::reading::State as Reading;
use quorate_api::v1::{self, Coordinator, Receipt};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// How many keys a page has if nothing else is asked.
const PAGE_KEYS: u32 = 256;
/// How much longer than its value a JSON body may be: every byte may be escaped with six.
const JSON_FACTOR: usize = 6;
/// Room in a JSON body for what is not its value.
const JSON_SLACK: usize = 4 * 1024;

/// What is said of a body that is longer than any value of its keyspace.
const LONG_VALUE: (&str, &str) = ("value", "send less, or use a keyspace that takes longer values");

pub(super) fn asking(parts: &Parts) -> Asking {
    let allowance = parts.extensions.get::<Arc<Allowance>>();
    let allowance = allowance.expect("the listener gives every request an allowance");
    Asking { within: None, allowance: Arc::clone(allowance) }
}

/// Says who answered.
pub(super) fn signed(mut response: Response, who: Option<Coordinator>) -> Response {
    if let Some(who) = who {
        let text = HeaderValue::try_from(answer::coordinator(who));
        let text = text.expect("digits and a dot are a header's value");
        response.headers_mut().insert(COORDINATOR, text);
    }
    response
}

/// `GET /v1/kv/{keyspace}/{key}`.
pub async fn get(State(native): State<Native>, request: Request) -> Response {
    read(&native, &request.into_parts().0).await.unwrap_or_else(|problem| failed(&native, problem))
}

async fn read(native: &Native, parts: &Parts) -> Result<Response, Problem> {
    let parameters = Parameters::of(&parts.uri, &["timeout_ms", "replicas", place::VERSION])?;
    let (keyspace, key) = ask::path(&parts.uri)?;
    let timeout_ms = parameters.number("timeout_ms", 0, u32::MAX)?.unwrap_or(0);
    let replicas = parameters.number("replicas", 0, u32::MAX)?.unwrap_or(0);
    let place = place::of(&parts.headers, &parameters)?;
    let asked = v1::GetRequest { keyspace, key: key.clone(), timeout_ms, replicas, place };
    let asking = asking(parts);
    let read = native.get(asked, &asking).await?;
    let reading = read.reading.unwrap_or_default();
    let (form, allowance) = (ask::wanted(&parts.headers), &asking.allowance);
    let one = match &reading.state {
        Some(Reading::Value(value)) => Some(value),
        Some(Reading::Siblings(siblings)) if siblings.values.len() == 1 => siblings.values.first(),
        _ => None,
    };
    let response = match (one, form) {
        (Some(value), Form::Raw) => {
            ([(header::CONTENT_TYPE, ask::RAW)], value.clone()).into_response()
        }
        (one, _) => {
            let status = match &reading.state {
                Some(Reading::Siblings(siblings)) if siblings.values.is_empty() => {
                    StatusCode::NOT_FOUND
                }
                Some(Reading::Absent(_)) | None => StatusCode::NOT_FOUND,
                // Several values are no body of bytes.
                Some(_) if one.is_none() && form == Form::Raw => StatusCode::MULTIPLE_CHOICES,
                Some(_) => StatusCode::OK,
            };
            let mut object = Map::new();
            answer::put_bytes(&mut object, "key", &key);
            answer::put_reading(&mut object, &reading);
            answer::counted(&Value::Object(object), map::size(&reading), allowance, status)?
        }
    };
    let context = match &reading.state {
        Some(Reading::Siblings(siblings)) => &siblings.context[..],
        _ => &[],
    };
    let response = place::with_receipt(response, reading.receipt.as_ref());
    Ok(signed(with_context(response, context), read.coordinator))
}

/// Adds a context as a header, where writes take it from.
fn with_context(mut response: Response, context: &[u8]) -> Response {
    if !context.is_empty() {
        let text = HeaderValue::try_from(answer::context(context));
        let text = text.expect("base64 is a header's value");
        response.headers_mut().insert(ask::CONTEXT, text);
    }
    response
}

/// `PUT /v1/kv/{keyspace}/{key}`.
pub async fn put(State(native): State<Native>, request: Request) -> Response {
    write(&native, request).await.unwrap_or_else(|problem| failed(&native, problem))
}

async fn write(native: &Native, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let [after, at, keep] = expiry::PARAMETERS;
    let parameters = Parameters::of(&parts.uri, &["timeout_ms", after, at, keep, place::VERSION])?;
    let expiry = expiry::of_parameters(&parameters)?;
    let (keyspace, key) = ask::path(&parts.uri)?;
    let timeout_ms = parameters.number("timeout_ms", 0, u32::MAX)?.unwrap_or(0);
    let options = Some(ask::write_options(&parts.headers, timeout_ms)?);
    let context = ask::context(&parts.headers)?;
    let place = place::of(&parts.headers, &parameters)?;
    let (form, asking) = (ask::form(&parts.headers)?, asking(&parts));
    let limit = native.value_bytes_max_of(&keyspace)?;
    let value = match form {
        Form::Raw => ask::body(body, limit, LONG_VALUE).await?,
        Form::Json => {
            let body = ask::body(body, JSON_FACTOR * limit + JSON_SLACK, LONG_VALUE).await?;
            ask::value(&body, &asking.allowance)?
        }
    };
    let asked = v1::PutRequest { keyspace, key, value, context, options, expiry, place };
    let done = native.put(asked, &asking).await?;
    let mut body = Map::new();
    body.insert(String::from("is_repeated"), done.is_repeated.into());
    Ok(signed(told(body, &done.context, done.receipt.as_ref()), done.coordinator))
}

/// What is told of a write.
fn told(mut body: Map<String, Value>, context: &[u8], receipt: Option<&Receipt>) -> Response {
    answer::put_receipt(&mut body, receipt);
    if !context.is_empty() {
        body.insert(String::from("context"), answer::context(context).into());
    }
    let response = answer::json(StatusCode::OK, &Value::Object(body));
    with_context(place::with_receipt(response, receipt), context)
}

/// `DELETE /v1/kv/{keyspace}/{key}`.
pub async fn delete(State(native): State<Native>, request: Request) -> Response {
    remove(&native, &request.into_parts().0)
        .await
        .unwrap_or_else(|problem| failed(&native, problem))
}

async fn remove(native: &Native, parts: &Parts) -> Result<Response, Problem> {
    let parameters = Parameters::of(&parts.uri, &["timeout_ms", place::VERSION])?;
    let (keyspace, key) = ask::path(&parts.uri)?;
    let timeout_ms = parameters.number("timeout_ms", 0, u32::MAX)?.unwrap_or(0);
    let options = Some(ask::write_options(&parts.headers, timeout_ms)?);
    let context = ask::context(&parts.headers)?;
    let place = place::of(&parts.headers, &parameters)?;
    let asked = v1::DeleteRequest { keyspace, key, context, options, place };
    let done = native.delete(asked, &asking(parts)).await?;
    let body = json!({ "existed": done.existed, "is_repeated": done.is_repeated });
    let Value::Object(body) = body else { return Err(problem::mismatch()) };
    Ok(signed(told(body, &done.context, done.receipt.as_ref()), done.coordinator))
}

/// `GET /v1/kv/{keyspace}`.
pub async fn scan(State(native): State<Native>, request: Request) -> Response {
    list(&native, &request.into_parts().0).await.unwrap_or_else(|problem| failed(&native, problem))
}

async fn list(native: &Native, parts: &Parts) -> Result<Response, Problem> {
    let known = ["limit", "cursor", "from", "to", "values", "timeout_ms"];
    let parameters = Parameters::of(&parts.uri, &known)?;
    let limit = parameters.number("limit", 1, PAGE_KEYS_MAX)?.unwrap_or(PAGE_KEYS);
    let asked = v1::ScanRequest {
        keyspace: ask::path(&parts.uri)?.0,
        cursor: parameters.cursor()?,
        from: parameters.bytes("from"),
        to: parameters.bytes("to"),
        limit: u64::from(limit),
        page_keys: limit,
        with_values: parameters.flag("values")?,
        timeout_ms: parameters.number("timeout_ms", 0, u32::MAX)?.unwrap_or(0),
    };
    let mut listing = Listing::new(native, asked)?;
    let asking = asking(parts);
    let page = listing.page(&asking).await?.unwrap_or_default();
    let held = page.entries.iter().filter_map(|entry| entry.reading.as_ref()).map(map::size).sum();
    let body = answer::page(&page, &listing.promise());
    let answer = answer::counted(&body, held, &asking.allowance, StatusCode::OK)?;
    Ok(signed(answer, Some(native.me())))
}
