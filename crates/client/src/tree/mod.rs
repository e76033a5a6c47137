//! Trees: nodes at paths, of keyspaces whose engine has them.

mod place;
mod session;

pub use session::TreeSession;

use crate::calls::{self, Manner};
use crate::client::Client;
use crate::error::ClientError;
use crate::hosts::Service;
use bytes::Bytes;
use place::Shared;
use quorate_api::v1;
use quorate_api::v1::tree_client::TreeClient;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};

/// The service `Tree` of a host.
pub(crate) type Stub = TreeClient<Channel>;

/// The tree of a keyspace.
///
/// What a tree does not allow is [`ClientError::Refused`], with a
/// [`node_failure`](v1::Error::node_failure) that says what it was.
#[derive(Clone, Debug)]
pub struct Tree {
    client: Client,
    keyspace: String,
    session: Option<Arc<Shared>>,
}

/// What is known of a node whose data was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it has; none if a client of ZooKeeper made it without data.
    pub data: Option<Bytes>,
    /// How it is.
    pub stat: v1::Stat,
}

impl Client {
    /// The tree of a keyspace; of the first one that has a tree, if the name is empty.
    #[must_use]
    pub fn tree(&self, keyspace: &str) -> Tree {
        Tree { client: self.clone(), keyspace: keyspace.to_owned(), session: None }
    }
}

impl Tree {
    /// Opens a session whose client may be silent for so long. What is asked of its
    /// [tree](TreeSession::tree) is asked for the session.
    ///
    /// # Errors
    /// No host opened one.
    pub async fn open(&self, timeout: Duration) -> Result<TreeSession, ClientError> {
        TreeSession::open(self, timeout).await
    }

    /// Whom calls go to, and for which session.
    fn place(&self) -> Result<(Client, Option<v1::Session>), ClientError> {
        match &self.session {
            None => Ok((self.client.clone(), None)),
            Some(session) => session.place().map(|(client, session)| (client, Some(session))),
        }
    }

    async fn read<R: Clone, T>(
        &self,
        make: impl Fn(String, Option<v1::Session>) -> R,
        call: impl AsyncFn(Stub, Request<R>) -> Result<Response<T>, Status>,
    ) -> Result<T, ClientError> {
        let deadline = self.deadline();
        loop {
            let moves = self.moves();
            let (client, session) = self.place()?;
            let asked = make(self.keyspace.clone(), session);
            let read = calls::read_of(&client, None, asked, &call).await;
            if !self.goes_on(read.as_ref().err(), moves, deadline).await {
                return read;
            }
        }
    }

    async fn write<R, T>(
        &self,
        make: impl Fn(String, Option<v1::Session>, Option<v1::WriteOptions>) -> R,
        call: impl AsyncFn(Stub, Request<R>) -> Result<Response<T>, Status>,
    ) -> Result<T, ClientError> {
        let deadline = self.deadline();
        loop {
            let moves = self.moves();
            let (client, session) = self.place()?;
            // A try may be made after the session has gone on: its host remembers the id of the
            // call, and refuses who shows an earlier opening.
            let shown = || self.place().ok().and_then(|(_, now)| now).or_else(|| session.clone());
            let make = |options| make(self.keyspace.clone(), shown(), Some(options));
            let written = calls::write(&client, (None, Manner::AtOne), make, &call).await;
            if !self.goes_on(written.as_ref().err(), moves, deadline).await {
                return written;
            }
        }
    }

    /// When a call that begins now is given up.
    fn deadline(&self) -> Instant {
        Instant::now() + self.client.settings.timeout
    }

    /// By how far the session has moved.
    fn moves(&self) -> u64 {
        self.session.as_ref().map_or(0, |session| session.moves())
    }

