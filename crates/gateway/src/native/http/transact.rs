//! Several keys as one operation.

use super::super::expiry::{Timed, of_expire, of_put, persist, remaining_ms};
use super::super::problem::{self, Problem};
use super::super::service::Native;
use super::ask::{self, Form, Parameters};
use super::at_most::AtMost;
use super::expiry::{self, Fields, When};
use super::kv::{asking, signed};
use super::{answer, failed};
use crate::web::Allowance;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use bytes::Bytes;
use quorate_host::wall;
use quorate_kernel::change::{Change, Changed};
use quorate_kernel::expiry::{Expiry, Lifetime};
use quorate_kernel::limits::{TRANSACTION_BYTES_MAX, TRANSACTION_ITEMS_MAX};
use quorate_kernel::time::WallTime;
use quorate_kernel::transaction::{Condition, Copied, Item, ItemOutcome};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The longest body: room for the longest transaction in base64, and for what is beside it.
const BODY_BYTES_MAX: usize = TRANSACTION_BYTES_MAX / 3 * 4 + 1024 * 1024;
/// What is right.
const FORM: &str = "send an object with `items`, a list of at most 1024 objects with `op` (`get`, \
                    `put`, `delete`, `check`, `put_if`, `add`, `add_float`, `append`, \
                    `set_range`, `expire`, `persist`, `lifetime` or `copy`), `key` or \
                    `key_base64`; of \
                    `put`, `put_if`, `add_float`, `append` and `set_range` `value` or \
                    `value_base64`, of a check one of these or `exists`, true or false, of \
                    `put_if` `exists`, of `add` `number`, of `set_range` `offset`, of `expire` \
                    `expire_after_ms` or `expire_at_ms`, and `when` if it has a condition, of \
                    `put` and `put_if` one of these or `keep_expiry`, true, if the key expires; \
                    of `copy` `to` or `to_base64`, and `replaces` or `removes`, true, if it does";

/// `POST /v1/transactions/{keyspace}`.
pub async fn post(State(native): State<Native>, request: Request) -> Response {
    transact(&native, request).await.unwrap_or_else(|problem| failed(&native, problem))
}

async fn transact(native: &Native, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let parameters = Parameters::of(&parts.uri, &["timeout_ms"])?;
    let (keyspace, _) = ask::path(&parts.uri)?;
    let timeout_ms = parameters.number("timeout_ms", 0, u32::MAX)?.unwrap_or(0);
    let options = ask::write_options(&parts.headers, timeout_ms)?;
    let asking = asking(&parts);
    if ask::form(&parts.headers)? != Form::Json {
        let what = "the items are not given as application/json";
        return Err(problem::invalid("content-type", what, FORM));
    }
    let body = ask::body(body, BODY_BYTES_MAX, ("items", "send less in one transaction")).await?;
    let items = items(&body, &asking.allowance)?;
    drop(body);
    let keys: Vec<Bytes> = items.iter().map(|timed| timed.item.key().clone()).collect();
    let is_write = items.iter().any(|timed| timed.item.is_write());
    let (told, is_repeated) = native.transact(&keyspace, items, &options, &asking).await?;
    let (now, each) = (wall(), keys.iter().zip(&told));
    let answers: Vec<Value> = each.map(|(key, told)| shown(key, told, now)).collect();
    let body = json!({ "answers": answers, "is_repeated": is_repeated });
    let held = told.iter().map(ItemOutcome::bytes).sum();
    let answer = answer::counted(&body, held, &asking.allowance, StatusCode::OK);
    // What was written was done.
    let answer = answer.map_err(|why| if is_write { problem::untold() } else { why })?;
    Ok(signed(answer, Some(native.me())))
}

