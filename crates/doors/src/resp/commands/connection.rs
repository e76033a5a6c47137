//! The connection: greeting, choosing a keyspace, names, leaving.

use super::spec::{Handler, NO_KEYS, Run, Spec, Sub};
use super::{Cx, Handled, Plan, hello, integer, is, is_name};
use crate::resp::error::{CommandError, shown};
use crate::resp::reply::{CommandReply, Protocol};
use crate::resp::requests::frame::Command;
use crate::resp::shared::find;
use crate::resp::state::ReplyMode;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;

const fn spec(
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    since: &'static str,
    summary: &'static str,
    run: Run,
) -> Spec {
    Spec { name, arity, flags, keys: NO_KEYS, group: "connection", since, summary, run }
}

const ANY_TIME: &[&str] = &["noscript", "loading", "stale", "fast", "no_auth", "allow_busy"];

/// The commands on the connection.
#[rustfmt::skip] // One command, one line.
pub(crate) const SPECS: &[Spec] = &[
    spec("ping", -1, &["fast"], "1.0.0", "Ping the server", Run::Handler(ping)),
    spec("echo", 2, &["loading", "stale", "fast"], "1.0.0", "Echo the given string", Run::Handler(echo)),
    spec("hello", -1, ANY_TIME, "6.0.0", "Handshake with the server", Run::Handler(hello::hello)),
    spec("auth", -2, ANY_TIME, "1.0.0", "Authenticate to the server", Run::Handler(hello::auth)),
    spec("select", 2, &["loading", "stale", "fast"], "1.0.0", "Change the keyspace, by number or name", Run::Handler(select)),
    spec("quit", -1, ANY_TIME, "1.0.0", "Close the connection", Run::Handler(quit)),
    spec("reset", 1, ANY_TIME, "6.2.0", "Reset the connection", Run::Handler(reset)),
    spec("client", -2, &[], "2.4.0", "A container for client connection commands", Run::Container(None, CLIENT)),
];

const fn sub(name: &'static str, arity: i64, help: [&'static str; 2], handler: Handler) -> Sub {
    Sub { name, arity, help, handler }
}

#[rustfmt::skip] // One subcommand, one line.
const CLIENT: &[Sub] = &[
    sub("getname", 2, ["GETNAME", "Return the name of the current connection."], get_name),
    sub("id", 2, ["ID", "Return the ID of the current connection."], id),
    sub("info", 2, ["INFO", "Return information about the current client connection."], info),
    sub("list", -2, ["LIST [options ...]", "Return information about client connections: TYPE <type>, ID <id> ..."], list),
    sub("no-evict", 3, ["NO-EVICT (ON|OFF)", "Accepted; clients are never evicted."], on_or_off),
    sub("no-touch", 3, ["NO-TOUCH (ON|OFF)", "Accepted; reads never alter a key."], on_or_off),
    sub("reply", 3, ["REPLY (ON|OFF|SKIP)", "Control the replies sent to the current connection."], reply),
    sub("setinfo", 4, ["SETINFO <option> <value>", "Set LIB-NAME or LIB-VER of the current connection."], set_info),
    sub("setname", 3, ["SETNAME <name>", "Assign the name <name> to the current connection."], set_name),
];

fn ok() -> Handled {
    Ok(Plan::Now(CommandReply::OK))
}

fn text(text: String) -> CommandReply {
    CommandReply::Bulk(Some(text.into()))
}

fn ping(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let is_listening = cx.client.is_following && cx.client.protocol == Protocol::Resp2;
    Ok(Plan::Now(match command.len() {
        // A client that listens reads lists alone.
        1 | 2 if is_listening => {
            let said = if command.len() == 2 { command.shared(1) } else { Bytes::new() };
            return Ok(cx.encoded(|out| {
                out.array(2);
                out.bulk(b"pong");
                out.bulk(&said);
            }));
        }
        1 => CommandReply::Simple("PONG"),
        2 => CommandReply::Bulk(Some(command.shared(1))),
        _ => return Err(CommandError::Arity("ping".into())),
    }))
}

fn echo(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    Ok(Plan::Now(CommandReply::Bulk(Some(command.shared(1)))))
}

fn select(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    cx.client.keyspace = find(cx.serving, command.arg(1))?;
    ok()
}