    /// Whether a call that changed nothing is made again: its session may be at another host by
    /// then, or was where its credentials were not shown yet.
    async fn goes_on(&self, error: Option<&ClientError>, moves: u64, deadline: Instant) -> bool {
        let is_elsewhere = match error {
            Some(ClientError::Unreachable { .. }) => true,
            Some(error) => match error.node_failure() {
                Some(v1::NodeFailure::SessionMoved) => true,
                Some(v1::NodeFailure::NoAuth) => {
                    self.session.as_ref().is_some_and(|session| session.has_moved(moves))
                }
                _ => false,
            },
            None => false,
        };
        let goes_on = is_elsewhere && self.session.is_some() && Instant::now() < deadline;
        if goes_on {
            tokio::time::sleep(place::PAUSE).await;
        }
        goes_on
    }

    /// Makes a node; where it is, with its number if it is sequential, and how.
    ///
    /// # Errors
    /// It was not made, except with [`ClientError::OutcomeUnknown`].
    pub async fn create(&self, node: v1::NewNode) -> Result<(String, v1::Stat), ClientError> {
        let make = |keyspace, session, options| {
            let node = Some(node.clone());
            v1::CreateNodeRequest { keyspace, node, session, options }
        };
        let call = async |mut tree: Stub, asked| tree.create(asked).await;
        let done = self.write(make, call).await?;
        Ok((done.path, done.stat.unwrap_or_default()))
    }

    /// Removes a node without children, if it has the version, or whatever it has.
    ///
    /// # Errors
    /// It was not removed, except with [`ClientError::OutcomeUnknown`].
    pub async fn delete(&self, path: &str, version: Option<i32>) -> Result<(), ClientError> {
        let make = |keyspace, session, options| {
            let path = path.to_owned();
            v1::DeleteNodeRequest { keyspace, path, version, session, options }
        };
        let call = async |mut tree: Stub, asked| tree.delete(asked).await;
        self.write(make, call).await.map(drop)
    }

    /// How a node is, if it is there.
    ///
    /// # Errors
    /// No host said so.
    pub async fn exists(&self, path: &str) -> Result<Option<v1::Stat>, ClientError> {
        let make = |keyspace, session| {
            let path = path.to_owned();
            v1::NodeExistsRequest { keyspace, path, session, timeout_ms: 0 }
        };
        let call = async |mut tree: Stub, asked| tree.exists(asked).await;
        Ok(self.read(make, call).await?.stat)
    }

    /// Reads a node.
    ///
    /// # Errors
    /// It is not there, or no host said what it has.
    pub async fn get(&self, path: &str) -> Result<Node, ClientError> {
        let make = |keyspace, session| {
            let path = path.to_owned();
            v1::GetNodeRequest { keyspace, path, session, timeout_ms: 0 }
        };
        let call = async |mut tree: Stub, asked| tree.get(asked).await;
        let told = self.read(make, call).await?;
        Ok(Node { data: told.data, stat: told.stat.unwrap_or_default() })
    }

    /// The names of a node's children, ascending.
    ///
    /// # Errors
    /// It is not there, or no host said so.
    pub async fn children(&self, path: &str) -> Result<Vec<String>, ClientError> {
        let make = |keyspace, session| {
            let path = path.to_owned();
            v1::NodeChildrenRequest { keyspace, path, session, timeout_ms: 0 }
        };
        let call = async |mut tree: Stub, asked| tree.children(asked).await;
        Ok(self.read(make, call).await?.names)
    }

    /// Sets what a node has, if it has the version, or whatever it has; how it is then.
    ///
    /// # Errors
    /// It was not set, except with [`ClientError::OutcomeUnknown`].
    pub async fn set(
        &self,
        path: &str,
        data: impl Into<Bytes>,
        version: Option<i32>,
    ) -> Result<v1::Stat, ClientError> {
        let data = data.into();
        let make = |keyspace, session, options| {
            let (path, data) = (path.to_owned(), data.clone());
            v1::SetNodeRequest { keyspace, path, data, version, session, options }
        };
        let call = async |mut tree: Stub, asked| tree.set(asked).await;
        Ok(self.write(make, call).await?.stat.unwrap_or_default())
    }

