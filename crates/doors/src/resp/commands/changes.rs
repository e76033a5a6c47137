//! Changes of a value that depend on the one before: counters, appends, and puts that ask whether
//! there is a value. Each is one transaction.

use super::expiry::EndOption;
use super::spec::{Handler, Keys, ONE_KEY, PAIRS, Run, Spec};
use super::{Cx, Handled, Plan, check_key, check_value, is, key, number};
use crate::resp::error::CommandError;
use crate::resp::requests::frame::Command;
use crate::resp::single::Single;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::change::Change;
use quorate_kernel::expiry::Expiry;
use quorate_kernel::operation::Operation;
use quorate_kernel::transaction::{Condition, Item, check_bounds};

const fn spec(
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    keys: Keys,
    since: &'static str,
    summary: &'static str,
    run: Handler,
) -> Spec {
    Spec { name, arity, flags, keys, group: "string", since, summary, run: Run::Handler(run) }
}

const FAST: &[&str] = &["write", "denyoom", "fast"];
const SLOW: &[&str] = &["write", "denyoom"];

/// The commands.
#[rustfmt::skip] // One command, one line.
pub(crate) const SPECS: &[Spec] = &[
    spec("incr", 2, FAST, ONE_KEY, "1.0.0", "Add one to the integer value of a key", incr),
    spec("decr", 2, FAST, ONE_KEY, "1.0.0", "Take one from the integer value of a key", decr),
    spec("incrby", 3, FAST, ONE_KEY, "1.0.0", "Add to the integer value of a key", incrby),
    spec("decrby", 3, FAST, ONE_KEY, "1.0.0", "Take from the integer value of a key", decrby),
    spec("incrbyfloat", 3, FAST, ONE_KEY, "2.6.0", "Add to the number of a key", incrbyfloat),
    spec("append", 3, FAST, ONE_KEY, "2.0.0", "Append to the value of a key", append),
    spec("setrange", 4, SLOW, ONE_KEY, "2.2.0", "Overwrite a part of a value", setrange),
    spec("setnx", 3, FAST, ONE_KEY, "1.0.0", "Set a value where there is none", setnx),
    spec("getset", 3, FAST, ONE_KEY, "1.0.0", "Set a value, return the one before", getset),
    spec("getdel", 2, &["write", "fast"], ONE_KEY, "6.2.0", "Return a value and remove it", getdel),
    spec("msetnx", -3, SLOW, PAIRS, "1.0.1", "Set keys if none of them has a value", msetnx),
];

/// One transaction of these items.
pub(super) fn several(single: Single, items: Vec<Item>) -> Handled {
    Ok(Plan::One(single, Operation::Transact { items, name: None }))
}

fn change(command: &Command, single: Single, change: Change) -> Handled {
    several(single, vec![Item::Change { key: key(command, 1)?, change }])
}

fn incr(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    change(command, Single::Change, Change::Add(1))
}

fn decr(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    change(command, Single::Change, Change::Add(-1))
}

fn incrby(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    change(command, Single::Change, Change::Add(number(command, 2)?))
}

fn decrby(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let taken = number(command, 2)?.checked_neg();
    let taken = taken.ok_or(CommandError::Text("ERR decrement would overflow"))?;
    change(command, Single::Change, Change::Add(taken))
}

fn incrbyfloat(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let number = core::str::from_utf8(command.arg(2)).ok().and_then(|text| text.parse().ok());
    if !number.is_some_and(f64::is_finite) {
        return Err(CommandError::Text("ERR value is not a valid float"));
    }
    change(command, Single::Change, Change::AddFloat(command.shared(2)))
}

fn append(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    check_value(cx, command, 2)?;
    change(command, Single::Change, Change::Append(command.shared(2)))
}

fn setrange(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let offset = u64::try_from(number(command, 2)?);
    let offset = offset.map_err(|_| CommandError::Text("ERR offset is out of range"))?;
    let (bytes, limit) = (command.shared(3), cx.keyspace()?.value_bytes_max);
    let end = usize::try_from(offset).unwrap_or(usize::MAX).saturating_add(bytes.len());
    if !bytes.is_empty() && end > limit {
        return Err(CommandError::TooLarge { what: "value", length: end, limit });
    }
    change(command, Single::Change, Change::SetRange { offset, bytes })
}

