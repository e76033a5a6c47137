//! Who takes part in a simulated cluster: its founders, and the hosts that join, leave and come
//! back.

use crate::balance::BalanceSection;
use crate::groups::{self, Groups};
use crate::host::{Host, LANE, Running};
use crate::queue::{Event, HostIndex};
use crate::scenario::Scenario;
use crate::workload::Stage;
use crate::world::World;
use quorate_kernel::ids::{Incarnation, NodeId, Start, Ticket};
use quorate_kernel::keyspace::{Birth, Keyspace};
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_kernel::rng::Rng;
use quorate_protocols::linearizable::ENGINE;
use quorate_protocols::overlay::{self, tokens};
use quorate_protocols::placement;

/// The ticket of what the simulator itself asks; nobody waits for the answer.
pub const NOBODY: Ticket = Ticket(u64::MAX);
/// How often the groups are looked at while the end is awaited.
const LOOK_NS: u64 = 100_000_000;
/// How often they are looked at before.
pub const WATCH_NS: u64 = 500_000_000;

/// The founders of a cluster, as everybody knows them.
#[derive(Clone, Debug)]
pub struct Founders {
    ring: Ring,
    replicas: u8,
}

impl Founders {
    /// The founders of a scenario: its hosts but the spare ones.
    #[must_use]
    pub fn new(scenario: &Scenario, directory: &[(NodeId, HostIndex)]) -> Founders {
        let mut tokens = tokens::founding(scenario.members(), scenario.tokens);
        if let Some(fewer) = scenario.balance.as_ref().and_then(|balance| balance.tokens_fewer) {
            tokens.iter_mut().skip(1).step_by(2).for_each(|tokens| tokens.truncate(fewer));
        }
        let host = |((node, index), tokens): (&(NodeId, HostIndex), Vec<u64>)| RingHost {
            who: Incarnation { node: *node, start: Start(0) },
            address: format!("n{}", index + 1),
            zone: String::new(),
            tokens,
            standing: Standing::Up,
            is_suspected: false,
        };
        let ring = Ring::new(0, directory.iter().zip(tokens).map(host).collect());
        Founders { ring, replicas: scenario.replicas() }
    }

    /// The keyspace as a host has it: a founder has views to begin with, who joins has none.
    #[must_use]
    pub fn keyspace(&self, scenario: &Scenario, node: NodeId) -> Keyspace {
        let pairs = [
            ("replicas", self.replicas.to_string()),
            ("durability", scenario.durability().to_string()),
        ];
        let order = scenario.balance.as_ref().map(|balance| ("order", balance.order.clone()));
        let settings = pairs.into_iter().chain(order);
        let settings = settings.map(|(name, value)| (name.to_owned(), value)).collect();
        let settings = ENGINE.complete(&settings).expect("a scenario's settings were checked");
        let mut keyspace = Keyspace::new("default", LANE, ENGINE.name, settings, 1);
        // A spare that never joins the ring knows the first views too: it only coordinates.
        if self.ring.host(node).is_some() || scenario.keeps_view {
            let before = usize::from(scenario.replicas_before.unwrap_or(self.replicas));
            keyspace.birth = Birth::Online(placement::first_views(&self.ring, before));
        }
        keyspace
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
            None => tokens::joining(&self.ring, &[], scenario.tokens, &mut rng),
        };
        overlay::Settings {
            address: format!("n{}", index + 1),
            zone: String::new(),
            tokens,
            hosts: if is_founder { self.ring.hosts().to_vec() } else { self.contacts(&present) },
            replicas_max: usize::from(self.replicas),
            balance: scenario.balance.as_ref().map(BalanceSection::settings),
        }
    }
}

impl World<'_> {
    /// Looks at all groups of all hosts. Returns what is not settled yet, if anything is.
    pub(crate) fn look(&mut self) -> Option<String> {
        let hosts = self.machines.hosts.iter().enumerate();
        let said: Vec<(HostIndex, Groups)> =
            hosts.filter_map(|(index, host)| Some((index, Groups::of(host, LANE)?))).collect();
        for (host, groups) in &said {
            self.machines.hosts[*host].said = groups.clone();
        }
        if let Some(message) = groups::differing(&said).or_else(|| groups::rivals(&said)) {
            self.machines.condemn("views", message);
        }
        let version = said.iter().map(|(_, groups)| groups.number("view")).max();
        self.views = self.views.max(version.unwrap_or(0));
        let mut unsettled = said.iter().filter_map(|(host, groups)| {
            Some(format!("n{} has {}", host + 1, groups.unsettled()?))
        });
        let unsettled = unsettled.next();
        let all_run = self.machines.hosts.iter().all(|host| host.running == Running::Up);
        if unsettled.is_some() || !all_run {
            return unsettled;
        }
        self.forgive_wipes(&said);
        if !groups::covers(&said) {
            return Some("no group serves a part of the ring".to_owned());
        }
        let unbalanced = self.unbalanced();
        if unbalanced.is_none() && self.workload.stage == Stage::Over {
            self.judge_balance(&said);
        }
        unbalanced
    }

    /// All groups are settled: whoever lost its directory has been made up for, so that another may
    /// lose its own.
    fn forgive_wipes(&mut self, said: &[(HostIndex, Groups)]) {
        for host in &mut self.machines.hosts {
            let is_lost = |name: &String| host.lost.iter().any(|node| node.to_string() == *name);
            let mut rows = said.iter().flat_map(|(_, groups)| &groups.rows);
            host.is_wiped &= rows.any(|row| row.is_member && row.members.iter().any(is_lost));
        }
    }

    /// Whether every group that names this host is left with a majority of members that hold all
    /// of its data. A newcomer that still copies is no second copy.
    pub(crate) fn may_lose(&self, host: HostIndex) -> bool {
        let others = self.machines.hosts.iter().enumerate().filter(|(index, _)| *index != host);
        // Who is down holds what it held.
        let last = |host: &Host| Groups::of(host, LANE).unwrap_or_else(|| host.said.clone());
        let said: Vec<(HostIndex, Groups)> =
            others.map(|(index, host)| (index, last(host))).collect();
        groups::lacking_a_majority(&said, &self.machines.hosts[host].node_id.to_string()).is_none()
    }

    /// Looks at the groups now and then while clients work.
    pub(crate) fn watch(&mut self) {
        self.look();
        if self.workload.stage != Stage::Over {
            self.machines.after(WATCH_NS, Event::Watch);
        }
    }

    /// The clients have finished: the run ends when the groups have come to rest too.
    pub(crate) fn await_rest(&mut self) {
        let all_run = self.machines.hosts.iter().all(|host| host.running == Running::Up);
        self.unsettled = self.look();
        if self.unsettled.is_none() || !all_run || !self.is_whole {
            self.is_at_rest = true;
        } else {
            self.machines.after(LOOK_NS, Event::Look);
        }
    }
}
