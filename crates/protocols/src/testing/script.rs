//! The commands of a script.
//!
//! | command | what happens |
//! |---|---|
//! | `nodes N [spare M] [memory] [periodic] [first TOKEN] [option…]` | N members and M others start, with one group from this token on; always the first command |
//! | `put NODE KEY VALUE [within SPAN]`, `get`, `delete NODE KEY`, `scan NODE FROM LIMIT` | a client asks; `x*100` is a word of 100 letters |
//! | `given put …` and so on | the same, everything is delivered at once, and only the answer is shown |
//! | `flood NODE COUNT` | so many gets begin there, unseen, and all their messages are lost |
//! | `deliver [NAME] [FROM->TO]` | all such messages in flight now arrive, in the order they were sent |
//! | `deliver all` | everything arrives, and what it causes too, until nothing is in flight |
//! | `drop …`, `duplicate …` | the same messages are lost, or doubled |
//! | `delay …`, `release` | the same messages are put aside; all that were are in flight again |
//! | `cut NODE`, `mend NODE` | all messages from and to the node are lost; no more |
//! | `hold sync NODE`, `sync NODE` | the disk waits for `sync`; it syncs |
//! | `crash NODE`, `restart NODE [forgot]` | the node stops; it starts again, maybe without its data |
//! | `view NODE VERSION MEMBER…` | a member of the view before is told that this one was decided |
//! | `split NODE VERSION TOKEN` | a member is told that the group was cut after that version |
//! | `ring NODE TOKEN:HOST[:suspected or :leaving or :left]…` | the node, or `all`, now believes this of the ring |
//! | `read NODE KEY [of COUNT]`, `write NODE KEY VALUE [after NUMBER]`, `remove NODE KEY after NUMBER` | the same for siblings; the context is of the so-manieth request |
//! | `place NODE OUT>INTO…` | the node, or `all`, gets a map with these replacements; with `!` the former is gone for good, and by `NODE!` alone nobody has its tokens yet |
//! | `closing NODE TOKEN:HOST…` | the same, and that the cluster is being shut down |
//! | `explain NODE KEY` | an operator asks how a get is served |
//! | `examine NODE TOKEN [LEAVER]` | an operator asks who holds what, from a token on, and what keeps a host that leaves |
//! | `run SPAN` | time passes in small steps, everything arrives |
//! | `tick SPAN` | time passes (`20ms`, `5s`), timers fire |
//! | `show NODE FIELD…` | fields of its inspected state |

use super::world::{Flight, Setup, World};
use super::{Scripted, siblings};
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::operation::{Control, Cursor, Operation};
use quorate_kernel::ring::{Closing, RingHost, Standing};
use quorate_kernel::time::Span;
use std::borrow::ToOwned;
use std::string::{String, ToString};
use std::vec::Vec;
use std::{format, mem};

const DEADLINE: Span = Span::secs(5);
const STEP: Span = Span::millis(20);
const DELIVERIES_MAX: usize = 10_000;

/// Runs a script; returns its text with what the commands caused, or the line that is no command or
/// cannot be done.
pub fn run<P: Scripted>(text: &str) -> Done<String> {
    let title = text.lines().next().unwrap_or_default();
    if !title.ends_with('.') {
        return Err("the first line must be a sentence".to_owned());
    }
    let mut out = format!("{title}\n");
    let mut world: Option<World<P>> = None;
    for (index, line) in text.lines().enumerate().skip(1) {
        if line.starts_with('>') {
            continue;
        }
        out.push_str(line);
        out.push('\n');
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        if world.is_none() {
            command(&mut world, &words)?;
            know_views(world.as_mut(), text)?;
            continue;
        }
        command(&mut world, &words).map_err(|why| format!("line {}: {line}: {why}", index + 1))?;
        for happened in world.iter_mut().flat_map(|world| mem::take(&mut world.log)) {
            out.push_str(&format!("> {happened}\n"));
        }
    }
    Ok(out)
}

/// Tells the world all views that the script names, so that it can tell of one before another.
fn know_views<P: Scripted>(world: Option<&mut World<P>>, text: &str) -> Done {
    let Some(world) = world else { return Ok(()) };
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let ["view", _, version, members @ ..] = &words[..] {
            let members = members.iter().map(|word| number(word)).collect::<Done<Vec<_>>>()?;
            let view = world.view(number(version)?, &members);
            world.know(&view);
        }
    }
    Ok(())
}

pub(super) type Done<T = ()> = Result<T, String>;

