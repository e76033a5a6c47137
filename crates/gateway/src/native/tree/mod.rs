//! Trees, whichever door a call came through.
//!
//! | module | what it holds |
//! |---|---|
//! | this one | what each call on nodes does |
//! | `words` | where the API's words meet those of the kernel |
//! | `failures` | what a tree does not allow |
//! | [`sessions`] | calls that open, keep and close sessions, and their streams |
//! | [`table`] | which sessions are open here, and what a client must show |
//! | `told` | what the engine tells of a session |
//! | [`follow`] | nodes that are followed |

mod closing;
mod failures;
pub mod follow;
pub mod sessions;
pub mod table;
mod told;
mod words;

pub(super) use failures::{not_here, problem as failure};
pub(super) use words::pieces;

use super::keyspaces::Keyspace;
use super::map;
use super::problem::{self, Problem};
use super::service::{Asking, Native};
use bytes::Bytes;
use quorate_api::v1;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::path::Path;
use quorate_kernel::tree::{Act, Ask, Failure, Item, SessionId, Told, TreeReply};
use std::sync::Arc;
use std::time::Instant;

/// A path must be one: else it is refused before anything is asked.
fn check_path(path: &str) -> Result<(), Problem> {
    Path::of(path).map(drop).map_err(failures::problem)
}

/// What was done, if the tree allowed it.
fn done(reply: TreeReply) -> Result<(Told, u64), Problem> {
    let zxid = reply.zxid.0;
    reply.told.map(|told| (told, zxid)).map_err(failures::problem)
}

fn reply(outcome: Outcome) -> Result<TreeReply, Problem> {
    match outcome {
        Outcome::Tree(reply) => Ok(*reply),
        _ => Err(problem::mismatch()),
    }
}

impl Native {
    /// The keyspace of a name, whose engine must have trees; without a name the first such one.
    pub(super) fn find_tree(&self, name: &str) -> Result<Arc<Keyspace>, Problem> {
        self.all().tree(name).map(Arc::clone)
    }

    /// Asks a tree something, for a session if one is shown.
    async fn ask_tree(
        &self,
        keyspace: &str,
        session: Option<&v1::Session>,
        act: Act,
        options: &v1::WriteOptions,
        asking: &Asking,
    ) -> Result<(TreeReply, bool), Problem> {
        let keyspace = self.find_tree(keyspace)?;
        let whose = self.session_of(keyspace.keyspace().lane, session, act == Act::Ping)?;
        let operation = whose.asks(act);
        let operation = map::able(&keyspace, "a call on trees", operation)?;
        let (outcome, is_repeated) =
            self.write(&keyspace, operation.into(), options, asking).await?;
        let reply = reply(outcome)?;
        match reply.told {
            Err(failure) => Err(failures::problem(failure)),
            Ok(_) => Ok((reply, is_repeated)),
        }
    }

    /// Asks for a session that is known to be open here.
    async fn ask_for(
        &self,
        keyspace: &Arc<Keyspace>,
        session: Option<SessionId>,
        act: Act,
        deadline: Instant,
    ) -> Result<TreeReply, Problem> {
        let operation = Operation::Tree(Box::new(Ask { session, opening: None, act }));
        let (outcome, _) = self.call(keyspace, operation, deadline, None).await?;
        let reply = reply(outcome)?;
        match reply.told {
            Err(failure) => Err(failures::problem(failure)),
            Ok(_) => Ok(reply),
        }
    }

    /// Reads something of one node.
    async fn read_node(
        &self,
        of: (&str, Option<v1::Session>),
        item: Item,
        timeout_ms: u32,
        asking: &Asking,
    ) -> Result<TreeReply, Problem> {
        check_path(item.path())?;
        self.read_tree(of, Act::One(item), timeout_ms, asking).await
    }

    /// Asks a tree something that changes nothing.
    async fn read_tree(
        &self,
        (keyspace, session): (&str, Option<v1::Session>),
        act: Act,
        timeout_ms: u32,
        asking: &Asking,
    ) -> Result<TreeReply, Problem> {
        let keyspace = self.find_tree(keyspace)?;
        let whose = self.session_of(keyspace.keyspace().lane, session.as_ref(), false)?;
        let operation = whose.asks(act);
        let deadline = self.deadline(timeout_ms, asking);
        let (outcome, _) = self.call(&keyspace, operation, deadline, None).await?;
        reply(outcome)
    }

