//! Values: `GET`, `SET` and their kin.

use super::changes::{self, SetOptions};
use super::spec::{ALL_KEYS, ONE_KEY, PAIRS, Run, Spec};
use super::{Cx, Handled, Plan, check_key, check_value, key, number};
use crate::resp::error::CommandError;
use crate::resp::many::{Each, Many};
use crate::resp::requests::frame::Command;
use crate::resp::single::Single;
use quorate_kernel::engine::Capability;
use quorate_kernel::expiry::Expiry;
use quorate_kernel::operation::Operation;

const fn spec(
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    keys: super::spec::Keys,
    since: &'static str,
    summary: &'static str,
    run: super::spec::Handler,
) -> Spec {
    Spec { name, arity, flags, keys, group: "string", since, summary, run: Run::Handler(run) }
}

/// What `MSET` does, by what the keyspace's engine can.
const MSET: &str = "Set multiple keys to multiple values; without transactions each by itself";

/// The commands on values.
#[rustfmt::skip] // One command, one line.
pub(crate) const SPECS: &[Spec] = &[
    spec("get", 2, &["readonly", "fast"], ONE_KEY, "1.0.0", "Get the value of a key", get),
    spec("set", -3, &["write", "denyoom"], ONE_KEY, "1.0.0", "Set the string value of a key", set),
    spec("mget", -2, &["readonly", "fast"], ALL_KEYS, "1.0.0", "Get the values of all the given keys", mget),
    spec("mset", -3, &["write", "denyoom"], PAIRS, "1.0.1", MSET, mset),
    spec("strlen", 2, &["readonly", "fast"], ONE_KEY, "2.2.0", "Get the length of the value stored in a key", strlen),
    spec("getrange", 4, &["readonly"], ONE_KEY, "2.4.0", "Get a substring of the string stored at a key", getrange),
    spec("substr", 4, &["readonly"], ONE_KEY, "1.0.0", "Get a substring of the string stored at a key", getrange),
];

fn get(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    Ok(Plan::One(Single::Get, Operation::get(key(command, 1)?)))
}

fn set(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    if command.len() > 3 {
        return set_with_options(cx, command);
    }
    check_value(cx, command, 2)?;
    Ok(Plan::One(Single::Put, Operation::put(key(command, 1)?, command.shared(2))))
}

/// What is wrong with them is said as in Redis, before what the engine cannot do.
fn set_with_options(cx: &mut Cx<'_>, command: &Command) -> Handled {
    let SetOptions { exists, gets, end } = SetOptions::of(command)?;
    let expiry = match end {
        Some((_, end)) => end.expiry(cx, command, "set")?,
        None => Expiry::Never,
    };
    let condition = exists.map(|exists| if exists { "XX" } else { "NX" });
    if let Some(option) = condition.or(gets.then_some("GET")) {
        let asked = alloc::format!("SET {option}");
        cx.keyspace()?.require(Capability::Transactions, &asked, None)?;
        if exists.is_some() {
            cx.keyspace()?.require(Capability::Changes, &asked, None)?;
        }
    }
    if let Some((option, _)) = end {
        let asked = alloc::format!("SET {option}");
        cx.keyspace()?.require(Capability::Expiry, &asked, None)?;
    }
    changes::set(cx, command, (exists, gets), expiry)
}

fn mget(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    for at in 1..command.len() {
        check_key(command, at)?;
    }
    Ok(Plan::Many(Many::new(Each::Get, core::mem::take(command))))
}

fn mset(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    if command.len().is_multiple_of(2) {
        return Err(CommandError::Arity("mset".into()));
    }
    for at in (1..command.len()).step_by(2) {
        check_key(command, at)?;
        check_value(cx, command, at + 1)?;
    }
    Ok(Plan::Many(Many::new(Each::Put, core::mem::take(command))))
}

fn strlen(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    Ok(Plan::One(Single::Length, Operation::get(key(command, 1)?)))
}

fn getrange(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let (start, end) = (number(command, 2)?, number(command, 3)?);
    Ok(Plan::One(Single::Range { start, end }, Operation::get(key(command, 1)?)))
}
