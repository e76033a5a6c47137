//! The commands, one file per group: each turns its arguments into a plan and changes nothing but
//! what the connection remembers.

mod changes;
mod connection;
mod copies;
mod expiry;
mod follow;
mod hello;
mod info;
mod introspection;
mod keys;
mod server;
mod siblings;
mod spec;
mod strings;
mod transactions;
mod unable;

pub(crate) use follow::CHANNEL;
pub(crate) use spec::Table;
use spec::{NO_KEYS, Spec};

use super::error::CommandError;
use super::many::Many;
use super::reply::CommandReply;
use super::requests::frame::Command;
use super::shared::{Shared, selected};
use super::single::Single;
use super::state::{Aborted, Client};
use super::transaction::Transaction;
use super::work::{Flush, Pages};
use crate::host::{Clock, Serving};
use alloc::boxed::Box;
use alloc::string::ToString;
use bytes::Bytes;
use quorate_kernel::engine::{Capability, Served};
use quorate_kernel::ids::LaneId;
use quorate_kernel::limits::KEY_BYTES_MAX;
use quorate_kernel::mutant;
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::Rng;

/// What a command may see and change.
pub(crate) struct Cx<'a> {
    pub(crate) client: &'a mut Client,
    pub(crate) shared: &'a Shared,
    pub(crate) serving: &'a Serving,
    pub(crate) clock: Clock,
    pub(crate) rng: &'a mut Rng,
    /// The command has turned a time from now on into one of the clock.
    pub(crate) is_relative: bool,
}

impl Cx<'_> {
    /// The keyspace the connection works on.
    fn keyspace(&self) -> Result<&Served, CommandError> {
        selected(self.serving, self.client.keyspace)
    }

    /// An answer built in the connection's version of the protocol.
    fn encoded(&self, build: impl FnOnce(&mut super::reply::Encoder<'_>)) -> Plan {
        Plan::Now(CommandReply::encoded(self.client.protocol, build))
    }
}

/// What a command wants done.
#[derive(Debug)]
pub(crate) enum Plan {
    /// The reply is known.
    Now(CommandReply),
    /// One operation.
    One(Single, Operation),
    /// Operations on many keys.
    Many(Many),
    /// Pages of keys.
    Pages(Pages),
    /// Pages of keys, which are deleted.
    Flush(Flush),
    /// One operation over several keys.
    Transact(Box<Transaction>, Operation),
}

impl Plan {
    /// The lane that it is for, if the keyspace's engine can do it.
    pub(crate) fn lane(&self, served: &Served, command: &str) -> Result<LaneId, CommandError> {
        let lacks = match self {
            Plan::Now(_) => None,
            Plan::One(_, operation) | Plan::Transact(_, operation) => {
                served.engine.lacks(operation)
            }
            Plan::Many(_) => Some(Capability::Values).filter(|needs| !served.can(*needs)),
            Plan::Pages(_) => Some(Capability::Listing).filter(|needs| !served.can(*needs)),
            Plan::Flush(_) => [Capability::Listing, Capability::Values]
                .into_iter()
                .find(|needs| !served.can(*needs)),
        };
        if let Some(needs) = lacks {
            served.require(needs, &command.to_ascii_uppercase(), None)?;
        }
        Ok(served.keyspace.lane)
    }
}

/// What a command's function gives.
pub(crate) type Handled = Result<Plan, CommandError>;

/// Turns a command into a plan; what is wrong with it becomes its reply.
pub(crate) fn dispatch(cx: &mut Cx<'_>, command: &mut Command) -> Plan {
    let Some(spec) = cx.shared.table.find(command.arg(0)) else {
        abort(cx);
        return unknown(cx, command);
    };
    cx.client.last_command = spec.name;
    let is_queued = !transactions::ends_transaction(spec.name);
    let handled = match cx.client.aborted.filter(|_| is_queued) {
        Some(Aborted::Multi) => Err(CommandError::AfterMulti),
        Some(Aborted::Command) => transactions::after_refusal(cx, spec, command),
        None if is_queued && cx.client.queue.is_some() => {
            queue(cx, spec, command).inspect_err(|_| abort(cx))
        }
        None => {
            let handled = follow::check(cx, spec.name).and_then(|()| spec.run(cx, command));
            if matches!(handled, Err(CommandError::Arity(_))) && !mutant!("arity_aborts_nothing") {
                abort(cx);
            }
            handled.and_then(|plan| together(cx, spec, plan))
        }
    };
    handled.unwrap_or_else(|error| Plan::Now(CommandReply::Error(error.to_string())))
}

