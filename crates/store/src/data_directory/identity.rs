//! Who a data directory is: what `quorate init`, or a join, writes once and nothing changes
//! afterwards.

use crate::data_directory::files::{seal, unseal};
use crate::text::{self, HostText};
use quorate_kernel::ids::{ClusterId, NodeId};
use quorate_kernel::keyspace::NewKeyspace;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A cluster's shared secret. It prints as dots.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Who a data directory is, and what its cluster looked like when it was born.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The cluster it belongs to.
    pub cluster: ClusterId,
    /// The node that lives in it.
    pub node: NodeId,
    /// Which of the hosts it is, from 1: a name for people, never an identity.
    pub host: u32,
    /// Whether the cluster was born with this directory. Only then do the first views follow from
    /// `hosts`; a host that joined later learns which groups there are from the others.
    pub is_founder: bool,
    /// The cluster's secret when the directory was made. It may have been changed since.
    pub secret: Secret,
    /// The key that signs contexts of causal keyspaces, of a host that joined; it follows from the
    /// secret that the cluster was born with, which founders have.
    pub context_key: Option<[u8; 32]>,
    /// The hosts the cluster was born with; of a host that joined, those that the ring had then,
    /// itself included.
    pub hosts: Vec<HostRecord>,
    /// The keyspaces that the cluster was born with, in the order of their lanes, each with all its
    /// settings.
    pub keyspaces: Vec<NewKeyspace>,
}

/// One host of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostRecord {
    /// Its number, from 1.
    pub host: u32,
    /// The node that lives on it.
    pub node: NodeId,
    /// Where it may be found: a hint, never an identity.
    pub address: String,
    /// Its failure zone; empty if none is configured.
    pub zone: String,
    /// Its tokens on the ring, ascending.
    pub tokens: Vec<u64>,
}

impl Identity {
    /// The sealed text of the identity file.
    pub(crate) fn to_text(&self) -> String {
        let body = toml::to_string(&IdentityText::from(self))
            .expect("strings, numbers and tables always have a TOML form");
        seal(&format!("# Written once, at birth or at a join; a changed byte is refused.\n{body}"))
    }

    /// Reads the identity file.
    pub(crate) fn from_text(text: &str) -> Result<Identity, String> {
        let body = unseal(text)?;
        let text: IdentityText = toml::from_str(body).map_err(|e| e.message().to_owned())?;
        text.try_into()
    }
}

/// The identity as TOML has it: ids in hexadecimal, since TOML's numbers have 63 bits.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IdentityText {
    cluster: String,
    node: String,
    host: u32,
    is_founder: bool,
    secret: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    context_key: Option<String>,
    hosts: Vec<HostText>,
    keyspaces: Vec<NewKeyspace>,
}

impl From<&Identity> for IdentityText {
    fn from(identity: &Identity) -> IdentityText {
        IdentityText {
            cluster: identity.cluster.to_string(),
            node: identity.node.to_string(),
            host: identity.host,
            is_founder: identity.is_founder,
            secret: text::of_bytes(&identity.secret.0),
            context_key: identity.context_key.as_ref().map(|key| text::of_bytes(key)),
            hosts: identity.hosts.iter().map(HostText::from).collect(),
            keyspaces: identity.keyspaces.clone(),
        }
    }
}

impl TryFrom<IdentityText> for Identity {
    type Error = String;

    fn try_from(identity: IdentityText) -> Result<Identity, String> {
        Ok(Identity {
            cluster: text::cluster(&identity.cluster)?,
            node: NodeId(text::word(&identity.node, "node")?),
            host: identity.host,
            is_founder: identity.is_founder,
            secret: Secret(text::bytes(&identity.secret, "secret")?),
            context_key: identity
                .context_key
                .map(|key| text::bytes(&key, "context_key"))
                .transpose()?,
            hosts: identity
                .hosts
                .into_iter()
                .map(HostRecord::try_from)
                .collect::<Result<_, _>>()?,
            keyspaces: identity.keyspaces,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn an_identity_reads_what_it_wrote() {
        let node = NodeId(u64::MAX - 1);
        let identity = Identity {
            cluster: ClusterId(u128::MAX / 3),
            node,
            host: 2,
            is_founder: true,
            secret: Secret([0xa7; 32]),
            context_key: Some([0xb8; 32]),
            hosts: vec![HostRecord {
                host: 2,
                node,
                address: "127.0.0.1:7001".to_owned(),
                zone: "a".to_owned(),
                tokens: vec![7, u64::MAX],
            }],
            keyspaces: vec![NewKeyspace {
                name: "default".to_owned(),
                engine: "linearizable".to_owned(),
                settings: BTreeMap::from([("order".to_owned(), "hash".to_owned())]),
            }],
        };
        let text = identity.to_text();
        assert_eq!(Identity::from_text(&text), Ok(identity.clone()));
        assert!(text.contains(&"a7".repeat(32)), "the file is readable");
        assert!(!format!("{identity:?}").contains("a7a7"), "the secret is not printed");
        let founder = Identity { context_key: None, ..identity.clone() };
        assert_eq!(Identity::from_text(&founder.to_text()), Ok(founder));
        let other = text.replace("linearizable", "linearizablE");
        assert_eq!(
            Identity::from_text(&other),
            Err("its checksum does not match its text".to_owned())
        );
        let unknown = seal("surprise = 1\n");
        assert!(Identity::from_text(&unknown).is_err());
    }
}