/// A put that asks whether the key has a value.
fn put_if(
    cx: &Cx<'_>,
    command: &Command,
    exists: bool,
    expiry: Expiry,
) -> Result<Item, CommandError> {
    check_value(cx, command, 2)?;
    let change = Change::PutIf { exists, value: command.shared(2), expiry };
    Ok(Item::Change { key: key(command, 1)?, change })
}

fn setnx(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    several(Single::IsDone, vec![put_if(cx, command, false, Expiry::Never)?])
}

fn put(cx: &Cx<'_>, command: &Command, expiry: Expiry) -> Result<Item, CommandError> {
    check_value(cx, command, 2)?;
    Ok(Item::Put { key: key(command, 1)?, value: command.shared(2), expiry })
}

fn get(command: &Command) -> Result<Item, CommandError> {
    Ok(Item::Get { key: key(command, 1)? })
}

/// `SET` with options: with one of `NX` and `XX`, or with `GET`, or both; and what becomes of the
/// key's end.
pub(super) fn set(
    cx: &Cx<'_>,
    command: &Command,
    (exists, gets): (Option<bool>, bool),
    expiry: Expiry,
) -> Handled {
    let write = match exists {
        Some(exists) => put_if(cx, command, exists, expiry)?,
        None => put(cx, command, expiry)?,
    };
    match gets {
        true => several(Single::First, vec![get(command)?, write]),
        false => several(Single::Change, vec![write]),
    }
}

fn getset(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    set(cx, command, (None, true), Expiry::Never)
}

fn getdel(_cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    let delete = Item::Delete { key: key(command, 1)? };
    several(Single::First, vec![get(command)?, delete])
}

fn msetnx(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    if command.len().is_multiple_of(2) {
        return Err(CommandError::Arity("msetnx".into()));
    }
    let pairs = || (1..command.len()).step_by(2);
    let (mut checks, mut puts) = (Vec::new(), Vec::new());
    for at in pairs() {
        check_key(command, at)?;
        check_value(cx, command, at + 1)?;
        let (key, value): (Bytes, Bytes) = (command.shared(at), command.shared(at + 1));
        checks.push(Item::Check { key: key.clone(), holds: Condition::Absent });
        puts.push(Item::Put { key, value, expiry: Expiry::Never });
    }
    checks.append(&mut puts);
    check_bounds(&checks, cx.keyspace()?.value_bytes_max)?;
    several(Single::AllOrNone, checks)
}

/// Options of `SET`, as Redis reads them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SetOptions {
    /// `XX` or `NX`: whether the key must have a value.
    pub exists: Option<bool>,
    /// Whether the reply is the value before.
    pub gets: bool,
    /// What it says of the end of the key, if anything, and the name of that option.
    pub end: Option<(&'static str, EndOption)>,
}

impl SetOptions {
    /// Reads them.
    ///
    /// # Errors
    /// They do not exist, or do not go together.
    pub fn of(command: &Command) -> Result<SetOptions, CommandError> {
        let mut options = SetOptions::default();
        let mut at = 3;
        while at < command.len() {
            let option = command.arg(at);
            if is(option, "NX") || is(option, "XX") {
                let exists = is(option, "XX");
                if options.exists.replace(exists).is_some_and(|earlier| earlier != exists) {
                    return Err(CommandError::Syntax);
                }
            } else if is(option, "GET") {
                options.gets = true;
            } else {
                at += options.read_end(command, at)?;
            }
            at += 1;
        }
        Ok(options)
    }

    /// An option about the end of the key. Returns how many arguments follow it.
    fn read_end(&mut self, command: &Command, at: usize) -> Result<usize, CommandError> {
        let (name, end) = EndOption::of(command, at).ok_or(CommandError::Syntax)?;
        let is_other = self.end.is_some_and(|(before, _)| before != name);
        if is_other || end == EndOption::Drop {
            return Err(CommandError::Syntax);
        }
        self.end = Some((name, end));
        Ok(end.arguments())
    }
}
