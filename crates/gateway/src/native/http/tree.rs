//! `/v1/tree/{keyspace}/{path}`: one node of a tree.

use super::super::problem::{self, Problem};
use super::super::service::Native;
use super::super::tree::follow::Changes;
use super::ask::{self, Form, Parameters};
use super::kv::{asking, signed};
use super::{answer, failed};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use quorate_api::v1::{self, NodeFailure, NodeKind, Stat};
use serde_json::{Map, Value, json};
use std::convert::Infallible;
use std::time::Duration;
use tokio_stream::StreamExt;

/// How often a comment says to a client that hears nothing else that the host is there.
const ALIVE_EVERY: Duration = Duration::from_secs(15);
/// How much longer than its value a JSON body may be: every byte may be escaped with six.
const JSON_FACTOR: usize = 6;
/// Room in a JSON body for what is not its value.
const JSON_SLACK: usize = 4 * 1024;
/// What is said of a body that is longer than any value of its keyspace.
const LONG_VALUE: (&str, &str) = ("value", "send less, or use a keyspace that takes longer values");

/// A call failed. What a client has required of a version is a precondition to HTTP.
pub(super) fn refused(native: &Native, problem: Problem) -> Response {
    if problem.node_failure() == NodeFailure::BadVersion {
        return answer::error(StatusCode::PRECONDITION_FAILED, &native.sign(problem));
    }
    failed(native, problem)
}

/// The same of a request that may have a precondition: of a node that is not there none holds.
fn unmet(native: &Native, problem: Problem, has_condition: bool) -> Response {
    if has_condition && problem.node_failure() == NodeFailure::NoNode {
        return answer::error(StatusCode::PRECONDITION_FAILED, &native.sign(problem));
    }
    refused(native, problem)
}

/// The keyspace of a request and the path of the node.
fn place(uri: &Uri) -> Result<(String, String), Problem> {
    let (keyspace, rest) = ask::path(uri)?;
    let mut path = vec![b'/'];
    path.extend(&rest);
    let path = String::from_utf8(path).map_err(|_| {
        problem::invalid("path", "the path is no UTF-8", "name nodes by text, percent-encoded")
    })?;
    Ok((keyspace, path))
}

/// The version that a request requires; none if any will do.
fn required(headers: &HeaderMap) -> Result<Option<i32>, Problem> {
    let name = header::IF_MATCH.as_str();
    let Some(text) = ask::text(headers, name)? else { return Ok(None) };
    if text == "*" {
        return Ok(None);
    }
    let digits = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match digits.filter(|it| !it.starts_with('+')).and_then(|digits| digits.parse().ok()) {
        Some(version) => Ok(Some(version)),
        None => {
            let right = "give the ETag of an earlier answer: the version, in quotes";
            Err(problem::invalid(name, "the header names no version", right))
        }
    }
}

/// How a node is, as JSON.
pub(super) fn stat(stat: &Stat) -> Value {
    json!({
        "czxid": stat.czxid,
        "mzxid": stat.mzxid,
        "pzxid": stat.pzxid,
        "ctime_ms": stat.ctime_ms,
        "mtime_ms": stat.mtime_ms,
        "version": stat.version,
        "cversion": stat.cversion,
        "aversion": stat.aversion,
        "ephemeral_owner": format!("{:016x}", stat.ephemeral_owner),
        "data_length": stat.data_length,
        "children": stat.children,
    })
}

/// Says which version the node has.
fn tagged(mut response: Response, stat: &Stat) -> Response {
    let tag = HeaderValue::try_from(format!("\"{}\"", stat.version));
    let tag = tag.expect("digits and quotes are a header's value");
    response.headers_mut().insert(header::ETAG, tag);
    response
}

fn node(path: &str, of: &Stat) -> Map<String, Value> {
    let mut object = Map::new();
    object.insert(String::from("path"), path.into());
    object.insert(String::from("stat"), stat(of));
    object
}

/// `GET /v1/tree/{keyspace}/{path}`.
pub async fn get(State(native): State<Native>, request: Request) -> Response {
    let parts = request.into_parts().0;
    read(&native, &parts).await.unwrap_or_else(|problem| refused(&native, problem))
}

