//! Commands that are known and cannot be done, and why; `MULTI`, `EXEC` and `DISCARD`.

use super::spec::{ALL_KEYS, Handler, Keys, NO_KEYS, ONE_KEY, PAIRS, Run, Spec};
use super::{Cx, Handled, Plan};
use crate::resp::error::{CommandError, Lack};
use crate::resp::frame::Command;
use crate::resp::reply::Answer;
use crate::resp::transaction::Queue;
use quorate_kernel::engine::Capability;

/// The new value depends on the old one, or several keys or commands are one.
pub(super) const TRANSACTIONS: Lack = Lack::Engine(Capability::Transactions);
/// Keys end by themselves.
pub(super) const EXPIRY: Lack = Lack::Engine(Capability::Expiry);
/// The first two arguments.
const TWO_KEYS: Keys = Keys { first: 1, last: 2, step: 1 };

const fn refused(name: &'static str, arity: i64, keys: Keys, lack: Lack) -> Spec {
    let (flags, since) = (&["write"] as &[&str], "");
    Spec { name, arity, flags, keys, group: "string", since, summary: "", run: Run::Refused(lack) }
}

const fn changes(name: &'static str, arity: i64) -> Spec {
    refused(name, arity, ONE_KEY, TRANSACTIONS)
}

const fn expires(name: &'static str, arity: i64) -> Spec {
    refused(name, arity, ONE_KEY, EXPIRY)
}

const fn service(name: &'static str, what: &'static str) -> Spec {
    refused(name, -1, NO_KEYS, Lack::Service(what))
}

const fn transaction(name: &'static str, run: Handler) -> Spec {
    Spec {
        name,
        arity: 1,
        flags: &["noscript", "loading", "stale", "fast"],
        keys: NO_KEYS,
        group: "transactions",
        since: "2.0.0",
        summary: "",
        run: Run::Handler(run),
    }
}

/// The commands that no engine of the product can do yet.
pub(crate) const SPECS: &[Spec] = &[
    changes("incr", 2),
    changes("incrby", 3),
    changes("incrbyfloat", 3),
    changes("decr", 2),
    changes("decrby", 3),
    changes("append", 3),
    changes("setrange", 4),
    changes("setbit", 4),
    changes("setnx", 3),
    changes("getset", 3),
    changes("getdel", 2),
    changes("getex", -2),
    changes("expire", -3),
    changes("pexpire", -3),
    changes("expireat", -3),
    changes("pexpireat", -3),
    changes("persist", 2),
    changes("move", 3),
    changes("restore", -4),
    refused("copy", -3, TWO_KEYS, TRANSACTIONS),
    refused("rename", 3, TWO_KEYS, TRANSACTIONS),
    refused("renamenx", 3, TWO_KEYS, TRANSACTIONS),
    refused("msetnx", -3, PAIRS, TRANSACTIONS),
    refused("watch", -2, ALL_KEYS, TRANSACTIONS),
    refused("unwatch", 1, NO_KEYS, TRANSACTIONS),
    expires("setex", 4),
    expires("psetex", 4),
    transaction("multi", multi),
    transaction("exec", exec),
    transaction("discard", discard),
    service("flushdb", "emptying a keyspace"),
    service("flushall", "emptying a keyspace"),
];

/// Why a command cannot be done in the connection's keyspace.
pub(crate) fn reason(cx: &Cx<'_>, name: &str, lack: Lack) -> CommandError {
    let command = name.to_ascii_uppercase();
    let served = match cx.keyspace() {
        Ok(served) => served,
        Err(error) => return error,
    };
    match lack {
        Lack::Engine(needs) => match served.require(needs, &command, None) {
            Err(lacking) => CommandError::Lacking(lacking),
            Ok(()) => CommandError::NoCommand(command),
        },
        Lack::Type(_) => CommandError::WrongType { command, lack, engine: served.engine.name },
        Lack::Service(_) => CommandError::NotOffered { command, lack },
    }
}

/// Whether a command is let through between `MULTI` and `EXEC`.
pub(crate) fn ends_transaction(name: &str) -> bool {
    matches!(name, "multi" | "exec" | "discard" | "reset" | "quit")
}

/// Begins to queue. If it is refused, what a client has already sent behind it, up to `EXEC`, must
/// not run on its own.
fn multi(cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    if cx.client.queue.is_some() {
        return Err(CommandError::Text("ERR MULTI calls can not be nested"));
    }
    let able = cx
        .keyspace()
        .and_then(|served| Ok(served.require(Capability::Transactions, "MULTI", None)?));
    cx.client.is_aborted |= able.is_err();
    able?;
    if cx.client.is_aborted {
        return Err(CommandError::AfterMulti);
    }
    cx.client.queue = Some(Queue::default());
    Ok(Plan::Now(Answer::OK))
}

fn exec(cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    match cx.client.queue.take() {
        _ if core::mem::take(&mut cx.client.is_aborted) => Err(CommandError::ExecAbort),
        Some(queue) => queue.plan(cx.keyspace()?.value_bytes_max),
        None => Err(CommandError::Text("ERR EXEC without MULTI")),
    }
}

fn discard(cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    let was_queued = cx.client.queue.take().is_some();
    if core::mem::take(&mut cx.client.is_aborted) || was_queued {
        Ok(Plan::Now(Answer::OK))
    } else {
        Err(CommandError::Text("ERR DISCARD without MULTI"))
    }
}
