//! The items of clients as acts, and keys that were read while acts on them are evaluated here.
//!
//! What clients are told of keys that they also read is evaluated twice: here, on what was read,
//! and at the primary, under its locks. Both do the same acts by the same function on the same
//! versions, and no clock is asked, so both say the same. The one clock that counts is that of this
//! host when it was asked: times that had passed then are [`PASSED`] in the acts. A time that
//! passes later, also before the primary evaluates, ends the key after the transaction; one that
//! passes between a read and the commit has changed the key's version, and it is read again.

use crate::serializable::execute::evaluate::evaluate;
use crate::serializable::rules::VALUE_BYTES_MAX;
use crate::serializable::{
    Act, Condition, Content, Done, Expiry, Item as Read, PASSED, Raw, Version, WallMs, When,
};
use bytes::Bytes;
use quorate_kernel::change::{Change, Changed, Unchanged};
use quorate_kernel::evaluate::Cell;
use quorate_kernel::expiry::{self, Lifetime};
use quorate_kernel::mutant;
use quorate_kernel::operation::Refusal;
use quorate_kernel::time::WallTime;
use quorate_kernel::transaction::Item;

/// The act that an item is where it is asked at this time; none if it only reads.
pub fn of_item(item: &Item, asked: WallMs) -> Option<Act> {
    Some(match item {
        Item::Put { value, expiry, .. } => {
            Act::Put { value: Raw(value.clone()), expiry: ending(*expiry, asked) }
        }
        Item::Delete { .. } => Act::Delete,
        Item::Change { change, .. } => changing(change, asked),
        Item::Expire { at, when, .. } => expiring(*at, *when, asked),
        Item::Check { .. } | Item::Get { .. } | Item::Lifetime { .. } => return None,
        Item::Copy { .. } => unreachable!("what is copied is known to the sheet alone"),
    })
}

fn changing(change: &Change, asked: WallMs) -> Act {
    match change {
        Change::PutIf { exists, value, expiry } => {
            let condition = if *exists { Condition::Present } else { Condition::Absent };
            let expiry = ending(*expiry, asked);
            Act::PutIf { condition, value: Raw(value.clone()), expiry }
        }
        Change::Add(number) => Act::Add(*number),
        Change::AddFloat(number) => Act::AddFloat(Raw(number.clone())),
        Change::Append(bytes) => Act::Append(Raw(bytes.clone())),
        Change::SetRange { offset, bytes } => {
            Act::SetRange { offset: *offset, bytes: Raw(bytes.clone()) }
        }
    }
}

fn expiring(at: Option<WallTime>, when: expiry::When, asked: WallMs) -> Act {
    let when = match when {
        expiry::When::Always => When::Always,
        expiry::When::IfNone => When::IfNone,
        expiry::When::IfSome => When::IfSome,
        expiry::When::IfLater => When::IfLater,
        expiry::When::IfSooner => When::IfSooner,
        expiry::When::IfSomeAndSooner => When::IfSomeAndSooner,
    };
    Act::Expire { at: at.map(|at| time(at, asked)), when }
}

fn ending(expiry: expiry::Expiry, asked: WallMs) -> Expiry {
    match expiry {
        expiry::Expiry::Never => Expiry::Never,
        expiry::Expiry::Keep => Expiry::Keep,
        expiry::Expiry::At(at) => Expiry::At(time(at, asked)),
    }
}

/// A time as it is logged.
fn time(at: WallTime, asked: WallMs) -> WallMs {
    let at = WallMs::try_from(at.0).unwrap_or(PASSED);
    let is_open = at > asked || mutant!("lane_passed_time_stays");
    if is_open { at } else { PASSED }
}

/// What a change is told; none of what no change does.
pub fn changed(done: &Done) -> Option<Changed> {
    Some(match done {
        Done::Put => Changed::Put,
        Done::Integer(number) => Changed::Integer(*number),
        Done::Float(number) => Changed::Float(number.0.clone()),
        Done::Length(length) => Changed::Length(*length),
        Done::Deleted { .. } | Done::Expiry { .. } => return None,
    })
}

/// A key that was read, while items are done to it.
pub struct Found {
    content: Option<Content>,
    asked: WallMs,
}

impl Found {
    /// One that was read so; absent if it was not, for then nobody is told what is found of it.
    pub fn of(read: Option<&Read>, asked: WallMs) -> Found {
        let content = read.and_then(|read| read.content.as_ref());
        let of =
            |(value, expires): &(Raw, _)| Content { value: value.0.clone(), expires: *expires };
        Found { content: content.map(of), asked }
    }

    /// The act that leaves a key as it is here.
    pub fn left(self) -> Act {
        let Some(Content { value, expires }) = self.content else { return Act::Delete };
        let expiry = expires.map_or(Expiry::Never, Expiry::At);
        Act::Put { value: Raw(value), expiry }
    }

    fn act(&mut self, act: &Act, bytes_max: usize) -> Result<Done, Unchanged> {
        // No item names a version.
        let told = evaluate(act, &mut self.content, Version(0), bytes_max);
        told.map(|(done, _)| done).map_err(Unchanged::from)
    }
}

impl Cell for Found {
    fn value(&self) -> Option<Bytes> {
        self.content.as_ref().map(|content| content.value.clone())
    }

    fn put(&mut self, value: &Bytes, expiry: expiry::Expiry) -> Result<(), Refusal> {
        let put = Act::Put { value: Raw(value.clone()), expiry: ending(expiry, self.asked) };
        let (length, limit) = (value.len(), VALUE_BYTES_MAX);
        let told = self.act(&put, limit);
        told.map(drop).map_err(|_| Refusal::TooLarge { what: "value", length, limit })
    }

    fn delete(&mut self) {
        self.content = None;
    }

    fn change(
        &mut self,
        change: &Change,
        bytes_max: usize,
    ) -> Result<Result<Changed, Unchanged>, Refusal> {
        let told = self.act(&changing(change, self.asked), bytes_max);
        Ok(told.map(|done| changed(&done).expect("a change tells of a change")))
    }

    /// Whether its time has come is for the clock of its group's primary to say, as it was of the
    /// key that is copied.
    fn copy(&mut self, from: &Found) -> Result<(), Refusal> {
        self.content.clone_from(&from.content);
        Ok(())
    }

    fn lifetime(&self) -> Lifetime {
        let Some(content) = &self.content else { return Lifetime::Absent };
        content.expires.map_or(Lifetime::Endless, |at| {
            Lifetime::Until(WallTime(i64::try_from(at).unwrap_or(i64::MAX)))
        })
    }

    fn expire(&mut self, at: Option<WallTime>, when: expiry::When) -> bool {
        let told = self.act(&expiring(at, when, self.asked), VALUE_BYTES_MAX);
        told == Ok(Done::Expiry { changed: true })
    }
}
