//! Commands that are known and cannot be done, and why.

use crate::resp::commands::Cx;
use crate::resp::commands::spec::{Keys, NO_KEYS, Run, Spec};
use crate::resp::error::{CommandError, Lack};

const fn refused(name: &'static str, arity: i64, keys: Keys, lack: Lack) -> Spec {
    let (flags, since) = (&["write"] as &[&str], "");
    Spec { name, arity, flags, keys, group: "string", since, summary: "", run: Run::Refused(lack) }
}

const fn service(name: &'static str, what: &'static str) -> Spec {
    refused(name, -1, NO_KEYS, Lack::Service(what))
}

const SCRIPTS: &str = "scripts";

/// The commands that no engine of the product can do yet.
pub(crate) const SPECS: &[Spec] = &[
    service("setbit", "bits of a value"),
    service("move", "moving a key"),
    service("restore", "restoring a key"),
    service("flushall", "emptying all keyspaces"),
    service("eval", SCRIPTS),
    service("eval_ro", SCRIPTS),
    service("evalsha", SCRIPTS),
    service("evalsha_ro", SCRIPTS),
    service("fcall", SCRIPTS),
    service("fcall_ro", SCRIPTS),
    service("function", SCRIPTS),
    service("script", SCRIPTS),
];

/// Why a command cannot be done in the connection's keyspace.
pub(crate) fn reason(cx: &Cx<'_>, name: &str, lack: Lack) -> CommandError {
    let command = name.to_ascii_uppercase();
    let served = match cx.keyspace() {
        Ok(served) => served,
        Err(error) => return error,
    };
    match lack {
        Lack::Type(_) => CommandError::WrongType { command, lack, engine: served.engine.name },
        Lack::Service(_) => CommandError::NotOffered { command, lack },
    }
}
