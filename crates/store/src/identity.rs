//! Who a data directory is: what `quorate init`, or a join, writes once and nothing changes
//! afterwards.

use crate::files::{seal, unseal};
use quorate_kernel::ids::{ClusterId, LaneId, NodeId};
use quorate_kernel::storage::Durability;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
    /// The cluster's secret.
    pub secret: Secret,
    /// The hosts the cluster was born with; of a host that joined, those that the ring had then,
    /// itself included.
    pub hosts: Vec<HostRecord>,
    /// The keyspaces of the cluster.
    pub keyspaces: Vec<KeyspaceRecord>,
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
    /// Its positions on the ring, ascending.
    pub tokens: Vec<u64>,
}

/// One keyspace. The words of its settings are those of the engines' catalog.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyspaceRecord {
    /// Its name.
    pub name: String,
    /// Its lane on every node.
    pub lane: LaneId,
    /// The engine that serves it.
    pub engine: String,
    /// How durable its data is.
    pub durability: Durability,
    /// The longest value it takes.
    pub value_bytes_max: u64,
    /// How many hosts hold each key.
    pub replicas: u8,
    /// Where keys stand on the ring: `hash` or `key`.
    pub order: String,
    /// What an operation promises: `atomic` or `eventual`.
    pub mode: String,
    /// What only its engine understands.
    pub settings: BTreeMap<String, String>,
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
    hosts: Vec<HostText>,
    keyspaces: Vec<KeyspaceText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HostText {
    host: u32,
    node: String,
    address: String,
    zone: String,
    tokens: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeyspaceText {
    name: String,
    lane: u32,
    engine: String,
    durability: String,
    value_bytes_max: u64,
    replicas: u8,
    order: String,
    mode: String,
    #[serde(default)]
    settings: BTreeMap<String, String>,
}

impl From<&Identity> for IdentityText {
    fn from(identity: &Identity) -> IdentityText {
        IdentityText {
            cluster: identity.cluster.to_string(),
            node: identity.node.to_string(),
            host: identity.host,
            is_founder: identity.is_founder,
            secret: identity.secret.0.iter().map(|byte| format!("{byte:02x}")).collect(),
            hosts: identity.hosts.iter().map(HostText::from).collect(),
            keyspaces: identity.keyspaces.iter().map(KeyspaceText::from).collect(),
        }
    }
}

impl From<&HostRecord> for HostText {
    fn from(record: &HostRecord) -> HostText {
        HostText {
            host: record.host,
            node: record.node.to_string(),
            address: record.address.clone(),
            zone: record.zone.clone(),
            tokens: record.tokens.iter().map(|token| format!("{token:016x}")).collect(),
        }
    }
}

impl From<&KeyspaceRecord> for KeyspaceText {
    fn from(record: &KeyspaceRecord) -> KeyspaceText {
        KeyspaceText {
            name: record.name.clone(),
            lane: record.lane.0,
            engine: record.engine.clone(),
            durability: record.durability.to_string(),
            value_bytes_max: record.value_bytes_max,
            replicas: record.replicas,
            order: record.order.clone(),
            mode: record.mode.clone(),
            settings: record.settings.clone(),
        }
    }
}

impl TryFrom<IdentityText> for Identity {
    type Error = String;

    fn try_from(text: IdentityText) -> Result<Identity, String> {
        Ok(Identity {
            cluster: ClusterId(
                u128::from_str_radix(&text.cluster, 16).map_err(|_| wrong("cluster"))?,
            ),
            node: NodeId(word(&text.node, "node")?),
            host: text.host,
            is_founder: text.is_founder,
            secret: secret(&text.secret)?,
            hosts: text.hosts.into_iter().map(HostRecord::try_from).collect::<Result<_, _>>()?,
            keyspaces: text
                .keyspaces
                .into_iter()
                .map(KeyspaceRecord::try_from)
                .collect::<Result<_, _>>()?,
        })
    }
}

impl TryFrom<HostText> for HostRecord {
    type Error = String;

    fn try_from(text: HostText) -> Result<HostRecord, String> {
        let tokens = text.tokens.iter().map(|token| word(token, "tokens"));
        Ok(HostRecord {
            host: text.host,
            node: NodeId(word(&text.node, "node")?),
            address: text.address,
            zone: text.zone,
            tokens: tokens.collect::<Result<_, _>>()?,
        })
    }
}

impl TryFrom<KeyspaceText> for KeyspaceRecord {
    type Error = String;

    fn try_from(text: KeyspaceText) -> Result<KeyspaceRecord, String> {
        Ok(KeyspaceRecord {
            lane: LaneId(text.lane),
            engine: text.engine,
            durability: text.durability.parse().map_err(str::to_owned)?,
            value_bytes_max: text.value_bytes_max,
            replicas: text.replicas,
            order: text.order,
            mode: text.mode,
            settings: text.settings,
            name: text.name,
        })
    }
}

fn wrong(field: &str) -> String {
    format!("`{field}` is not hexadecimal")
}

fn word(text: &str, field: &str) -> Result<u64, String> {
    u64::from_str_radix(text, 16).map_err(|_| wrong(field))
}

fn secret(text: &str) -> Result<Secret, String> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return Err("`secret` is not 64 hexadecimal digits".to_owned());
    }
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong("secret"))?;
    }
    Ok(Secret(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_reads_what_it_wrote() {
        let node = NodeId(u64::MAX - 1);
        let identity = Identity {
            cluster: ClusterId(u128::MAX / 3),
            node,
            host: 2,
            is_founder: true,
            secret: Secret([0xa7; 32]),
            hosts: vec![HostRecord {
                host: 2,
                node,
                address: "127.0.0.1:7001".to_owned(),
                zone: "a".to_owned(),
                tokens: vec![7, u64::MAX],
            }],
            keyspaces: vec![KeyspaceRecord {
                name: "default".to_owned(),
                lane: LaneId(3),
                engine: "linearizable".to_owned(),
                durability: Durability::Periodic { every_ms: 20 },
                value_bytes_max: 16 << 20,
                replicas: 5,
                order: "hash".to_owned(),
                mode: "atomic".to_owned(),
                settings: BTreeMap::from([("index".to_owned(), "on".to_owned())]),
            }],
        };
        let text = identity.to_text();
        assert_eq!(Identity::from_text(&text), Ok(identity.clone()));
        assert!(text.contains(&"a7".repeat(32)), "the file is readable");
        assert!(!format!("{identity:?}").contains("a7a7"), "the secret is not printed");
        let other = text.replace("linearizable", "linearizablE");
        assert_eq!(
            Identity::from_text(&other),
            Err("its checksum does not match its text".to_owned())
        );
        let unknown = seal("surprise = 1\n");
        assert!(Identity::from_text(&unknown).is_err());
    }
}
