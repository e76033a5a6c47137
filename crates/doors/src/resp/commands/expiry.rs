//! Keys that end by themselves: `EXPIRE`, `TTL`, `SETEX`, `GETEX` and their kin.
//!
//! A time "from now on" is turned into one of the wall clock where the command is read, by the
//! clock of this host; between `MULTI` and `EXEC` it counts from `EXEC` on, as in Redis.

use super::changes;
use super::spec::{Handler, ONE_KEY, Run, Spec};
use super::{Cx, Handled, Plan, check_value, is, key, number};
use crate::resp::error::{CommandError, shown};
use crate::resp::requests::frame::Command;
use crate::resp::single::{Single, Unit};
use alloc::vec;
use quorate_kernel::engine::Capability;
use quorate_kernel::expiry::{Expiry, When};
use quorate_kernel::operation::Operation;
use quorate_kernel::time::WallTime;
use quorate_kernel::transaction::Item;

const fn spec(
    name: &'static str,
    arity: i64,
    flags: &'static [&'static str],
    group: &'static str,
    since: &'static str,
    summary: &'static str,
    run: Handler,
) -> Spec {
    Spec { name, arity, flags, keys: ONE_KEY, group, since, summary, run: Run::Handler(run) }
}

const FAST: &[&str] = &["write", "fast"];
const SLOW: &[&str] = &["write", "denyoom"];
const READS: &[&str] = &["readonly", "fast"];
const SET_TTL: &str = "Set the time to live of a key";
const SET_TIME: &str = "Set the expiration time of a key";
const PUT: &str = "Set a value and its time to live";
const GETEX: &str = "Return a value and set or remove its expiration time";
const TTL: &str =
    "Get the time to live of a key: -1 if it does not expire, -2 if it does not exist";
const TIME: &str = "Get the expiration time of a key: -1 if it has none, -2 if it does not exist";

/// The commands.
#[rustfmt::skip] // One command, one line.
pub(crate) const SPECS: &[Spec] = &[
    spec("expire", -3, FAST, "generic", "1.0.0", SET_TTL, expire),
    spec("pexpire", -3, FAST, "generic", "2.6.0", SET_TTL, pexpire),
    spec("expireat", -3, FAST, "generic", "1.2.0", SET_TIME, expireat),
    spec("pexpireat", -3, FAST, "generic", "2.6.0", SET_TIME, pexpireat),
    spec("persist", 2, FAST, "generic", "2.2.0", "Remove the expiration time of a key", persist),
    spec("ttl", 2, READS, "generic", "1.0.0", TTL, ttl),
    spec("pttl", 2, READS, "generic", "2.6.0", TTL, pttl),
    spec("expiretime", 2, READS, "generic", "7.0.0", TIME, expiretime),
    spec("pexpiretime", 2, READS, "generic", "7.0.0", TIME, pexpiretime),
    spec("setex", 4, SLOW, "string", "2.0.0", PUT, setex),
    spec("psetex", 4, SLOW, "string", "2.6.0", PUT, psetex),
    spec("getex", -2, FAST, "string", "6.2.0", GETEX, getex),
];

const EX: Unit = Unit { is_seconds: true, is_relative: true };
const PX: Unit = Unit { is_seconds: false, is_relative: true };
const EXAT: Unit = Unit { is_seconds: true, is_relative: false };
const PXAT: Unit = Unit { is_seconds: false, is_relative: false };

/// What an option of `SET` or `GETEX` says of the end of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EndOption {
    /// A time; it is the argument of this number.
    At(Unit, usize),
    /// `KEEPTTL`
    Keep,
    /// `PERSIST`
    Drop,
}

impl EndOption {
    /// The option that an argument is, of these two commands.
    pub(super) fn of(command: &Command, at: usize) -> Option<(&'static str, EndOption)> {
        let all = [
            ("EX", EndOption::At(EX, at + 1)),
            ("PX", EndOption::At(PX, at + 1)),
            ("EXAT", EndOption::At(EXAT, at + 1)),
            ("PXAT", EndOption::At(PXAT, at + 1)),
            ("KEEPTTL", EndOption::Keep),
            ("PERSIST", EndOption::Drop),
        ];
        let found = all.into_iter().find(|(name, _)| is(command.arg(at), name))?;
        let has_time = !matches!(found.1, EndOption::At(..)) || at + 1 < command.len();
        has_time.then_some(found)
    }

    /// How many arguments follow it.
    pub(super) fn arguments(self) -> usize {
        usize::from(matches!(self, EndOption::At(..)))
    }

    /// What becomes of the end of a key that is put; `name` is what an error calls the command.
    pub(super) fn expiry(
        self,
        cx: &mut Cx<'_>,
        command: &Command,
        name: &'static str,
    ) -> Result<Expiry, CommandError> {
        Ok(match self {
            EndOption::At(unit, at) => Expiry::At(positive(cx, unit, (command, at), name)?),
            EndOption::Keep => Expiry::Keep,
            EndOption::Drop => Expiry::Never,
        })
    }
}

