//! Keys with siblings, of causal keyspaces: all values of a key with a context, writes that take
//! the place of what was seen, and values that are merged on the way.

use crate::client::{Keyspace, value};
use crate::error::ClientError;
use bytes::Bytes;
use quorate_api::v1::kv_client::KvClient;
use quorate_api::v1::reading::State;
use quorate_api::v1::{self, Siblings};
use tonic::transport::Channel;

impl Keyspace {
    /// All values of a key that no write has replaced, and the context that covers them. A key
    /// without values has a context too: a write with it wins over what was deleted.
    ///
    /// # Errors
    /// It could not be read.
    pub async fn siblings(&self, key: impl Into<Bytes>) -> Result<Siblings, ClientError> {
        let (keyspace, key) = (self.name.clone(), key.into());
        let asked = v1::GetRequest { keyspace, key, ..v1::GetRequest::default() };
        let answer = self.client.read(asked, async |mut kv, asked| kv.get(asked).await).await?;
        match answer.reading.and_then(|reading| reading.state) {
            Some(State::Siblings(siblings)) => Ok(siblings),
            state => {
                let values = value(Some(v1::Reading { state }))?.into_iter().collect();
                Ok(Siblings { values, context: Bytes::new() })
            }
        }
    }

    /// Sets a value in place of what a context covers, an empty one covers nothing; the context for
    /// the next write, empty if the key has values that this client has not seen.
    ///
    /// # Errors
    /// Nothing was changed, except with [`ClientError::OutcomeUnknown`].
    pub async fn put_over(
        &self,
        key: impl Into<Bytes>,
        value: impl Into<Bytes>,
        context: impl Into<Bytes>,
    ) -> Result<Bytes, ClientError> {
        let (key, value, context) = (key.into(), value.into(), context.into());
        let make = |options| v1::PutRequest {
            keyspace: self.name.clone(),
            key: key.clone(),
            value: value.clone(),
            context: context.clone(),
            options: Some(options),
        };
        let call = async |mut kv: KvClient<Channel>, asked| kv.put(asked).await;
        Ok(self.client.write(make, call).await?.context)
    }

    /// Removes what a context covers; with an empty one what the host that is asked has.
    ///
    /// # Errors
    /// Nothing was changed, except with [`ClientError::OutcomeUnknown`].
    pub async fn delete_over(
        &self,
        key: impl Into<Bytes>,
        context: impl Into<Bytes>,
    ) -> Result<Bytes, ClientError> {
        let (key, context) = (key.into(), context.into());
        let make = |options| v1::DeleteRequest {
            keyspace: self.name.clone(),
            key: key.clone(),
            context: context.clone(),
            options: Some(options),
        };
        let call = async |mut kv: KvClient<Channel>, asked| kv.delete(asked).await;
        Ok(self.client.write(make, call).await?.context)
    }

    /// The same keyspace for a program that knows what siblings come to: two or more values, in
    /// any order, in; one out.
    #[must_use]
    pub fn merging<F: Fn(&[Bytes]) -> Bytes>(&self, merge: F) -> Merging<F> {
        Merging { keyspace: self.clone(), merge }
    }
}

/// A causal keyspace whose siblings are merged where they are read.
#[derive(Clone, Debug)]
pub struct Merging<F> {
    keyspace: Keyspace,
    merge: F,
}

impl<F: Fn(&[Bytes]) -> Bytes> Merging<F> {
    /// Reads a key; what its values come to, `None` if it has none. Nothing is written.
    ///
    /// # Errors
    /// It could not be read.
    pub async fn get(&self, key: impl Into<Bytes>) -> Result<Option<Bytes>, ClientError> {
        Ok(self.one(&self.keyspace.siblings(key).await?.values))
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
    ) -> Result<(), ClientError> {
        let key = key.into();
        let Siblings { values, context } = self.keyspace.siblings(key.clone()).await?;
        match change(self.one(&values)) {
            Some(value) => self.keyspace.put_over(key, value, context).await.map(drop),
            // There is nothing to delete.
            None if values.is_empty() => Ok(()),
            None => self.keyspace.delete_over(key, context).await.map(drop),
        }
    }

    fn one(&self, values: &[Bytes]) -> Option<Bytes> {
        match values {
            [] => None,
            [value] => Some(value.clone()),
            several => Some((self.merge)(several)),
        }
    }
}