fn quit(cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    cx.client.is_leaving = true;
    ok()
}

fn reset(cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    cx.client.reset();
    Ok(Plan::Now(CommandReply::Simple("RESET")))
}

fn get_name(cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    let name = &cx.client.name;
    let answer = if name.is_empty() { CommandReply::Bulk(None) } else { text(name.clone()) };
    Ok(Plan::Now(answer))
}

fn id(cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    Ok(Plan::Now(CommandReply::Integer(cx.client.id as i64)))
}

fn info(cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    let line = cx.client.describe();
    Ok(cx.encoded(|out| out.verbatim(&line)))
}

fn list(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let mut ids: Option<Vec<i64>> = None;
    let mut is_normal = true;
    if command.len() > 2 {
        if is(command.arg(2), "TYPE") && command.len() == 4 {
            is_normal = client_type(command.arg(3))?;
        } else if is(command.arg(2), "ID") && command.len() > 3 {
            let wrong = CommandError::Text("ERR Invalid client ID");
            let read = |at| integer(command.arg(at)).filter(|id| *id > 0);
            let read: Option<Vec<i64>> = (3..command.len()).map(read).collect();
            ids = Some(read.ok_or(wrong)?);
        } else {
            return Err(CommandError::Syntax);
        }
    }
    let mut lines = String::new();
    let mut add = |line: &str| {
        let id = line.strip_prefix("id=").and_then(|rest| rest.split(' ').next());
        let is_asked = ids.as_ref().is_none_or(|ids| {
            id.and_then(|id| integer(id.as_bytes())).is_some_and(|id| ids.contains(&id))
        });
        if is_asked && is_normal {
            lines.push_str(line);
        }
    };
    add(&cx.client.describe());
    cx.shared.facts.other_clients(cx.client.id, &mut add);
    Ok(cx.encoded(|out| out.verbatim(&lines)))
}

/// Whether the clients of a type are those of this door; there are none of the other types.
fn client_type(name: &[u8]) -> Result<bool, CommandError> {
    if is(name, "normal") {
        return Ok(true);
    }
    if ["master", "replica", "slave", "pubsub"].iter().any(|other| is(name, other)) {
        return Ok(false);
    }
    Err(CommandError::About {
        before: "ERR Unknown client type '",
        shown: shown(name, 128),
        after: "'",
    })
}

fn on_or_off(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    if is(command.arg(2), "on") || is(command.arg(2), "off") {
        return ok();
    }
    Err(CommandError::Syntax)
}

fn reply(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let mode = command.arg(2);
    let replies = &mut cx.client.replies;
    if is(mode, "on") {
        *replies = ReplyMode::On;
    } else if is(mode, "off") {
        *replies = ReplyMode::Off;
    } else if is(mode, "skip") {
        if *replies != ReplyMode::Off {
            *replies = ReplyMode::Armed;
        }
    } else {
        return Err(CommandError::Syntax);
    }
    ok()
}

fn set_info(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let (option, value) = (command.arg(2), command.arg(3));
    let (field, what) = if is(option, "lib-name") {
        (&mut cx.client.library_name, "lib-name")
    } else if is(option, "lib-ver") {
        (&mut cx.client.library_version, "lib-ver")
    } else {
        return Err(CommandError::About {
            before: "ERR Unrecognized option '",
            shown: shown(option, 128),
            after: "'",
        });
    };
    if !is_name(value) {
        return Err(CommandError::About {
            before: "ERR ",
            shown: what.into(),
            after: " cannot contain spaces, newlines or special characters.",
        });
    }
    *field = visible(value);
    ok()
}

fn set_name(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    cx.client.name = client_name(command.arg(2))?;
    ok()
}

/// A name of a client, as `SETNAME` and `HELLO` take it.
pub(super) fn client_name(name: &[u8]) -> Result<String, CommandError> {
    if is_name(name) {
        return Ok(visible(name));
    }
    Err(CommandError::Text(
        "ERR Client names cannot contain spaces, newlines or special characters.",
    ))
}

fn visible(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Nothing, for a connection that ends without a reply.
pub(super) fn silence() -> Plan {
    Plan::Now(CommandReply::Encoded(Bytes::new()))
}
