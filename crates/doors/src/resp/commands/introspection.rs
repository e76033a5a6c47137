//! `COMMAND`: what commands there are.

use super::server::MEMORY_KEYS;
use super::spec::{Keys, Run, Spec, Sub, Table};
use super::{Cx, Handled, Plan, check_count, is};
use crate::resp::error::CommandError;
use crate::resp::glob;
use crate::resp::reply::{CommandReply, Encoder};
use crate::resp::requests::frame::Command;
use alloc::vec::Vec;
use bytes::Bytes;

/// The commands about commands.
pub(crate) const SPECS: &[Spec] = &[Spec {
    name: "command",
    arity: -1,
    flags: &["loading", "stale"],
    keys: super::spec::NO_KEYS,
    group: "server",
    since: "2.8.13",
    summary: "Get array of command details",
    run: Run::Container(Some(all), COMMAND),
}];

const COMMAND: &[Sub] = &[
    Sub {
        name: "count",
        arity: 2,
        help: ["COUNT", "Return the total number of commands in this server."],
        handler: count,
    },
    Sub {
        name: "list",
        arity: -2,
        help: ["LIST [FILTERBY (MODULE|ACLCAT|PATTERN) <value>]", "Return a list of all commands."],
        handler: list,
    },
    Sub {
        name: "info",
        arity: -2,
        help: ["INFO [<command-name> ...]", "Return details about commands; all if none is named."],
        handler: info,
    },
    Sub {
        name: "docs",
        arity: -2,
        help: ["DOCS [<command-name> ...]", "Return documentation of commands."],
        handler: docs,
    },
    Sub {
        name: "getkeys",
        arity: -3,
        help: ["GETKEYS <full-command>", "Return the keys from a full command."],
        handler: get_keys,
    },
];

fn offered() -> impl Iterator<Item = &'static Spec> {
    Table::specs().filter(|spec| spec.is_offered())
}

fn count(_cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    Ok(Plan::Now(CommandReply::Integer(offered().count() as i64)))
}

fn all(cx: &mut Cx<'_>, _command: &mut Command) -> Handled {
    let specs: Vec<Option<&Spec>> = offered().map(Some).collect();
    Ok(cx.encoded(|out| write_infos(&specs, out)))
}

fn info(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    if command.len() == 2 {
        return all(cx, command);
    }
    check_count(command)?;
    let find = |at| cx.shared.table.find(command.arg(at)).filter(|spec| spec.is_offered());
    let specs: Vec<Option<&Spec>> = (2..command.len()).map(find).collect();
    Ok(cx.encoded(|out| write_infos(&specs, out)))
}

fn write_infos(specs: &[Option<&Spec>], out: &mut Encoder<'_>) {
    out.array(specs.len());
    for spec in specs {
        match spec {
            Some(spec) => write_info(spec, out),
            None => out.null(),
        }
    }
}

/// The ten fields of Redis 7. Subcommands are left out: what they are is said by `HELP`.
fn write_info(spec: &Spec, out: &mut Encoder<'_>) {
    out.array(10);
    out.bulk(spec.name.as_bytes());
    out.integer(spec.arity);
    out.set(spec.flags.len());
    for flag in spec.flags {
        out.simple(flag);
    }
    let Keys { first, last, step } = spec.keys;
    out.integer(first as i64);
    out.integer(last);
    out.integer(step as i64);
    let categories = spec.categories();
    out.set(categories.len());
    for category in &categories {
        out.simple(category);
    }
    out.set(0);
    if first == 0 {
        out.set(0);
    } else {
        out.set(1);
        write_key_spec(spec, out);
    }
    out.array(0);
}

fn write_key_spec(spec: &Spec, out: &mut Encoder<'_>) {
    let Keys { first, last, step } = spec.keys;
    // Here a last key is counted from the first one.
    let last = if last < 0 { last } else { last - first as i64 };
    out.map(3);
    out.bulk(b"flags");
    let is_write = spec.flags.contains(&"write");
    let flags = if is_write { ["OW", "update"] } else { ["RO", "access"] };
    out.set(flags.len());
    for flag in flags {
        out.simple(flag);
    }
    let numbers = |out: &mut Encoder<'_>, kind: &str, fields: &[(&str, i64)]| {
        out.map(2);
        out.bulk(b"type");
        out.bulk(kind.as_bytes());
        out.bulk(b"spec");
        out.map(fields.len());
        for (name, value) in fields {
            out.bulk(name.as_bytes());
            out.integer(*value);
        }
    };
    out.bulk(b"begin_search");
    numbers(out, "index", &[("index", first as i64)]);
    out.bulk(b"find_keys");
    numbers(out, "range", &[("lastkey", last), ("keystep", step as i64), ("limit", 0)]);
}

fn docs(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    check_count(command)?;
    let find = |at| cx.shared.table.find(command.arg(at)).filter(|spec| spec.is_offered());
    let specs: Vec<&Spec> = match command.len() {
        2 => offered().collect(),
        _ => (2..command.len()).filter_map(find).collect(),
    };
    Ok(cx.encoded(|out| {
        out.map(specs.len());
        for spec in &specs {
            out.bulk(spec.name.as_bytes());
            out.map(3);
            let fields = [("summary", spec.summary), ("since", spec.since), ("group", spec.group)];
            for (name, value) in fields {
                out.bulk(name.as_bytes());
                out.bulk(value.as_bytes());
            }
        }
    }))
}

fn list(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let filter = match command.len() {
        2 => None,
        5 if is(command.arg(2), "FILTERBY") => {
            glob::check(command.arg(4))?;
            Some((command.arg(3), command.arg(4)))
        }
        _ => return Err(CommandError::Syntax),
    };
    let is_listed = |spec: &Spec| match filter {
        None => true,
        Some((kind, value)) if is(kind, "PATTERN") => {
            glob::matches(&value.to_ascii_lowercase(), spec.name.as_bytes())
        }
        Some((kind, value)) if is(kind, "ACLCAT") => {
            spec.categories().iter().any(|category| is(value, &category[1..]))
        }
        Some(_) => false,
    };
    if let Some((kind, _)) = filter
        && !["MODULE", "ACLCAT", "PATTERN"].iter().any(|known| is(kind, known))
    {
        return Err(CommandError::Syntax);
    }
    let names: Vec<&str> = offered().filter(|spec| is_listed(spec)).map(|spec| spec.name).collect();
    Ok(cx.encoded(|out| {
        out.array(names.len());
        for name in &names {
            out.bulk(name.as_bytes());
        }
    }))
}

fn get_keys(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let Some(spec) = cx.shared.table.find(command.arg(2)) else {
        return Err(CommandError::Text("ERR Invalid command specified"));
    };
    // The command asked about starts at the third argument.
    let count = command.len() - 2;
    if !spec.takes(count) {
        return Err(CommandError::Text("ERR Invalid number of arguments specified for command"));
    }
    let is_usage = spec.name == "memory" && count > 2 && is(command.arg(3), "usage");
    let Keys { first, last, step } = if is_usage { MEMORY_KEYS } else { spec.keys };
    if first == 0 {
        return Err(CommandError::Text("ERR The command has no key arguments"));
    }
    let last = if last < 0 { count as i64 + last } else { last };
    let keys: Vec<Bytes> = (first..count)
        .take_while(|at| *at as i64 <= last)
        .step_by(step)
        .map(|at| command.shared(at + 2))
        .collect();
    Ok(Plan::Now(CommandReply::Keys(keys)))
}
