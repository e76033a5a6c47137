//! Who takes part in a simulated cluster: its founders, and the hosts that join, leave and come
//! back.

use super::balance::BalanceSection;
use crate::host::Host;
use crate::queue::HostIndex;
use crate::scenario::Scenario;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_kernel::rng::Rng;
use quorate_protocols::overlay;
use quorate_protocols::overlay::tokens::places;

/// The founders of a cluster, as everybody knows them.
#[derive(Clone, Debug)]
pub struct Founders {
    ring: Ring,
}

impl Founders {
    /// The founders of a scenario: its hosts but the spare ones.
    #[must_use]
    pub fn new(scenario: &Scenario, nodes: impl Iterator<Item = NodeId>) -> Founders {
        let mut tokens = places::founding(scenario.members(), scenario.tokens);
        if let Some(fewer) = scenario.balance.as_ref().and_then(|balance| balance.tokens_fewer) {
            tokens.iter_mut().skip(1).step_by(2).for_each(|tokens| tokens.truncate(fewer));
        }
        let host = |(index, (node, tokens)): (HostIndex, (NodeId, Vec<u64>))| RingHost {
            who: Incarnation { node, start: Start(0) },
            address: format!("n{}", index + 1),
            zone: String::new(),
            tokens,
            standing: Standing::Up,
            is_suspected: false,
            doors: Vec::new(),
        };
        let ring = Ring::new(0, nodes.zip(tokens).enumerate().map(host).collect());
        Founders { ring }
    }

    /// The founders' ring; `None` for a node that joined later.
    #[must_use]
    pub fn ring(&self, node: NodeId) -> Option<&Ring> {
        self.ring.host(node).map(|_| &self.ring)
    }

    /// Whom a host that joins is told of: the nodes that are there now. A founder that was wiped is
    /// there by another name.
    fn contacts(&self, present: &[(NodeId, HostIndex)]) -> Vec<RingHost> {
        let contact = |(node, index): &(NodeId, HostIndex)| RingHost {
            who: Incarnation { node: *node, start: Start(0) },
            address: format!("n{}", index + 1),
            zone: String::new(),
            tokens: self.ring.host(*node).map_or_else(Vec::new, |host| host.tokens.clone()),
            standing: Standing::Up,
            is_suspected: false,
            doors: Vec::new(),
        };
        present.iter().map(contact).collect()
    }

    /// What the overlay of one of these hosts begins with; it is told of those that take part now.
    #[must_use]
    pub fn overlay(
        &self,
        scenario: &Scenario,
        hosts: &[Host],
        index: HostIndex,
    ) -> overlay::Settings {
        let node = hosts[index].node_id;
        let joined = hosts.iter().enumerate().filter(|(_, host)| host.has_joined);
        let present: Vec<_> = joined.map(|(index, host)| (host.node_id, index)).collect();
        // The choice of tokens is the host's, and the same each time it starts.
        let mut rng = Rng::new(node.0);
        let is_founder = self.ring.host(node).is_some();
        let tokens = match self.ring.host(node) {
            Some(host) => host.tokens.clone(),
            None if scenario.keeps_view => Vec::new(),
            None => places::joining(&self.ring, &[], scenario.tokens, &mut rng),
        };
        overlay::Settings {
            address: format!("n{}", index + 1),
            zone: String::new(),
            doors: Vec::new(),
            tokens,
            hosts: if is_founder { self.ring.hosts().to_vec() } else { self.contacts(&present) },
            balance: scenario.balance.as_ref().map(BalanceSection::settings),
        }
    }
}
