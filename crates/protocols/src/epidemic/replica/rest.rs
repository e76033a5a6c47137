//! How much is left of what comes in pages.

use serde::{Deserialize, Serialize};

/// What is left of a list that comes in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Rest<T> {
    /// Everything: no page has come.
    #[default]
    All,
    /// What is behind the last of the page.
    Behind(T),
    /// Nothing: the list has ended, though another one may not.
    Nothing,
}

impl<T> Rest<T> {
    /// What is behind the last of a page; nothing without.
    #[must_use]
    pub fn behind(last: Option<T>) -> Rest<T> {
        last.map_or(Rest::Nothing, Rest::Behind)
    }

    /// Where it begins, unless nothing is left: behind this.
    #[must_use]
    pub fn begin(&self) -> Option<Option<&T>> {
        match self {
            Rest::All => Some(None),
            Rest::Behind(last) => Some(Some(last)),
            Rest::Nothing => None,
        }
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        matches!(self, Rest::Nothing)
    }
}
