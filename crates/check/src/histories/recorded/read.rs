//! Reads a history from a file; every complaint says what was wrong and what would be right.

use super::items::{item_of, outcome_of_item};
use super::{HEADER, RecordedError, name_of};
use crate::history::{ClientId, Completion, History, OperationId, Recorder};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::operation::{Cursor, Operation};
use quorate_kernel::time::Time;
use quorate_kernel::tree::{Ask, SessionId};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Reads a whole file.
///
/// # Errors
/// The first line that is wrong.
pub fn read(text: &str) -> Result<History, RecordedError> {
    let mut reader = Reader::new();
    for line in text.lines() {
        reader.line(line)?;
    }
    reader.finish()
}

/// Reads a file line by line.
#[derive(Default)]
pub struct Reader {
    lines: usize,
    has_header: bool,
    recorder: Recorder,
    operations: BTreeMap<u64, Pending>,
}

/// An operation that was read.
struct Pending {
    id: OperationId,
    operation: Operation,
    invoked: Time,
    completed_on: Option<usize>,
}

impl Reader {
    /// A reader before the first line.
    #[must_use]
    pub fn new() -> Reader {
        Reader::default()
    }

    /// Reads the next line.
    ///
    /// # Errors
    /// The line is wrong; the reader is of no more use.
    pub fn line(&mut self, text: &str) -> Result<(), RecordedError> {
        self.lines += 1;
        let line = self.lines;
        self.event(text).map_err(|problem| RecordedError { line, problem })
    }

    /// Ends the file.
    ///
    /// # Errors
    /// There was no first line.
    pub fn finish(self) -> Result<History, RecordedError> {
        if !self.has_header {
            let problem = format!("the file is empty; expected {HEADER}");
            return Err(RecordedError { line: self.lines + 1, problem });
        }
        Ok(self.recorder.into_history())
    }

    fn event(&mut self, text: &str) -> Result<(), String> {
        if text.trim().is_empty() {
            return Ok(());
        }
        let parsed = serde_json::from_str(text);
        let object: Map<String, Value> =
            parsed.map_err(|error| format!("not a JSON object: {error}"))?;
        let mut fields = Fields { object };
        if !self.has_header {
            self.has_header = true;
            return header(fields);
        }
        let event = fields.text("event")?;
        match event.as_str() {
            "invoke" => self.invoke(fields),
            "complete" => self.complete(fields),
            "heal" => {
                let time = Time(fields.number("at_ns")?);
                fields.end(&event)?;
                self.recorder.heal(time);
                Ok(())
            }
            _ => Err(format!(
                "unknown event {event:?}; expected \"invoke\", \"complete\" or \"heal\""
            )),
        }
    }

    fn invoke(&mut self, mut fields: Fields) -> Result<(), String> {
        let number = fields.number("id")?;
        let client = fields.number("client")?;
        let client = u32::try_from(client)
            .map_err(|_| format!("client {client} is over the limit of {}", u32::MAX))?;
        let time = Time(fields.number("at_ns")?);
        let name = fields.text("operation")?;
        let operation = match name.as_str() {
            "get" => Operation::get(fields.bytes("key")?),
            "put" => Operation::put(fields.bytes("key")?, fields.bytes("value")?),
            "delete" => Operation::delete(fields.bytes("key")?),
            "scan" => Operation::Scan { from: fields.cursor("from")?, limit: 0 },
            "transact" => {
                Operation::Transact { items: fields.objects("items", item_of)?, name: None }
            }
            "tree" => Operation::Tree(Box::new(Ask {
                session: fields.nullable("session", number_of)?.map(SessionId),
                opening: None,
                act: fields.plain("act")?,
            })),
            _ => {
                return Err(format!(
                    "unknown operation {name:?}; expected \"get\", \"put\", \"delete\", \"scan\", \
                     \"transact\" or \"tree\""
                ));
            }
        };
        fields.end(&format!("invoke of a {name}"))?;
        let Entry::Vacant(place) = self.operations.entry(number) else {
            return Err(format!("operation {number} was invoked before; every id is used once"));
        };
        let id = self.recorder.invoke(ClientId(client), operation.clone(), time);
        place.insert(Pending { id, operation, invoked: time, completed_on: None });
        Ok(())
    }