    /// Who may do what with a node.
    ///
    /// # Errors
    /// It is not there, or no host said so.
    pub async fn acl(&self, path: &str) -> Result<Vec<v1::Acl>, ClientError> {
        let make = |keyspace, session| {
            let path = path.to_owned();
            v1::GetNodeAclRequest { keyspace, path, session, timeout_ms: 0 }
        };
        let call = async |mut tree: Stub, asked| tree.get_acl(asked).await;
        Ok(self.read(make, call).await?.acl)
    }

    /// Sets who may do what with a node, if its list has the version, or whatever it has.
    ///
    /// # Errors
    /// It was not set, except with [`ClientError::OutcomeUnknown`].
    pub async fn set_acl(
        &self,
        path: &str,
        acl: Vec<v1::Acl>,
        version: Option<i32>,
    ) -> Result<(), ClientError> {
        let make = |keyspace, session, options| {
            let (path, acl) = (path.to_owned(), acl.clone());
            v1::SetNodeAclRequest { keyspace, path, acl, version, session, options }
        };
        let call = async |mut tree: Stub, asked| tree.set_acl(asked).await;
        self.write(make, call).await.map(drop)
    }

    /// Does several things at one moment, or nothing; what each was told.
    ///
    /// # Errors
    /// Nothing was done, except with [`ClientError::OutcomeUnknown`]. The field of a refusal names
    /// the item that failed.
    pub async fn multi(
        &self,
        items: Vec<v1::NodeItem>,
    ) -> Result<Vec<v1::NodeItemAnswer>, ClientError> {
        let make = |keyspace, session, options| {
            let items = items.clone();
            v1::MultiRequest { keyspace, items, session, options }
        };
        let call = async |mut tree: Stub, asked| tree.multi(asked).await;
        Ok(self.write(make, call).await?.answers)
    }

    /// Has what is read of this tree from now on show all that was committed before; the newest
    /// change by then. What a session reads of a keyspace with `reads=session` may be older
    /// otherwise; no other read is.
    ///
    /// # Errors
    /// No host said so.
    pub async fn sync(&self) -> Result<u64, ClientError> {
        let make = |keyspace, session| v1::SyncRequest { keyspace, session, timeout_ms: 0 };
        let call = async |mut tree: Stub, asked| tree.sync(asked).await;
        Ok(self.read(make, call).await?.zxid)
    }

    /// Follows a node, and all below it if that is said; it need not exist.
    ///
    /// # Errors
    /// No host follows it.
    pub async fn watch(&self, path: &str, recursive: bool) -> Result<NodeEvents, ClientError> {
        let make = |keyspace, _| {
            let path = path.to_owned();
            v1::WatchNodeRequest { keyspace, path, recursive }
        };
        let call = async |mut tree: Stub, asked| tree.watch(asked).await;
        Ok(NodeEvents { stream: self.read(make, call).await? })
    }
}

impl Service for Stub {
    fn of(host: &crate::hosts::Host) -> Self {
        TreeClient::new(host.channel()).max_decoding_message_size(usize::MAX)
    }
}

/// What becomes of a node. Nothing is told twice and nothing made up for: after an error, watch
/// anew, and read.
#[derive(Debug)]
pub struct NodeEvents {
    stream: Streaming<v1::WatchNodeResponse>,
}

impl NodeEvents {
    /// The next event; the first says that the watch has begun. It waits as long as nothing
    /// happens.
    ///
    /// # Errors
    /// The watch has ended: the host stops, or cannot say that it knows of all changes, or is gone;
    /// or this client took events more slowly than they came (`Kind::Overloaded`).
    pub async fn next(&mut self) -> Result<v1::WatchNodeResponse, ClientError> {
        let ended = || ClientError::Unreachable { why: String::from("the stream has ended") };
        let next = self.stream.message().await;
        next.map_err(|status| ClientError::of_stream(&status))?.ok_or_else(ended)
    }
}
