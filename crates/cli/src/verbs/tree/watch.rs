//! `watch`: what becomes of nodes, until the user ends it.

use super::show;
use super::target::{Target, failed};
use crate::exit::Failure;
use quorate_client::{NodeEvents, Tree};
use std::io::{Write, stdout};
use tokio::signal::unix::{SignalKind, signal};

/// The arguments of `watch`.
#[derive(Debug, clap::Args)]
pub struct WatchArgs {
    /// Which node; it need not be there
    path: String,
    /// Follow all nodes below it too
    #[arg(short = 'R', long)]
    recursive: bool,
    #[command(flatten)]
    pub target: Target,
}

/// Runs `watch`.
pub async fn watch(tree: &Tree, args: &WatchArgs) -> Result<(), Failure> {
    let events = begin(tree, &args.path, args.recursive).await?;
    print(events, &args.path, args.target.is_json(), true).await
}

/// Begins to follow a node.
pub async fn begin(tree: &Tree, path: &str, recursive: bool) -> Result<NodeEvents, Failure> {
    tree.watch(path, recursive).await.map_err(|error| failed(path, error))
}

/// Prints what is told, each on a line of its own, with or without the beginning.
pub async fn print(
    mut events: NodeEvents,
    path: &str,
    is_json: bool,
    with_beginning: bool,
) -> Result<(), Failure> {
    let mut is_first = true;
    loop {
        let event = tokio::select! {
            event = events.next() => event.map_err(|error| failed(path, error))?,
            () = interrupted() => return Ok(()),
        };
        if with_beginning || !is_first {
            let mut out = stdout().lock();
            writeln!(out, "{}", show::event(&event, is_json))?;
            out.flush()?;
        }
        is_first = false;
    }
}

/// Waits until the user ends the command.
pub async fn interrupted() {
    let Ok(mut terminated) = signal(SignalKind::terminate()) else { return };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminated.recv() => {}
    }
}
