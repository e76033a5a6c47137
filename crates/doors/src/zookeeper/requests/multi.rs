//! Several things in one request: writes that are done all or none, or reads each by itself.

use super::items::{self, Read};
use super::request::Plan;
use crate::zookeeper::answers::form::{Element, Form};
use crate::zookeeper::wire::codes::{Code, opcode};
use crate::zookeeper::wire::jute::{Malformed, Reader};
use alloc::vec::Vec;
use quorate_kernel::tree::{Act, Item, Told};

/// Elements in their order: each with its opcode, and what it asks or why that is nothing.
type Elements = Vec<(i32, Result<Item, Code>)>;

/// Writes. If one of them cannot be asked at all, none is; ZooKeeper would try those before it
/// first, and one of these might fail instead.
pub(crate) fn writes(reader: &mut Reader<'_>) -> Result<(Plan, Form), Code> {
    let all = elements(reader, write)?;
    let bad = all.iter().position(|(_, item)| item.is_err());
    let Some(bad) = bad else { return Ok(ask(all, Act::All)) };
    let known = all.into_iter().enumerate().map(|(at, (_, item))| {
        Element::Known(match item {
            _ if at < bad => Code::OK,
            Err(code) if at == bad => code,
            _ => Code::RUNTIME_INCONSISTENCY,
        })
    });
    Ok((Plan::Answer(Ok(Told::Many(Vec::new()))), Form::Many(known.collect())))
}

/// Reads. One that cannot be asked fails, and the others do not mind.
pub(crate) fn reads(reader: &mut Reader<'_>) -> Result<(Plan, Form), Code> {
    Ok(ask(elements(reader, read)?, Act::Each))
}

/// Asks what can be asked; nothing if that is nothing.
fn ask(all: Elements, act: fn(Vec<Item>) -> Act) -> (Plan, Form) {
    let (mut items, mut elements) = (Vec::new(), Vec::new());
    for (opcode, item) in all {
        elements.push(match item {
            Ok(item) => {
                items.push(item);
                Element::Asked(opcode)
            }
            Err(code) => Element::Known(code),
        });
    }
    let plan = if items.is_empty() {
        Plan::Answer(Ok(Told::Many(Vec::new())))
    } else {
        Plan::Ask(act(items))
    };
    (plan, Form::Many(elements))
}

/// Reads elements up to the header that ends them.
fn elements(
    reader: &mut Reader<'_>,
    element: fn(&mut Reader<'_>, i32) -> Read,
) -> Result<Elements, Malformed> {
    let mut all = Vec::new();
    loop {
        let (opcode, is_end, _code) = (reader.int()?, reader.boolean()?, reader.int()?);
        if is_end {
            return Ok(all);
        }
        all.push((opcode, element(reader, opcode)?));
    }
}

fn write(reader: &mut Reader<'_>, opcode: i32) -> Read {
    match opcode {
        opcode::CREATE | opcode::CREATE2 | opcode::CREATE_CONTAINER | opcode::CREATE_TTL => {
            items::create(reader, opcode)
        }
        opcode::DELETE => items::delete(reader),
        opcode::SET_DATA => items::set(reader),
        opcode::CHECK => items::check(reader),
        _ => Err(Malformed),
    }
}

/// What is read in a multi is not watched, whatever its record says.
fn read(reader: &mut Reader<'_>, opcode: i32) -> Read {
    match opcode {
        opcode::GET_DATA => items::watched(reader, |path, _| Item::Get { path, watch: false }),
        opcode::GET_CHILDREN => {
            items::watched(reader, |path, _| Item::Children { path, watch: false })
        }
        _ => Err(Malformed),
    }
}
