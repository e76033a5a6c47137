//! What a host that joins is told by one of the cluster, and the identity that it makes of it.

use super::error::ProvisionError;
use super::plan::random;
use crate::ring::founding;
use crate::ring::report::cell;
use quorate_kernel::ids::NodeId;
use quorate_kernel::keyspace::NewKeyspace;
use quorate_kernel::limits::HOSTS_LISTED_MAX;
use quorate_kernel::ring::{Ring, Standing};
use quorate_kernel::rng::Rng;
use quorate_protocols::causal::token::Tokens;
use quorate_protocols::overlay::tokens;
use quorate_store::text::{self, HostText};
use quorate_store::{HostRecord, Identity, Secret};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What a host that joins is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invitation {
    /// The cluster.
    pub cluster: String,
    /// The version of the protocol between hosts.
    pub protocol: u8,
    /// A number for the newcomer that no other host has, as far as is known.
    pub number: u32,
    /// The key that signs contexts of causal keyspaces, in hexadecimal.
    pub context_key: String,
    /// The hosts on the ring.
    pub hosts: Vec<HostText>,
    /// Where tokens have stood that are gone: positions that bound groups all the same, as far as
    /// is known. A host that does not know of them says nothing.
    #[serde(default)]
    pub former: Vec<String>,
    /// The keyspaces.
    pub keyspaces: Vec<NewKeyspace>,
}

/// What a newcomer says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Newcomer {
    /// Its number, if it was given one.
    pub number: Option<u32>,
    /// Where the others find it.
    pub address: String,
    /// Its failure zone.
    pub zone: String,
    /// How many places on the ring it takes.
    pub tokens: usize,
}

impl Invitation {
    /// The invitation to a cluster whose ring looks like this.
    #[must_use]
    pub fn of(identity: &Identity, report: &crate::ring::Report, protocol: u8) -> Invitation {
        let hosts = report.ring.hosts();
        let is_there = |host: &&quorate_kernel::ring::RingHost| host.standing != Standing::Left;
        let inviting = |host: &quorate_kernel::ring::RingHost| {
            HostText::from(&HostRecord {
                host: report.number(host.who.node).unwrap_or(0),
                node: host.who.node,
                address: host.address.clone(),
                zone: host.zone.clone(),
                tokens: host.tokens.clone(),
            })
        };
        let highest = report.numbers.iter().map(|(_, number)| *number).max().unwrap_or(0);
        let count = u32::try_from(hosts.len()).unwrap_or(u32::MAX - 1);
        Invitation {
            cluster: identity.cluster.to_string(),
            protocol,
            context_key: text::of_bytes(&context_key(identity)),
            // Hosts that left keep theirs.
            number: highest.max(count) + 1,
            hosts: hosts.iter().filter(is_there).map(inviting).collect(),
            former: former(report).iter().map(|position| format!("{position:016x}")).collect(),
            keyspaces: identity.keyspaces.clone(),
        }
    }

    /// The identity of a newcomer, with a node id drawn now and places in the largest gaps.
    ///
    /// # Errors
    /// The invitation makes no sense, or the system gives no random bytes.
    pub fn accept(&self, newcomer: &Newcomer, secret: Secret) -> Result<Identity, ProvisionError> {
        let refused = |what: String| ProvisionError::Invitation { what };
        let hosts = self.hosts.iter().cloned().map(HostRecord::try_from);
        let hosts: Vec<HostRecord> = hosts.collect::<Result<_, _>>().map_err(refused)?;
        let keyspaces = self.keyspaces.clone();
        let cluster = text::cluster(&self.cluster).map_err(refused)?;
        let context_key = text::bytes(&self.context_key, "context_key").map_err(refused)?;
        let context_key = Some(context_key);
        let ring = Ring::new(0, founding::ring_hosts(&hosts));
        let former = self.former.iter().map(|position| text::word(position, "former"));
        let former = former.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let mut rng = Rng::new(u64::from_be_bytes(random()?));
        let record = HostRecord {
            host: newcomer.number.unwrap_or(self.number),
            node: NodeId(u64::from_be_bytes(random()?)),
            address: newcomer.address.clone(),
            zone: newcomer.zone.clone(),
            tokens: tokens::joining(&ring, &former, newcomer.tokens, &mut rng),
        };
        let (host, node) = (record.host, record.node);
        let mut hosts: Vec<HostRecord> = hosts.into_iter().chain([record]).collect();
        hosts.sort_by_key(|record| (record.host == 0, record.host, record.node));
        let is_founder = false;
        Ok(Identity { cluster, node, host, is_founder, secret, context_key, hosts, keyspaces })
    }
}

