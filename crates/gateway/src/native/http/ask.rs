//! What a request says: path, parameters, headers, body.

use super::super::problem::{self, Problem};
use crate::web::{Allowance, Exhausted};
use axum::body::Body;
use axum::http::{HeaderMap, Uri, header};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use percent_encoding::percent_decode;
use quorate_api::v1::{Coordinator, Repeat, WriteOptions};
use serde::Deserialize;

const REQUEST_ID: &str = "x-quorate-request-id";
const REPEAT_OF: &str = "x-quorate-repeat-of";
const REPEAT_AGE: &str = "x-quorate-repeat-age-ms";
/// The header that carries a context, in base64.
pub const CONTEXT: &str = "x-quorate-context";

/// The keyspace and the key, if there is one, of a path under `/v1/kv`, `/v1/transactions` or
/// `/v1/tree`, both percent-decoded.
pub fn path(uri: &Uri) -> Result<(String, Bytes), Problem> {
    let prefixes = ["/v1/kv/", "/v1/transactions/", "/v1/tree/"];
    let path = prefixes.iter().find_map(|prefix| uri.path().strip_prefix(prefix));
    let path = path.unwrap_or_default();
    let (keyspace, key) = path.split_once('/').unwrap_or((path, ""));
    let bytes = |text: &str| percent_decode(text.as_bytes()).collect::<Vec<u8>>();
    let keyspace = String::from_utf8_lossy(&bytes(keyspace)).into_owned();
    Ok((keyspace, bytes(key).into()))
}

/// The parameters of a request, each at most once.
pub struct Parameters(Vec<(String, Bytes)>);

impl Parameters {
    /// Reads those that a path takes.
    pub fn of(uri: &Uri, known: &[&str]) -> Result<Parameters, Problem> {
        let mut all: Vec<(String, Bytes)> = Vec::new();
        for pair in uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let bytes = |text: &str| {
                let text = text.replace('+', " ");
                percent_decode(text.as_bytes()).collect::<Vec<u8>>()
            };
            let name = String::from_utf8_lossy(&bytes(name)).into_owned();
            let shown: String = name.chars().take(64).collect();
            if !known.contains(&name.as_str()) {
                let right = match known {
                    [] => String::from("this path takes none"),
                    known => format!("this path takes {}", known.join(", ")),
                };
                let what = format!("there is no parameter '{shown}'");
                return Err(problem::invalid(&shown, what, right));
            }
            if all.iter().any(|(other, _)| *other == name) {
                let what = format!("the parameter '{shown}' is there twice");
                return Err(problem::invalid(&shown, what, "give it once"));
            }
            all.push((name, bytes(value).into()));
        }
        Ok(Parameters(all))
    }

    /// The bytes of a parameter.
    pub fn bytes(&self, name: &str) -> Option<Bytes> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.clone())
    }

    /// A parameter that is a number from `least` to `most`.
    pub fn number(&self, name: &str, least: u32, most: u32) -> Result<Option<u32>, Problem> {
        let number = self.long(name, least.into(), most.into())?;
        Ok(number.map(|number| u32::try_from(number).expect("it is no more than the most")))
    }

    /// The same, of 64 bits.
    pub fn long(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Problem> {
        let Some(value) = self.bytes(name) else { return Ok(None) };
        let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let number = std::str::from_utf8(&value).ok().filter(|_| is_number);
        let number = number.and_then(|text| text.parse().ok());
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let right = format!("give a whole number from {least} to {most}");
                Err(problem::invalid(name, format!("{name} is none that is taken"), right))
            }
        }
    }

    /// A parameter that is `true` or `false`.
    pub fn flag(&self, name: &str) -> Result<bool, Problem> {
        match self.bytes(name).as_deref() {
            None | Some(b"false") => Ok(false),
            Some(b"true") => Ok(true),
            Some(_) => {
                let what = format!("{name} is neither true nor false");
                Err(problem::invalid(name, what, "give true or false, or leave it out"))
            }
        }
    }

    /// A cursor, as a page gave it.
    pub fn cursor(&self) -> Result<Bytes, Problem> {
        let text = self.bytes("cursor").unwrap_or_default();
        URL_SAFE_NO_PAD.decode(&text).map(Bytes::from).map_err(|_| {
            let right = "give the cursor of a page as it was, or none to begin";
            problem::invalid("cursor", "the cursor is none that a page gave", right)
        })
    }
}

/// The text of a header that may be there once.
pub fn text<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    let mut all = headers.get_all(name).iter();
    let first = all.next();
    if all.next().is_some() {
        return Err(problem::invalid(name, "the header is there twice", "give it once"));
    }
    let text = first.map(|value| value.to_str()).transpose();
    text.map_err(|_| problem::invalid(name, "the header is no text", "give ASCII"))
}

