//! `POST /v1/tree/{keyspace}`: several things of a tree at one moment, or nothing.

use super::super::problem::{self, Problem};
use super::super::service::Native;
use super::answer;
use super::ask::{self, Form, Parameters};
use super::at_most::AtMost;
use super::kv::{asking, signed};
use super::tree;
use crate::web::Allowance;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use quorate_api::v1;
use quorate_api::v1::node_item::Action;
use quorate_api::v1::{NewNode, NodeData, NodeItem, NodeKind, NodeVersion};
use quorate_kernel::limits::{TRANSACTION_BYTES_MAX, TRANSACTION_ITEMS_MAX};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The longest body: room for the longest multi in base64, and for what is beside it.
const BODY_BYTES_MAX: usize = TRANSACTION_BYTES_MAX / 3 * 4 + 1024 * 1024;
/// What is right.
const FORM: &str = "send an object with `items`, a list of at most 1024 objects with `op` \
                    (`create`, `delete`, `set` or `check`) and `path`; of `create` and `set` \
                    `value` or `value_base64`, of `create` `kind`, `ttl_ms` and `sequential` if \
                    wanted, of the others the `version` that the node must have, if one";

/// `POST /v1/tree/{keyspace}`.
pub async fn post(State(native): State<Native>, request: Request) -> Response {
    multi(&native, request).await.unwrap_or_else(|problem| tree::refused(&native, problem))
}

async fn multi(native: &Native, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let parameters = Parameters::of(&parts.uri, &["timeout_ms"])?;
    let (keyspace, _) = ask::path(&parts.uri)?;
    let timeout_ms = parameters.number("timeout_ms", 0, u32::MAX)?.unwrap_or(0);
    let options = Some(ask::write_options(&parts.headers, timeout_ms)?);
    let asking = asking(&parts);
    if ask::form(&parts.headers)? != Form::Json {
        let what = "the items are not given as application/json";
        return Err(problem::invalid("content-type", what, FORM));
    }
    let body = ask::body(body, BODY_BYTES_MAX, ("items", "send less in one multi")).await?;
    let items = items(&body, &asking.allowance)?;
    drop(body);
    let asked = v1::MultiRequest { keyspace, items, session: None, options };
    let done = native.multi(asked, &asking).await?;
    let answers: Vec<Value> = done.answers.iter().map(told).collect();
    let body = json!({ "answers": answers, "is_repeated": done.is_repeated });
    Ok(signed(answer::json(StatusCode::OK, &body), done.coordinator))
}

/// What an item was told.
fn told(one: &v1::NodeItemAnswer) -> Value {
    let mut object = Map::new();
    if !one.path.is_empty() {
        object.insert(String::from("path"), one.path.as_str().into());
    }
    if let Some(stat) = &one.stat {
        object.insert(String::from("stat"), tree::stat(stat));
    }
    Value::Object(object)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MultiBody {
    items: AtMost<TRANSACTION_ITEMS_MAX, Row>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Op {
    Create,
    Delete,
    Set,
    Check,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    #[default]
    Persistent,
    Container,
    Ttl,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    op: Op,
    path: String,
    value: Option<String>,
    value_base64: Option<String>,
    kind: Option<Kind>,
    ttl_ms: Option<u64>,
    sequential: Option<bool>,
    version: Option<i32>,
}

/// The items in a JSON body.
fn items(body: &Bytes, allowance: &Allowance) -> Result<Vec<NodeItem>, Problem> {
    // The text is taken apart beside itself.
    allowance.take(body.len()).map_err(|_| problem::overloaded())?;
    let asked: MultiBody = serde_json::from_slice(body)
        .map_err(|error| problem::invalid("body", format!("the body is not so: {error}"), FORM))?;
    asked.items.0.into_iter().enumerate().map(item).collect()
}

fn item((at, row): (usize, Row)) -> Result<NodeItem, Problem> {
    let field = format!("items[{at}]");
    let Row { op, path, value, value_base64, kind, ttl_ms, sequential, version } = row;
    let value = ask::either(&field, value, value_base64)?;
    let is_made = kind.is_some() || ttl_ms.is_some() || sequential.is_some();
    let has_value = matches!(op, Op::Create | Op::Set);
    let is_odd = value.is_some() && !has_value
        || is_made && op != Op::Create
        || version.is_some() && op == Op::Create
        || ttl_ms == Some(0);
    if is_odd {
        return Err(problem::invalid(&field, "a field does not go with the op", FORM));
    }
    let data = match (op, value) {
        (Op::Set, None) => return Err(problem::invalid(&field, "the set has no value", FORM)),
        (_, value) => value.unwrap_or_default(),
    };
    let action = match op {
        Op::Create => {
            let kind = match kind.unwrap_or_default() {
                Kind::Persistent => NodeKind::Persistent,
                Kind::Container => NodeKind::Container,
                Kind::Ttl => NodeKind::Ttl,
            };
            Action::Create(NewNode {
                path,
                data,
                acl: Vec::new(),
                kind: kind.into(),
                ttl_ms: ttl_ms.unwrap_or(0),
                sequential: sequential.unwrap_or(false),
            })
        }
        Op::Set => Action::Set(NodeData { path, data, version }),
        Op::Delete => Action::Delete(NodeVersion { path, version }),
        Op::Check => Action::Check(NodeVersion { path, version }),
    };
    Ok(NodeItem { action: Some(action) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_api::v1::Kind as Sort;

    fn of(text: &'static str) -> Result<Vec<NodeItem>, Problem> {
        let budget = crate::web::Budget::new(1_000_000);
        items(&Bytes::from_static(text.as_bytes()), &budget.allowance())
    }

    #[test]
    fn items_say_what_is_done_with_a_node() {
        let all = of(r#"{"items":[{"op":"create","path":"/a","value":"x","sequential":true},
            {"op":"set","path":"/a","value_base64":"/w==","version":3},
            {"op":"check","path":"/a"},{"op":"delete","path":"/a","version":0}]}"#);
        let all: Vec<Action> =
            all.expect("they are right").into_iter().filter_map(|item| item.action).collect();
        let (path, data) = (String::from("/a"), Bytes::from_static(b"x"));
        let new = NewNode { path, data, sequential: true, ..NewNode::default() };
        assert_eq!(all[0], Action::Create(new));
        let (path, data) = (String::from("/a"), Bytes::from_static(b"\xff"));
        assert_eq!(all[1], Action::Set(NodeData { path, data, version: Some(3) }));
        let at = |version| NodeVersion { path: String::from("/a"), version };
        assert_eq!((&all[2], &all[3]), (&Action::Check(at(None)), &Action::Delete(at(Some(0)))));
    }

    #[test]
    fn a_body_that_is_not_so_is_refused() {
        for bad in [
            "",
            "{}",
            r#"{"items":[{"op":"create"}]}"#,
            r#"{"items":[{"op":"move","path":"/a"}]}"#,
            r#"{"items":[{"op":"set","path":"/a"}]}"#,
            r#"{"items":[{"op":"delete","path":"/a","value":"x"}]}"#,
            r#"{"items":[{"op":"create","path":"/a","version":1}]}"#,
            r#"{"items":[{"op":"check","path":"/a","sequential":true}]}"#,
            r#"{"items":[{"op":"create","path":"/a","kind":"ephemeral"}]}"#,
            r#"{"items":[{"op":"create","path":"/a","ttl_ms":0}]}"#,
        ] {
            assert_eq!(of(bad).expect_err("not so").kind(), Sort::Invalid, "{bad}");
        }
    }
}
