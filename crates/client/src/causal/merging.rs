//! Causal keyspaces for programs that know what siblings come to.

use super::Causal;
use crate::error::ClientError;
use bytes::Bytes;

impl Causal {
    /// The same keyspace with its siblings merged where they are read: two or more values, in any
    /// order, in; one out.
    #[must_use]
    pub fn merging<F: Fn(&[Bytes]) -> Bytes>(&self, merge: F) -> Merging<F> {
        Merging { keyspace: self.clone(), merge }
    }
}

/// A causal keyspace whose siblings are merged where they are read.
#[derive(Clone, Debug)]
pub struct Merging<F> {
    keyspace: Causal,
    merge: F,
}

impl<F: Fn(&[Bytes]) -> Bytes> Merging<F> {
    /// Reads a key; what its values come to, `None` if it has none. Nothing is written.
    ///
    /// # Errors
    /// It could not be read.
    pub async fn get(&self, key: impl Into<Bytes>) -> Result<Option<Bytes>, ClientError> {
        Ok(self.one(&self.keyspace.get(key).await?.values))
    }

    /// Reads a key, merges its values, and writes what `change` makes of them in their place; none
    /// deletes. What others write meanwhile is kept beside it.
    ///
    /// # Errors
    /// Nothing was changed, except with [`ClientError::OutcomeUnknown`].
    pub async fn update(
        &self,
        key: impl Into<Bytes>,
        change: impl FnOnce(Option<Bytes>) -> Option<Bytes>,
    ) -> Result<Option<Bytes>, ClientError> {
        self.keyspace.update(key, |values| change(self.one(values))).await
    }

    fn one(&self, values: &[Bytes]) -> Option<Bytes> {
        match values {
            [] => None,
            [value] => Some(value.clone()),
            several => Some((self.merge)(several)),
        }
    }
}
