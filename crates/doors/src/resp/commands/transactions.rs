//! `MULTI`, `EXEC` and `DISCARD`; `WATCH` and `UNWATCH`; `TXN OUTCOME`.

use super::spec::{ALL_KEYS, Handler, Keys, NO_KEYS, Run, Spec, Sub};
use super::unable::refused::reason;
use super::{Cx, Handled, Plan, check_key};
use crate::resp::error::CommandError;
use crate::resp::many::{Each, Many};
use crate::resp::reply::CommandReply;
use crate::resp::requests::frame::Command;
use crate::resp::requests::inline::hexadecimal;
use crate::resp::shared::{find, selected};
use crate::resp::single::Single;
use crate::resp::state::Aborted;
use crate::resp::transaction::Queue;
use alloc::string::ToString;
use alloc::vec::Vec;
use quorate_kernel::engine::Capability;
use quorate_kernel::limits::TRANSACTION_ITEMS_MAX;
use quorate_kernel::operation::{Operation, Refusal};
use quorate_kernel::receipt::TokenError;

/// No token has as many digits.
const TOKEN_DIGITS_MAX: usize = 256;

const fn spec(
    name: &'static str,
    arity: i64,
    keys: Keys,
    since: &'static str,
    summary: &'static str,
    run: Handler,
) -> Spec {
    let flags = &["noscript", "loading", "stale", "fast"];
    let run = Run::Handler(run);
    Spec { name, arity, flags, keys, group: "transactions", since, summary, run }
}

/// The commands about transactions.
#[rustfmt::skip] // One command, one line.
pub(crate) const SPECS: &[Spec] = &[
    spec("multi", 1, NO_KEYS, "1.2.0", "Start a transaction", multi),
    spec("exec", 1, NO_KEYS, "1.2.0", "Execute all commands in a transaction", exec),
    spec("discard", 1, NO_KEYS, "2.0.0", "Discard a transaction", discard),
    spec("watch", -2, ALL_KEYS, "2.2.0", "Have EXEC check that keys keep their values", watch),
    Spec { run: Run::Container(None, TXN), ..spec("txn", -2, NO_KEYS, "7.2.4", ENDED, outcome) },
    spec("unwatch", 1, NO_KEYS, "2.2.0", "Forget about watched keys", unwatch),
];

/// Whether a command is let through between `MULTI` and `EXEC`.
pub(crate) fn ends_transaction(name: &str) -> bool {
    matches!(name, "multi" | "exec" | "discard" | "reset" | "quit" | "watch")
}

/// What a command that is not about keys comes to between `MULTI` and `EXEC`, if it may stand
/// there: one whose reply is known already, or that concerns the transaction itself.
pub(crate) fn beside_keys(cx: &mut Cx<'_>, spec: &Spec, command: &mut Command) -> Handled {
    match spec.name {
        // Its arity lets more pass, as in Redis, which finds out at `EXEC`.
        "ping" if command.len() > 2 => {
            let error = CommandError::Arity(spec.name.into()).to_string();
            Ok(Plan::Now(CommandReply::Error(error)))
        }
        "ping" | "echo" => spec.run(cx, command),
        // It counts from the next command on, and is taken back if the transaction is not done.
        "select" if command.len() == 2 => {
            cx.client.keyspace = find(cx.serving, command.arg(1))?;
            Ok(Plan::Now(CommandReply::OK))
        }
        // `EXEC` ends all watching anyway.
        "unwatch" if command.len() == 1 => Ok(Plan::Now(CommandReply::OK)),
        "select" | "unwatch" => Err(CommandError::Arity(spec.name.into())),
        _ => Err(not_in_multi(spec)),
    }
}

fn not_in_multi(spec: &Spec) -> CommandError {
    CommandError::NotInMulti { command: spec.name.to_ascii_uppercase() }
}

/// The reply to a command that waits for `EXEC`.
pub(crate) fn queued() -> Plan {
    Plan::Now(CommandReply::Simple("QUEUED"))
}

/// A command of a transaction of which another one was refused before: nothing of it is kept. As in
/// Redis its client hears of no more than what is wrong with it by itself, and of the rest at
/// `EXEC`.
pub(crate) fn after_refusal(cx: &Cx<'_>, spec: &Spec, command: &Command) -> Handled {
    let stands_beside = ["ping", "echo", "select", "unwatch"].contains(&spec.name);
    match spec.run {
        _ if !spec.takes(command.len()) => Err(CommandError::Arity(spec.name.into())),
        Run::Refused(lack) => Err(reason(cx, spec.name, lack)),
        _ if spec.keys == NO_KEYS && !stands_beside => Err(not_in_multi(spec)),
        _ => Ok(queued()),
    }
}