/// What is known of a write besides what it writes.
pub fn write_options(headers: &HeaderMap, timeout_ms: u32) -> Result<WriteOptions, Problem> {
    let request_id = match text(headers, REQUEST_ID)? {
        None => Bytes::new(),
        Some(digits) => {
            let id = u128::from_str_radix(digits, 16).ok();
            let id = id.filter(|_| digits.len() == 32 && !digits.starts_with('+'));
            let id = id.ok_or_else(|| {
                let what = "the request id is not 32 hexadecimal digits";
                problem::invalid(REQUEST_ID, what, "draw 16 random bytes and write them so")
            })?;
            Bytes::copy_from_slice(&id.to_be_bytes())
        }
    };
    let age = text(headers, REPEAT_AGE)?;
    let repeat = match text(headers, REPEAT_OF)? {
        None if age.is_some() => {
            let what = "the age of an earlier request is given, but not to whom it was sent";
            return Err(problem::invalid(REPEAT_AGE, what, "give X-Quorate-Repeat-Of too"));
        }
        None => None,
        Some(first) => Some(repeat(first, age)?),
    };
    Ok(WriteOptions { request_id, repeat, timeout_ms })
}

fn repeat(first: &str, age: Option<&str>) -> Result<Repeat, Problem> {
    let coordinator = first.split_once('.').and_then(|(node, start)| {
        let node = u64::from_str_radix(node, 16).ok().filter(|_| node.len() == 16)?;
        Some(Coordinator { node, start: start.parse().ok()? })
    });
    if coordinator.is_none() {
        let what = "the coordinator of the earlier request is not NODE.START";
        let right = "give the X-Quorate-Coordinator of an earlier answer";
        return Err(problem::invalid(REPEAT_OF, what, right));
    }
    let age_ms = age.and_then(|age| age.parse().ok()).ok_or_else(|| {
        let what = "how long ago the request was first sent is not given as a number";
        problem::invalid(REPEAT_AGE, what, "give the milliseconds since then")
    })?;
    Ok(Repeat { coordinator, age_ms })
}

/// The context of a write.
pub fn context(headers: &HeaderMap) -> Result<Bytes, Problem> {
    let right = "give the context of an earlier answer as it was";
    decoded(headers, CONTEXT, ("the context is no base64", right)).map(Option::unwrap_or_default)
}

pub(super) fn decoded(
    headers: &HeaderMap,
    name: &str,
    (what, right): (&str, &str),
) -> Result<Option<Bytes>, Problem> {
    let Some(text) = text(headers, name)? else { return Ok(None) };
    let bytes = STANDARD.decode(text).map_err(|_| problem::invalid(name, what, right))?;
    Ok(Some(bytes.into()))
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The value's bytes as they are.
    Raw,
    /// An object with the value in it.
    Json,
}

/// The type of raw bytes.
pub const RAW: &str = "application/octet-stream";

fn is_type(text: &str, wanted: &str) -> bool {
    text.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(wanted)
}

/// How a request's body is written.
pub fn form(headers: &HeaderMap) -> Result<Form, Problem> {
    let content = text(headers, header::CONTENT_TYPE.as_str())?.unwrap_or_default();
    if is_type(content, "application/json") {
        return Ok(Form::Json);
    }
    if is_type(content, RAW) || content.to_ascii_lowercase().starts_with("text/") {
        return Ok(Form::Raw);
    }
    let what = match content {
        "" => String::from("the body has no content type"),
        content => format!("a body of type {}", content.chars().take(64).collect::<String>()),
    };
    let right = "send raw bytes as application/octet-stream or text/plain, or an object with \
                 `value` or `value_base64` as application/json";
    Err(problem::invalid("content-type", what, right))
}

/// How an answer is wanted: raw only if that is asked for.
pub fn wanted(headers: &HeaderMap) -> Form {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = accepted.flat_map(|value| value.split(','));
    match types.any(|one| is_type(one, RAW)) {
        true => Form::Raw,
        false => Form::Json,
    }
}

/// All of a body, at most `bytes_max` bytes of it; `field` and `right` are what to say of more.
pub async fn body(
    body: Body,
    bytes_max: usize,
    (field, right): (&str, &str),
) -> Result<Bytes, Problem> {
    let collected = Limited::new(body, bytes_max).collect().await;
    let error = match collected {
        Ok(collected) => return Ok(collected.to_bytes()),
        Err(error) => error,
    };
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(&*error);
    while let Some(cause) = source {
        if cause.is::<LengthLimitError>() {
            return Err(problem::too_large(field, bytes_max + 1, bytes_max, right));
        }
        if cause.is::<Exhausted>() {
            return Err(problem::overloaded());
        }
        source = cause.source();
    }
    Err(problem::invalid("body", "the body did not arrive whole", "send all of it"))
}

