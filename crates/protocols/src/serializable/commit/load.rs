//! What keys have, read once for all that is done with it.
//!
//! The values that are there may be long. A primary that reads thousands of them in one turn is
//! silent for that long, and the others begin a view; the next one would be asked the same. So a
//! transaction, or a read, whose keys have too much is refused before more is read.

use crate::serializable::engine::Context;
use crate::serializable::execute::items::Stored;
use crate::serializable::execute::locks::Mode;
use crate::serializable::message::{Cause, Commit, Item, Refused};
use crate::serializable::primary::in_hand::Primary;
use crate::serializable::raw::Raw;
use crate::serializable::rules::READ_BYTES_MAX;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use quorate_kernel::mutant;

/// Keys, each with what it has.
#[derive(Debug, Default)]
pub struct Loaded(BTreeMap<Raw, Stored>);

impl core::ops::Deref for Loaded {
    type Target = BTreeMap<Raw, Stored>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl core::ops::DerefMut for Loaded {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Loaded {
    /// What is answered for keys, of which one may be asked for several times.
    ///
    /// # Errors
    /// Their values are too many bytes.
    pub fn show(&self, keys: &[Raw]) -> Result<Vec<Item>, TooLarge> {
        let mut items = Vec::with_capacity(keys.len());
        let mut bytes = 0;
        for key in keys {
            let Stored { version, content, .. } = &self.0[key];
            bytes += content.as_ref().map_or(0, |(value, _)| value.len());
            if bytes > READ_BYTES_MAX {
                return Err(TooLarge { bytes });
            }
            items.push(Item { version: *version, content: content.clone() });
        }
        Ok(items)
    }
}

/// The keys of a share.
pub(crate) fn keys_of(commit: &Commit) -> impl Iterator<Item = &Raw> {
    commit.reads.keys().chain(commit.acts.iter().map(|(key, _)| key))
}

/// How the keys of a share are to be held: those that it only rests on with others, if that may be.
pub(super) fn modes_of(commit: &Commit, may_share: bool) -> BTreeMap<Raw, Mode> {
    let mode = if may_share { Mode::Shared } else { Mode::Exclusive };
    let shared = commit.reads.keys().map(|key| (key.clone(), mode));
    let exclusive = commit.acts.iter().map(|(key, _)| (key.clone(), Mode::Exclusive));
    shared.chain(exclusive).collect()
}

/// A version that is not the one that a transaction rests on.
pub(super) fn mismatch(commit: &Commit, loaded: &Loaded) -> Option<Cause> {
    commit.reads.iter().find_map(|(key, expected)| {
        let item = &loaded[key];
        (item.version != *expected).then(|| Cause::Version {
            key: key.clone(),
            expected: *expected,
            found: item.version,
            by: item.writer,
        })
    })
}

/// The values of some keys are too many bytes.
#[derive(Clone, Copy, Debug)]
pub struct TooLarge {
    /// How many were counted.
    bytes: usize,
}

impl From<TooLarge> for Refused {
    fn from(TooLarge { bytes }: TooLarge) -> Refused {
        Refused::TooLarge { bytes, bytes_max: READ_BYTES_MAX }
    }
}

impl From<TooLarge> for Cause {
    fn from(TooLarge { bytes }: TooLarge) -> Cause {
        Cause::ReadsTooMuch { bytes: bytes as u64, bytes_max: READ_BYTES_MAX as u64 }
    }
}

/// Reads keys, each once.
///
/// # Errors
/// Their values are too many bytes; no more were read than it takes to know.
fn load<'k>(
    keys: impl Iterator<Item = &'k Raw>,
    item_of: impl Fn(&Raw) -> Stored,
) -> Result<Loaded, TooLarge> {
    let (mut loaded, mut bytes) = (Loaded::default(), 0);
    for key in keys {
        if loaded.contains_key(key) {
            continue;
        }
        let item = item_of(key);
        bytes += item.content.as_ref().map_or(0, |(value, _)| value.len());
        if bytes > READ_BYTES_MAX && !mutant!("txn_reads_before_it_counts") {
            return Err(TooLarge { bytes });
        }
        loaded.insert(key.clone(), item);
    }
    Ok(loaded)
}

/// Keys as they are.
///
/// # Errors
/// Their values are too many bytes.
pub(crate) fn load_executed<'k>(
    keys: impl Iterator<Item = &'k Raw>,
    cx: &Context<'_>,
) -> Result<Loaded, TooLarge> {
    load(keys, |key| cx.state.item(key, cx.table))
}

impl Primary {
    /// Keys as they will be when the tail is executed.
    ///
    /// # Errors
    /// Their values are too many bytes.
    pub(crate) fn load<'k>(
        &self,
        keys: impl Iterator<Item = &'k Raw>,
        cx: &Context<'_>,
    ) -> Result<Loaded, TooLarge> {
        load(keys, |key| self.item(key, cx))
    }
}
