//! Where and how a tree is asked, and how that fails.

use crate::config::values::Length;
use crate::exit::{Code, Failure};
use crate::output::Output;
use quorate_client::v1::{Kind, NodeFailure};
use quorate_client::{Client, ClientError, Settings, Tree, TreeSession};
use std::time::Duration;

/// How long a session of a command may be silent, if nothing else is said.
pub const SILENCE: Duration = Duration::from_secs(10);

/// Where and how a command on trees asks.
#[derive(Clone, Debug, clap::Args)]
pub struct Target {
    /// The gRPC doors of some hosts
    #[arg(
        long,
        env = "QUORATE_GRPC",
        default_value = "127.0.0.1:7414",
        value_delimiter = ',',
        value_name = "ADDRESSES"
    )]
    pub grpc: Vec<String>,
    /// The keyspace; the first one with a tree if not given
    #[arg(long, env = "QUORATE_KEYSPACE", value_name = "NAME")]
    pub keyspace: Option<String>,
    /// Who asks, for access lists, such as digest:user:password; may be given several times
    #[arg(long, value_name = "SCHEME:CREDENTIAL", value_parser = credential)]
    pub auth: Vec<(String, String)>,
    /// How long to wait for each answer
    #[arg(long, default_value = "10s", value_name = "TIME")]
    pub timeout: Length,
    /// The same as --format json
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    #[allow(missing_docs, reason = "a doc here would replace the command's own")]
    pub output: Output,
}

fn credential(text: &str) -> Result<(String, String), String> {
    let (scheme, credential) = text.split_once(':').ok_or("expected SCHEME:CREDENTIAL")?;
    Ok((scheme.to_owned(), credential.to_owned()))
}

impl Target {
    /// Whether JSON was asked for.
    pub fn is_json(&self) -> bool {
        self.json || self.output.is_json()
    }

    /// Does something with the tree, as whoever asks.
    pub fn run(&self, work: impl AsyncFnOnce(Tree) -> Result<(), Failure>) -> Result<(), Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let settings = Settings { timeout: self.timeout.0, ..Settings::default() };
            let client = Client::with(&self.grpc, settings).map_err(|error| failed("", error))?;
            let tree = client.tree(self.keyspace.as_deref().unwrap_or_default());
            if self.auth.is_empty() {
                return work(tree).await;
            }
            let session = self.open(&tree, SILENCE).await?;
            let worked = work(session.tree().clone()).await;
            // It ends by itself if it cannot be closed.
            let _ = session.close().await;
            worked
        })
    }

    /// Opens a session of whoever asks.
    pub async fn open(&self, tree: &Tree, silence: Duration) -> Result<TreeSession, Failure> {
        let session = tree.open(silence).await.map_err(|error| failed("", error))?;
        for (scheme, credential) in &self.auth {
            let shown = session.authenticate(scheme, credential.clone().into_bytes()).await;
            shown.map_err(|error| failed("", error))?;
        }
        Ok(session)
    }
}

/// The word that ZooKeeper's clients have for what a tree does not allow.
fn word(failure: NodeFailure) -> String {
    let words = failure.as_str_name().trim_start_matches("NODE_FAILURE_").split('_');
    words.map(|word| format!("{}{}", &word[..1], word[1..].to_ascii_lowercase())).collect()
}

/// Why something about a path failed.
pub fn failed(path: &str, error: ClientError) -> Failure {
    let code = match (&error, error.node_failure(), error.kind()) {
        (_, Some(NodeFailure::NoNode), _) | (_, _, Some(Kind::NoKeyspace)) => Code::NotFound,
        (ClientError::OutcomeUnknown { .. }, ..) => Code::Timeout,
        (ClientError::Unreachable { .. }, ..)
        | (_, _, Some(Kind::NoQuorum | Kind::Overloaded | Kind::Stopping)) => Code::NoQuorum,
        (ClientError::Address { .. }, ..) => Code::Usage,
        _ => Code::Failed,
    };
    let word = error.node_failure().map(|failure| format!("{}: ", word(failure)));
    let place = if path.is_empty() { String::new() } else { format!("{path}: ") };
    Failure::new(code, format!("{}{place}{error}", word.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_client::v1;

    #[test]
    fn a_failure_has_a_word_and_a_code() {
        let refused = |kind: Kind, failure: NodeFailure| {
            let error = v1::Error {
                kind: kind.into(),
                node_failure: failure.into(),
                what: String::from("what"),
                right: String::from("right"),
                ..v1::Error::default()
            };
            failed("/a", ClientError::Refused(Box::new(error)))
        };
        for (kind, failure, code, text) in [
            (Kind::NoNode, NodeFailure::NoNode, Code::NotFound, "NoNode: /a: what; right"),
            (Kind::Conflict, NodeFailure::NotEmpty, Code::Failed, "NotEmpty: /a: what; right"),
            (Kind::NoQuorum, NodeFailure::Unspecified, Code::NoQuorum, "/a: what; right"),
            (Kind::NoKeyspace, NodeFailure::Unspecified, Code::NotFound, "/a: what; right"),
        ] {
            let told = refused(kind, failure);
            assert_eq!((told.code, told.message.as_str()), (code, text));
        }
        let unknown =
            failed("/a", ClientError::OutcomeUnknown { why: String::from("x"), token: None });
        assert_eq!(unknown.code, Code::Timeout);
        assert_eq!(credential("digest:a:b"), Ok((String::from("digest"), String::from("a:b"))));
        assert!(credential("digest").is_err());
    }
}