/// Bytes that are given as text or in base64, if they are given.
pub fn either(
    field: &str,
    text: Option<String>,
    base64: Option<String>,
) -> Result<Option<Bytes>, Problem> {
    match (text, base64) {
        (None, None) => Ok(None),
        (Some(text), None) => Ok(Some(text.into())),
        (None, Some(text)) => {
            STANDARD.decode(text).map(|bytes| Some(bytes.into())).map_err(|error| {
                let what = format!("what is given as base64 is none: {error}");
                problem::invalid(field, what, "use the standard alphabet with padding")
            })
        }
        (Some(_), Some(_)) => {
            let what = "it is given both as text and in base64";
            Err(problem::invalid(field, what, "give it in one form"))
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    value: Option<String>,
    value_base64: Option<String>,
}

/// The value in a JSON body.
pub fn value(body: &Bytes, allowance: &Allowance) -> Result<Bytes, Problem> {
    // The text is taken apart beside itself.
    allowance.take(body.len()).map_err(|_| problem::overloaded())?;
    let right = "send an object with `value`, a string, or `value_base64`, a string in base64";
    let written: Written = serde_json::from_slice(body)
        .map_err(|error| problem::invalid("body", format!("the body is not so: {error}"), right))?;
    let value = either("value", written.value, written.value_base64)?;
    value.ok_or_else(|| problem::invalid("body", "the body has no value", right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use quorate_api::v1::Kind;

    fn uri(text: &str) -> Uri {
        text.parse().expect("a path")
    }

    #[test]
    fn keys_are_any_bytes_and_may_hold_slashes() {
        let table: [(&str, &[u8]); 4] =
            [("a/b", b"a/b"), ("a%2Fb", b"a/b"), ("%ff%00", b"\xff\0"), ("a+b%", b"a+b%")];
        for (text, key) in table {
            let (keyspace, found) = path(&uri(&format!("/v1/kv/default/{text}"))).expect("both");
            assert_eq!((keyspace.as_str(), &found[..]), ("default", key), "{text}");
        }
    }

    #[test]
    fn parameters_that_are_not_known_or_not_so_are_refused() {
        let of = |query: &str| Parameters::of(&uri(&format!("/?{query}")), &["limit", "from"]);
        let good = of("limit=7&from=%ff+a").expect("both are known");
        assert_eq!(good.bytes("from").as_deref(), Some(&b"\xff a"[..]));
        assert_eq!(good.number("limit", 1, 9).expect("a number"), Some(7));
        assert_eq!(good.number("limit", 1, 6).expect_err("too much").field, "limit");
        for bad in ["limt=1", "limit=1&limit=2", "=1"] {
            assert_eq!(of(bad).err().expect("refused").kind(), Kind::Invalid, "{bad}");
        }
        for bad in ["limit=", "limit=-1", "limit=+1", "limit=99999999999"] {
            let parameters = of(bad).expect("it is known");
            assert!(parameters.number("limit", 0, u32::MAX).is_err(), "{bad}");
        }
    }

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let one = |(name, value): &(&'static str, &'static str)| {
            (axum::http::HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        all.iter().map(one).collect()
    }

    #[test]
    fn a_write_sent_again_says_so_in_headers() {
        let id = "000102030405060708090a0b0c0d0e0f";
        let all =
            headers(&[(REQUEST_ID, id), (REPEAT_OF, "00000000000000a1.3"), (REPEAT_AGE, "250")]);
        let options = write_options(&all, 9).expect("all is there");
        assert_eq!(options.request_id[..3], [0, 1, 2]);
        let coordinator = Some(Coordinator { node: 0xa1, start: 3 });
        assert_eq!(options.repeat, Some(Repeat { coordinator, age_ms: 250 }));
        for bad in [
            &[(REQUEST_ID, "00")][..],
            &[(REQUEST_ID, "+00102030405060708090a0b0c0d0e0f")],
            &[(REPEAT_AGE, "1")],
            &[(REPEAT_OF, "a1.3"), (REPEAT_AGE, "1")],
            &[(REPEAT_OF, "00000000000000a1.3")],
        ] {
            assert_eq!(write_options(&headers(bad), 0).expect_err("bad").kind(), Kind::Invalid);
        }
    }

    #[test]
    fn bodies_are_raw_or_json_by_their_type() {
        let of = |content| form(&headers(&[("content-type", content)]));
        assert_eq!(of("Application/JSON; charset=utf-8").expect("known"), Form::Json);
        assert_eq!(of("text/plain").expect("known"), Form::Raw);
        assert!(of("application/x-www-form-urlencoded").is_err() && form(&headers(&[])).is_err());
        assert_eq!(
            wanted(&headers(&[("accept", "text/html, application/octet-stream;q=1")])),
            Form::Raw
        );
        assert_eq!(wanted(&headers(&[("accept", "*/*")])), Form::Json);
    }

    #[test]
    fn a_json_body_has_one_value() {
        let budget = crate::web::Budget::new(1_000);
        let of =
            |text: &'static str| value(&Bytes::from_static(text.as_bytes()), &budget.allowance());
        assert_eq!(of(r#"{"value":"ü"}"#).expect("text"), "ü");
        assert_eq!(of(r#"{"value_base64":"/w=="}"#).expect("bytes"), &b"\xff"[..]);
        for bad in [
            "",
            "7",
            "{}",
            r#"{"value":7}"#,
            r#"{"value":"a","value_base64":"/w=="}"#,
            r#"{"value_base64":"/w"}"#,
            r#"{"valeu":"a"}"#,
        ] {
            assert_eq!(of(bad).expect_err("not so").kind(), Kind::Invalid, "{bad}");
        }
    }
}
