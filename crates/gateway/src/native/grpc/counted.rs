//! Requests whose lists are counted while they arrive.
//!
//! An entry of a list takes two bytes on the wire and a hundred times that once its message is
//! taken apart, which happens before anything else looks at it. So the lengths of lists are found
//! in the bytes, with the numbers of fields alone, and a request with more entries than there may
//! be is refused before it is taken apart. What entries take is taken from the memory of the
//! door.
//!
//! A message that is not as it must be is refused too: nothing may be taken apart otherwise than it
//! was counted. So are groups, an old encoding that the schema does not have.

use super::lists::{self, Field};
use crate::native::problem::{self, Problem};
use crate::native::service::Native;
use crate::web::Allowance;
use axum::BoxError;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, Response};
use axum::middleware::Next;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use quorate_api::{details, v1};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// How many bytes stand before a message: whether it is compressed, and its length.
const PREFIX_BYTES: u8 = 5;

/// Counts the lists of a request.
pub(super) async fn count(
    State(native): State<Native>,
    request: Request<Body>,
    next: Next,
) -> Response<Body> {
    let fields = lists::of_call(request.uri().path());
    if fields.is_empty() {
        return next.run(request).await;
    }
    let count = Count::new(fields, super::allowance(request.extensions()));
    next.run(request.map(|body| Body::new(Counted { body, count, me: native.me() }))).await
}

/// The body of a request whose lists are counted.
struct Counted {
    body: Body,
    count: Count,
    /// Who refuses it.
    me: v1::Coordinator,
}

