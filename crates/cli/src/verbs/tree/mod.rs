//! `tree`: nodes of keyspaces whose engine has trees, with the flags of ZooKeeper's `zkCli.sh`.
//!
//! | module | what it holds |
//! |---|---|
//! | `target` | where and how it is asked, and how that fails |
//! | `nodes` | `ls`, `get`, `stat`, `set`, `delete` |
//! | `create` | `create`, and sessions that are held |
//! | `watch` | what becomes of nodes |
//! | `copy` | `import`, `export` |
//! | `show` | how nodes are printed |

mod copy;
mod create;
mod nodes;
mod show;
mod target;
mod watch;

use crate::exit::Failure;

/// The arguments of `tree`.
#[derive(Debug, clap::Args)]
#[command(after_help = "A keyspace that is not named is the first one that has a tree.\n\n\
                        Example: quorate tree create /config && quorate tree ls -R /")]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the children of a node
    #[command(after_help = "Example: quorate tree ls -R /config")]
    Ls(nodes::LsArgs),
    /// Print what a node has
    #[command(after_help = "The data is printed byte for byte. Exit code 3 if there is no node.\n\
                            Example: quorate tree get -s /config/limit")]
    Get(nodes::GetArgs),
    /// Set what a node has
    #[command(after_help = "Example: quorate tree set --version 3 /config/limit 100")]
    Set(nodes::SetArgs),
    /// Make a node, and print where it is
    #[command(after_help = "An ephemeral node ends with its session. The command holds that, and \
                            closes it on Ctrl-C.\n\
                            Example: quorate tree create -s /jobs/job- 'build 7'\n\
                            Example: quorate tree create -e /leader host-1")]
    Create(create::CreateArgs),
    /// Remove a node
    #[command(after_help = "With -r all nodes below it are removed before it, one by one.\n\
                            Example: quorate tree delete --version 3 /config/limit")]
    Delete(nodes::DeleteArgs),
    /// Show how a node is
    #[command(after_help = "Example: quorate tree stat /config")]
    Stat(nodes::StatArgs),
    /// Print what becomes of a node until Ctrl-C
    #[command(after_help = "It begins with `watching`: changes from then on are told, each once. \
                            If it ends by itself, some may be missed: watch again, and read.\n\
                            Example: quorate tree watch -R /config")]
    Watch(watch::WatchArgs),
    /// Copy nodes from a ZooKeeper, or out of what `export` has written
    #[command(
        after_help = "Data and access lists are kept; ephemeral nodes are skipped, as their \
                            sessions are not copied. A node with children gets an access list \
                            that is not open when they were made. A copy that has ended early, \
                            or was made before, is made again with --overwrite.\n\
                            Example: quorate tree import --from zk1:2181 /config --to /apps/config"
    )]
    Import(copy::import::ImportArgs),
    /// Print a node and all below it as JSON lines
    #[command(
        after_help = "Ephemeral nodes are skipped. All others are told as nodes that stay.\n\
                            Example: quorate tree export /config > config.jsonl"
    )]
    Export(copy::export::ExportArgs),
}

/// Runs `tree`.
///
/// # Errors
/// The tree does not allow it, or no host has answered; [`crate::exit::Code::NotFound`] if there is
/// no such node.
pub fn run(args: &Args) -> Result<(), Failure> {
    match &args.command {
        Command::Ls(args) => args.target.run(async |tree| nodes::ls(&tree, args).await),
        Command::Get(args) => args.target.run(async |tree| nodes::get(&tree, args).await),
        Command::Set(args) => args.target.run(async |tree| nodes::set(&tree, args).await),
        Command::Create(args) => args.target.run(async |tree| create::create(&tree, args).await),
        Command::Delete(args) => args.target.run(async |tree| nodes::delete(&tree, args).await),
        Command::Stat(args) => args.target.run(async |tree| nodes::stat(&tree, args).await),
        Command::Import(args) => {
            args.target.run(async |tree| copy::import::import(&tree, args).await)
        }
        Command::Export(args) => {
            args.target.run(async |tree| copy::export::export(&tree, args).await)
        }
        Command::Watch(args) => args.target.run(async |tree| watch::watch(&tree, args).await),
    }
}