    fn complete(&mut self, mut fields: Fields) -> Result<(), String> {
        let number = fields.number("id")?;
        let time = Time(fields.number("at_ns")?);
        let name = fields.text("outcome")?;
        let completion = match name.as_str() {
            "value" => Completion::Value(fields.nullable("value", bytes_of)?),
            "written" => Completion::Written,
            "deleted" => Completion::Deleted { existed: fields.flag("existed")? },
            "page" => Completion::Page {
                keys: fields.list("keys")?,
                next: fields.nullable("next", cursor_of)?,
            },
            "transacted" => Completion::Transacted(fields.objects("items", outcome_of_item)?),
            "unmet" => Completion::Unmet {
                item: usize::try_from(fields.number("item")?).unwrap_or(usize::MAX),
            },
            "committed" => Completion::Committed,
            "tree" => Completion::Tree(fields.plain("reply")?),
            "refused" => Completion::Refused,
            "unknown" => Completion::Unknown,
            _ => {
                return Err(format!(
                    "unknown outcome {name:?}; expected \"value\", \"written\", \"deleted\", \
                     \"page\", \"transacted\", \"unmet\", \"tree\", \"refused\" or \"unknown\""
                ));
            }
        };
        fields.end(&format!("complete with outcome {name}"))?;
        let Some(pending) = self.operations.get_mut(&number) else {
            return Err(format!(
                "operation {number} is completed but no line before this one invokes it"
            ));
        };
        if let Some(line) = pending.completed_on {
            return Err(format!("operation {number} was completed before, on line {line}"));
        }
        if time < pending.invoked {
            return Err(format!(
                "operation {number} is completed at {} ns, before its invocation at {} ns",
                time.0, pending.invoked.0
            ));
        }
        if !completion.fits(&pending.operation) {
            return Err(format!(
                "outcome {name:?} does not fit operation {number}, which is a {}; expected {:?}, \
                 \"refused\" or \"unknown\"",
                name_of(&pending.operation),
                outcome_of(&pending.operation)
            ));
        }
        pending.completed_on = Some(self.lines);
        self.recorder.complete(pending.id, completion, time);
        Ok(())
    }
}

fn header(mut fields: Fields) -> Result<(), String> {
    let wrong = |problem: String| format!("{problem}; the first line must be {HEADER}");
    let format = fields.text("format").map_err(wrong)?;
    let version = fields.number("version").map_err(wrong)?;
    if format != "quorate-history" {
        return Err(wrong(format!("the format is {format:?}")));
    }
    if version != 1 {
        return Err(format!("version {version} of the format; this build reads version 1"));
    }
    fields.end("first line")
}

fn outcome_of(operation: &Operation) -> &'static str {
    match operation {
        Operation::Get { .. } => "value",
        Operation::Put { .. } => "written",
        Operation::Delete { .. } => "deleted",
        Operation::Scan { .. } => "page",
        Operation::Transact { .. } => "transacted",
        Operation::Tree(_) => "tree",
        Operation::HowEnded { .. } => unreachable!("it completes another operation"),
    }
}

/// The fields of a line that were not read yet.
pub(super) struct Fields {
    object: Map<String, Value>,
}

impl Fields {
    pub(super) fn take(&mut self, name: &str) -> Result<Value, String> {
        self.object.remove(name).ok_or_else(|| format!("field {name:?} is missing"))
    }

    /// Anything that is written as serde writes it.
    fn plain<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, String> {
        let value = self.take(name)?;
        serde_json::from_value(value).map_err(|error| format!("field {name:?}: {error}"))
    }

    pub(super) fn text(&mut self, name: &str) -> Result<String, String> {
        match self.take(name)? {
            Value::String(text) => Ok(text),
            other => Err(format!("field {name:?} is {other}; expected a string")),
        }
    }

    pub(super) fn number(&mut self, name: &str) -> Result<u64, String> {
        let value = self.take(name)?;
        number_of(&value).map_err(|expected| format!("field {name:?} is {value}; {expected}"))
    }

