//! `export`: nodes as JSON lines.

use super::progress::Progress;
use super::{Copied, is_own, lines};
use crate::exit::Failure;
use crate::verbs::tree::show::child;
use crate::verbs::tree::target::{Target, failed};
use quorate_client::v1::{NodeFailure, NodeKind};
use quorate_client::{ClientError, Tree};
use std::io::{Write, stdout};

/// The arguments of `export`.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// The node that is copied, with all below it
    #[arg(default_value = "/")]
    path: String,
    #[command(flatten)]
    pub target: Target,
}

/// Runs `export`. A node that goes while others are read is passed over.
pub async fn export(tree: &Tree, args: &ExportArgs) -> Result<(), Failure> {
    let mut out = stdout().lock();
    let mut progress = Progress::new("exported");
    let mut left = vec![args.path.clone()];
    while let Some(path) = left.pop() {
        let is_first = path == args.path;
        let read = read(tree, &path).await;
        let (node, names) = match read {
            Err(error) if error.node_failure() == Some(NodeFailure::NoNode) && !is_first => {
                continue;
            }
            read => read.map_err(|error| failed(&path, error))?,
        };
        let paths = names.iter().rev().map(|name| child(&path, name));
        left.extend(paths.filter(|path| !is_own(path)));
        let Some(node) = node else {
            progress.ephemeral += 1;
            continue;
        };
        writeln!(out, "{}", lines::write(&node))?;
        progress.copied(node.data.len());
    }
    out.flush()?;
    progress.tell();
    Ok(())
}

/// Reads a node, if it is not ephemeral, and the names of its children.
async fn read(tree: &Tree, path: &str) -> Result<(Option<Copied>, Vec<String>), ClientError> {
    let node = tree.get(path).await?;
    if node.stat.ephemeral_owner != 0 {
        return Ok((None, Vec::new()));
    }
    let (acl, names) = (tree.acl(path).await?, tree.children(path).await?);
    let data = node.data.unwrap_or_default().to_vec();
    let (path, kind) = (path.to_owned(), NodeKind::Persistent);
    Ok((Some(Copied { path, data, acl, kind, ttl_ms: 0 }), names))
}