/// What an item is told at this time.
fn shown(key: &Bytes, told: &ItemOutcome, now: WallTime) -> Value {
    let mut object = Map::new();
    answer::put_bytes(&mut object, "key", key);
    match told {
        ItemOutcome::Checked | ItemOutcome::Written => {}
        ItemOutcome::Value(Some(value)) => answer::put_bytes(&mut object, "value", value),
        ItemOutcome::Value(None) => drop(object.insert(String::from("value"), Value::Null)),
        ItemOutcome::Deleted { existed } => {
            object.insert(String::from("existed"), (*existed).into());
        }
        ItemOutcome::Changed(Changed::Put) => {
            object.insert(String::from("put"), true.into());
        }
        ItemOutcome::Changed(Changed::Integer(number)) => {
            object.insert(String::from("integer"), (*number).into());
        }
        ItemOutcome::Changed(Changed::Float(number)) => {
            answer::put_bytes(&mut object, "number", number);
        }
        ItemOutcome::Changed(Changed::Length(length)) => {
            object.insert(String::from("length"), (*length).into());
        }
        ItemOutcome::Unchanged(why) => {
            object.insert(String::from("unchanged"), why.to_string().into());
        }
        ItemOutcome::Expiry { changed } => {
            object.insert(String::from("expiry_changed"), (*changed).into());
        }
        ItemOutcome::Lifetime(lifetime) => {
            let left = match lifetime {
                Lifetime::Until(at) => Some(remaining_ms(*at, now)),
                Lifetime::Absent | Lifetime::Endless => None,
            };
            object.insert(String::from("exists"), (*lifetime != Lifetime::Absent).into());
            object.insert(String::from("remaining_ms"), left.into());
        }
        ItemOutcome::Copied(copied) => {
            let word = match copied {
                Copied::Done => "done",
                Copied::NoSource => "no_source",
                Copied::Occupied => "occupied",
            };
            object.insert(String::from("copied"), word.into());
        }
    }
    Value::Object(object)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TransactBody {
    items: AtMost<TRANSACTION_ITEMS_MAX, Row>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Op {
    Check,
    Get,
    Put,
    Delete,
    PutIf,
    Add,
    AddFloat,
    Append,
    SetRange,
    Expire,
    Persist,
    Lifetime,
    Copy,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    op: Op,
    key: Option<String>,
    key_base64: Option<String>,
    value: Option<String>,
    value_base64: Option<String>,
    exists: Option<bool>,
    number: Option<i64>,
    offset: Option<u64>,
    expire_after_ms: Option<u64>,
    expire_at_ms: Option<u64>,
    keep_expiry: Option<bool>,
    when: Option<When>,
    to: Option<String>,
    to_base64: Option<String>,
    replaces: Option<bool>,
    removes: Option<bool>,
}

/// The items in a JSON body.
fn items(body: &Bytes, allowance: &Allowance) -> Result<Vec<Timed>, Problem> {
    // The text is taken apart beside itself.
    allowance.take(body.len()).map_err(|_| problem::overloaded())?;
    let asked: TransactBody = serde_json::from_slice(body)
        .map_err(|error| problem::invalid("body", format!("the body is not so: {error}"), FORM))?;
    asked.items.0.into_iter().enumerate().map(|(at, row)| item(at, row)).collect()
}

fn item(at: usize, row: Row) -> Result<Timed, Problem> {
    let Row { op, key, key_base64, value, value_base64, exists, number, offset, .. } = row;
    let Row { expire_after_ms, expire_at_ms, keep_expiry, when, .. } = row;
    let Row { to, to_base64, replaces, removes, .. } = row;
    let field = format!("items[{at}]");
    let wrong = |what: &str| problem::invalid(&field, what, FORM);
    let key = ask::either(&field, key, key_base64)?.ok_or_else(|| wrong("there is no key"))?;
    let value = ask::either(&field, value, value_base64)?;
    let to = ask::either(&field, to, to_base64)?;
    let has = (value, exists, number, offset);
    if op != Op::Copy && (to.is_some() || replaces.is_some() || removes.is_some()) {
        return Err(wrong("it has `to`, `replaces` or `removes`, which are of `copy` alone"));
    }
    let fields = Fields { expire_after_ms, expire_at_ms, keep_expiry };
    if op == Op::Expire {
        return match has {
            (None, None, None, None) => {
                of_expire(key, expiry::of_expire(&field, fields, when)?, &field)
            }
            _ => Err(wrong("it has not just a key, a time and `when`")),
        };
    }
    if when.is_some() {
        return Err(wrong("it has `when`, which is of `expire` alone"));
    }
    let expires = expiry::of_put(&field, fields)?;
    if expires.is_some() && !matches!(op, Op::Put | Op::PutIf) {
        return Err(wrong("it says when the key expires, but puts nothing"));
    }
    let (expiry, is_relative) = of_put(expires, &field)?;
    let item = match (op, to) {
        (Op::Copy, Some(to)) if has == (None, None, None, None) => {
            let [replaces, removes] = [replaces, removes].map(Option::unwrap_or_default);
            Item::Copy { key, to, replaces, removes }
        }
        (Op::Copy, _) => return Err(wrong("it has not just two keys, `replaces` and `removes`")),
        _ => plain(op, key, has, expiry).map_err(wrong)?,
    };
    Ok(Timed { item, is_relative })
}

/// What an item may have: a value, `exists`, `number` and `offset`.
type Has = (Option<Bytes>, Option<bool>, Option<i64>, Option<u64>);

/// An item that has just what its `op` takes; or what is wrong with it.
fn plain(op: Op, key: Bytes, has: Has, expiry: Expiry) -> Result<Item, &'static str> {
    let change = match (op, has) {
        (Op::Check, (Some(value), None, None, None)) => {
            return Ok(Item::Check { key, holds: Condition::Value(value) });
        }
        (Op::Check, (None, Some(true), None, None)) => {
            return Ok(Item::Check { key, holds: Condition::Present });
        }
        (Op::Check, (None, Some(false), None, None)) => {
            return Ok(Item::Check { key, holds: Condition::Absent });
        }
        (Op::Get, (None, None, None, None)) => return Ok(Item::Get { key }),
        (Op::Put, (Some(value), None, None, None)) => {
            return Ok(Item::Put { key, value, expiry });
        }
        (Op::Delete, (None, None, None, None)) => return Ok(Item::Delete { key }),
        (Op::Persist, (None, None, None, None)) => return Ok(persist(key)),
        (Op::Lifetime, (None, None, None, None)) => return Ok(Item::Lifetime { key }),
        (Op::PutIf, (Some(value), Some(exists), None, None)) => {
            Change::PutIf { exists, value, expiry }
        }
        (Op::Add, (None, None, Some(number), None)) => Change::Add(number),
        (Op::AddFloat, (Some(number), None, None, None)) => Change::AddFloat(number),
        (Op::Append, (Some(bytes), None, None, None)) => Change::Append(bytes),
        (Op::SetRange, (Some(bytes), None, None, Some(offset))) => {
            Change::SetRange { offset, bytes }
        }
        (Op::Check, _) => return Err("a check has not just one of a value and `exists`"),
        (Op::Put | Op::AddFloat | Op::Append, _) => return Err("it has not just a value"),
        (Op::Get | Op::Delete | Op::Expire | Op::Persist | Op::Lifetime | Op::Copy, _) => {
            return Err("it has more than a key");
        }
        (Op::PutIf, _) => return Err("it has not just a value and `exists`"),
        (Op::Add, _) => return Err("it has not just a whole `number` of 64 bits"),
        (Op::SetRange, _) => return Err("it has not just a value and an `offset`"),
    };
    Ok(Item::Change { key, change })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_api::v1::Kind;
    use quorate_kernel::expiry::When as Sets;

    fn of(text: impl Into<Bytes>) -> Result<Vec<Item>, Problem> {
        timed(text).map(|all| all.into_iter().map(|timed| timed.item).collect())
    }

    fn timed(text: impl Into<Bytes>) -> Result<Vec<Timed>, Problem> {
        let budget = crate::web::Budget::new(1_000_000);
        items(&text.into(), &budget.allowance())
    }

    #[test]
    fn items_are_objects_with_an_op() {
        let text = r#"{"items":[{"op":"check","key":"a","exists":false},
            {"op":"check","key":"a","value":""},{"op":"get","key_base64":"/w=="},
            {"op":"put","key":"a","value_base64":"/w=="},{"op":"delete","key":"a"},
            {"op":"add","key":"a","number":-5},{"op":"append","key":"a","value_base64":"/w=="},
            {"op":"put_if","key":"a","value":"","exists":false},
            {"op":"set_range","key":"a","value":"","offset":4},
            {"op":"add_float","key":"a","value":"1.5"},
            {"op":"copy","key":"a","to_base64":"/w==","removes":true}]}"#;
        let (a, ff) = (|| Bytes::from_static(b"a"), || Bytes::from_static(b"\xff"));
        let change = |change| Item::Change { key: a(), change };
        let expected = vec![
            Item::Check { key: a(), holds: Condition::Absent },
            Item::Check { key: a(), holds: Condition::Value(Bytes::new()) },
            Item::Get { key: ff() },
            Item::Put { key: a(), value: ff(), expiry: Expiry::Never },
            Item::Delete { key: a() },
            change(Change::Add(-5)),
            change(Change::Append(ff())),
            change(Change::PutIf { exists: false, value: Bytes::new(), expiry: Expiry::Never }),
            change(Change::SetRange { offset: 4, bytes: Bytes::new() }),
            change(Change::AddFloat(Bytes::from_static(b"1.5"))),
            Item::Copy { key: a(), to: ff(), replaces: false, removes: true },
        ];
        assert_eq!(of(text), Ok(expected));
    }

    #[test]
    fn items_may_say_when_keys_expire() {
        let text = r#"{"items":[{"op":"put","key":"a","value":"","expire_after_ms":9},
            {"op":"put_if","key":"a","value":"","exists":false,"expire_at_ms":9},
            {"op":"put","key":"a","value":"","keep_expiry":true},
            {"op":"expire","key":"a","expire_at_ms":9,"when":"if_some_and_sooner"},
            {"op":"persist","key":"a"},{"op":"lifetime","key":"a"}]}"#;
        let a = || Bytes::from_static(b"a");
        let (value, at) = (Bytes::new(), WallTime(9));
        let put = |expiry| Item::Put { key: a(), value: value.clone(), expiry };
        let change = Change::PutIf { exists: false, value: value.clone(), expiry: Expiry::At(at) };
        let expected = [
            (put(Expiry::At(at)), true),
            (Item::Change { key: a(), change }, false),
            (put(Expiry::Keep), false),
            (Item::Expire { key: a(), at: Some(at), when: Sets::IfSomeAndSooner }, false),
            (persist(a()), false),
            (Item::Lifetime { key: a() }, false),
        ];
        let expected = expected.map(|(item, is_relative)| Timed { item, is_relative });
        assert_eq!(timed(text).expect("all are good"), expected);
    }

    #[test]
    fn what_was_asked_of_a_lifetime_is_told() {
        let told = |told| shown(&Bytes::from_static(b"k"), &told, WallTime(100));
        let of = |lifetime| told(ItemOutcome::Lifetime(lifetime));
        let left =
            |exists, ms: Option<u64>| json!({ "key": "k", "exists": exists, "remaining_ms": ms });
        assert_eq!(of(Lifetime::Absent), left(false, None));
        assert_eq!(of(Lifetime::Endless), left(true, None));
        assert_eq!(of(Lifetime::Until(WallTime(107))), left(true, Some(7)));
        let copied = |word| json!({ "key": "k", "copied": word });
        assert_eq!(told(ItemOutcome::Copied(Copied::Done)), copied("done"));
        assert_eq!(told(ItemOutcome::Copied(Copied::NoSource)), copied("no_source"));
        assert_eq!(told(ItemOutcome::Copied(Copied::Occupied)), copied("occupied"));
        let changed = json!({ "key": "k", "expiry_changed": true });
        assert_eq!(told(ItemOutcome::Expiry { changed: true }), changed);
    }

    #[test]
    fn a_body_that_is_not_so_is_refused() {
        for bad in [
            r#"{}"#,
            r#"{"items":[{"key":"a"}]}"#,
            r#"{"items":[{"op":"incr","key":"a"}]}"#,
            r#"{"items":[{"op":"get"}]}"#,
            r#"{"items":[{"op":"get","key":"a","key_base64":"/w=="}]}"#,
            r#"{"items":[{"op":"get","key":"a","value":"b"}]}"#,
            r#"{"items":[{"op":"put","key":"a"}]}"#,
            r#"{"items":[{"op":"put","key":"a","value_base64":"/w"}]}"#,
            r#"{"items":[{"op":"put","key":"a","value":"b","exists":true}]}"#,
            r#"{"items":[{"op":"add","key":"a","number":1.5}]}"#,
            r#"{"items":[{"op":"add","key":"a","value":"1"}]}"#,
            r#"{"items":[{"op":"set_range","key":"a","value":"1","offset":-1}]}"#,
            r#"{"items":[{"op":"put_if","key":"a","value":"1"}]}"#,
            r#"{"items":[{"op":"append","key":"a","value":"1","number":1}]}"#,
            r#"{"items":[{"op":"put","key":"a","value":"b","expire_after_ms":0}]}"#,
            r#"{"items":[{"op":"put","key":"a","value":"b","expire_after_ms":-1}]}"#,
            r#"{"items":[{"op":"put","key":"a","value":"b","when":"always"}]}"#,
            r#"{"items":[{"op":"get","key":"a","keep_expiry":true}]}"#,
            r#"{"items":[{"op":"expire","key":"a"}]}"#,
            r#"{"items":[{"op":"copy","key":"a"}]}"#,
            r#"{"items":[{"op":"copy","key":"a","to":"b","value":"c"}]}"#,
            r#"{"items":[{"op":"get","key":"a","to":"b"}]}"#,
            r#"{"items":[{"op":"delete","key":"a","replaces":true}]}"#,
            r#"{"items":[{"op":"expire","key":"a","keep_expiry":true}]}"#,
            r#"{"items":[{"op":"expire","key":"a","value":"","expire_at_ms":1}]}"#,
            r#"{"items":[{"op":"expire","key":"a","expire_at_ms":1,"when":"never"}]}"#,
            r#"{"items":[{"op":"persist","key":"a","expire_at_ms":1}]}"#,
            r#"{"items":[{"op":"check","key":"a"}]}"#,
            r#"{"items":[{"op":"check","key":"a","value":"b","exists":true}]}"#,
        ] {
            assert_eq!(of(bad).expect_err("not so").kind(), Kind::Invalid, "{bad}");
        }
        let row = r#"{"op":"get","key":""}"#;
        let many = |count: usize| format!(r#"{{"items":[{}]}}"#, vec![row; count].join(","));
        assert_eq!(of(many(TRANSACTION_ITEMS_MAX)).expect("they fit").len(), 1024);
        let refused = of(many(TRANSACTION_ITEMS_MAX + 1)).expect_err("one too many");
        assert!(refused.what.contains("more than 1024"), "{refused:?}");
    }
}
