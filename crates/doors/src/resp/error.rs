//! The errors of commands: what their replies say, first word included.
//!
//! | first word | what it means |
//! |---|---|
//! | `ERR` | the command is wrong or not offered; nothing was changed |
//! | `NOQUORUM` | too few replicas answered in time; nothing was changed |
//! | `UNKNOWNOUTCOME` | a write may have happened, wholly or in part |
//! | `OVERLOADED` | too much work in hand; nothing was changed |
//! | `SIBLINGS` | the key has several values, and its keyspace shows none of them alone |
//! | `SHUTDOWN` | the host is stopping; nothing was changed |
//! | `EXECABORT` | a part of the transaction was refused; nothing of it was executed |
//! | `NOPROTO`, `WRONGPASS` | as in Redis |
//!
//! None of the words is one that client libraries repeat a command for on their own (`TRYAGAIN`,
//! `LOADING`, `READONLY`, `CLUSTERDOWN`, `MASTERDOWN`), because a repeated write may apply twice.

use super::requests::frame::Command;
use alloc::string::{String, ToString};
use core::fmt;
use quorate_kernel::lacking::Lacking;
use quorate_kernel::operation::Refusal;
use thiserror::Error;

/// How many bytes of arguments an error repeats.
const SHOWN_BYTES_MAX: usize = 128;

/// What a command needs that is known and not offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// Values that are no plain byte strings.
    Type(&'static str),
    /// There is no such thing on this server.
    Service(&'static str),
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lack::Type(name) | Lack::Service(name) => f.write_str(name),
        }
    }
}

