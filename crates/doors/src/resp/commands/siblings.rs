//! Values side by side: siblings with contexts, `CGET`, `CSET`, `CDEL`, and versions that clients
//! choose, `VGET`, `VSET`; of keyspaces that keep them.
//!
//! A context is opaque bytes. An empty one is that of a client that has seen nothing: a blind
//! write, which leaves all siblings where they are. A version is a whole number; the first value
//! of one stays.

use super::spec::{Handler, ONE_KEY, Run, Spec};
use super::{Cx, Handled, Plan, check_value, key, number};
use crate::resp::error::CommandError;
use crate::resp::requests::frame::Command;
use crate::resp::single::Single;
use quorate_kernel::engine::Capability;
use quorate_kernel::limits::CONTEXT_BYTES_MAX;
use quorate_kernel::operation::{Operation, Which};
use quorate_kernel::write::Replaces;

const fn spec(
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    summary: &'static str,
    run: Handler,
) -> Spec {
    let (keys, group, since) = (ONE_KEY, "string", "7.2.4");
    Spec { name, arity, flags, keys, group, since, summary, run: Run::Handler(run) }
}

/// The commands on siblings and versions.
#[rustfmt::skip] // One command, one line.
pub(crate) const SPECS: &[Spec] = &[
    spec("cget", 2, &["readonly", "fast"], "Get the context and all sibling values of a key", cget),
    spec("cset", 4, &["write", "denyoom"], "Set a value in place of what a context covers", cset),
    spec("cdel", 3, &["write"], "Delete all values that a context covers", cdel),
    spec("vget", 3, &["readonly", "fast"], "Get the value of a version of a key", vget),
    spec("vset", 4, &["write", "denyoom"], "Set the value of a version of a key", vset),
];

fn require(cx: &Cx<'_>, command: &str, instead: &'static str) -> Result<(), CommandError> {
    Ok(cx.keyspace()?.require(Capability::Siblings, command, Some(instead))?)
}

fn context(command: &Command) -> Result<bytes::Bytes, CommandError> {
    let (length, limit) = (command.arg(2).len(), CONTEXT_BYTES_MAX);
    if length > limit {
        return Err(CommandError::TooLarge { what: "context", length, limit });
    }
    Ok(command.shared(2))
}

fn cget(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    require(cx, "CGET", "use GET")?;
    Ok(Plan::One(Single::Siblings, Operation::get_all(key(command, 1)?, None)))
}

fn cset(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    require(cx, "CSET", "use SET")?;
    check_value(cx, command, 3)?;
    let (key, context) = (key(command, 1)?, context(command)?);
    let operation = Operation::put_over(key, command.shared(3), context, None);
    Ok(Plan::One(Single::Context, operation))
}

fn cdel(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    require(cx, "CDEL", "use DEL")?;
    let operation = Operation::delete_over(key(command, 1)?, context(command)?);
    Ok(Plan::One(Single::Context, operation))
}

fn version(cx: &Cx<'_>, command: &Command, instead: &'static str) -> Result<u64, CommandError> {
    let name = command.arg(0).to_ascii_uppercase();
    let name = alloc::string::String::from_utf8_lossy(&name).into_owned();
    cx.keyspace()?.require(Capability::Receipts, &name, Some(instead))?;
    u64::try_from(number(command, 2)?).map_err(|_| CommandError::NotInteger)
}

fn vget(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let which = Which::Version(version(cx, command, "use GET")?);
    let operation = Operation::Get { key: key(command, 1)?, which, replies: None };
    Ok(Plan::One(Single::Get, operation))
}

fn vset(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let replaces = Replaces::Version(version(cx, command, "use SET")?);
    check_value(cx, command, 3)?;
    let (key, value) = (key(command, 1)?, command.shared(3));
    Ok(Plan::One(Single::Put, Operation::Put { key, value, replaces, name: None }))
}