async fn read(native: &Native, parts: &Parts) -> Result<Response, Problem> {
    let known = ["children", "watch", "recursive", "timeout_ms"];
    let parameters = Parameters::of(&parts.uri, &known)?;
    let (keyspace, path) = place(&parts.uri)?;
    let timeout_ms = parameters.number("timeout_ms", 0, u32::MAX)?.unwrap_or(0);
    let (is_list, is_watch) = (parameters.flag("children")?, parameters.flag("watch")?);
    let recursive = parameters.flag("recursive")?;
    if is_list && is_watch || recursive && !is_watch {
        let what = "the parameters do not go together";
        let right = "give children, or watch, or watch and recursive";
        return Err(problem::invalid("watch", what, right));
    }
    let asking = asking(parts);
    if is_watch {
        let asked = v1::WatchNodeRequest { keyspace, path, recursive };
        return Ok(follow(native, native.watch_node(asked, &asking).await?));
    }
    let who = Some(native.me());
    if is_list {
        let asked =
            v1::NodeChildrenRequest { keyspace, path: path.clone(), session: None, timeout_ms };
        let told = native.node_children(asked, &asking).await?;
        let stat = told.stat.unwrap_or_default();
        let held = told.names.iter().map(String::len).sum();
        let mut body = node(&path, &stat);
        body.insert(String::from("children"), told.names.into());
        let body = Value::Object(body);
        let answer = answer::counted(&body, held, &asking.allowance, StatusCode::OK)?;
        return Ok(signed(tagged(answer, &stat), who));
    }
    let asked = v1::GetNodeRequest { keyspace, path: path.clone(), session: None, timeout_ms };
    let told = native.get_node(asked, &asking).await?;
    let (data, stat) = (told.data, told.stat.unwrap_or_default());
    if ask::wanted(&parts.headers) == Form::Raw {
        let data = data.unwrap_or_default();
        let raw = ([(header::CONTENT_TYPE, ask::RAW)], data).into_response();
        return Ok(signed(tagged(raw, &stat), who));
    }
    let held = data.as_ref().map_or(0, Bytes::len);
    let mut body = node(&path, &stat);
    match data {
        Some(data) => answer::put_bytes(&mut body, "value", &data),
        None => drop(body.insert(String::from("value"), Value::Null)),
    }
    let body = Value::Object(body);
    let answer = answer::counted(&body, held, &asking.allowance, StatusCode::OK)?;
    Ok(signed(tagged(answer, &stat), who))
}

/// What becomes of a node, as server-sent events.
fn follow(native: &Native, changes: Changes) -> Response {
    let native = native.clone();
    let told = changes.map(move |next| Ok::<Event, Infallible>(event(&native, next)));
    Sse::new(told).keep_alive(KeepAlive::new().interval(ALIVE_EVERY)).into_response()
}

fn event(native: &Native, next: Result<v1::WatchNodeResponse, Problem>) -> Event {
    match next {
        Ok(v1::WatchNodeResponse { event, path, zxid }) => {
            let data = json!({ "event": event, "path": path, "zxid": zxid });
            Event::default().event(event).id(zxid.to_string()).data(data.to_string())
        }
        Err(problem) => {
            let error = json!({ "error": answer::problem(&native.sign(problem)) });
            Event::default().event("ended").data(error.to_string())
        }
    }
}

/// What a request says of the node that it makes, beside its path and its value.
fn kind(parameters: &Parameters) -> Result<(NodeKind, u64, bool), Problem> {
    let sequential = parameters.flag("sequential")?;
    let ttl_ms = parameters.long("ttl_ms", 1, u64::MAX)?.unwrap_or(0);
    let kind = match parameters.bytes("kind").as_deref() {
        None | Some(b"persistent") => NodeKind::Persistent,
        Some(b"container") => NodeKind::Container,
        Some(b"ttl") => NodeKind::Ttl,
        Some(b"ephemeral") => {
            let what = "an ephemeral node ends with a session, and HTTP has none";
            let right = "make it over gRPC, or as a client of ZooKeeper";
            return Err(problem::invalid("kind", what, right));
        }
        Some(_) => {
            let right = "give persistent, container or ttl";
            return Err(problem::invalid("kind", "there is no such kind of node", right));
        }
    };
    Ok((kind, ttl_ms, sequential))
}

/// `POST /v1/tree/{keyspace}/{path}`.
pub async fn create(State(native): State<Native>, request: Request) -> Response {
    make(&native, request).await.unwrap_or_else(|problem| refused(&native, problem))
}

async fn make(native: &Native, request: Request) -> Result<Response, Problem> {
    let parameters =
        Parameters::of(request.uri(), &["kind", "ttl_ms", "sequential", "timeout_ms"])?;
    let (kind, ttl_ms, sequential) = kind(&parameters)?;
    let timeout_ms = parameters.number("timeout_ms", 0, u32::MAX)?.unwrap_or(0);
    let (keyspace, path) = place(request.uri())?;
    let options = Some(ask::write_options(request.headers(), timeout_ms)?);
    let (parts, data) = value(native, &keyspace, request).await?;
    let kind = kind.into();
    let node = Some(v1::NewNode { path, data, acl: Vec::new(), kind, ttl_ms, sequential });
    let asked = v1::CreateNodeRequest { keyspace, node, session: None, options };
    let done = native.create_node(asked, &asking(&parts)).await?;
    Ok(told(StatusCode::CREATED, &done.path, done.stat, done.is_repeated, done.coordinator))
}

/// `PUT /v1/tree/{keyspace}/{path}`.
pub async fn set(State(native): State<Native>, request: Request) -> Response {
    let has_condition = request.headers().contains_key(header::IF_MATCH);
    let set = write(&native, request).await;
    set.unwrap_or_else(|problem| unmet(&native, problem, has_condition))
}

