//! Where nodes go: made one after the other, parents before their children.
//!
//! A node that does not let everybody make children gets its access list when those below it were
//! made; until then everybody may do everything with it.

use super::progress::Progress;
use super::{Copied, hidden, is_open, is_within};
use crate::exit::{Code, Failure};
use crate::verbs::tree::target::failed;
use bytes::Bytes;
use quorate_client::v1::{Acl, NewNode, NodeFailure};
use quorate_client::{ClientError, Tree};

/// Takes nodes in the order of a walk: each is followed by all that are below it.
pub struct Sink {
    tree: Tree,
    overwrite: bool,
    /// The last node: whether others are below it is known when the next one comes.
    last: Option<Copied>,
    /// Nodes that get their access lists when all below them were made, outermost first.
    deferred: Vec<(String, Vec<Acl>)>,
    /// Nodes that did not get theirs.
    open: Vec<String>,
    pub progress: Progress,
}

impl Sink {
    pub fn new(tree: Tree, overwrite: bool) -> Sink {
        let progress = Progress::new("imported");
        Sink { tree, overwrite, last: None, deferred: Vec::new(), open: Vec::new(), progress }
    }

    /// Takes the next node.
    pub async fn take(&mut self, node: Copied) -> Result<(), Failure> {
        if let Some(id) = hidden(&node.acl) {
            return Err(is_hidden(&node.path, id));
        }
        self.make_last(Some(&node.path)).await?;
        while self.deferred.last().is_some_and(|(path, _)| !is_within(&node.path, path)) {
            self.settle().await?;
        }
        self.last = Some(node);
        Ok(())
    }

    /// There are no more. All nodes are tried: an error names those that everybody may still do
    /// everything with.
    pub async fn end(&mut self) -> Result<(), Failure> {
        let mut ended = self.make_last(None).await;
        while !self.deferred.is_empty() {
            let settled = self.settle().await;
            ended = ended.and(settled);
        }
        told(ended, &self.open)
    }

    /// Makes the node before, which the next one may be below.
    async fn make_last(&mut self, next: Option<&str>) -> Result<(), Failure> {
        let Some(mut node) = self.last.take() else { return Ok(()) };
        let has_children = next.is_some_and(|next| is_within(next, &node.path));
        let waits = has_children && !is_open(&node.acl) && !node.acl.is_empty();
        let acl = if waits { std::mem::take(&mut node.acl) } else { Vec::new() };
        let bytes = node.data.len();
        let path = node.path.clone();
        let made = self.make(node).await;
        if waits {
            match &made {
                Ok(()) => self.deferred.push((path.clone(), acl)),
                // It may be there.
                Err(ClientError::OutcomeUnknown { .. }) => self.open.push(path.clone()),
                Err(_) => {}
            }
        }
        made.map_err(|error| refused(&path, error))?;
        self.progress.copied(bytes);
        Ok(())
    }

    async fn make(&self, node: Copied) -> Result<(), ClientError> {
        let Copied { path, data, acl, kind, ttl_ms } = node;
        let (data, is_root) = (Bytes::from(data), path == "/");
        let new = NewNode {
            path: path.clone(),
            data: data.clone(),
            acl: acl.clone(),
            kind: kind.into(),
            ttl_ms,
            sequential: false,
        };
        if is_root && !self.overwrite {
            return Ok(());
        }
        let made = if is_root { None } else { Some(self.tree.create(new).await) };
        let refused = match made {
            None => None,
            Some(Err(error)) if self.may_be_there(&error) => Some(error),
            Some(made) => return made.map(drop),
        };
        match self.tree.set(&path, data, None).await {
            Err(error) if error.node_failure() == Some(NodeFailure::NoNode) => {
                return Err(refused.unwrap_or(error));
            }
            set => drop(set?),
        }
        match acl.is_empty() {
            true => Ok(()),
            false => self.tree.set_acl(&path, acl, None).await,
        }
    }

    /// Whether a node that cannot be made may be there, and is then set. Whoever may make nothing
    /// below its parent is not told that it is there.
    fn may_be_there(&self, error: &ClientError) -> bool {
        let is_so = matches!(error.node_failure(), Some(NodeFailure::Exists | NodeFailure::NoAuth));
        self.overwrite && is_so
    }

    /// Gives the innermost of the nodes that wait for it its access list.
    async fn settle(&mut self) -> Result<(), Failure> {
        let Some((path, acl)) = self.deferred.pop() else { return Ok(()) };
        if path == "/" && !self.overwrite {
            return Ok(());
        }
        let set = self.tree.set_acl(&path, acl, None).await;
        if set.is_err() {
            self.open.push(path.clone());
        }
        set.map_err(|error| refused(&path, error))
    }
}

/// How a copy has ended, with the nodes that did not get their access lists.
fn told(ended: Result<(), Failure>, open: &[String]) -> Result<(), Failure> {
    if open.is_empty() {
        return ended;
    }
    let text =
        format!("without their access lists, so maybe open to everybody: {}", open.join(", "));
    Err(match ended {
        Ok(()) => Failure::failed(text),
        Err(why) => Failure::new(why.code, format!("{}; {text}", why.message)),
    })
}

/// A node whose access list was not told in full.
fn is_hidden(path: &str, id: &str) -> Failure {
    let text = format!(
        "{path}: the digest of {id} is hidden, so nobody could administer the copy; --from-auth, \
         or --auth of the export, shows who you are"
    );
    Failure::new(Code::Failed, text)
}

/// Why a node could not be made, and what to do.
pub fn refused(path: &str, error: ClientError) -> Failure {
    let hint = match error.node_failure() {
        Some(NodeFailure::Exists) => "; --overwrite sets nodes that are there already",
        Some(NodeFailure::NoAuth) => "; --auth shows who you are",
        _ => "",
    };
    let failure = failed(path, error);
    Failure::new(failure.code, format!("{}{hint}", failure.message))
}

#[test]
fn an_error_names_all_nodes_that_stayed_open() {
    let open = ["/a/b", "/a"].map(String::from);
    let why = || Err(Failure::new(Code::NoQuorum, "/a/b: why"));
    assert!(told(Ok(()), &[]).is_ok());
    assert_eq!(told(why(), &[]).expect_err("it failed").message, "/a/b: why");
    let all = "without their access lists, so maybe open to everybody: /a/b, /a";
    let told_all = told(why(), &open).expect_err("it failed");
    assert_eq!((told_all.code, told_all.message), (Code::NoQuorum, format!("/a/b: why; {all}")));
    assert_eq!(told(Ok(()), &open).expect_err("some are open").message, all);
}
