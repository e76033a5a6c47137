//! Several keys in one request: each is read, and answered for, by itself.

use super::super::map;
use super::super::problem::{self, Problem};
use super::super::service::{BATCH_KEYS_MAX, Native};
use super::ask::{self, Form, Parameters};
use super::at_most::AtMost;
use super::kv::{asking, signed};
use super::{answer, failed, place};
use crate::web::Allowance;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use quorate_api::v1::{self, Reading};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The longest body: room for a thousand keys of two thousand bytes, however they are written.
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What is right.
const FORM: &str = "send an object with `keys`, a list of at most 1000 objects with `key`, a \
                    string, or `key_base64`, a string in base64";

/// `POST /v1/kv/{keyspace}`.
pub async fn get(State(native): State<Native>, request: Request) -> Response {
    read(&native, request).await.unwrap_or_else(|problem| failed(&native, problem))
}

async fn read(native: &Native, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let parameters = Parameters::of(&parts.uri, &["timeout_ms", "replicas", place::VERSION])?;
    let (keyspace, _) = ask::path(&parts.uri)?;
    let timeout_ms = parameters.number("timeout_ms", 0, u32::MAX)?.unwrap_or(0);
    let replicas = parameters.number("replicas", 0, u32::MAX)?.unwrap_or(0);
    let asking = asking(&parts);
    if ask::form(&parts.headers)? != Form::Json {
        let what = "the keys are not given as application/json";
        return Err(problem::invalid("content-type", what, FORM));
    }
    let body = ask::body(body, BODY_BYTES_MAX, ("keys", "ask for fewer keys at a time")).await?;
    let keys = keys(&body, &asking.allowance)?;
    let place = place::of(&parts.headers, &parameters)?;
    let asked = v1::BatchGetRequest { keyspace, keys: keys.clone(), timeout_ms, replicas, place };
    let each = native.batch_get_each(asked, &asking).await?;
    let held = each.iter().flatten().map(map::size).sum();
    let told = |(key, read): (&Bytes, Result<Reading, Problem>)| {
        let mut object = Map::new();
        answer::put_bytes(&mut object, "key", key);
        match read {
            Ok(reading) => answer::put_reading(&mut object, &reading),
            Err(problem) => {
                let problem = answer::problem(&native.sign(problem));
                object.insert(String::from("error"), problem);
            }
        }
        Value::Object(object)
    };
    let readings: Vec<Value> = keys.iter().zip(each).map(told).collect();
    let body = json!({ "readings": readings });
    let answer = answer::counted(&body, held, &asking.allowance, StatusCode::OK)?;
    Ok(signed(answer, Some(native.me())))
}

/// The keys in a JSON body.
fn keys(body: &Bytes, allowance: &Allowance) -> Result<Vec<Bytes>, Problem> {
    // The text is taken apart beside itself, and the keys are kept for the answer.
    allowance.take(2 * body.len()).map_err(|_| problem::overloaded())?;
    let asked: BatchBody = serde_json::from_slice(body)
        .map_err(|error| problem::invalid("body", format!("the body is not so: {error}"), FORM))?;
    asked.keys.0.into_iter().map(bytes).collect()
}

/// What a batch of reads asks for, in JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchBody {
    keys: AtMost<BATCH_KEYS_MAX, Key>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    key: Option<String>,
    key_base64: Option<String>,
}

fn bytes(key: Key) -> Result<Bytes, Problem> {
    let found = ask::either("keys", key.key, key.key_base64)?;
    found.ok_or_else(|| problem::invalid("keys", "one of the keys has no form", FORM))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_api::v1::Kind;

    fn of(text: impl Into<Bytes>) -> Result<Vec<Bytes>, Problem> {
        let budget = crate::web::Budget::new(1_000_000);
        keys(&text.into(), &budget.allowance())
    }

    #[test]
    fn keys_are_text_or_base64() {
        let text = r#"{"keys":[{"key":"ü"},{"key_base64":"/w=="},{"key":""}]}"#;
        let found = of(text).expect("they are so");
        assert_eq!(found, ["ü".as_bytes(), b"\xff", b""]);
        assert_eq!(of(r#"{"keys":[]}"#).expect("none is fine"), Vec::<Bytes>::new());
    }

    #[test]
    fn a_body_that_is_not_so_is_refused() {
        for bad in [
            "",
            "[]",
            "{}",
            r#"{"keys":7}"#,
            r#"{"keys":["a"]}"#,
            r#"{"keys":[{}]}"#,
            r#"{"keys":[{"key":"a","key_base64":"/w=="}]}"#,
            r#"{"keys":[{"key_base64":"/w"}]}"#,
            r#"{"keys":[{"kye":"a"}]}"#,
            r#"{"keys":[{"key":"a"}],"more":1}"#,
        ] {
            assert_eq!(of(bad).expect_err("not so").kind(), Kind::Invalid, "{bad}");
        }
        let many =
            |count: usize| format!(r#"{{"keys":[{}]}}"#, vec![r#"{"key":""}"#; count].join(","));
        assert_eq!(of(many(BATCH_KEYS_MAX)).expect("they fit").len(), BATCH_KEYS_MAX);
        let refused = of(many(BATCH_KEYS_MAX + 1)).expect_err("one too many");
        assert!(refused.what.contains("more than 1000"), "{refused:?}");
        let long = of(format!(r#"{{"keys":[{{"key":"{}"}}]}}"#, "k".repeat(600_000)));
        assert_eq!(long.expect_err("no room").kind(), Kind::Overloaded);
    }
}
