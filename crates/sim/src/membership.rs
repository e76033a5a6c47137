//! Who takes part in a simulated cluster: its founders, and the hosts that join, leave and come
//! back; and what must hold of all their groups together.

use crate::host::{Host, LANE, Running};
use crate::queue::{Event, HostIndex};
use crate::scenario::Scenario;
use crate::world::World;
use quorate_kernel::ids::{Incarnation, LaneId, NodeId, Start, Ticket};
use quorate_kernel::operation::Control;
use quorate_kernel::process::Inspect;
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use quorate_node::catalog::{Catalog, Engine, Keyspace};
use quorate_node::factory::overlay;
use quorate_node::pump::Input;
use quorate_protocols::overlay::balance::{choose_tokens, founding_tokens};
use std::collections::BTreeMap;
use std::fmt::Display;

/// The ticket of what the simulator itself asks; nobody waits for the answer.
pub const NOBODY: Ticket = Ticket(u64::MAX);
/// How often the groups are looked at while the end is awaited.
const LOOK_NS: u64 = 100_000_000;

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
        let tokens = founding_tokens(scenario.members(), scenario.tokens);
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

    /// The keyspaces of a host: a founder has views to begin with, who joins has none.
    #[must_use]
    pub fn catalog(&self, scenario: &Scenario, node: NodeId) -> Catalog {
        let (engine, durability) = (Engine::Linearizable, scenario.durability());
        // A spare that never joins the ring knows the first views too: it only coordinates.
        let keyspace = if self.ring.host(node).is_some() || scenario.keeps_view {
            Keyspace::founded("default", LANE, engine, durability, self.replicas, &self.ring)
        } else {
            Keyspace::joined("default", LANE, engine, durability, self.replicas)
        };
        Catalog { keyspaces: vec![keyspace.expect("a scenario's replicas were checked")] }
    }

    /// What the overlay of a host begins with.
    #[must_use]
    pub fn overlay(
        &self,
        scenario: &Scenario,
        node: NodeId,
        index: HostIndex,
        rng: &mut Rng,
    ) -> overlay::Settings {
        let tokens = match self.ring.host(node) {
            Some(host) => host.tokens.clone(),
            None if scenario.keeps_view => Vec::new(),
            None => choose_tokens(&self.ring, scenario.tokens, rng),
        };
        overlay::Settings {
            address: format!("n{}", index + 1),
            zone: String::new(),
            tokens,
            hosts: self.ring.hosts().to_vec(),
            replicas_max: usize::from(self.replicas),
            balance: false,
        }
    }
}

/// What one host says of its groups.
#[derive(Debug, Default)]
pub struct Groups {
    /// Fields that are numbers.
    fields: BTreeMap<&'static str, u64>,
    /// Each group's name and version, with its members and range.
    views: Vec<((String, u64), String)>,
}

impl Inspect for Groups {
    fn field(&mut self, name: &'static str, value: &dyn Display) {
        if let Ok(number) = value.to_string().parse() {
            self.fields.insert(name, number);
        }
    }

    fn row(&mut self, table: &'static str, cells: &[(&'static str, &dyn Display)]) {
        let cell = |name: &str| {
            let found = cells.iter().find(|(known, _)| *known == name);
            found.map_or_else(String::new, |(_, value)| value.to_string())
        };
        if table == "groups" {
            let version = cell("version").parse().unwrap_or(0);
            let what = format!("{} in ({}, {}]", cell("members"), cell("low"), cell("high"));
            self.views.push(((cell("group"), version), what));
        }
    }
}

impl Groups {
    /// What a running host says; `None` if it does not run.
    #[must_use]
    pub fn of(host: &Host) -> Option<Groups> {
        let mut groups = Groups::default();
        host.inspect(LANE, &mut groups);
        (host.running != Running::Down).then_some(groups)
    }

    fn number(&self, name: &str) -> u64 {
        self.fields.get(name).copied().unwrap_or(0)
    }

    /// Whether nothing is moving and nothing is wished for here.
    fn is_settled(&self) -> bool {
        let names = ["groups_lacking_data", "transfers", "changes_wanted"];
        names.iter().all(|name| self.number(name) == 0)
    }
}

impl World<'_> {
    /// A spare host joins the cluster, unless it has.
    pub(crate) fn join(&mut self, host: HostIndex) {
        if !self.hosts[host].has_joined {
            self.hosts[host].has_joined = true;
            self.trace.line(self.now, format_args!("** n{} joins", host + 1));
            if self.hosts[host].downs == 0 && self.hosts[host].running == Running::Down {
                self.start_host(host);
            }
        }
    }

    /// Asks a host's own overlay to hand over what it holds, or to take part again.
    pub(crate) fn drain(&mut self, host: HostIndex, undo: bool) {
        if self.hosts[host].running == Running::Down {
            return;
        }
        let node = self.hosts[host].node_id;
        let deadline = self.hosts[host].clock.local(self.now) + Span::secs(5);
        let control = Control::Drain { node, undo };
        let lane = LaneId::OVERLAY;
        self.arrive(host, Input::Control { lane, ticket: NOBODY, control, deadline });
    }

    /// Asks a host to remove every node whose directory was wiped. It refuses what it does not
    /// suspect yet.
    pub(crate) fn remove_wiped(&mut self, host: HostIndex) {
        let lost: Vec<NodeId> = self.hosts.iter().flat_map(|host| host.lost.clone()).collect();
        for node in lost {
            let deadline = self.hosts[host].clock.local(self.now) + Span::secs(5);
            let (lane, control) = (LaneId::OVERLAY, Control::Remove { node });
            self.arrive(host, Input::Control { lane, ticket: NOBODY, control, deadline });
        }
    }

    /// Looks at all groups of all hosts: no two hosts may know different views by one name (I2).
    /// Returns whether every group holds what it should, where it should.
    pub(crate) fn look(&mut self) -> bool {
        let said: Vec<(HostIndex, Groups)> = self
            .hosts
            .iter()
            .enumerate()
            .filter_map(|(index, host)| Some((index, Groups::of(host)?)))
            .collect();
        let mut known: BTreeMap<&(String, u64), (&String, HostIndex)> = BTreeMap::new();
        let mut differing = None;
        for (host, groups) in &said {
            for (name, what) in &groups.views {
                let (other, first) = known.entry(name).or_insert((what, *host));
                if *other != what {
                    differing = Some(format!(
                        "n{} and n{} know view {} of group {} differently: {other}; {what}",
                        *first + 1,
                        host + 1,
                        name.1,
                        name.0
                    ));
                }
            }
            self.views = self.views.max(groups.number("view"));
        }
        let is_settled = said.iter().all(|(_, groups)| groups.is_settled());
        if let Some(message) = differing {
            self.condemn("views", message);
        }
        is_settled
    }

    /// The clients have finished: the run ends when the groups have come to rest too.
    pub(crate) fn await_rest(&mut self) {
        let all_heal = self.hosts.iter().all(|host| host.running == Running::Up);
        if self.look() || !all_heal || !self.is_whole {
            self.is_at_rest = true;
        } else {
            self.queue.push(self.now + LOOK_NS, Event::Look);
        }
    }
}