/// A command was refused before anything was started. Nothing was changed, whichever variant.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum CommandError {
    /// There is no such command.
    #[error("ERR unknown command '{name}', with args beginning with: {args}")]
    Unknown { name: String, args: String },
    /// A command has no such subcommand.
    #[error("ERR unknown subcommand '{name}'. Try {command} HELP.")]
    UnknownSub { command: String, name: String },
    /// Too few or too many arguments; a subcommand is named with its command.
    #[error("ERR wrong number of arguments for '{0}' command")]
    Arity(String),
    /// Options that do not exist or do not go together.
    #[error("ERR syntax error")]
    Syntax,
    /// A condition that does not exist.
    #[error("ERR Unsupported option {0}")]
    UnknownOption(String),
    /// A number is no number.
    #[error("ERR value is not an integer or out of range")]
    NotInteger,
    /// An expiry that is not positive.
    #[error("ERR invalid expire time in '{0}' command")]
    ExpireTime(&'static str),
    /// A cursor that no page gave.
    #[error("ERR invalid cursor")]
    Cursor,
    /// No keyspace has this number.
    #[error("ERR DB index is out of range")]
    Database,
    /// No keyspace has this name.
    #[error("ERR no keyspace is named '{name}'; there are: {known}")]
    Keyspace { name: String, known: String },
    /// The connection's keyspace was dropped.
    #[error("ERR the keyspace {number} of this connection is not there: SELECT one of: {known}")]
    Dropped { number: usize, known: String },
    /// The host has not learnt yet which keyspaces there are.
    #[error("ERR the host is starting and does not know its keyspaces yet; nothing was changed")]
    Starting,
    /// A key or value is over its limit.
    #[error("ERR {what} of {length} bytes is over the limit of {limit}")]
    TooLarge { what: &'static str, length: usize, limit: usize },
    /// The keyspace's engine cannot do it.
    #[error("ERR {0}")]
    Lacking(#[from] Lacking),
    /// Nothing on this server can do it.
    #[error("ERR {command} needs {lack}, which this server does not offer")]
    NotOffered { command: String, lack: Lack },
    /// Values are byte strings and nothing else.
    #[error("ERR {command} works on {lack}, but a {engine} keyspace holds plain byte strings")]
    WrongType { command: String, lack: Lack, engine: &'static str },
    /// A `MULTI` was refused; what follows must not run on its own.
    #[error("ERR not executed: the MULTI before it was refused; send DISCARD")]
    AfterMulti,
    /// A command that is not about plain values of keys that it names.
    #[error("ERR {command} cannot be done in a transaction; DISCARD ends it")]
    NotInMulti { command: String },
    /// A transaction would be about keys of two keyspaces.
    #[error("ERR a transaction is about one keyspace, and {what} are of another; nothing was done")]
    Elsewhere { what: &'static str },
    /// A key that shall be watched could not be read.
    #[error("EXECABORT Transaction discarded because a key could not be watched")]
    WatchLost,
    /// What was queued is over a limit.
    #[error("ERR {0}")]
    Refused(#[from] Refusal),
    /// The end of a transaction of which a part was refused.
    #[error("EXECABORT Transaction discarded because of previous errors.")]
    ExecAbort,
    /// There is no such channel.
    #[error("ERR there is no channel '{name}'; there is: events")]
    Channel { name: String },
    /// A connection in version 2 follows a channel, and may ask little meanwhile.
    #[error(
        "ERR Can't execute '{command}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / \
         RESET are allowed in this context"
    )]
    Following { command: &'static str },
    /// A text that needs no parameter.
    #[error("{0}")]
    Text(&'static str),
    /// A text with one parameter between its halves.
    #[error("{before}{shown}{after}")]
    About { before: &'static str, shown: String, after: &'static str },
}

impl CommandError {
    /// Whether an argument is wrong, as Redis finds out when the command is executed: behind
    /// `MULTI` it is the reply in the command's place, and the others are done.
    pub(crate) fn is_of_argument(&self) -> bool {
        matches!(
            self,
            CommandError::Syntax
                | CommandError::UnknownOption(_)
                | CommandError::NotInteger
                | CommandError::ExpireTime(_)
                | CommandError::Database
                | CommandError::Text(_)
        )
    }

    /// Whether there are too few or too many arguments.
    pub(crate) fn is_of_arity(&self) -> bool {
        matches!(self, CommandError::Arity(_))
    }

    /// The error for a command that does not exist, with the arguments Redis would repeat.
    pub(crate) fn unknown(command: &Command) -> CommandError {
        let mut args = String::new();
        for arg in command.args().skip(1) {
            if args.len() >= SHOWN_BYTES_MAX {
                break;
            }
            let room = SHOWN_BYTES_MAX - args.len();
            args.push('\'');
            args.push_str(&shown(arg, room));
            args.push_str("' ");
        }
        CommandError::Unknown { name: shown(command.arg(0), SHOWN_BYTES_MAX), args }
    }
}

/// At most `room` bytes of an argument, up to the first zero byte, as a text.
pub(crate) fn shown(arg: &[u8], room: usize) -> String {
    let arg = &arg[..arg.len().min(room)];
    let end = arg.iter().position(|byte| *byte == 0).unwrap_or(arg.len());
    String::from_utf8_lossy(&arg[..end]).to_string()
}

/// Bytes as a client sends them back.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| alloc::format!("{byte:02x}")).collect()
}

/// The first word of the reply to a refused operation.
fn code(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::NoQuorum { .. } | Refusal::Minority { .. } | Refusal::NoRoute => "NOQUORUM",
        Refusal::OutcomeUnknown
        | Refusal::OutcomeOpen { .. }
        | Refusal::OutcomeForgotten
        | Refusal::NameForgotten
        | Refusal::CatalogUnknown => "UNKNOWNOUTCOME",
        Refusal::Overloaded | Refusal::TooSlow => "OVERLOADED",
        Refusal::Stopping => "SHUTDOWN",
        Refusal::Siblings { .. } => "SIBLINGS",
        Refusal::Context(_)
        | Refusal::Token(_)
        | Refusal::Lacking(_)
        | Refusal::Unsupported
        | Refusal::TooLarge { .. }
        | Refusal::TooMany { .. }
        | Refusal::Unmet { .. }
        | Refusal::Value { .. }
        | Refusal::Membership { .. }
        | Refusal::Catalog(_)
        | Refusal::NoSession
        | Refusal::Node(_)
        | Refusal::NotOpen => "ERR",
    }
}

/// The reply to a command whose only operation was refused.
pub(crate) fn refusal(refusal: &Refusal) -> String {
    let advice = match refusal {
        Refusal::OutcomeOpen { token } => {
            let text = alloc::format!("; TXN OUTCOME {} tells how it ended", hexadecimal(token));
            return alloc::format!("{} {refusal}{text}", code(refusal));
        }
        Refusal::Siblings { .. } => {
            ": CGET reads them, CSET replaces them, and a keyspace with siblings=newest shows the \
             newest"
        }
        _ => "",
    };
    alloc::format!("{} {refusal}{advice}", code(refusal))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn refusals_have_the_words_clients_do_not_repeat() {
        let table = [
            (
                Refusal::NoQuorum { reached: 1, needed: 2 },
                "NOQUORUM 1 of 2 replicas needed answered before the deadline; nothing was changed",
            ),
            (
                Refusal::OutcomeUnknown,
                "UNKNOWNOUTCOME the deadline passed after the write was sent; it may have been \
                 applied",
            ),
            (
                Refusal::OutcomeOpen { token: Bytes::from_static(&[0, 255]) },
                "UNKNOWNOUTCOME the deadline passed after the write was sent; it may have been \
                 applied; TXN OUTCOME 00ff tells how it ended",
            ),
            (
                Refusal::Minority { view: 7, suspected: 2, members: 3 },
                "NOQUORUM 2 of the 3 replicas in view 7 are suspected, no quorum is left; nothing \
                 was changed",
            ),
            (
                Refusal::NoRoute,
                "NOQUORUM no replica of the key's range is known to this host yet; nothing was \
                 changed",
            ),
            (Refusal::Overloaded, "OVERLOADED the node has too many operations in hand; try again"),
            (Refusal::Stopping, "SHUTDOWN the node is shutting down"),
            (
                Refusal::TooLarge { what: "value", length: 9, limit: 8 },
                "ERR value of 9 bytes is over the limit of 8",
            ),
            (
                Refusal::Value { expected: "a whole number" },
                "ERR this keyspace takes a whole number; nothing was changed",
            ),
            (
                Refusal::Siblings { count: 2 },
                "SIBLINGS the key has 2 siblings and its keyspace shows none of them alone; read \
                 them all, with their context, and write back what they come to: CGET reads them, \
                 CSET replaces them, and a keyspace with siblings=newest shows the newest",
            ),
            (Refusal::Unsupported, "ERR this engine does not support the operation"),
        ];
        for (from, text) in table {
            assert_eq!(refusal(&from), text);
        }
    }

    #[test]
    fn shown_arguments_are_cut() {
        assert_eq!(shown(b"abc", 2), "ab");
        assert_eq!(shown(b"a\0b", 9), "a");
        assert_eq!(shown(b"\xff", 9), "\u{fffd}");
    }
}
