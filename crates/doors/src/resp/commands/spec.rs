//! What is known of each command: arity, flags, keys, help, and the function that plans it.

use super::unable::{refused, types};
use super::{
    Cx, Handled, changes, connection, copies, expiry, follow, introspection, keys, server,
    siblings, strings, transactions,
};
use crate::resp::error::{CommandError, Lack, shown};
use crate::resp::reply::Encoder;
use crate::resp::requests::frame::Command;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

/// A command's function.
pub(crate) type Handler = fn(&mut Cx<'_>, &mut Command) -> Handled;

/// Where a command's keys are: the first, the last (negative: from the end), and the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keys {
    pub(crate) first: usize,
    pub(crate) last: i64,
    pub(crate) step: usize,
}

/// For a command that has none among its arguments.
pub(crate) const NO_KEYS: Keys = Keys { first: 0, last: 0, step: 0 };
/// The first argument.
pub(crate) const ONE_KEY: Keys = Keys { first: 1, last: 1, step: 1 };
/// All arguments.
pub(crate) const ALL_KEYS: Keys = Keys { first: 1, last: -1, step: 1 };
/// Every second argument.
pub(crate) const PAIRS: Keys = Keys { first: 1, last: -1, step: 2 };

/// What a command does.
#[derive(Clone, Copy)]
pub(crate) enum Run {
    /// This.
    Handler(Handler),
    /// What its first argument says; the function if there is none.
    Container(Option<Handler>, &'static [Sub]),
    /// Nothing: it is known, but cannot be done.
    Refused(Lack),
}

/// A subcommand.
pub(crate) struct Sub {
    pub(crate) name: &'static str,
    /// How many arguments it takes, its own and its command's name included; at least so many if
    /// negative.
    pub(crate) arity: i64,
    /// The lines of `HELP`: usage, then what it does.
    pub(crate) help: [&'static str; 2],
    pub(crate) handler: Handler,
}

/// A command.
pub(crate) struct Spec {
    pub(crate) name: &'static str,
    /// How many arguments it takes, its name included; at least so many if negative; 0 if that is
    /// not checked.
    pub(crate) arity: i64,
    pub(crate) flags: &'static [&'static str],
    pub(crate) keys: Keys,
    pub(crate) group: &'static str,
    /// The version of Redis that brought it.
    pub(crate) since: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) run: Run,
}

fn fits(arity: i64, count: usize) -> bool {
    let count = count as i64;
    if arity >= 0 { arity == 0 || count == arity } else { count >= -arity }
}

impl Spec {
    /// Whether it takes this many arguments, its name included.
    pub(crate) fn takes(&self, count: usize) -> bool {
        fits(self.arity, count)
    }

    /// Plans the command.
    pub(crate) fn run(&self, cx: &mut Cx<'_>, command: &mut Command) -> Handled {
        if !self.takes(command.len()) {
            return Err(CommandError::Arity(self.name.into()));
        }
        match self.run {
            Run::Handler(handler) => handler(cx, command),
            Run::Refused(lack) => Err(refused::reason(cx, self.name, lack)),
            Run::Container(Some(handler), _) if command.len() == 1 => handler(cx, command),
            Run::Container(_, subs) => self.run_sub(subs, cx, command),
        }
    }

    fn run_sub(&self, subs: &[Sub], cx: &mut Cx<'_>, command: &mut Command) -> Handled {
        let name = command.arg(1);
        if super::is(name, "help") && command.len() == 2 {
            return Ok(cx.encoded(|out| self.help(subs, out)));
        }
        let Some(sub) = subs.iter().find(|sub| super::is(name, sub.name)) else {
            let (command, name) = (self.name.to_ascii_uppercase(), shown(name, 128));
            return Err(CommandError::UnknownSub { command, name });
        };
        if !fits(sub.arity, command.len()) {
            return Err(CommandError::Arity(format!("{}|{}", self.name, sub.name)));
        }
        (sub.handler)(cx, command)
    }

    fn help(&self, subs: &[Sub], out: &mut Encoder<'_>) {
        let name = self.name.to_ascii_uppercase();
        out.array(subs.len() * 2 + 3);
        out.simple(&format!("{name} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
        for Sub { help: [usage, text], .. } in subs {
            out.simple(usage);
            out.simple(&format!("    {text}"));
        }
        out.simple("HELP");
        out.simple("    Prints this help.");
    }

    /// Whether it is offered, and so listed by `COMMAND`; what is refused has no summary.
    pub(crate) fn is_offered(&self) -> bool {
        !self.summary.is_empty()
    }

    /// The access categories clients may ask for.
    pub(crate) fn categories(&self) -> Vec<String> {
        let mut names = Vec::new();
        for (flag, category) in [("write", "@write"), ("readonly", "@read")] {
            if self.flags.contains(&flag) {
                names.push(category.into());
            }
        }
        match self.group {
            "generic" => names.push("@keyspace".into()),
            "server" => {}
            "transactions" => names.push("@transaction".into()),
            group => names.push(format!("@{group}")),
        }
        let speed = if self.flags.contains(&"fast") { "@fast" } else { "@slow" };
        names.push(speed.into());
        names
    }
}

/// How many buckets the table of names has; more than twice the number of commands.
const BUCKETS: usize = 512;

/// All commands, found by name in any case.
pub(crate) struct Table {
    buckets: Vec<Vec<&'static Spec>>,
}

fn bucket(name: &[u8]) -> usize {
    let letter = |at: usize| usize::from(name.get(at).copied().unwrap_or(0) & 0x1f);
    let last = letter(name.len().wrapping_sub(1));
    (name.len() * 7 + letter(0) * 31 + letter(1) * 5 + letter(2) * 97 + last * 13) % BUCKETS
}

impl Table {
    /// The table of all groups.
    pub(crate) fn new() -> Table {
        let mut buckets = vec![Vec::new(); BUCKETS];
        for spec in Table::specs() {
            buckets[bucket(spec.name.as_bytes())].push(spec);
        }
        Table { buckets }
    }

    /// All commands, group by group.
    pub(crate) fn specs() -> impl Iterator<Item = &'static Spec> {
        [
            strings::SPECS,
            changes::SPECS,
            siblings::SPECS,
            keys::SPECS,
            copies::SPECS,
            expiry::SPECS,
            connection::SPECS,
            follow::SPECS,
            server::SPECS,
            introspection::SPECS,
            transactions::SPECS,
            refused::SPECS,
            types::SPECS,
        ]
        .into_iter()
        .flatten()
    }

    /// The command of this name.
    pub(crate) fn find(&self, name: &[u8]) -> Option<&'static Spec> {
        let found = &self.buckets[bucket(name)];
        found.iter().find(|spec| super::is(name, spec.name)).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_lower_case_unique_and_found_in_any_case() {
        let table = Table::new();
        let mut names: Vec<&str> = Table::specs().map(|spec| spec.name).collect();
        for name in &names {
            assert_eq!(*name, name.to_ascii_lowercase());
            assert!(table.find(name.to_ascii_uppercase().as_bytes()).is_some());
        }
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(table.find(b"nosuch").is_none() && table.find(b"").is_none());
    }
}