/// A time that a value is given when it is set.
fn positive(
    cx: &mut Cx<'_>,
    unit: Unit,
    (command, at): (&Command, usize),
    name: &'static str,
) -> Result<WallTime, CommandError> {
    match number(command, at)? {
        ..=0 => Err(CommandError::ExpireTime(name)),
        said => time(cx, unit, said).ok_or(CommandError::ExpireTime(name)),
    }
}

/// A time of the wall clock, if there is one.
fn time(cx: &mut Cx<'_>, unit: Unit, said: i64) -> Option<WallTime> {
    let ms = if unit.is_seconds { said.checked_mul(1000)? } else { said };
    cx.is_relative |= unit.is_relative;
    let since = if unit.is_relative { cx.clock.wall.0 } else { 0 };
    ms.checked_add(since).map(WallTime)
}

fn require(cx: &Cx<'_>, name: &str) -> Result<(), CommandError> {
    Ok(cx.keyspace()?.require(Capability::Expiry, name, None)?)
}

fn expire(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    ends(cx, command, "expire", EX)
}

fn pexpire(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    ends(cx, command, "pexpire", PX)
}

fn expireat(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    ends(cx, command, "expireat", EXAT)
}

fn pexpireat(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    ends(cx, command, "pexpireat", PXAT)
}

/// Any number is a time here; one that has passed removes the key.
fn ends(cx: &mut Cx<'_>, command: &Command, name: &'static str, unit: Unit) -> Handled {
    require(cx, &name.to_ascii_uppercase())?;
    let when = when(command)?;
    let said = number(command, 2)?;
    let at = Some(time(cx, unit, said).ok_or(CommandError::ExpireTime(name))?);
    let item = Item::Expire { key: key(command, 1)?, at, when };
    changes::several(Single::IsDone, vec![item])
}

/// The conditions behind the time.
fn when(command: &Command) -> Result<When, CommandError> {
    let words = ["NX", "XX", "GT", "LT"];
    let mut has = [false; 4];
    for at in 3..command.len() {
        let option = command.arg(at);
        let Some(word) = words.iter().position(|word| is(option, word)) else {
            return Err(CommandError::UnknownOption(shown(option, 128)));
        };
        has[word] = true;
    }
    match has {
        [true, xx, gt, lt] if xx || gt || lt => Err(CommandError::Text(
            "ERR NX and XX, GT or LT options at the same time are not compatible",
        )),
        [_, _, true, true] => {
            Err(CommandError::Text("ERR GT and LT options at the same time are not compatible"))
        }
        [true, ..] => Ok(When::IfNone),
        // Without an end no other is later.
        [_, _, true, _] => Ok(When::IfLater),
        [_, true, _, true] => Ok(When::IfSomeAndSooner),
        [_, _, _, true] => Ok(When::IfSooner),
        [_, true, ..] => Ok(When::IfSome),
        [false, ..] => Ok(When::Always),
    }
}

fn persist(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    require(cx, "PERSIST")?;
    let item = Item::Expire { key: key(command, 1)?, at: None, when: When::Always };
    changes::several(Single::IsDone, vec![item])
}

fn ttl(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    lifetime(cx, command, EX)
}

fn pttl(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    lifetime(cx, command, PX)
}

fn expiretime(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    lifetime(cx, command, EXAT)
}

fn pexpiretime(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    lifetime(cx, command, PXAT)
}

/// Where keys do not end it is enough to know whether there is a value.
fn lifetime(cx: &Cx<'_>, command: &Command, unit: Unit) -> Handled {
    let (single, key) = (Single::End(unit), key(command, 1)?);
    match cx.keyspace()?.can(Capability::Expiry) {
        true => changes::several(single, vec![Item::Lifetime { key }]),
        false => Ok(Plan::One(single, Operation::get(key))),
    }
}

fn setex(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    set(cx, command, "setex", EX)
}

fn psetex(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    set(cx, command, "psetex", PX)
}

fn set(cx: &mut Cx<'_>, command: &Command, name: &'static str, unit: Unit) -> Handled {
    require(cx, &name.to_ascii_uppercase())?;
    let expiry = Expiry::At(positive(cx, unit, (command, 2), name)?);
    check_value(cx, command, 3)?;
    let put = Item::Put { key: key(command, 1)?, value: command.shared(3), expiry };
    changes::several(Single::Change, vec![put])
}

fn getex(cx: &mut Cx<'_>, command: &mut Command) -> Handled {
    if command.len() == 2 {
        return Ok(Plan::One(Single::Get, Operation::get(key(command, 1)?)));
    }
    require(cx, "GETEX")?;
    let (mut at, mut chosen) = (2, None);
    while at < command.len() {
        let (name, option) = EndOption::of(command, at).ok_or(CommandError::Syntax)?;
        let is_known = option != EndOption::Keep;
        if !is_known || chosen.is_some_and(|(other, _)| other != name) {
            return Err(CommandError::Syntax);
        }
        chosen = Some((name, option));
        at += 1 + option.arguments();
    }
    let (_, option) = chosen.expect("there is an argument");
    let end = match option.expiry(cx, command, "getex")? {
        Expiry::At(at) => Some(at),
        Expiry::Never | Expiry::Keep => None,
    };
    let key = key(command, 1)?;
    let expire = Item::Expire { key: key.clone(), at: end, when: When::Always };
    changes::several(Single::First, vec![Item::Get { key }, expire])
}
