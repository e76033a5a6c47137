//! Values with siblings and contexts: `CGET`, `CSET`, `CDEL`, of keyspaces that keep both.
//!
//! A context is opaque bytes. An empty one is that of a client that has seen nothing: a blind
//! write, which leaves all siblings where they are.

use super::spec::{Handler, ONE_KEY, Run, Spec};
use super::{Cx, Handled, Plan, check_value, key};
use crate::resp::error::CommandError;
use crate::resp::requests::frame::Command;
use crate::resp::single::Single;
use quorate_kernel::engine::Capability;
use quorate_kernel::limits::CONTEXT_BYTES_MAX;
use quorate_kernel::operation::Operation;

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

/// The commands on siblings.
#[rustfmt::skip] // One command, one line.
pub(crate) const SPECS: &[Spec] = &[
    spec("cget", 2, &["readonly", "fast"], "Get the context and all sibling values of a key", cget),
    spec("cset", 4, &["write", "denyoom"], "Set a value in place of what a context covers", cset),
    spec("cdel", 3, &["write"], "Delete all values that a context covers", cdel),
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
