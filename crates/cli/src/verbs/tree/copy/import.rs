//! `import`: nodes of a ZooKeeper, or of JSON lines.

use super::sink::{Sink, refused};
use super::zookeeper::{Found, ZooKeeper};
use super::{Copied, is_own, is_within, lines, moved};
use crate::exit::{Code, Failure};
use crate::verbs::tree::show::child;
use crate::verbs::tree::target::{Target, failed};
use quorate_client::Tree;
use quorate_client::v1::{NewNode, NodeFailure};
use serde_json::json;
use std::io::{BufRead, Write, stdin, stdout};

/// The arguments of `import`.
#[derive(Debug, clap::Args)]
pub struct ImportArgs {
    /// A server of the ZooKeeper, or `-` for JSON lines of `export` on standard input
    #[arg(long, value_name = "ADDRESS")]
    from: String,
    /// The node that is copied, with all below it
    #[arg(default_value = "/")]
    path: String,
    /// Where it goes; the same path if not given
    #[arg(long, value_name = "PATH")]
    to: Option<String>,
    /// Set nodes that are there already, instead of ending at the first one
    #[arg(long)]
    overwrite: bool,
    /// Who asks ZooKeeper, for its access lists, such as digest:user:password
    #[arg(long, value_name = "SCHEME:CREDENTIAL")]
    from_auth: Vec<String>,
    #[command(flatten)]
    pub target: Target,
}

impl ImportArgs {
    fn to(&self) -> &str {
        self.to.as_deref().unwrap_or(&self.path)
    }
}

/// Runs `import`.
pub async fn import(tree: &Tree, args: &ImportArgs) -> Result<(), Failure> {
    for path in [&args.path[..], args.to()] {
        if !path.starts_with('/') || path.len() > 1 && path.ends_with('/') || is_own(path) {
            let text = format!("{path} is no path of a node that can be copied");
            return Err(Failure::new(Code::Usage, text));
        }
    }
    make_parents(tree, args.to()).await?;
    let mut sink = Sink::new(tree.clone(), args.overwrite);
    let copied = match args.from.as_str() {
        "-" => of_lines(&mut sink, args).await,
        _ => of_zookeeper(&mut sink, args).await,
    };
    // What was made stays, with the access lists that it should have.
    let ended = sink.end().await;
    sink.progress.tell();
    both(copied, ended)?;
    if args.target.is_json() {
        let progress = &sink.progress;
        let (nodes, bytes) = (progress.nodes, progress.bytes);
        let told = json!({ "nodes": nodes, "bytes": bytes, "ephemeral": progress.ephemeral });
        writeln!(stdout(), "{told}")?;
    }
    Ok(())
}

/// Both must be done; if neither was, why of both.
fn both(one: Result<(), Failure>, other: Result<(), Failure>) -> Result<(), Failure> {
    match (one, other) {
        (Err(one), Err(other)) => {
            Err(Failure::new(one.code, format!("{}; {}", one.message, other.message)))
        }
        (one, other) => one.and(other),
    }
}

/// Makes the nodes above a path that are not there, each as whoever asks may: the node above it
/// must let it. Of those that are there nothing is asked, as one that may make no node beside them
/// is told so even where there is nothing to make.
async fn make_parents(tree: &Tree, path: &str) -> Result<(), Failure> {
    for (at, _) in path.match_indices('/').filter(|(at, _)| *at > 0) {
        let parent = &path[..at];
        let there = tree.exists(parent).await.map_err(|error| failed(parent, error))?;
        if there.is_some() {
            continue;
        }
        let node = NewNode { path: parent.to_owned(), ..NewNode::default() };
        match tree.create(node).await {
            Err(error) if error.node_failure() == Some(NodeFailure::Exists) => {}
            made => drop(made.map_err(|error| refused(parent, error))?),
        }
    }
    Ok(())
}

async fn of_lines(sink: &mut Sink, args: &ImportArgs) -> Result<(), Failure> {
    for (at, line) in stdin().lock().lines().enumerate() {
        let node = line.map_err(|error| error.to_string()).and_then(|line| lines::read(&line));
        let node = node.map_err(|why| Failure::failed(format!("line {}: {why}", at + 1)))?;
        if is_within(&node.path, &args.path) && !is_own(&node.path) {
            let path = moved(&node.path, &args.path, args.to());
            sink.take(Copied { path, ..node }).await?;
        }
    }
    Ok(())
}

/// Walks the tree of a ZooKeeper. What goes meanwhile is passed over.
async fn of_zookeeper(sink: &mut Sink, args: &ImportArgs) -> Result<(), Failure> {
    let mut from = ZooKeeper::connect(&args.from, args.target.timeout.0).await?;
    for shown in &args.from_auth {
        from.authenticate(shown).await?;
    }
    let mut left = vec![args.path.clone()];
    while let Some(path) = left.pop() {
        match from.read(&path).await? {
            Found::Nothing if path == args.path => {
                let text = format!("NoNode: {path}: {} has no such node", args.from);
                return Err(Failure::new(Code::NotFound, text));
            }
            Found::Nothing => {}
            Found::Ephemeral => sink.progress.ephemeral += 1,
            Found::Node(node, mut names) => {
                names.sort_unstable();
                let paths = names.iter().rev().map(|name| child(&path, name));
                left.extend(paths.filter(|path| !is_own(path)));
                let goes = moved(&path, &args.path, args.to());
                sink.take(Copied { path: goes, ..node }).await?;
            }
        }
    }
    from.close().await;
    Ok(())
}