fn command<P: Scripted>(world: &mut Option<World<P>>, words: &[&str]) -> Done {
    if let ["nodes", members, options @ ..] = words {
        *world = Some(World::new(&setup(members, options)?));
        return Ok(());
    }
    let world = world.as_mut().ok_or("the first command is `nodes`")?;
    match words {
        ["given", request @ ..] => {
            ask(world, request)?;
            deliver_all(world)?;
            world.log.retain(|line| line.contains(": answers "));
        }
        ["deliver", "all"] => deliver_all(world)?,
        ["deliver", pattern @ ..] => {
            // Later messages move up as earlier ones leave.
            for (gone, place) in matching(world, pattern)?.into_iter().enumerate() {
                world.deliver(place - gone);
            }
        }
        ["drop", pattern @ ..] => {
            for place in matching(world, pattern)?.into_iter().rev() {
                world.flights.remove(place);
            }
        }
        ["duplicate", pattern @ ..] => {
            for place in matching(world, pattern)? {
                let copy = world.flights[place].clone();
                world.flights.push(copy);
            }
        }
        ["delay", pattern @ ..] => {
            for (gone, place) in matching(world, pattern)?.into_iter().enumerate() {
                let flight = world.flights.remove(place - gone);
                world.delayed.push(flight);
            }
        }
        ["release"] => {
            let delayed = mem::take(&mut world.delayed);
            world.flights.extend(delayed);
        }
        ["cut", node] => world.cut.extend([number(node)?]),
        ["mend", node] => world.cut.retain(|cut| number(node) != Ok(*cut)),
        _ => return node_command(world, words),
    }
    Ok(())
}

/// The commands that are about one node, or about time.
fn node_command<P: Scripted>(world: &mut World<P>, words: &[&str]) -> Done {
    match words {
        ["hold", "sync", node] => world.hold_sync(number(node)?),
        ["sync", node] => world.sync(number(node)?),
        ["crash", node] => world.crash(number(node)?),
        ["restart", node] => world.restart(number(node)?, false),
        ["restart", node, "forgot"] => world.restart(number(node)?, true),
        ["tick", time] => world.tick(span(time)?),
        ["view", node, version, members @ ..] => {
            let members = members.iter().map(|word| number(word)).collect::<Done<Vec<_>>>()?;
            let view = world.view(number(version)?, &members);
            world.decide(number(node)?, &view);
        }
        ["split", node, version, at] => {
            world.split(number(node)?, number(version)?, token(at)?);
        }
        ["ring", node, hosts @ ..] => announce(world, node, hosts, Closing::No)?,
        ["closing", node, hosts @ ..] => announce(world, node, hosts, Closing::Finishing)?,
        ["explain", node, key] => {
            let (key, like) = (bytes(key)?, Operation::get(bytes(key)?));
            world.control(number(node)?, Control::Explain { key }, like, DEADLINE);
        }
        ["examine", node, from, leaver @ ..] => {
            let from = number(from)?;
            let leaver = match leaver {
                [] => None,
                [leaver] => Some(NodeId(number(leaver)?)),
                _ => return Err("one host leaves".to_owned()),
            };
            let like = Operation::Scan { from: Cursor::at(from), limit: 1 };
            world.control(number(node)?, Control::Examine { from, leaver }, like, DEADLINE);
        }
        ["run", time] => {
            for _ in 0..span(time)?.0.div_ceil(STEP.0) {
                deliver_all(world)?;
                world.tick(STEP);
            }
            deliver_all(world)?;
            // What matters of a long time are the writes and the answers.
            world.log.retain(|line| line.contains(": answers ") || line.contains(": writes "));
        }
        ["show", node, fields @ ..] => {
            let id = number(node)?;
            for field in fields {
                let line = format!("{id}: {field} {}", world.field(id, field));
                world.log.push(line);
            }
        }
        ["place", node, moves @ ..] => siblings::place(world, node, moves)?,
        ["flood", node, count] => flood(world, number(node)?, number(count)?),
        _ => return ask(world, words),
    }
    Ok(())
}

fn ask<P: Scripted>(world: &mut World<P>, words: &[&str]) -> Done {
    let (words, within) = match words {
        [words @ .., "within", time] => (words, span(time)?),
        words => (words, DEADLINE),
    };
    let (node, operation) = match words {
        ["get", node, key] => (node, Operation::get(bytes(key)?)),
        ["put", node, key, value] => (node, Operation::put(bytes(key)?, bytes(value)?)),
        ["delete", node, key] => (node, Operation::delete(bytes(key)?)),
        ["scan", node, from, limit] => {
            let from = token(from)?;
            let limit = u32::try_from(number(limit)?).map_err(|error| error.to_string())?;
            (node, Operation::Scan { from: Cursor::at(from), limit })
        }
        [command, node, rest @ ..] => (node, siblings::operation(world, command, rest)?),
        _ => return Err("unknown command".to_owned()),
    };
    world.request(number(node)?, operation, within);
    Ok(())
}

