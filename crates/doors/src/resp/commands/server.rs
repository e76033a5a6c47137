//! The server: configuration, time, and the small change of administration.

use super::spec::{Handler, Keys, NO_KEYS, Run, Spec, Sub};
use super::{Cx, Handled, Plan, check_count, info, integer, is, key, number};
use crate::resp::error::CommandError;
use crate::resp::glob;
use crate::resp::reply::CommandReply;
use crate::resp::requests::frame::Command;
use crate::resp::shared::argument_bytes_max;
use crate::resp::single::Single;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use quorate_kernel::operation::Operation;

const fn spec(
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    since: &'static str,
    summary: &'static str,
    run: Run,
) -> Spec {
    Spec { name, arity, flags, keys: NO_KEYS, group: "server", since, summary, run }
}

const CLUSTER_OFF: &str = "ERR This instance has cluster support disabled";

/// The commands on the server.
#[rustfmt::skip] // One command, one line.
pub(crate) const SPECS: &[Spec] = &[
    spec("info", -1, &["loading", "stale"], "1.0.0", "Get information and statistics about the server", Run::Handler(info::info)),
    spec("config", -2, &[], "2.0.0", "A container for server configuration commands", Run::Container(None, CONFIG)),
    spec("time", 1, &["loading", "stale", "fast"], "2.6.0", "Return the current server time", Run::Handler(time)),
    spec("lastsave", 1, &["loading", "stale", "fast"], "1.0.0", "Get the UNIX time stamp of the start", Run::Handler(last_save)),
    spec("slowlog", -2, &[], "2.2.12", "A container for slow log commands", Run::Container(None, SLOWLOG)),
    spec("memory", -2, &[], "4.0.0", "A container for memory diagnostics commands", Run::Container(None, MEMORY)),
    spec("cluster", -2, &[], "3.0.0", "", Run::Handler(cluster)),
    spec("readonly", 1, &[], "3.0.0", "", Run::Handler(cluster)),
    spec("readwrite", 1, &[], "3.0.0", "", Run::Handler(cluster)),
    spec("asking", 1, &[], "3.0.0", "", Run::Handler(cluster)),
];

const fn sub(name: &'static str, arity: i64, help: [&'static str; 2], handler: Handler) -> Sub {
    Sub { name, arity, help, handler }
}

const CONFIG: &[Sub] = &[
    sub(
        "get",
        -3,
        ["GET <pattern>", "Return parameters matching the glob-like <pattern> and their values."],
        config_get,
    ),
    sub("set", -4, ["SET <directive> <value>", "Refused: the file decides."], config_change),
    sub("resetstat", 2, ["RESETSTAT", "Refused: counters only rise."], config_change),
    sub("rewrite", 2, ["REWRITE", "Refused: the file decides."], config_change),
];

const SLOWLOG: &[Sub] = &[
    sub("get", -2, ["GET [<count>]", "Return no entries: no slow log is kept."], slowlog_get),
    sub("len", 2, ["LEN", "Return the length of the slowlog."], slowlog_len),
    sub("reset", 2, ["RESET", "Reset the slowlog."], slowlog_reset),
];

const MEMORY: &[Sub] = &[sub(
    "usage",
    -3,
    ["USAGE <key> [SAMPLES <count>]", "Return the bytes of <key> and its value."],
    memory_usage,
)];

/// Where `MEMORY USAGE` has its key.
pub(super) const MEMORY_KEYS: Keys = Keys { first: 2, last: 2, step: 1 };

fn cluster(_cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    Err(CommandError::Text(CLUSTER_OFF))
}

/// The parameters that tools ask for, as Redis names them.
fn parameters(cx: &Cx<'_>) -> [(&'static str, String); 17] {
    let (shared, is_durable) = (cx.shared, cx.serving.is_durable());
    let yes_or_no = |value: bool| String::from(if value { "yes" } else { "no" });
    let text = String::from;
    [
        ("appendfsync", text(if is_durable { "always" } else { "no" })),
        ("appendonly", yes_or_no(is_durable)),
        ("cluster-enabled", text("no")),
        ("databases", cx.serving.keyspaces().len().to_string()),
        ("io-threads", text("1")),
        ("maxclients", shared.clients_max.to_string()),
        ("maxmemory", text("0")),
        ("maxmemory-policy", text("noeviction")),
        ("notify-keyspace-events", text("")),
        ("port", shared.port.to_string()),
        ("proto-max-bulk-len", argument_bytes_max(cx.serving).to_string()),
        ("requirepass", text("")),
        ("save", text("")),
        ("slowlog-log-slower-than", text("-1")),
        ("slowlog-max-len", text("0")),
        ("tcp-keepalive", text("300")),
        ("timeout", text("0")),
    ]
}

fn config_get(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    check_count(command)?;
    (2..command.len()).try_for_each(|at| glob::check(command.arg(at)))?;
    let patterns: Vec<Vec<u8>> =
        (2..command.len()).map(|at| command.arg(at).to_ascii_lowercase()).collect();
    let is_asked =
        |name: &str| patterns.iter().any(|pattern| glob::matches(pattern, name.as_bytes()));
    let found: Vec<_> = parameters(cx).into_iter().filter(|(name, _)| is_asked(name)).collect();
    Ok(cx.encoded(|out| {
        out.map(found.len());
        for (name, value) in &found {
            out.bulk(name.as_bytes());
            out.bulk(value.as_bytes());
        }
    }))
}

fn config_change(_cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    Err(CommandError::Text("ERR the configuration is changed in its file, not through this door"))
}

fn time(cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    let millis = cx.clock.wall.0;
    let (seconds, micros) = (millis.div_euclid(1000), millis.rem_euclid(1000) * 1000);
    Ok(cx.encoded(|out| {
        out.array(2);
        out.bulk(seconds.to_string().as_bytes());
        out.bulk(micros.to_string().as_bytes());
    }))
}

fn last_save(cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    Ok(Plan::Now(CommandReply::Integer(cx.shared.identity.started.0.div_euclid(1000))))
}

fn slowlog_get(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let is_count = |at| integer(command.arg(at)).is_some_and(|count| count >= -1);
    match command.len() {
        2 => {}
        3 if is_count(2) => {}
        3 => {
            return Err(CommandError::Text("ERR count should be greater than or equal to -1"));
        }
        _ => return Err(CommandError::Arity("slowlog|get".into())),
    }
    Ok(Plan::Now(CommandReply::Keys(Vec::new())))
}

fn slowlog_len(_cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    Ok(Plan::Now(CommandReply::Integer(0)))
}

fn slowlog_reset(_cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    Ok(Plan::Now(CommandReply::OK))
}

fn memory_usage(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    match command.len() {
        3 => {}
        5 if is(command.arg(3), "SAMPLES") => {
            number(command, 4)?;
        }
        _ => return Err(CommandError::Syntax),
    }
    let key = key(command, 2)?;
    Ok(Plan::One(Single::Usage { key_bytes: key.len() }, Operation::get(key)))
}
