//! Acts evaluated: what a key has before, what it has after. Pure; as Redis does it.

use super::act::{Act, ActError, Condition, Done, Effect, Expiry, PASSED, WallMs, When};
use super::items::Stored;
use crate::serializable::number::Version;
use crate::serializable::raw::Raw;
use crate::serializable::rules::VALUE_BYTES_MAX;
use bytes::Bytes;
use quorate_kernel::change::Change;

/// The value of a key, if it has one, and when it is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// The value.
    pub value: Bytes,
    /// When it is removed.
    pub expires: Option<WallMs>,
}

impl Content {
    /// Whether its time has passed.
    #[must_use]
    pub fn is_expired(&self, clock: WallMs) -> bool {
        self.expires.is_some_and(|at| at <= clock)
    }
}

/// What an act has done: its answer, and whether the key has something else now.
pub type Evaluated = Result<(Done, bool), ActError>;

/// Does one act on a key that has this content and version. Where values grow, they have at most so
/// many bytes then. What has expired was removed before the first act; between acts of one
/// transaction nothing expires, whatever a clock says: they are done at one moment.
///
/// # Errors
/// The act is not done; the key stays as it is.
pub fn evaluate(
    act: &Act,
    now: &mut Option<Content>,
    version: Version,
    value_max: usize,
) -> Evaluated {
    let change = match act {
        Act::Put { value, expiry } => return put(value, *expiry, now),
        Act::PutIf { condition, value, expiry } => {
            let holds = match condition {
                Condition::Absent => now.is_none(),
                Condition::Present => now.is_some(),
                Condition::Version(asked) => *asked == version,
            };
            if !holds {
                return Err(ActError::Condition);
            }
            return put(value, *expiry, now);
        }
        Act::Delete => {
            let existed = now.take().is_some();
            return Ok((Done::Deleted { existed }, existed));
        }
        Act::Expire { at, when } => {
            let changed = expire(*at, *when, now);
            return Ok((Done::Expiry { changed }, changed));
        }
        Act::Add(number) => Change::Add(*number),
        Act::AddFloat(number) => Change::AddFloat(number.0.clone()),
        Act::Append(bytes) => Change::Append(bytes.0.clone()),
        Act::SetRange { offset, bytes } => {
            Change::SetRange { offset: *offset, bytes: bytes.0.clone() }
        }
    };
    // A value that was changed where it stands keeps its expiry.
    let expires = now.as_ref().and_then(|content| content.expires);
    let mut value = now.take().map(|content| content.value);
    let told = change.apply(&mut value, value_max.min(VALUE_BYTES_MAX));
    *now = value.map(|value| Content { value, expires });
    let (told, is_other) = told?;
    Ok((told.into(), is_other))
}

fn put(value: &Raw, expiry: Expiry, now: &mut Option<Content>) -> Evaluated {
    if value.len() > VALUE_BYTES_MAX {
        return Err(ActError::TooLong);
    }
    let expires = match expiry {
        Expiry::Keep => now.as_ref().and_then(|content| content.expires),
        Expiry::Never => None,
        // It is removed at once, so it is never there.
        Expiry::At(PASSED) => return Ok((Done::Put, now.take().is_some())),
        Expiry::At(at) => Some(at),
    };
    *now = Some(Content { value: value.0.clone(), expires });
    Ok((Done::Put, true))
}

/// Whether the expiry was set or dropped, or has removed the key.
fn expire(at: Option<WallMs>, when: When, now: &mut Option<Content>) -> bool {
    let Some(content) = now else { return false };
    let has = content.expires;
    let Some(at) = at else { return content.expires.take().is_some() };
    let is_set = match when {
        When::Always => true,
        When::IfNone => has.is_none(),
        When::IfSome => has.is_some(),
        When::IfLater => has.is_some_and(|has| at > has),
        When::IfSooner => has.is_none_or(|has| at < has),
        When::IfSomeAndSooner => has.is_some_and(|has| at < has),
    };
    if is_set && at == PASSED {
        *now = None;
    } else if is_set {
        content.expires = Some(at);
    }
    is_set
}

/// A key while acts on it are evaluated.
pub struct Key {
    /// What it has before.
    pub item: Stored,
    /// What it has by then.
    pub content: Option<Content>,
    /// Whether the acts so far do something to it.
    pub is_changed: bool,
    /// How long the value is that nobody else holds: it grows where it stands.
    own: usize,
}

impl Key {
    /// Before the first.
    pub fn of(item: Stored) -> Key {
        Key { content: item.content(), item, is_changed: false, own: 0 }
    }

    /// An act was done. Returns how many bytes of a value were made for it.
    pub fn note(&mut self, done: &Done, is_changed: bool) -> usize {
        self.is_changed |= is_changed;
        let length = match done {
            // The value stays as it is.
            Done::Expiry { .. } if self.content.is_some() => return 0,
            _ if !is_changed => return 0,
            Done::Length(length) => usize::try_from(*length).unwrap_or(usize::MAX),
            _ => 0,
        };
        length.saturating_sub(core::mem::replace(&mut self.own, length))
    }

    /// How many bytes of it are to be logged, but for its key.
    pub fn bytes(&self) -> usize {
        let content = self.content.as_ref().filter(|_| self.is_changed);
        content.map_or(0, |content| content.value.len())
    }

    /// What the acts do to it; none if nothing. What they leave with a time that has passed by now
    /// is removed with them: it was there for the acts, and nobody would be shown it afterwards.
    pub fn effect(self, clock: WallMs) -> Option<Effect> {
        let put = |Content { value, expires }| Effect::Put { value: Raw(value), expires };
        let left = self.content.filter(|content| !content.is_expired(clock));
        self.is_changed.then(|| left.map_or(Effect::Delete, put))
    }
}
