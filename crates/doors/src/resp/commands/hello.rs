//! `HELLO` and `AUTH`: the version of the protocol, and who the client is.

use super::{Cx, Handled, Plan, connection, integer, is};
use crate::resp::error::{CommandError, shown};
use crate::resp::reply::{CommandReply, Protocol};
use crate::resp::requests::frame::Command;
use crate::resp::shared::REDIS_VERSION;

const WRONG: CommandError =
    CommandError::Text("WRONGPASS invalid username-password pair or user is disabled.");

/// No user has a password yet, so any password of the default user is right, as in Redis.
fn check(user: &[u8]) -> Result<(), CommandError> {
    if user == b"default" { Ok(()) } else { Err(WRONG) }
}

/// `AUTH [user] password`.
pub(super) fn auth(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    match command.len() {
        2 => Err(CommandError::Text(
            "ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?",
        )),
        3 => {
            check(command.arg(1))?;
            Ok(Plan::Now(CommandReply::OK))
        }
        _ => Err(CommandError::Syntax),
    }
}

/// `HELLO [version [AUTH user password] [SETNAME name]]`. All is checked before anything changes.
pub(super) fn hello(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let mut protocol = cx.client.protocol;
    if command.len() > 1 {
        protocol = match integer(command.arg(1)) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return Err(CommandError::Text("NOPROTO unsupported protocol version")),
            None => {
                return Err(CommandError::Text(
                    "ERR Protocol version is not an integer or out of range",
                ));
            }
        };
    }
    let mut name = None;
    let mut at = 2;
    while at < command.len() {
        let (option, more) = (command.arg(at), command.len() - at - 1);
        if is(option, "AUTH") && more >= 2 {
            check(command.arg(at + 1))?;
            at += 3;
        } else if is(option, "SETNAME") && more >= 1 {
            name = Some(connection::client_name(command.arg(at + 1))?);
            at += 2;
        } else {
            return Err(CommandError::About {
                before: "ERR Syntax error in HELLO option '",
                shown: shown(option, 128),
                after: "'",
            });
        }
    }
    if let Some(name) = name {
        cx.client.name = name;
    }
    cx.client.protocol = protocol;
    Ok(greeting(cx))
}

/// What the server is. Old clients read the first seven fields by place, so ours comes last.
fn greeting(cx: &Cx<'_>) -> Plan {
    cx.encoded(|out| {
        out.map(8);
        for (field, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
            out.bulk(field.as_bytes());
            out.bulk(value.as_bytes());
        }
        out.bulk(b"proto");
        out.integer(cx.client.protocol.number());
        out.bulk(b"id");
        out.integer(cx.client.id as i64);
        for (field, value) in [("mode", "standalone"), ("role", "master")] {
            out.bulk(field.as_bytes());
            out.bulk(value.as_bytes());
        }
        out.bulk(b"modules");
        out.array(0);
        out.bulk(b"quorate_version");
        out.bulk(cx.shared.identity.version.as_bytes());
    })
}