fn require(cx: &Cx<'_>, command: &str) -> Result<(), CommandError> {
    Ok(cx.keyspace()?.require(Capability::Transactions, command, None)?)
}

/// Begins to queue. If it is refused, what a client has already sent behind it, up to `EXEC`, must
/// not run on its own.
fn multi(cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    if cx.client.is_in_multi() {
        return Err(CommandError::Text("ERR MULTI calls can not be nested"));
    }
    if let Err(lacking) = require(cx, "MULTI") {
        cx.client.aborted = Some(Aborted::Multi);
        return Err(lacking);
    }
    if cx.client.aborted.is_some() {
        return Err(CommandError::AfterMulti);
    }
    cx.client.queue = Some(Queue::new(cx.client.keyspace));
    Ok(Plan::Now(CommandReply::OK))
}

fn exec(cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    let queue = cx.client.end_queue();
    if cx.client.aborted.take().is_some() {
        cx.client.watched = Default::default();
        return Err(CommandError::ExecAbort);
    }
    let Some((queue, chosen)) = queue else {
        return Err(CommandError::Text("ERR EXEC without MULTI"));
    };
    let watched = core::mem::take(&mut cx.client.watched);
    if watched.is_lost() {
        return Err(CommandError::WatchLost);
    }
    if watched.is_changed() {
        return Ok(Plan::Now(CommandReply::NoList));
    }
    let keyspace = match (queue.keyspace(), watched.keyspace()) {
        (Some(items), Some(watched)) if items != watched => {
            return Err(CommandError::Elsewhere { what: "the keys that are watched" });
        }
        (items, watched) => items.or(watched).unwrap_or(chosen),
    };
    let value_bytes_max = selected(cx.serving, keyspace)?.value_bytes_max;
    let plan = queue.plan(watched, value_bytes_max, (keyspace, chosen), cx.clock.wall)?;
    if let Plan::Now(_) = &plan {
        cx.client.keyspace = chosen;
    }
    Ok(plan)
}

fn discard(cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    let was_queued = cx.client.end_queue().is_some();
    if cx.client.aborted.take().is_none() && !was_queued {
        return Err(CommandError::Text("ERR DISCARD without MULTI"));
    }
    cx.client.watched = Default::default();
    Ok(Plan::Now(CommandReply::OK))
}

/// Reads the keys; what they have is what `EXEC` checks. If it is refused, what a client has sent
/// behind it already, up to `EXEC`, must not be done unchecked.
fn watch(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    if cx.client.is_in_multi() {
        return Err(CommandError::Text("ERR WATCH inside MULTI is not allowed"));
    }
    if cx.client.aborted.is_some() {
        return Err(CommandError::AfterMulti);
    }
    let plan = may_watch(cx, command).map(|()| Many::new(Each::Watch, core::mem::take(command)));
    if plan.is_err() {
        cx.client.watched.lose();
    }
    Ok(Plan::Many(plan?))
}

fn may_watch(cx: &Cx<'_>, command: &Command) -> Result<(), CommandError> {
    require(cx, "WATCH")?;
    let others = cx.client.watched.keyspace();
    if others.is_some_and(|others| others != cx.client.keyspace) {
        return Err(CommandError::Elsewhere { what: "the keys that are watched" });
    }
    (1..command.len()).try_for_each(|at| check_key(command, at))?;
    let (count, limit) = (command.len() - 1 + cx.client.watched.len(), TRANSACTION_ITEMS_MAX);
    if count > limit {
        return Err(Refusal::TooMany { count, limit }.into());
    }
    Ok(())
}

const ENDED: &str = "Tell how a transaction ended";
const TXN: &[Sub] = &[Sub {
    name: "outcome",
    arity: 3,
    help: ["OUTCOME <token>", "Tell how the transaction ended whose reply had this token."],
    handler: outcome,
}];

/// How a transaction ended whose reply was `UNKNOWNOUTCOME`; asked of its keyspace.
fn outcome(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    require(cx, "TXN OUTCOME")?;
    let digits = command.arg(2);
    let is_whole = digits.len().is_multiple_of(2) && digits.len() <= TOKEN_DIGITS_MAX;
    let token: Option<Vec<u8>> = digits.chunks_exact(2).map(hexadecimal).collect();
    let Some(token) = token.filter(|_| is_whole) else {
        return Err(Refusal::Token(TokenError::Damaged).into());
    };
    Ok(Plan::One(Single::HowEnded, Operation::HowEnded { token: token.into() }))
}

/// Never refused: the keyspace that was watched may be gone, or another one in use.
fn unwatch(cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    cx.client.watched = Default::default();
    Ok(Plan::Now(CommandReply::OK))
}