fn deliver_all<P: Scripted>(world: &mut World<P>) -> Done {
    for _ in 0..DELIVERIES_MAX {
        if world.flights.is_empty() {
            return Ok(());
        }
        world.deliver(0);
    }
    Err("it never ends".to_owned())
}

fn flood<P: Scripted>(world: &mut World<P>, node: u64, count: u64) {
    for _ in 0..count {
        world.request(node, Operation::get(Bytes::from_static(b"flood")), DEADLINE);
        world.flights.clear();
        world.log.clear();
    }
}

fn setup(members: &str, options: &[&str]) -> Done<Setup> {
    let mut setup = Setup { members: number(members)?, ..Setup::default() };
    let mut words = options.iter();
    while let Some(word) = words.next() {
        match *word {
            "spare" => setup.spares = number(words.next().ok_or("spare how many?")?)?,
            "memory" => setup.is_memory = true,
            "periodic" => {
                setup.is_periodic = true;
                setup.options.push("periodic".to_owned());
            }
            "first" => setup.first = Some(token(words.next().ok_or("first of what?")?)?),
            other => setup.options.push(other.to_owned()),
        }
    }
    Ok(setup)
}

/// The places of the messages in flight that a pattern names.
fn matching<P: Scripted>(world: &World<P>, pattern: &[&str]) -> Done<Vec<usize>> {
    let (name, route) = match pattern {
        ["all"] => (None, None),
        [route] if route.contains("->") => (None, route.split_once("->")),
        [name] => (Some(*name), None),
        [name, route] => (Some(*name), Some(route.split_once("->").ok_or("expected FROM->TO")?)),
        _ => return Err("expected a name, a route, or both".to_owned()),
    };
    let (from, to) = route.unwrap_or_default();
    let is_end = |end: &str, node: u64| end.is_empty() || end == node.to_string();
    let is_meant = |flight: &Flight| {
        name.is_none_or(|name| name == flight.name)
            && is_end(from, flight.from.node.0)
            && is_end(to, flight.to.0)
    };
    let places: Vec<usize> =
        (0..world.flights.len()).filter(|place| is_meant(&world.flights[*place])).collect();
    if places.is_empty() { Err("no such message is in flight".to_owned()) } else { Ok(places) }
}

fn announce<P: Scripted>(
    world: &mut World<P>,
    node: &str,
    hosts: &[&str],
    closing: Closing,
) -> Done {
    let hosts = hosts.iter().map(|word| host(word)).collect::<Done<Vec<_>>>()?;
    let all = (1..=world.count()).filter(|id| node == "all" || *id == number(node).unwrap_or(0));
    for id in all.collect::<Vec<_>>() {
        if world.is_up(id) {
            world.announce(id, &hosts, closing);
        }
    }
    Ok(())
}

fn host(word: &str) -> Done<RingHost> {
    let mut parts = word.split(':');
    let token = token(parts.next().ok_or("a token")?)?;
    let node = NodeId(number(parts.next().ok_or("whose token?")?)?);
    let (standing, is_suspected) = match parts.next() {
        None => (Standing::Up, false),
        Some("suspected") => (Standing::Up, true),
        Some("leaving") => (Standing::Leaving, false),
        Some("left") => (Standing::Left, false),
        Some(other) => return Err(format!("no host is {other}")),
    };
    let who = Incarnation { node, start: Start(1) };
    let (address, zone, tokens) = (String::new(), String::new(), Vec::from([token]));
    Ok(RingHost { who, address, zone, tokens, standing, is_suspected, doors: Vec::new() })
}

fn token(word: &str) -> Done<u64> {
    u64::from_str_radix(word, 16).map_err(|error| error.to_string())
}

pub(super) fn number(word: &str) -> Done<u64> {
    word.parse().map_err(|_| format!("{word} is no number"))
}

fn span(word: &str) -> Done<Span> {
    let count = |unit| word.strip_suffix(unit).and_then(|digits| digits.parse().ok());
    let span = count("ms").map(Span::millis).or_else(|| count("s").map(Span::secs));
    span.ok_or_else(|| format!("{word} is no span of time"))
}

pub(super) fn bytes(word: &str) -> Done<Bytes> {
    match word.split_once('*') {
        Some((letter, count)) => {
            let count = usize::try_from(number(count)?).map_err(|error| error.to_string())?;
            Ok(letter.repeat(count).into())
        }
        None => Ok(Bytes::copy_from_slice(word.as_bytes())),
    }
}