/// The key that signs contexts of causal keyspaces, the same on all hosts however their cluster's
/// secret has changed.
#[must_use]
pub fn context_key(identity: &Identity) -> [u8; 32] {
    identity.context_key.unwrap_or_else(|| Tokens::key_of(&identity.secret.0))
}

/// Where hosts that have left stood, and where groups end that this host knows, unless a token
/// stands there.
fn former(report: &crate::ring::Report) -> Vec<u64> {
    let hosts = report.ring.hosts().iter();
    let left = hosts.filter(|host| host.standing == Standing::Left);
    let groups = report.keyspaces.iter().flat_map(|keyspace| &keyspace.groups);
    let ends = groups.filter_map(|group| u64::from_str_radix(cell(group, "high"), 16).ok());
    let taken: BTreeSet<u64> = report.ring.tokens().map(|(token, _)| token).collect();
    let all: BTreeSet<u64> = left.flat_map(|host| host.tokens.clone()).chain(ends).collect();
    all.difference(&taken).copied().take(HOSTS_LISTED_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provision::{Doors, Plan, keyspace, write};
    use crate::ring::{Report, founding};
    use quorate_kernel::ring::Ring;
    use quorate_kernel::storage::Durability;
    use std::sync::Arc;

    #[test]
    fn a_newcomer_learns_what_the_cluster_knows_and_stands_in_a_gap() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let doors = |number| Doors::on_this_machine(7400, number).expect("ports in range");
        let plan = Plan {
            hosts: vec![doors(1), doors(2)],
            zones: Vec::new(),
            tokens: 1,
            keyspaces: vec![keyspace::standard()],
            durability: Durability::Sync,
        };
        let seed = write(&plan, place.path()).expect("an empty place");
        let mut hosts = founding::ring_hosts(&seed.hosts);
        hosts[1].standing = Standing::Left;
        let report = Report {
            me: seed.node,
            ring: Arc::new(Ring::new(1, hosts)),
            numbers: seed.hosts.iter().map(|record| (record.node, record.host)).collect(),
            keyspaces: Vec::new(),
        };
        let invitation = Invitation::of(&seed, &report, 1);
        let text = serde_json::to_string(&invitation).expect("texts and numbers");
        assert_eq!(serde_json::from_str::<Invitation>(&text).expect("its own form"), invitation);
        let newcomer = Newcomer {
            number: None,
            address: String::from("127.0.0.1:7431"),
            zone: String::from("a"),
            tokens: 2,
        };
        let changed = Secret([9; 32]);
        let joined = invitation.accept(&newcomer, changed).expect("a good invitation");
        assert_eq!(joined.secret, changed);
        assert_eq!(context_key(&joined), context_key(&seed), "contexts pass from host to host");
        assert!(!joined.is_founder && joined.cluster == seed.cluster && joined.host == 3);
        assert_eq!(joined.keyspaces, seed.keyspaces);
        assert_eq!(joined.hosts.len(), 2, "who has left is not looked for");
        let own = &joined.hosts[1];
        assert_eq!((own.node, own.tokens.len()), (joined.node, 2));
        assert!(own.tokens.contains(&u64::MAX), "the place of who has left is taken again");
        assert_eq!(
            founding::ring(&joined),
            None,
            "it learns from the others which groups there are"
        );
        let broken = Invitation { cluster: String::from("x"), ..invitation };
        let error = broken.accept(&newcomer, seed.secret);
        assert!(matches!(error, Err(ProvisionError::Invitation { .. })));
    }
}
