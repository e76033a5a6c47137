//! What the tests of the judges share: short ways to write histories, and a simulated register.
#![allow(dead_code)] // Each test file uses its own part of it.

use bytes::Bytes;
use quorate_check::history::{ClientId, Completion, History, OperationId, Recorder};
use quorate_kernel::expiry::Expiry;
use quorate_kernel::operation::{Cursor, Operation};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Time;
use quorate_kernel::transaction::{Condition, Item};

pub const STEPS_MAX: u64 = 10_000_000;

pub fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

pub fn get(key: &str) -> Operation {
    Operation::get(bytes(key))
}

pub fn put(key: &str, value: &str) -> Operation {
    Operation::put(bytes(key), bytes(value))
}

pub fn delete(key: &str) -> Operation {
    Operation::delete(bytes(key))
}

pub fn scan(from: u64) -> Operation {
    Operation::Scan { from: Cursor::at(from), limit: 10 }
}

pub fn value(text: &str) -> Completion {
    Completion::Value(Some(bytes(text)))
}

pub const ABSENT: Completion = Completion::Value(None);
pub const DELETED: Completion = Completion::Deleted { existed: true };

pub fn page(keys: &[&str], next: Option<u64>) -> Completion {
    let next = next.map(Cursor::at);
    Completion::Page { keys: keys.iter().map(|key| bytes(key)).collect(), next }
}

/// An operation with its span in microseconds and how it ended.
pub type Row = (u32, Operation, u64, u64, Completion);

/// The history of these rows, which need not be sorted.
pub fn history(rows: &[Row]) -> History {
    healed_history(rows, None)
}

/// The same with the time at which all faults had ended.
pub fn healed_history(rows: &[Row], healed: Option<u64>) -> History {
    let mut recorder = Recorder::new();
    for (client, operation, invoked, completed, completion) in rows {
        let id = recorder.invoke(ClientId(*client), operation.clone(), Time(invoked * 1000));
        recorder.complete(id, completion.clone(), Time(completed * 1000));
    }
    if let Some(time) = healed {
        recorder.heal(Time(time * 1000));
    }
    recorder.into_history()
}

/// What a simulated workload is made of.
#[derive(Clone, Copy)]
pub struct Workload {
    pub operations: usize,
    pub clients: u32,
    pub keys: u64,
    pub unknown_ppm: u32,
    pub refused_ppm: u32,
    pub put_ppm: u32,
    pub delete_ppm: u32,
    /// How many values there are; 0 makes every value unique.
    pub values: u64,
}

struct Flying {
    id: OperationId,
    operation: Operation,
    key: usize,
    /// When the register sees it; `None` for never.
    takes_effect: Option<u64>,
    answers: u64,
    answer: Completion,
}

/// The history of a real register: every operation takes effect at one random moment.
pub fn simulate(workload: Workload, seed: u64) -> History {
    let mut rng = Rng::new(seed);
    let mut recorder = Recorder::new();
    let mut registers: Vec<Option<Bytes>> = vec![None; workload.keys as usize];
    let mut flying: Vec<(ClientId, Flying)> = Vec::new();
    let mut idle: Vec<(u64, ClientId)> =
        (0..workload.clients).map(|n| (u64::from(n), ClientId(n))).collect();
    let mut begun = 0;
    loop {
        // The earliest of the next invocation, effect and answer happens.
        let invocation = idle.iter().enumerate().min_by_key(|(_, (at, _))| *at);
        let invocation = invocation.map(|(index, (at, _))| (*at, index));
        let invocation = invocation.filter(|_| begun < workload.operations);
        let effect =
            flying.iter().enumerate().filter_map(|(n, (_, f))| Some((f.takes_effect?, n))).min();
        let answer = flying.iter().enumerate().map(|(n, (_, f))| (f.answers, n)).min();
        let next = [invocation, effect, answer].into_iter().flatten().map(|(at, _)| at).min();
        let Some(now) = next else { return recorder.into_history() };
        if let Some((_, index)) = invocation.filter(|(at, _)| *at == now) {
            let (_, client) = idle.swap_remove(index);
            flying.push((client, begin(&workload, begun, client, now, &mut rng, &mut recorder)));
            begun += 1;
        } else if let Some((_, index)) = effect.filter(|(at, _)| *at == now) {
            take_effect(&mut flying[index].1, &mut registers);
            let (_, done) = &flying[index];
            if done.answers == u64::MAX {
                flying.swap_remove(index);
            }
        } else if let Some((_, index)) = answer.filter(|(at, _)| *at == now) {
            let client = flying[index].0;
            let done = &mut flying[index].1;
            recorder.complete(done.id, done.answer.clone(), Time(now));
            idle.push((now + rng.between(1, 100), client));
            done.answers = u64::MAX;
            if done.takes_effect.is_none() {
                flying.swap_remove(index);
            }
        }
    }
}

fn begin(
    workload: &Workload,
    number: usize,
    client: ClientId,
    now: u64,
    rng: &mut Rng,
    recorder: &mut Recorder,
) -> Flying {
    let key = rng.below(workload.keys);
    let name = format!("key{key}");
    let text = match workload.values {
        0 => format!("value{number}"),
        values => format!("value{}", rng.below(values)),
    };
    let operation = match rng.below(1_000_000) as u32 {
        draw if draw < workload.put_ppm => put(&name, &text),
        draw if draw < workload.put_ppm + workload.delete_ppm => delete(&name),
        _ => get(&name),
    };
    let id = recorder.invoke(client, operation.clone(), Time(now));
    let answers = now + rng.between(10, 1000);
    let mut answer = match operation {
        Operation::Put { .. } => Completion::Written,
        Operation::Delete { .. } => DELETED,
        _ => ABSENT,
    };
    let mut takes_effect = Some(rng.between(now + 1, answers - 1));
    if rng.chance_ppm(workload.unknown_ppm) {
        answer = Completion::Unknown;
        // In time, long after the client gave up, or never.
        let late = rng.between(now + 1, answers + 20_000);
        takes_effect = [takes_effect, Some(late), None][rng.below(3) as usize];
    } else if rng.chance_ppm(workload.refused_ppm) {
        answer = Completion::Refused;
        takes_effect = None;
    }
    Flying { id, operation, key: key as usize, takes_effect, answers, answer }
}

fn take_effect(flying: &mut Flying, registers: &mut [Option<Bytes>]) {
    flying.takes_effect = None;
    let register = &mut registers[flying.key];
    match &flying.operation {
        Operation::Put { value, .. } => *register = Some(value.clone()),
        Operation::Delete { .. } => *register = None,
        _ if flying.answer == Completion::Unknown => {}
        _ => flying.answer = Completion::Value(register.clone()),
    }
}

/// Does these items at one moment.
pub fn transact(items: &[Item]) -> Operation {
    Operation::Transact { items: items.to_vec(), name: None }
}

pub fn get_item(key: &str) -> Item {
    Item::Get { key: bytes(key) }
}

pub fn put_item(key: &str, value: &str) -> Item {
    Item::Put { key: bytes(key), value: bytes(value), expiry: Expiry::Never }
}

pub fn delete_item(key: &str) -> Item {
    Item::Delete { key: bytes(key) }
}

/// Checks that a key has a value; an empty one stands for none.
pub fn check_item(key: &str, value: &str) -> Item {
    let holds = match value {
        "" => Condition::Absent,
        _ => Condition::Value(bytes(value)),
    };
    Item::Check { key: bytes(key), holds }
}