    /// Writes something of one node.
    async fn write_node(
        &self,
        (keyspace, session): (&str, Option<v1::Session>),
        item: Item,
        options: Option<v1::WriteOptions>,
        asking: &Asking,
    ) -> Result<(Told, u64, bool), Problem> {
        let options = options.unwrap_or_default();
        let act = Act::One(item);
        let (reply, is_repeated) =
            self.ask_tree(keyspace, session.as_ref(), act, &options, asking).await?;
        let (told, zxid) = done(reply)?;
        Ok((told, zxid, is_repeated))
    }

    /// `Tree.Create`.
    ///
    /// # Errors
    /// The node was not made; the problem says what is known of the tree, here and below.
    pub async fn create_node(
        &self,
        request: v1::CreateNodeRequest,
        asking: &Asking,
    ) -> Result<v1::CreateNodeResponse, Problem> {
        let v1::CreateNodeRequest { keyspace, node, session, options } = request;
        let item = words::create(node, "node")?;
        let of = (&keyspace[..], session);
        let (told, zxid, is_repeated) = self.write_node(of, item, options, asking).await?;
        let Told::Created { path, stat } = told else { return Err(problem::mismatch()) };
        let (stat, coordinator) = (Some(words::stat(&stat)), Some(self.me()));
        Ok(v1::CreateNodeResponse { path, stat, zxid, coordinator, is_repeated })
    }

    /// `Tree.Delete`.
    ///
    /// # Errors
    /// See [`Native::create_node`].
    pub async fn delete_node(
        &self,
        request: v1::DeleteNodeRequest,
        asking: &Asking,
    ) -> Result<v1::DeleteNodeResponse, Problem> {
        let v1::DeleteNodeRequest { keyspace, path, version, session, options } = request;
        check_path(&path)?;
        let (item, of) = (Item::Delete { path, version }, (&keyspace[..], session));
        let (_, zxid, is_repeated) = self.write_node(of, item, options, asking).await?;
        Ok(v1::DeleteNodeResponse { zxid, coordinator: Some(self.me()), is_repeated })
    }

    /// `Tree.Exists`.
    ///
    /// # Errors
    /// See [`Native::create_node`].
    pub async fn node_exists(
        &self,
        request: v1::NodeExistsRequest,
        asking: &Asking,
    ) -> Result<v1::NodeExistsResponse, Problem> {
        let v1::NodeExistsRequest { keyspace, path, session, timeout_ms } = request;
        let (item, of) = (Item::Exists { path, watch: false }, (&keyspace[..], session));
        let TreeReply { zxid, told } = self.read_node(of, item, timeout_ms, asking).await?;
        let stat = match told {
            Ok(Told::Stat(stat)) => Some(words::stat(&stat)),
            Err(Failure::NoNode) => None,
            Err(failure) => return Err(failures::problem(failure)),
            Ok(_) => return Err(problem::mismatch()),
        };
        Ok(v1::NodeExistsResponse { stat, zxid: zxid.0, coordinator: Some(self.me()) })
    }

    /// `Tree.Get`.
    ///
    /// # Errors
    /// See [`Native::create_node`].
    pub async fn get_node(
        &self,
        request: v1::GetNodeRequest,
        asking: &Asking,
    ) -> Result<v1::GetNodeResponse, Problem> {
        let v1::GetNodeRequest { keyspace, path, session, timeout_ms } = request;
        let (item, of) = (Item::Get { path, watch: false }, (&keyspace[..], session));
        let reply = self.read_node(of, item, timeout_ms, asking).await?;
        let (told, zxid) = done(reply)?;
        let Told::Data { data, stat } = told else { return Err(problem::mismatch()) };
        let bytes = data.as_ref().map_or(0, Bytes::len);
        asking.allowance.take(bytes).map_err(|_| problem::overloaded())?;
        let (stat, coordinator) = (Some(words::stat(&stat)), Some(self.me()));
        Ok(v1::GetNodeResponse { data, stat, zxid, coordinator })
    }

    /// `Tree.Children`.
    ///
    /// # Errors
    /// See [`Native::create_node`].
    pub async fn node_children(
        &self,
        request: v1::NodeChildrenRequest,
        asking: &Asking,
    ) -> Result<v1::NodeChildrenResponse, Problem> {
        let v1::NodeChildrenRequest { keyspace, path, session, timeout_ms } = request;
        let (item, of) = (Item::Children { path, watch: false }, (&keyspace[..], session));
        let reply = self.read_node(of, item, timeout_ms, asking).await?;
        let (told, zxid) = done(reply)?;
        let Told::Children { names, stat } = told else { return Err(problem::mismatch()) };
        let bytes = names.iter().map(String::len).sum();
        asking.allowance.take(bytes).map_err(|_| problem::overloaded())?;
        let (stat, coordinator) = (Some(words::stat(&stat)), Some(self.me()));
        Ok(v1::NodeChildrenResponse { names, stat, zxid, coordinator })
    }

