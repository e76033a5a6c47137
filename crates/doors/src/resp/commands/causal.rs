//! Values with siblings and contexts: `CGET`, `CSET`, `CDEL`, of keyspaces that keep both.
//!
//! A context is opaque bytes. An empty one is that of a client that has seen nothing: a blind
//! write, which leaves all siblings where they are.

use super::spec::{Handler, ONE_KEY, Run, Spec};
use super::{Cx, Handled, Plan, check_value, key};
use crate::resp::error::CommandError;
use crate::resp::frame::Command;
use crate::resp::single::Single;
use alloc::string::ToString;
use quorate_kernel::causal::Ask;
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

fn check_engine(cx: &Cx<'_>, command: &str, instead: &'static str) -> Result<(), CommandError> {
    let served = cx.keyspace()?;
    if served.can(Capability::Siblings) {
        return Ok(());
    }
    let (command, engine) = (command.to_string(), served.engine.name);
    Err(CommandError::NoSiblings { command, engine, instead })
}

fn context(command: &Command) -> Result<bytes::Bytes, CommandError> {
    let (length, limit) = (command.arg(2).len(), CONTEXT_BYTES_MAX);
    if length > limit {
        return Err(CommandError::TooLarge { what: "context", length, limit });
    }
    Ok(command.shared(2))
}

fn cget(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    check_engine(cx, "CGET", "GET")?;
    let ask = Ask::Get { key: key(command, 1)?, replies: None };
    Ok(Plan::One(Single::Siblings, Operation::Causal(ask)))
}

fn cset(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    check_engine(cx, "CSET", "SET")?;
    check_value(cx, command, 3)?;
    let (key, context) = (key(command, 1)?, context(command)?);
    let ask = Ask::Put { key, value: command.shared(3), context, id: None };
    Ok(Plan::One(Single::Context, Operation::Causal(ask)))
}

fn cdel(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    check_engine(cx, "CDEL", "DEL")?;
    let ask = Ask::Delete { key: key(command, 1)?, context: context(command)? };
    Ok(Plan::One(Single::Context, Operation::Causal(ask)))
}
