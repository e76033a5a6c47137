//! `create`, and sessions that are held.

use super::show::node_json;
use super::target::{SILENCE, Target, failed};
use super::watch;
use crate::config::values::Length;
use crate::exit::Failure;
use crate::verbs::data::values::given;
use bytes::Bytes;
use quorate_client::v1::{Acl, NewNode, NodeKind};
use quorate_client::{Tree, TreeSession};
use std::ffi::OsString;
use std::io::{IsTerminal, Write, stderr, stdout};

/// The arguments of `create`.
#[derive(Debug, clap::Args)]
#[group(id = "kind", multiple = false)]
pub struct CreateArgs {
    /// Where
    path: String,
    /// What it has; `-` takes it from standard input, to its end
    #[arg(allow_hyphen_values = true)]
    data: Option<OsString>,
    /// Who may do what with it, such as world:anyone:cdrwa; may be given several times
    #[arg(long, value_name = "SCHEME:ID:PERMISSIONS", value_parser = acl)]
    acl: Vec<Acl>,
    /// It ends with the session of this command, on Ctrl-C
    #[arg(short, long, conflicts_with_all = ["container", "ttl"])]
    ephemeral: bool,
    /// Its name ends with a number that no other node below its parent had
    #[arg(short, long, conflicts_with = "container")]
    sequential: bool,
    /// It is removed some time after its last child was
    #[arg(short, long, conflicts_with = "ttl")]
    container: bool,
    /// It is removed when it was not changed for so long, and has no children
    #[arg(short, long, value_name = "TIME")]
    ttl: Option<Length>,
    #[command(flatten)]
    pub target: Target,
}

/// An access list's entry as `zkCli.sh` takes it.
fn acl(text: &str) -> Result<Acl, String> {
    let wrong = || String::from("expected SCHEME:ID:PERMISSIONS, with permissions out of cdrwa");
    let (scheme, rest) = text.split_once(':').ok_or_else(wrong)?;
    let (id, letters) = rest.rsplit_once(':').ok_or_else(wrong)?;
    let mut permissions = 0;
    for letter in letters.chars() {
        permissions |= match letter {
            'r' => 1,
            'w' => 2,
            'c' => 4,
            'd' => 8,
            'a' => 16,
            _ => return Err(wrong()),
        };
    }
    Ok(Acl { permissions, scheme: scheme.to_owned(), id: id.to_owned() })
}

impl CreateArgs {
    fn node(&self) -> Result<NewNode, Failure> {
        let kind = match (self.ephemeral, self.container, self.ttl) {
            (true, ..) => NodeKind::Ephemeral,
            (_, true, _) => NodeKind::Container,
            (.., Some(_)) => NodeKind::Ttl,
            _ => NodeKind::Persistent,
        };
        let ttl_ms = self.ttl.map_or(0, |ttl| ttl.0.as_millis());
        let data = self.data.as_ref().map(given).transpose()?.unwrap_or_default();
        Ok(NewNode {
            path: self.path.clone(),
            data: Bytes::from(data),
            acl: self.acl.clone(),
            kind: kind.into(),
            ttl_ms: u64::try_from(ttl_ms).unwrap_or(u64::MAX),
            sequential: self.sequential,
        })
    }
}

/// Runs `create`.
pub async fn create(tree: &Tree, args: &CreateArgs) -> Result<(), Failure> {
    let node = args.node()?;
    if !args.ephemeral {
        return make(tree, node, args).await;
    }
    let mut session = args.target.open(tree, SILENCE).await?;
    let made = make(session.tree(), node, args).await;
    if made.is_ok() {
        if stdout().is_terminal() {
            writeln!(stderr(), "it is there until Ctrl-C")?;
        }
        hold(&mut session).await?;
    }
    // If it cannot be closed it ends by itself.
    let closed = session.close().await;
    made.and(closed.map_err(|error| failed("", error)))
}

async fn make(tree: &Tree, node: NewNode, args: &CreateArgs) -> Result<(), Failure> {
    let made = tree.create(node).await;
    let (path, stat) = made.map_err(|error| failed(&args.path, error))?;
    let mut out = stdout().lock();
    match args.target.is_json() {
        true => writeln!(out, "{}", node_json(&path, None, Some(&stat)))?,
        false => writeln!(out, "{path}")?,
    }
    Ok(out.flush()?)
}

/// Waits until the user ends it, or the session is over.
async fn hold(session: &mut TreeSession) -> Result<(), Failure> {
    tokio::select! {
        () = watch::interrupted() => Ok(()),
        why = session.over() => Err(failed("", why)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn access_lists_are_written_as_zookeepers_are() {
        let anyone = acl("world:anyone:cdrwa").expect("it is one");
        assert_eq!((anyone.permissions, &*anyone.scheme, &*anyone.id), (31, "world", "anyone"));
        let digest = acl("digest:ann:x=:r").expect("it is one");
        assert_eq!((digest.permissions, &*digest.id), (1, "ann:x="));
        for bad in ["", "world", "world:anyone", "world:anyone:x"] {
            assert!(acl(bad).is_err(), "{bad}");
        }
    }
}