async fn write(native: &Native, request: Request) -> Result<Response, Problem> {
    let parameters = Parameters::of(request.uri(), &["timeout_ms"])?;
    let timeout_ms = parameters.number("timeout_ms", 0, u32::MAX)?.unwrap_or(0);
    let (keyspace, path) = place(request.uri())?;
    let version = required(request.headers())?;
    let options = Some(ask::write_options(request.headers(), timeout_ms)?);
    let (parts, data) = value(native, &keyspace, request).await?;
    let asked =
        v1::SetNodeRequest { keyspace, path: path.clone(), data, version, session: None, options };
    let done = native.set_node(asked, &asking(&parts)).await?;
    Ok(told(StatusCode::OK, &path, done.stat, done.is_repeated, done.coordinator))
}

/// The value that a body has.
async fn value(
    native: &Native,
    keyspace: &str,
    request: Request,
) -> Result<(Parts, Bytes), Problem> {
    let (parts, body) = request.into_parts();
    let limit = native.value_bytes_max_of(keyspace)?;
    let value = match ask::form(&parts.headers)? {
        Form::Raw => ask::body(body, limit, LONG_VALUE).await?,
        Form::Json => {
            let body = ask::body(body, JSON_FACTOR * limit + JSON_SLACK, LONG_VALUE).await?;
            ask::value(&body, &asking(&parts).allowance)?
        }
    };
    Ok((parts, value))
}

/// What is told of a write.
fn told(
    status: StatusCode,
    path: &str,
    stat: Option<Stat>,
    is_repeated: bool,
    who: Option<v1::Coordinator>,
) -> Response {
    let stat = stat.unwrap_or_default();
    let mut body = node(path, &stat);
    body.insert(String::from("is_repeated"), is_repeated.into());
    signed(tagged(answer::json(status, &Value::Object(body)), &stat), who)
}

/// `DELETE /v1/tree/{keyspace}/{path}`.
pub async fn delete(State(native): State<Native>, request: Request) -> Response {
    let parts = request.into_parts().0;
    let has_condition = parts.headers.contains_key(header::IF_MATCH);
    let removed = remove(&native, &parts).await;
    removed.unwrap_or_else(|problem| unmet(&native, problem, has_condition))
}

async fn remove(native: &Native, parts: &Parts) -> Result<Response, Problem> {
    let parameters = Parameters::of(&parts.uri, &["timeout_ms"])?;
    let timeout_ms = parameters.number("timeout_ms", 0, u32::MAX)?.unwrap_or(0);
    let (keyspace, path) = place(&parts.uri)?;
    let version = required(&parts.headers)?;
    let options = Some(ask::write_options(&parts.headers, timeout_ms)?);
    let asked = v1::DeleteNodeRequest { keyspace, path, version, session: None, options };
    let done = native.delete_node(asked, &asking(parts)).await?;
    let body = json!({ "is_repeated": done.is_repeated });
    Ok(signed(answer::json(StatusCode::OK, &body), done.coordinator))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().expect("a path")
    }

    #[test]
    fn the_path_of_a_node_follows_its_keyspace() {
        for (asked, path) in [("", "/"), ("a/b", "/a/b"), ("a%20%C3%BC", "/a ü"), ("a/", "/a/")] {
            let (keyspace, found) = place(&uri(&format!("/v1/tree/config/{asked}"))).expect("one");
            assert_eq!((keyspace.as_str(), found.as_str()), ("config", path));
        }
        assert_eq!(place(&uri("/v1/tree/config/%ff")).expect_err("no text").field, "path");
    }

    #[test]
    fn an_etag_is_a_version_in_quotes() {
        let of = |text: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_MATCH, HeaderValue::from_static(text));
            required(&headers)
        };
        assert_eq!(required(&HeaderMap::new()), Ok(None));
        assert_eq!((of("*"), of("\"3\""), of("\"-7\"")), (Ok(None), Ok(Some(3)), Ok(Some(-7))));
        for bad in ["3", "\"\"", "\"x\"", "\"+3\"", "W/\"3\"", "\"3\", \"4\""] {
            assert_eq!(of(bad).expect_err("no version").field, "if-match", "{bad}");
        }
    }

    #[test]
    fn a_node_is_made_as_its_parameters_say() {
        let of = |query: &str| {
            let uri = uri(&format!("/?{query}"));
            kind(&Parameters::of(&uri, &["kind", "ttl_ms", "sequential"]).expect("they are known"))
        };
        assert_eq!(of(""), Ok((NodeKind::Persistent, 0, false)));
        assert_eq!(of("kind=ttl&ttl_ms=9&sequential=true"), Ok((NodeKind::Ttl, 9, true)));
        for bad in ["kind=ephemeral", "kind=x", "ttl_ms=0", "sequential=1"] {
            assert!(of(bad).is_err(), "{bad}");
        }
    }
}
