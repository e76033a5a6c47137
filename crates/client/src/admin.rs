//! What operators ask and order: keyspaces are listed, shown, made, altered and dropped.
//!
//! An order has no request id: given again it could meet what somebody else has made meanwhile. So
//! it goes on at another host only while it surely was not carried out.

use crate::calls;
use crate::client::Client;
use crate::error::ClientError;
use crate::tries::Tries;
use crate::verdict::Verdict;
use crate::watch::Events;
use quorate_api::v1;
use quorate_api::v1::admin_client::AdminClient;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

/// The service `Admin` of a host.
type Stub = AdminClient<Channel>;

/// The keyspaces of a cluster: which there are, and orders to make, alter and drop them.
///
/// An order is answered when the cluster has decided it and the host that answers knows it. The
/// others learn of it a moment later, so a call on a new keyspace may still meet a host that knows
/// none of the name. An order that ends with [`ClientError::OutcomeUnknown`] may have been carried
/// out, or may yet be: look with [`Admin::show`] before you give it again.
#[derive(Clone, Debug)]
pub struct Admin {
    client: Client,
}

impl Admin {
    pub(crate) fn new(client: Client) -> Admin {
        Admin { client }
    }

    /// The keyspaces, as the host that answers sees them.
    ///
    /// # Errors
    /// No host answered.
    pub async fn list(&self) -> Result<Vec<v1::Keyspace>, ClientError> {
        let call = async |mut admin: Stub, asked| admin.keyspaces(asked).await;
        let told = calls::read_of(&self.client, None, v1::KeyspacesRequest {}, call).await?;
        Ok(told.keyspaces)
    }

    /// How a keyspace is set, what of that may be altered, and who holds its partitions.
    ///
    /// # Errors
    /// There is none of this name, or no host answered.
    pub async fn show(&self, name: &str) -> Result<v1::KeyspaceDetails, ClientError> {
        let asked = v1::ShowKeyspaceRequest { name: name.to_owned(), timeout_ms: 0 };
        let call = async |mut admin: Stub, asked| admin.show_keyspace(asked).await;
        let told = calls::read_of(&self.client, None, asked, call).await?;
        told.keyspace.ok_or(ClientError::Nonsense("a keyspace that is not told"))
    }

    /// Makes a keyspace of an engine, with its defaults but for these settings.
    ///
    /// # Errors
    /// It was not made, except with [`ClientError::OutcomeUnknown`].
    pub async fn create(
        &self,
        name: &str,
        engine: &str,
        settings: &[(&str, &str)],
    ) -> Result<(), ClientError> {
        let order = v1::CreateKeyspaceRequest {
            name: name.to_owned(),
            engine: engine.to_owned(),
            settings: map(settings),
            timeout_ms: 0,
        };
        let call = async |mut admin: Stub, order| admin.create_keyspace(order).await;
        self.order(order, call).await.map(drop)
    }

    /// Changes settings of a keyspace; all of them or none.
    ///
    /// # Errors
    /// Nothing was changed, except with [`ClientError::OutcomeUnknown`].
    pub async fn alter(&self, name: &str, settings: &[(&str, &str)]) -> Result<(), ClientError> {
        let settings = map(settings);
        let order = v1::AlterKeyspaceRequest { name: name.to_owned(), settings, timeout_ms: 0 };
        let call = async |mut admin: Stub, order| admin.alter_keyspace(order).await;
        self.order(order, call).await.map(drop)
    }

    /// Drops a keyspace and deletes its data on all hosts.
    ///
    /// # Errors
    /// It was not dropped, except with [`ClientError::OutcomeUnknown`].
    pub async fn drop(&self, name: &str) -> Result<(), ClientError> {
        let order = v1::DropKeyspaceRequest { name: name.to_owned(), timeout_ms: 0 };
        let call = async |mut admin: Stub, order| admin.drop_keyspace(order).await;
        self.order(order, call).await.map(drop)
    }

    /// Has another host, given by its node id in 16 hexadecimal digits, its address or its number,
    /// hold a partition of a keyspace that has partitions.
    ///
    /// # Errors
    /// Nothing was changed, except with [`ClientError::OutcomeUnknown`].
    pub async fn replace(
        &self,
        keyspace: &str,
        partition: u32,
        host: &str,
    ) -> Result<(), ClientError> {
        let (keyspace, host) = (keyspace.to_owned(), host.to_owned());
        let order = v1::ReplacePartitionRequest { keyspace, partition, host, timeout_ms: 0 };
        let call = async |mut admin: Stub, order| admin.replace_partition(order).await;
        self.order(order, call).await.map(drop)
    }

    /// Follows what happens to keyspaces and hosts, as the host that answers learns of it: first
    /// what there is, up to the event `current`, then what changes.
    ///
    /// # Errors
    /// No host answered.
    pub async fn watch(&self) -> Result<Events, ClientError> {
        let call = async |mut admin: Stub, asked| admin.watch(asked).await;
        calls::read_of(&self.client, None, v1::WatchRequest {}, call).await.map(Events::new)
    }

    /// Gives an order, once.
    async fn order<R: Clone, T>(
        &self,
        order: R,
        call: impl AsyncFn(Stub, Request<R>) -> Result<Response<T>, Status>,
    ) -> Result<T, ClientError> {
        let mut tries = Tries::new(&self.client, None);
        loop {
            let failure = match tries.call(tries.left(), order.clone(), &call).await {
                Ok(done) => return Ok(done),
                Err(Verdict::Refused(error)) => return Err(ClientError::Refused(error)),
                Err(Verdict::Unknown(error)) => return Err(ClientError::unknown(*error)),
                Err(Verdict::Lost(why)) => {
                    return Err(ClientError::OutcomeUnknown { why, token: None });
                }
                Err(Verdict::Again(error)) => ClientError::Refused(error),
                Err(Verdict::Unsent(why)) => ClientError::Unreachable { why },
            };
            tries.go_on();
            if !tries.pause().await {
                return Err(failure);
            }
        }
    }
}

fn map(settings: &[(&str, &str)]) -> std::collections::HashMap<String, String> {
    settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
