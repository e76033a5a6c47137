//! Acts evaluated: what a key has before, what it has after. Pure; as Redis does it.

use super::act::{Act, ActError, Condition, Done, Effect, Expiry, WallMs, When};
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
        Act::Add(number) => changed(&Change::Add(*number), now),
        Act::AddFloat(number) => changed(&Change::AddFloat(number.0.clone()), now),
        Act::Append(bytes) => changed(&Change::Append(bytes.0.clone()), now),
        Act::SetRange { offset, bytes } => {
            changed(&Change::SetRange { offset: *offset, bytes: bytes.0.clone() }, now)
        }
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

/// A value that was changed where it stands keeps its expiry.
fn changed(change: &Change, now: Option<&Content>) -> Evaluated {
    let applied = change.apply(now.map(|content| &content.value), VALUE_BYTES_MAX);
    let (told, value) = applied.map_err(ActError::from)?;
    let expires = now.and_then(|content| content.expires);
    Ok((told.into(), value.map(|value| Effect::Put { value: Raw(value), expires })))
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
