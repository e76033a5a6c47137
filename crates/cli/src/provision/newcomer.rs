//! The identity that a host which joins makes of what it is told.

use super::error::ProvisionError;
use super::plan::random;
use quorate_gateway::admin::Invitation;
use quorate_host::ring::founding;
use quorate_kernel::ids::NodeId;
use quorate_kernel::ring::Ring;
use quorate_kernel::rng::Rng;
use quorate_protocols::overlay::tokens::places;
use quorate_store::text;
use quorate_store::{HostRecord, Identity, Secret};

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

impl Newcomer {
    /// The identity that it makes of an invitation, with a node id drawn now and places in the
    /// largest gaps.
    ///
    /// # Errors
    /// The invitation makes no sense, or the system gives no random bytes.
    pub fn accept(
        &self,
        invitation: &Invitation,
        secret: Secret,
    ) -> Result<Identity, ProvisionError> {
        let refused = |what: String| ProvisionError::Invitation { what };
        let hosts = invitation.hosts.iter().cloned().map(HostRecord::try_from);
        let hosts: Vec<HostRecord> = hosts.collect::<Result<_, _>>().map_err(refused)?;
        let keyspaces = invitation.keyspaces.clone();
        let cluster = text::cluster(&invitation.cluster).map_err(refused)?;
        let context_key = text::bytes(&invitation.context_key, "context_key").map_err(refused)?;
        let context_key = Some(context_key);
        let ring = Ring::new(0, founding::ring_hosts(&hosts));
        let former = invitation.former.iter().map(|token| text::word(token, "former"));
        let former = former.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        let mut rng = Rng::new(u64::from_be_bytes(random()?));
        let record = HostRecord {
            host: self.number.unwrap_or(invitation.number),
            node: NodeId(u64::from_be_bytes(random()?)),
            address: self.address.clone(),
            zone: self.zone.clone(),
            tokens: places::joining(&ring, &former, self.tokens, &mut rng),
        };
        let (host, node) = (record.host, record.node);
        let mut hosts: Vec<HostRecord> = hosts.into_iter().chain([record]).collect();
        hosts.sort_by_key(|record| (record.host == 0, record.host, record.node));
        let is_founder = false;
        Ok(Identity { cluster, node, host, is_founder, secret, context_key, hosts, keyspaces })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provision::plan::tests::plan;
    use crate::provision::write;
    use quorate_host::ring::Report;
    use quorate_host::ring::founding::context_key;
    use quorate_kernel::ring::Standing;
    use std::sync::Arc;

    #[test]
    fn a_newcomer_learns_what_the_cluster_knows_and_stands_in_a_gap() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let seed = write(&plan(2), place.path()).expect("an empty place");
        let mut hosts = founding::ring_hosts(&seed.hosts);
        hosts[1].standing = Standing::Left;
        let report = Report {
            me: seed.node,
            ring: Arc::new(Ring::new(1, hosts)),
            roll: None,
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
        let joined = newcomer.accept(&invitation, changed).expect("a good invitation");
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
        let error = newcomer.accept(&broken, seed.secret);
        assert!(matches!(error, Err(ProvisionError::Invitation { .. })));
    }
}