    pub(super) fn integer(&mut self, name: &str) -> Result<i64, String> {
        let value = self.take(name)?;
        let number = value.as_i64();
        number.ok_or_else(|| format!("field {name:?} is {value}; expected a whole number"))
    }

    fn cursor(&mut self, name: &str) -> Result<Cursor, String> {
        let value = self.take(name)?;
        cursor_of(&value).map_err(|expected| format!("field {name:?} is {value}; {expected}"))
    }

    pub(super) fn flag(&mut self, name: &str) -> Result<bool, String> {
        let value = self.take(name)?;
        let flag = value.as_bool();
        flag.ok_or_else(|| format!("field {name:?} is {value}; expected true or false"))
    }

    /// Whether this field is there and was not read yet.
    pub(super) fn has(&self, name: &str) -> bool {
        self.object.contains_key(name)
    }

    pub(super) fn bytes(&mut self, name: &str) -> Result<Bytes, String> {
        let value = self.take(name)?;
        bytes_of(&value).map_err(|expected| format!("field {name:?} is {value}; {expected}"))
    }

    pub(super) fn nullable<T>(
        &mut self,
        name: &str,
        read: fn(&Value) -> Result<T, &'static str>,
    ) -> Result<Option<T>, String> {
        match self.take(name)? {
            Value::Null => Ok(None),
            value => read(&value)
                .map(Some)
                .map_err(|expected| format!("field {name:?} is {value}; {expected}, or null")),
        }
    }

    fn list(&mut self, name: &str) -> Result<Vec<Bytes>, String> {
        let value = self.take(name)?;
        let wrong = |expected: &str| format!("field {name:?} is {value}; {expected}");
        let Value::Array(items) = &value else { return Err(wrong("expected a list of keys")) };
        items.iter().map(|item| bytes_of(item).map_err(wrong)).collect()
    }

    /// A list of objects, all of whose fields `read` must take.
    fn objects<T>(
        &mut self,
        name: &str,
        read: fn(&mut Fields) -> Result<T, String>,
    ) -> Result<Vec<T>, String> {
        let Value::Array(items) = self.take(name)? else {
            return Err(format!("field {name:?} is no list; expected a list of objects"));
        };
        let one = |(number, value)| {
            let Value::Object(object) = value else {
                return Err(format!("item {number} of {name:?} is no object"));
            };
            let mut fields = Fields { object };
            let place = format!("item {number} of {name:?}");
            let read = read(&mut fields).map_err(|problem| format!("{place}: {problem}"))?;
            fields.end(&place).map(|()| read)
        };
        items.into_iter().enumerate().map(one).collect()
    }

    /// All fields must have been read.
    fn end(self, place: &str) -> Result<(), String> {
        match self.object.keys().next() {
            Some(name) => Err(format!("field {name:?} does not belong in the {place}")),
            None => Ok(()),
        }
    }
}

fn number_of(value: &Value) -> Result<u64, &'static str> {
    value.as_u64().ok_or("expected a whole number from 0 to 18446744073709551615")
}

fn cursor_of(value: &Value) -> Result<Cursor, &'static str> {
    const EXPECTED: &str = "expected a token, or a list of a token and a key";
    match value {
        Value::Array(parts) => match &parts[..] {
            [token, key] => {
                let token = number_of(token).map_err(|_| EXPECTED)?;
                Ok(Cursor { token, key: bytes_of(key).map_err(|_| EXPECTED)? })
            }
            _ => Err(EXPECTED),
        },
        token => number_of(token).map(Cursor::at),
    }
}

pub(super) fn bytes_of(value: &Value) -> Result<Bytes, &'static str> {
    const EXPECTED: &str = "expected a string or {\"hex\":\"…\"} with an even number of hex digits";
    match value {
        Value::String(text) => Ok(Bytes::copy_from_slice(text.as_bytes())),
        Value::Object(object) if object.len() == 1 => {
            let digits = object.get("hex").and_then(Value::as_str).ok_or(EXPECTED)?;
            unhex(digits).ok_or(EXPECTED)
        }
        _ => Err(EXPECTED),
    }
}

fn unhex(digits: &str) -> Option<Bytes> {
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let pairs = digits.as_bytes().chunks_exact(2);
    pairs.map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}
