//! `ls`, `get`, `stat`, `set`, `delete`.

use super::show::{child, node_json, stat_text};
use super::target::{Target, failed};
use super::watch;
use crate::exit::Failure;
use crate::verbs::data::values::given;
use quorate_client::Tree;
use quorate_client::v1::NodeFailure;
use serde_json::json;
use std::ffi::OsString;
use std::io::{IsTerminal, Write, stdout};

/// The arguments of `ls`.
#[derive(Debug, clap::Args)]
pub struct LsArgs {
    /// Whose children
    path: String,
    /// List the node and all nodes below it, by their paths
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    pub target: Target,
}

/// The arguments of `get`.
#[derive(Debug, clap::Args)]
pub struct GetArgs {
    /// Which node
    path: String,
    /// Show how the node is, too
    #[arg(short, long)]
    stat: bool,
    /// Go on with what becomes of the node, until Ctrl-C
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    pub target: Target,
}

/// The arguments of `stat`.
#[derive(Debug, clap::Args)]
pub struct StatArgs {
    /// Which node
    path: String,
    #[command(flatten)]
    pub target: Target,
}

/// The arguments of `set`.
#[derive(Debug, clap::Args)]
pub struct SetArgs {
    /// Which node
    path: String,
    /// What it has from now on; `-` takes it from standard input, to its end
    #[arg(allow_hyphen_values = true)]
    data: OsString,
    /// Only if the node has this version
    #[arg(short, long, value_name = "NUMBER")]
    version: Option<i32>,
    #[command(flatten)]
    pub target: Target,
}

/// The arguments of `delete`.
#[derive(Debug, clap::Args)]
pub struct DeleteArgs {
    /// Which node
    path: String,
    /// Only if the node has this version
    #[arg(short, long, value_name = "NUMBER", conflicts_with = "recursive")]
    version: Option<i32>,
    /// Remove all nodes below it too
    #[arg(short, long)]
    recursive: bool,
    #[command(flatten)]
    pub target: Target,
}

/// Runs `ls`. A node that goes while nodes below it are listed is passed over.
pub async fn ls(tree: &Tree, args: &LsArgs) -> Result<(), Failure> {
    let names = tree.children(&args.path).await.map_err(|error| failed(&args.path, error))?;
    let mut out = stdout().lock();
    let is_json = args.target.is_json();
    if !args.recursive {
        for name in names {
            let path = child(&args.path, &name);
            let line = if is_json { json!({ "path": path }).to_string() } else { name };
            writeln!(out, "{line}")?;
        }
        return Ok(out.flush()?);
    }
    let mut left = vec![args.path.clone()];
    while let Some(path) = left.pop() {
        let names = match tree.children(&path).await {
            Err(error) if error.node_failure() == Some(NodeFailure::NoNode) => continue,
            names => names.map_err(|error| failed(&path, error))?,
        };
        let line = if is_json { json!({ "path": path }).to_string() } else { path.clone() };
        writeln!(out, "{line}")?;
        left.extend(names.iter().rev().map(|name| child(&path, name)));
    }
    Ok(out.flush()?)
}

/// Runs `get`.
pub async fn get(tree: &Tree, args: &GetArgs) -> Result<(), Failure> {
    let path = &args.path;
    // What changes after it was read is told for sure.
    let events = match args.watch {
        true => Some(watch::begin(tree, path, false).await?),
        false => None,
    };
    let node = tree.get(path).await.map_err(|error| failed(path, error))?;
    let data = node.data.unwrap_or_default();
    let mut out = stdout().lock();
    if args.target.is_json() {
        writeln!(out, "{}", node_json(path, Some(&data), Some(&node.stat)))?;
    } else {
        out.write_all(&data)?;
        if out.is_terminal() || args.stat || args.watch {
            out.write_all(b"\n")?;
        }
        if args.stat {
            write!(out, "{}", stat_text(&node.stat))?;
        }
    }
    out.flush()?;
    match events {
        Some(events) => watch::print(events, path, args.target.is_json(), false).await,
        None => Ok(()),
    }
}

/// Runs `stat`.
pub async fn stat(tree: &Tree, args: &StatArgs) -> Result<(), Failure> {
    let path = &args.path;
    let found = tree.exists(path).await.map_err(|error| failed(path, error))?;
    let Some(stat) = found else {
        let text = format!("NoNode: {path}: there is no such node");
        return Err(Failure::new(crate::exit::Code::NotFound, text));
    };
    match args.target.is_json() {
        true => writeln!(stdout(), "{}", node_json(path, None, Some(&stat)))?,
        false => write!(stdout(), "{}", stat_text(&stat))?,
    }
    Ok(())
}

/// Runs `set`.
pub async fn set(tree: &Tree, args: &SetArgs) -> Result<(), Failure> {
    let (path, data) = (&args.path, given(&args.data)?);
    let stat = tree.set(path, data, args.version).await.map_err(|error| failed(path, error))?;
    if args.target.is_json() {
        writeln!(stdout(), "{}", node_json(path, None, Some(&stat)))?;
    } else if stdout().is_terminal() {
        writeln!(stdout(), "version {}", stat.version)?;
    }
    Ok(())
}

/// Runs `delete`.
pub async fn delete(tree: &Tree, args: &DeleteArgs) -> Result<(), Failure> {
    let path = &args.path;
    let deleted = if args.recursive {
        delete_all(tree, path).await?
    } else {
        tree.delete(path, args.version).await.map_err(|error| failed(path, error))?;
        1
    };
    if args.target.is_json() {
        writeln!(stdout(), "{}", json!({ "path": path, "deleted": deleted }))?;
    } else if stdout().is_terminal() {
        writeln!(stdout(), "deleted {deleted}")?;
    }
    Ok(())
}

/// Removes a node behind all that are below it; how many there were. What goes by itself meanwhile
/// is no failure, but the first node must be there.
async fn delete_all(tree: &Tree, path: &str) -> Result<u64, Failure> {
    let mut deleted = 0;
    let mut left = vec![(path.to_owned(), false)];
    while let Some((node, is_empty)) = left.pop() {
        if !is_empty {
            let names = match tree.children(&node).await {
                Err(error) if error.node_failure() == Some(NodeFailure::NoNode) && node != path => {
                    continue;
                }
                names => names.map_err(|error| failed(&node, error))?,
            };
            left.push((node.clone(), true));
            left.extend(names.iter().map(|name| (child(&node, name), false)));
            continue;
        }
        match tree.delete(&node, None).await {
            Ok(()) => deleted += 1,
            Err(error) if error.node_failure() == Some(NodeFailure::NoNode) => {}
            Err(error) => return Err(failed(&node, error)),
        }
    }
    Ok(deleted)
}
