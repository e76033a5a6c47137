//! Keys that get what another key has: `RENAME`, `RENAMENX` and `COPY`. Each is one transaction.

use super::spec::{Handler, Keys, Run, Spec};
use super::{Cx, Handled, changes, is, key};
use crate::resp::error::CommandError;
use crate::resp::requests::frame::Command;
use crate::resp::shared::find;
use crate::resp::single::Single;
use alloc::vec;
use quorate_kernel::transaction::Item;

const TWO_KEYS: Keys = Keys { first: 1, last: 2, step: 1 };

const fn spec(
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    since: &'static str,
    summary: &'static str,
    run: Handler,
) -> Spec {
    let (keys, group) = (TWO_KEYS, "generic");
    Spec { name, arity, flags, keys, group, since, summary, run: Run::Handler(run) }
}

/// The commands.
pub(crate) const SPECS: &[Spec] = &[
    spec("rename", 3, &["write"], "1.0.0", "Rename a key", rename),
    spec("renamenx", 3, &["write", "fast"], "1.0.0", "Rename a key to a free name", renamenx),
    spec("copy", -3, &["write", "denyoom"], "6.2.0", "Copy a key to another one", copy),
];

fn rename(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    give(command, Single::Rename, (true, true))
}

fn renamenx(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    give(command, Single::RenameNx, (false, true))
}

fn copy(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let (mut at, mut replaces, mut keyspace) = (3, false, cx.client.keyspace);
    while at < command.len() {
        if is(command.arg(at), "REPLACE") {
            replaces = true;
        } else if is(command.arg(at), "DB") && at + 1 < command.len() {
            at += 1;
            keyspace = find(cx.serving, command.arg(at))?;
        } else {
            return Err(CommandError::Syntax);
        }
        at += 1;
    }
    if keyspace != cx.client.keyspace {
        return Err(CommandError::Elsewhere { what: "the keys of DB" });
    }
    if command.arg(1) == command.arg(2) {
        return Err(CommandError::Text("ERR source and destination objects are the same"));
    }
    give(command, Single::Copy, (replaces, false))
}

fn give(command: &Command, single: Single, (replaces, removes): (bool, bool)) -> Handled {
    let (key, to) = (key(command, 1)?, key(command, 2)?);
    changes::several(single, vec![Item::Copy { key, to, replaces, removes }])
}