    /// `Tree.Set`.
    ///
    /// # Errors
    /// See [`Native::create_node`].
    pub async fn set_node(
        &self,
        request: v1::SetNodeRequest,
        asking: &Asking,
    ) -> Result<v1::SetNodeResponse, Problem> {
        let v1::SetNodeRequest { keyspace, path, data, version, session, options } = request;
        check_path(&path)?;
        let item = Item::Set { path, data: Some(data), version };
        let of = (&keyspace[..], session);
        let (told, zxid, is_repeated) = self.write_node(of, item, options, asking).await?;
        let Told::Stat(stat) = told else { return Err(problem::mismatch()) };
        let (stat, coordinator) = (Some(words::stat(&stat)), Some(self.me()));
        Ok(v1::SetNodeResponse { stat, zxid, coordinator, is_repeated })
    }

    /// `Tree.GetAcl`.
    ///
    /// # Errors
    /// See [`Native::create_node`].
    pub async fn get_node_acl(
        &self,
        request: v1::GetNodeAclRequest,
        asking: &Asking,
    ) -> Result<v1::GetNodeAclResponse, Problem> {
        let v1::GetNodeAclRequest { keyspace, path, session, timeout_ms } = request;
        let (item, of) = (Item::GetAcl { path }, (&keyspace[..], session));
        let reply = self.read_node(of, item, timeout_ms, asking).await?;
        let (told, zxid) = done(reply)?;
        let Told::Acl { acl, stat } = told else { return Err(problem::mismatch()) };
        let (stat, coordinator) = (Some(words::stat(&stat)), Some(self.me()));
        Ok(v1::GetNodeAclResponse { acl: words::told_acl(acl), stat, zxid, coordinator })
    }

    /// `Tree.SetAcl`.
    ///
    /// # Errors
    /// See [`Native::create_node`].
    pub async fn set_node_acl(
        &self,
        request: v1::SetNodeAclRequest,
        asking: &Asking,
    ) -> Result<v1::SetNodeAclResponse, Problem> {
        let v1::SetNodeAclRequest { keyspace, path, acl, version, session, options } = request;
        check_path(&path)?;
        let item = Item::SetAcl { path, acl: words::acl(acl)?, version };
        let of = (&keyspace[..], session);
        let (told, zxid, is_repeated) = self.write_node(of, item, options, asking).await?;
        let Told::Stat(stat) = told else { return Err(problem::mismatch()) };
        let (stat, coordinator) = (Some(words::stat(&stat)), Some(self.me()));
        Ok(v1::SetNodeAclResponse { stat, zxid, coordinator, is_repeated })
    }

    /// `Tree.Multi`.
    ///
    /// # Errors
    /// See [`Native::create_node`]; of an item that failed the problem's field names it.
    pub async fn multi(
        &self,
        request: v1::MultiRequest,
        asking: &Asking,
    ) -> Result<v1::MultiResponse, Problem> {
        let v1::MultiRequest { keyspace, items, session, options } = request;
        let act = Act::All(words::items(items)?);
        let options = options.unwrap_or_default();
        let (reply, is_repeated) =
            self.ask_tree(&keyspace, session.as_ref(), act, &options, asking).await?;
        let (told, zxid) = done(reply)?;
        let Told::Many(told) = told else { return Err(problem::mismatch()) };
        let answers = words::answers(told)?;
        Ok(v1::MultiResponse { answers, zxid, coordinator: Some(self.me()), is_repeated })
    }

    /// `Tree.Sync`.
    ///
    /// # Errors
    /// See [`Native::create_node`].
    pub async fn sync_session(
        &self,
        request: v1::SyncRequest,
        asking: &Asking,
    ) -> Result<v1::SyncResponse, Problem> {
        let v1::SyncRequest { keyspace, session, timeout_ms } = request;
        let (act, of) = (Act::Sync { path: String::from("/") }, (&keyspace[..], session));
        let (_, zxid) = done(self.read_tree(of, act, timeout_ms, asking).await?)?;
        Ok(v1::SyncResponse { zxid, coordinator: Some(self.me()) })
    }
}
