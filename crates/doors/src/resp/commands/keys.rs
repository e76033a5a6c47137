//! Keys: whether they are there, deleting them, listing them.

use super::spec::{ALL_KEYS, Handler, Keys, NO_KEYS, ONE_KEY, Run, Spec};
use super::{Cx, Handled, Plan, check_key, is, key, number};
use crate::resp::error::CommandError;
use crate::resp::glob;
use crate::resp::many::{Each, Many};
use crate::resp::requests::frame::Command;
use crate::resp::single::Single;
use crate::resp::work::{Flush, Pages};
use quorate_kernel::operation::Operation;

/// How many keys a page of `SCAN` has unless the client says.
const SCAN_COUNT: i64 = 10;

const fn spec(
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    keys: Keys,
    since: &'static str,
    summary: &'static str,
    run: Handler,
) -> Spec {
    Spec { name, arity, flags, keys, group: "generic", since, summary, run: Run::Handler(run) }
}

/// What `DEL` does, and what its answer does not say: a register cannot tell what a write replaced.
const DELETE: &str = "Delete keys. Without transactions each by itself, and the count is of the \
                      values seen before, not atomic beside other writes of the same key";

/// The commands on keys.
#[rustfmt::skip] // One command, one line.
pub(crate) const SPECS: &[Spec] = &[
    spec("del", -2, &["write"], ALL_KEYS, "1.0.0", DELETE, del),
    spec("unlink", -2, &["write", "fast"], ALL_KEYS, "4.0.0", DELETE, del),
    spec("exists", -2, &["readonly", "fast"], ALL_KEYS, "1.0.0", "Count how many of the given keys exist", exists),
    spec("touch", -2, &["readonly", "fast"], ALL_KEYS, "3.2.1", "Count how many of the given keys exist", exists),
    spec("type", 2, &["readonly", "fast"], ONE_KEY, "1.0.0", "Determine the type stored at key", type_of),
    spec("keys", 2, &["readonly"], NO_KEYS, "1.0.0", "Find all keys matching the given pattern", keys),
    spec("scan", -2, &["readonly"], NO_KEYS, "2.8.0", "Incrementally iterate the keys space", scan),
    spec("randomkey", 1, &["readonly"], NO_KEYS, "1.0.0", "Return a random key from the keyspace", randomkey),
    spec("flushdb", -1, &["write"], NO_KEYS, "1.0.0", "Delete all keys of the keyspace, one by one", flushdb),
    spec("dbsize", 1, &["readonly", "fast"], NO_KEYS, "1.0.0", "Return about how many keys the keyspace has", dbsize),
];

fn del(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    if command.len() == 2 {
        return Ok(Plan::One(Single::Delete, Operation::delete(key(command, 1)?)));
    }
    many(Each::Delete, command)
}

fn exists(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    if command.len() == 2 {
        return one(Single::Exists, command);
    }
    many(Each::Exists, command)
}

fn many(each: Each, command: &mut Command) -> Handled {
    for at in 1..command.len() {
        check_key(command, at)?;
    }
    Ok(Plan::Many(Many::new(each, core::mem::take(command))))
}

fn one(single: Single, command: &Command) -> Handled {
    Ok(Plan::One(single, Operation::get(key(command, 1)?)))
}

fn type_of(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    one(Single::Type, command)
}

fn keys(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    glob::check(command.arg(1))?;
    Ok(Plan::Pages(Pages::keys(command.shared(1))))
}

fn scan(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let from = cursor(command.arg(1)).ok_or(CommandError::Cursor)?;
    let (mut count, mut pattern, mut is_empty) = (SCAN_COUNT, None, false);
    for at in (2..command.len()).step_by(2) {
        let option = command.arg(at);
        if at + 1 == command.len() {
            return Err(CommandError::Syntax);
        }
        if is(option, "COUNT") {
            count = number(command, at + 1)?;
            if count < 1 {
                return Err(CommandError::Syntax);
            }
        } else if is(option, "MATCH") {
            glob::check(command.arg(at + 1))?;
            pattern = Some(command.shared(at + 1));
        } else if is(option, "TYPE") {
            is_empty = !is(command.arg(at + 1), "string");
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(Plan::Pages(Pages::scan(from, count, pattern, is_empty)))
}

/// A cursor is a hash token in decimal digits.
fn cursor(text: &[u8]) -> Option<u64> {
    if !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    core::str::from_utf8(text).ok()?.parse().ok()
}

fn randomkey(cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    Ok(Plan::Pages(Pages::random(cx.rng.next())))
}

/// `ASYNC` and `SYNC` come to the same: it is answered when all is deleted.
fn flushdb(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let is_known = |option| is(option, "ASYNC") || is(option, "SYNC");
    if command.len() > 2 || command.len() == 2 && !is_known(command.arg(1)) {
        return Err(CommandError::Syntax);
    }
    Ok(Plan::Flush(Flush::new()))
}

fn dbsize(_cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    Ok(Plan::Pages(Pages::size()))
}
