//! Acts evaluated: what a key has before, what it has after. Pure; as Redis does it.

use super::act::{Act, ActError, Condition, Done, Effect, Expiry, WallMs, When};
use super::items::Stored;
use crate::serializable::number::Version;
use crate::serializable::raw::Raw;
use crate::serializable::rules::VALUE_BYTES_MAX;
use alloc::string::{String, ToString};
use bytes::{Bytes, BytesMut};
use core::str;

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

/// What an act does: its answer, and what the key has then if that is something else.
pub type Evaluated = Result<(Done, Option<Effect>), ActError>;

/// Evaluates one act on a key that has this content and version. What has expired by `clock` was
/// removed before.
///
/// # Errors
/// The act is not done; the key stays as it is.
pub fn evaluate(act: &Act, now: Option<&Content>, version: Version, clock: WallMs) -> Evaluated {
    debug_assert!(now.is_none_or(|content| !content.is_expired(clock)), "it was removed before");
    match act {
        Act::Put { value, expiry } => put(value, *expiry, now, clock),
        Act::PutIf { condition, value, expiry } => {
            let holds = match condition {
                Condition::Absent => now.is_none(),
                Condition::Present => now.is_some(),
                Condition::Version(asked) => *asked == version,
            };
            if holds { put(value, *expiry, now, clock) } else { Err(ActError::Condition) }
        }
        Act::Delete => {
            let existed = now.is_some();
            Ok((Done::Deleted { existed }, existed.then_some(Effect::Delete)))
        }
        Act::Add(increment) => add(*increment, now),
        Act::AddFloat(increment) => add_float(increment, now),
        Act::Append(bytes) => {
            let before = now.map_or(0, |content| content.value.len());
            set_range(before as u64, bytes, now, true)
        }
        Act::SetRange { offset, bytes } => set_range(*offset, bytes, now, false),
        Act::Expire { at, when } => Ok(expire(*at, *when, now, clock)),
    }
}

fn put(value: &Raw, expiry: Expiry, now: Option<&Content>, clock: WallMs) -> Evaluated {
    if value.len() > VALUE_BYTES_MAX {
        return Err(ActError::TooLong);
    }
    let expires = match expiry {
        Expiry::Keep => now.and_then(|content| content.expires),
        Expiry::Never => None,
        // It is removed at once, so it is never there.
        Expiry::At(at) if at <= clock => return Ok((Done::Put, now.map(|_| Effect::Delete))),
        Expiry::At(at) => Some(at),
    };
    Ok((Done::Put, Some(Effect::Put { value: value.clone(), expires })))
}

/// A value of which something was changed keeps its expiry.
fn changed(value: impl Into<Bytes>, now: Option<&Content>) -> Option<Effect> {
    let expires = now.and_then(|content| content.expires);
    Some(Effect::Put { value: Raw(value.into()), expires })
}

fn add(increment: i64, now: Option<&Content>) -> Evaluated {
    let before = now.map_or(Some(0), |content| integer(&content.value));
    let before = before.ok_or(ActError::NotAnInteger)?;
    let after = before.checked_add(increment).ok_or(ActError::Overflow)?;
    Ok((Done::Integer(after), changed(after.to_string(), now)))
}

/// A decimal integer in its one form: no sign of a positive one, no leading zeros, no spaces.
#[must_use]
pub fn integer(bytes: &[u8]) -> Option<i64> {
    let text = str::from_utf8(bytes).ok()?;
    let number: i64 = text.parse().ok()?;
    (number.to_string() == text).then_some(number)
}

fn float(bytes: &[u8]) -> Option<f64> {
    let number: f64 = str::from_utf8(bytes).ok()?.parse().ok()?;
    number.is_finite().then_some(number)
}

fn add_float(increment: &Raw, now: Option<&Content>) -> Evaluated {
    let increment = float(increment).ok_or(ActError::NotAFloat)?;
    let before = now.map_or(Some(0.0), |content| float(&content.value));
    let sum = before.ok_or(ActError::NotAFloat)? + increment;
    if !sum.is_finite() {
        return Err(ActError::NotFinite);
    }
    // The shortest decimal that reads back as the same number, never with an exponent.
    let text: String = if sum == 0.0 { "0".into() } else { sum.to_string() };
    let value = Raw(text.into());
    Ok((Done::Float(value.clone()), changed(value.0, now)))
}

fn set_range(offset: u64, bytes: &Raw, now: Option<&Content>, appends: bool) -> Evaluated {
    let before = now.map(|content| content.value.clone()).unwrap_or_default();
    if bytes.is_empty() {
        // An append makes a key even of nothing; a part that is empty changes nothing.
        let made = if appends && now.is_none() { changed(Bytes::new(), None) } else { None };
        return Ok((Done::Length(before.len() as u64), made));
    }
    let end = offset.checked_add(bytes.len() as u64).ok_or(ActError::TooLong)?;
    if end > VALUE_BYTES_MAX as u64 {
        return Err(ActError::TooLong);
    }
    let (offset, end) = (offset as usize, end as usize);
    let mut after = BytesMut::zeroed(end.max(before.len()));
    after[..before.len()].copy_from_slice(&before);
    after[offset..end].copy_from_slice(bytes);
    Ok((Done::Length(after.len() as u64), changed(after.freeze(), now)))
}

fn expire(
    at: Option<WallMs>,
    when: When,
    now: Option<&Content>,
    clock: WallMs,
) -> (Done, Option<Effect>) {
    let stays = (Done::Expiry { changed: false }, None);
    let Some(content) = now else { return stays };
    let has = content.expires;
    let value = Raw(content.value.clone());
    let Some(at) = at else {
        let dropped = Effect::Put { value, expires: None };
        return has.map_or(stays, |_| (Done::Expiry { changed: true }, Some(dropped)));
    };
    let is_set = match when {
        When::Always => true,
        When::IfNone => has.is_none(),
        When::IfSome => has.is_some(),
        When::IfLater => has.is_some_and(|has| at > has),
        When::IfSooner => has.is_none_or(|has| at < has),
    };
    if !is_set {
        return stays;
    }
    let after = if at <= clock { Effect::Delete } else { Effect::Put { value, expires: Some(at) } };
    (Done::Expiry { changed: true }, Some(after))
}

/// A key while acts on it are evaluated.
pub struct Key {
    /// What it has before.
    pub item: Stored,
    /// What it has by then.
    pub content: Option<Content>,
    /// What the acts so far do to it; none if nothing.
    pub effect: Option<Effect>,
}

impl Key {
    /// Before the first.
    pub fn of(item: Stored) -> Key {
        Key { content: item.content(), item, effect: None }
    }

    /// An act was done.
    pub fn take(&mut self, effect: Option<Effect>) {
        let Some(effect) = effect else { return };
        self.content = match &effect {
            Effect::Put { value, expires } => {
                Some(Content { value: value.0.clone(), expires: *expires })
            }
            Effect::Delete => None,
        };
        self.effect = Some(effect);
    }
}