impl HttpBody for Counted {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let next = ready!(Pin::new(&mut self.body).poll_frame(cx));
        Poll::Ready(next.map(|frame| {
            let frame = frame?;
            let bytes = frame.data_ref().map_or(&[][..], |data| data);
            self.count.take(bytes).map_err(|mut problem| {
                problem.coordinator = Some(self.me);
                details::status(&problem)
            })?;
            Ok(frame)
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// What is known of the messages of a request by the bytes that have come so far.
struct Count {
    /// What is counted in each message.
    fields: &'static [Field],
    allowance: Arc<Allowance>,
    state: Reading,
    /// How many bytes of the message have come.
    at: usize,
    /// The message, and those inside of it that are not at their end, from the outermost on.
    levels: Vec<Level>,
    /// How many entries each list has, by its name. Counted anew in each entry of a list around it,
    /// but not when a message is there again that should be there once: both become one.
    found: BTreeMap<&'static str, usize>,
}

/// A message that is being read.
struct Level {
    /// The field that it is in; none of the outermost.
    field: Option<&'static Field>,
    /// Where it ends.
    end: usize,
}

/// What the next byte is of.
#[derive(Clone, Copy)]
enum Reading {
    /// What stands before a message: so many of its bytes have come, and so much of the length.
    Prefix(u8, u32),
    /// The number and the type of a field.
    Key(Varint),
    /// A value that says nothing of lists: of the type varint.
    Number(Varint),
    /// The length of a field of this number.
    Length(Varint, u32),
    /// So many bytes that say nothing of lists.
    Content(usize),
}

/// A number in groups of seven bits, the lowest first.
#[derive(Clone, Copy, Default)]
struct Varint {
    value: u64,
    length: u32,
}

impl Varint {
    /// Takes the next byte; the whole number if it is the last one.
    fn take(&mut self, byte: u8) -> Result<Option<u64>, Problem> {
        // Of the tenth byte only one bit is left of 64.
        if self.length == 9 && byte > 1 {
            return Err(malformed());
        }
        self.value |= u64::from(byte & 0x7f) << (7 * self.length);
        self.length += 1;
        Ok((byte < 0x80).then_some(self.value))
    }
}

impl Count {
    fn new(fields: &'static [Field], allowance: Arc<Allowance>) -> Count {
        let (levels, found) = (Vec::new(), BTreeMap::new());
        Count { fields, allowance, state: Reading::Prefix(0, 0), at: 0, levels, found }
    }

    /// Counts what has come.
    fn take(&mut self, mut bytes: &[u8]) -> Result<(), Problem> {
        while let Some((first, rest)) = bytes.split_first() {
            if let Reading::Content(left) = self.state {
                let taken = left.min(bytes.len());
                self.at += taken;
                bytes = &bytes[taken..];
                self.state = content(left - taken);
            } else {
                self.byte(*first)?;
                bytes = rest;
            }
            self.leave();
        }
        Ok(())
    }

    /// Leaves the messages that are at their end.
    fn leave(&mut self) {
        while let Reading::Key(Varint { length: 0, .. }) = self.state
            && self.levels.last().is_some_and(|level| level.end == self.at)
        {
            self.levels.pop();
            if self.levels.is_empty() {
                self.state = Reading::Prefix(0, 0);
            }
        }
    }

    fn byte(&mut self, byte: u8) -> Result<(), Problem> {
        if let Reading::Prefix(taken, length) = self.state {
            return self.prefix(taken, length, byte);
        }
        // Bytes of a field that go beyond its message.
        if self.left() == 0 {
            return Err(malformed());
        }
        self.at += 1;
        match self.state {
            Reading::Prefix(..) | Reading::Content(_) => {}
            Reading::Key(mut key) => match key.take(byte)? {
                None => self.state = Reading::Key(key),
                Some(key) => self.key(key)?,
            },
            Reading::Number(mut number) => {
                self.state = match number.take(byte)? {
                    None => Reading::Number(number),
                    Some(_) => content(0),
                }
            }
            Reading::Length(mut length, number) => match length.take(byte)? {
                None => self.state = Reading::Length(length, number),
                Some(length) => self.enter(length, number)?,
            },
        }
        Ok(())
    }

    /// How many bytes the innermost message has yet.
    fn left(&self) -> usize {
        self.levels.last().map_or(0, |level| level.end - self.at)
    }

    fn prefix(&mut self, taken: u8, length: u32, byte: u8) -> Result<(), Problem> {
        if taken == 0 && byte != 0 {
            let right = "send it as it is, without grpc-encoding";
            return Err(problem::invalid("message", "the message is compressed", right));
        }
        let length = length << 8 | u32::from(byte);
        if taken + 1 < PREFIX_BYTES {
            self.state = Reading::Prefix(taken + 1, length);
            return Ok(());
        }
        self.found.clear();
        self.at = 0;
        self.levels.push(Level { field: None, end: length as usize });
        self.state = content(0);
        Ok(())
    }

    /// The field of a number that is counted, in the innermost message.
    fn field(&self, number: u32) -> Option<&'static Field> {
        let inside = |level: &Level| level.field.map_or(self.fields, |field| field.inside);
        let fields = self.levels.last().map_or(&[][..], inside);
        fields.iter().find(|field| field.number == number)
    }

    /// A field begins.
    fn key(&mut self, key: u64) -> Result<(), Problem> {
        let key = u32::try_from(key).map_err(|_| malformed())?;
        let (number, kind) = (key >> 3, key & 7);
        // A decoder may take any other type of a map for this one.
        let is_other = kind != 2 && self.field(number).is_some();
        if number == 0 || is_other {
            return Err(malformed());
        }
        self.state = match kind {
            0 => Reading::Number(Varint::default()),
            1 => self.skip(8)?,
            2 => Reading::Length(Varint::default(), number),
            5 => self.skip(4)?,
            _ => return Err(malformed()),
        };
        Ok(())
    }

    fn skip(&self, length: u64) -> Result<Reading, Problem> {
        match usize::try_from(length) {
            Ok(length) if length <= self.left() => Ok(content(length)),
            _ => Err(malformed()),
        }
    }

    /// The content of a field begins, which has a length.
    fn enter(&mut self, length: u64, number: u32) -> Result<(), Problem> {
        self.state = self.skip(length)?;
        let Some(field) = self.field(number) else { return Ok(()) };
        if let Some(list) = &field.list {
            let found = self.found.entry(field.name).or_default();
            *found += 1;
            if *found > list.most {
                return Err(self.too_many(field, list));
            }
            self.allowance.take(list.entry_bytes).map_err(|_| problem::overloaded())?;
            self.forget(field.inside);
        }
        if let Reading::Content(length) = self.state
            && !field.inside.is_empty()
        {
            self.levels.push(Level { field: Some(field), end: self.at + length });
            self.state = content(0);
        }
        Ok(())
    }

    /// Counts lists anew.
    fn forget(&mut self, fields: &[Field]) {
        for field in fields {
            self.found.remove(field.name);
            self.forget(field.inside);
        }
    }

    fn too_many(&self, field: &Field, list: &lists::List) -> Problem {
        let around = self.levels.iter().filter_map(|level| level.field);
        let mut path = String::new();
        for around in around {
            path.push_str(around.name);
            if let (Some(_), Some(count)) = (&around.list, self.found.get(around.name)) {
                path.push_str(&format!("[{}]", count - 1));
            }
            path.push('.');
        }
        path.push_str(field.name);
        let what = format!("more than {} of {}", list.most, field.name);
        let right = format!("send at most {} at a time", list.most);
        let mut problem = problem::invalid(&path, what, right);
        problem.set_node_failure(list.failure);
        problem
    }
}

/// So many bytes that say nothing of lists, and then the next field.
fn content(left: usize) -> Reading {
    match left {
        0 => Reading::Key(Varint::default()),
        left => Reading::Content(left),
    }
}

fn malformed() -> Problem {
    let what = "the message is not encoded as its schema says";
    problem::invalid("message", what, "encode it with code that was generated from the schema")
}

#[cfg(test)]
mod tests;