/// A command on several keys, as one operation where the engine can do that.
fn together(cx: &Cx<'_>, spec: &Spec, plan: Plan) -> Handled {
    let Plan::Many(many) = plan else { return Ok(plan) };
    let keyspace = cx.client.keyspace;
    let served = selected(cx.serving, keyspace)?;
    let is_able = served.can(Capability::Values) && served.can(Capability::Transactions);
    if many.is_watch() || many.total() == 1 || !is_able {
        return Ok(Plan::Many(many));
    }
    Transaction::of_one_command(spec.name, many, served.value_bytes_max, keyspace)
}

/// Keeps a command for `EXEC`: most of those that are not about keys would be done now, and not
/// then.
fn queue(cx: &mut Cx<'_>, spec: &Spec, command: &mut Command) -> Handled {
    let (bytes, has_arity) = (command.size(), spec.takes(command.len()));
    let plan = match spec.keys {
        NO_KEYS => transactions::beside_keys(cx, spec, command)?,
        _ => {
            let plan = match spec.run(cx, command) {
                // A number of arguments that its arity lets pass is one of those.
                Err(error) if error.is_of_argument() || has_arity && error.is_of_arity() => {
                    Plan::Now(CommandReply::Error(error.to_string()))
                }
                handled => handled?,
            };
            plan.lane(cx.keyspace()?, spec.name)?;
            plan
        }
    };
    if let Some(queue) = &mut cx.client.queue {
        let since = cx.is_relative.then_some(cx.clock.wall);
        queue.push(spec.name, (plan, since), bytes, cx.client.keyspace)?;
    }
    Ok(transactions::queued())
}

/// A command behind a `MULTI` was refused: nothing of it is done.
fn abort(cx: &mut Cx<'_>) {
    if cx.client.end_queue().is_some() {
        cx.client.aborted = Some(Aborted::Command);
    }
}

fn unknown(cx: &mut Cx<'_>, command: &Command) -> Plan {
    // The request line of a browser that was lured here: no further line of it may be taken for a
    // command, so the connection ends without a reply, as in Redis.
    let name = command.arg(0);
    if name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:") {
        cx.client.is_leaving = true;
        return connection::silence();
    }
    Plan::Now(CommandReply::Error(CommandError::unknown(command).to_string()))
}

/// How many names or patterns one command may ask about: each has a reply of its own.
const ASKED_MAX: usize = 1024;

/// Refuses a command with a subcommand that asks about too many.
fn check_count(command: &Command) -> Result<(), CommandError> {
    let count = command.len().saturating_sub(2);
    if count > ASKED_MAX {
        let (before, after) = ("ERR ", " names or patterns are over the limit of 1024");
        return Err(CommandError::About { before, shown: count.to_string(), after });
    }
    Ok(())
}

/// Whether an argument is this word, in any case.
fn is(arg: &[u8], word: &str) -> bool {
    arg.eq_ignore_ascii_case(word.as_bytes())
}

/// An argument as a key, within its limit.
fn key(command: &Command, at: usize) -> Result<Bytes, CommandError> {
    check_key(command, at)?;
    Ok(command.shared(at))
}

fn check_key(command: &Command, at: usize) -> Result<(), CommandError> {
    let length = command.arg(at).len();
    if length > KEY_BYTES_MAX {
        return Err(CommandError::TooLarge { what: "key", length, limit: KEY_BYTES_MAX });
    }
    Ok(())
}

/// Checks the limit of a value of the connection's keyspace.
fn check_value(cx: &Cx<'_>, command: &Command, at: usize) -> Result<(), CommandError> {
    let (length, limit) = (command.arg(at).len(), cx.keyspace()?.value_bytes_max);
    if length > limit {
        return Err(CommandError::TooLarge { what: "value", length, limit });
    }
    Ok(())
}

/// Reads a whole number as Redis does: no plus sign, no leading zero, no blank.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let is_plain = match digits {
        [b'0'] => digits.len() == text.len(),
        [b'1'..=b'9', ..] => true,
        _ => false,
    };
    if !is_plain {
        return None;
    }
    core::str::from_utf8(text).ok()?.parse().ok()
}

fn number(command: &Command, at: usize) -> Result<i64, CommandError> {
    integer(command.arg(at)).ok_or(CommandError::NotInteger)
}

/// A name of a client or library: visible characters only.
fn is_name(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_strictly() {
        let table: &[(&str, Option<i64>)] = &[
            ("0", Some(0)),
            ("-7", Some(-7)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("-0", None),
            ("+1", None),
            ("01", None),
            (" 1", None),
            ("1 ", None),
            ("", None),
            ("-", None),
            ("1x", None),
        ];
        for (text, expected) in table {
            assert_eq!(integer(text.as_bytes()), *expected, "{text:?}");
        }
    }
}
