//! What clients do, what they were told, and whether that keeps the promises made to them.
//!
//! A [`Fleet`] has what all clients have: connections, patience, stages. A [`Workload`] says what
//! its clients ask, records what they were told, and judges it. What the loss of a disk, of memory
//! or of power may take is for the workload to know, too: it is part of the promise.
//!
//! | module | what it holds |
//! |---|---|
//! | [`fleet`] | the clients of one keyspace, whatever they ask |
//! | [`clients`] | their stages, and what happens to them |
//! | [`section`] | what a scenario says of them |
//! | [`registers`] | reads and writes of registers, and listings |
//! | [`siblings`] | reads and writes with contexts |
//! | [`orders`] | orders to the catalog |
//! | [`places`] | reads and writes that have places in one order |
//! | [`transactions`] | operations over several keys |
//! | [`tree`] | nodes, sessions and watches |

pub mod clients;
pub mod fleet;
pub mod orders;
pub mod places;
pub mod registers;
pub mod section;
pub mod siblings;
pub mod transactions;
pub mod tree;

use crate::fault::What;
use crate::groups::{self, Groups};
use crate::host::{Host, Running};
use crate::hosts::machines::Scene;
use crate::queue::HostIndex;
use crate::scenarios::keyspace::KeyspaceSection;
use fleet::{Addressee, Fleet, Stage};
use quorate_check::Judges;
use quorate_check::history::History;
use quorate_check::report::Verdict;
use quorate_kernel::engine::Engine;
use quorate_kernel::ids::{LaneId, NodeId, Ticket};
use quorate_kernel::keyspace::{Keyspace, KeyspaceOrder};
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Time;
use quorate_kernel::watch::Watch;
use section::Kind;

/// How many steps the judges of one history may take.
const STEPS_MAX: u64 = 20_000_000;

/// What a host is asked.
#[derive(Clone, Debug)]
pub enum Demand {
    /// By a client of a keyspace.
    Operation(Operation),
    /// By a client of the catalog.
    Order(KeyspaceOrder),
    /// By a client that follows something: answered more than once.
    Watch(Watch),
    /// The client has ended what it followed by this ticket.
    Unwatch,
}

/// Something a host is asked.
#[derive(Debug)]
pub struct Submission {
    /// By which host.
    pub host: HostIndex,
    /// Names it in the answer.
    pub ticket: Ticket,
    /// What is asked.
    pub ask: Demand,
}

/// A keyspace as a workload sees it when faults strike: the facts that its promise depends on.
pub struct Ground<'a> {
    /// All hosts.
    pub hosts: &'a [Host],
    /// The lane of the keyspace.
    pub lane: LaneId,
    /// Its engine; none of the catalog itself.
    pub engine: Option<&'static Engine>,
    /// Its level.
    pub durability: Durability,
    /// The fewest hosts that ever hold each key.
    pub replicas: usize,
    /// How many of them hold a write before it is acknowledged, where that is a setting.
    pub copies: usize,
    /// What hosts were told of it last.
    pub known: Option<&'a Keyspace>,
    /// What of it, or of the catalog, is not where it shall be, if anything is not.
    pub unsettled: Option<&'a str>,
    /// Whether a disk was lost so lately that its host may still be given something to hold.
    pub has_lost_lately: bool,
}

impl Ground<'_> {
    /// The hosts that hold a key, as the catalog has it.
    #[must_use]
    pub fn holders(&self, key: &[u8]) -> Vec<HostIndex> {
        let (Some(keyspace), Some(engine)) = (self.known, self.engine) else { return Vec::new() };
        let hash = (engine.token)(&keyspace.settings, key);
        let Some(home) = keyspace.partition_of(hash) else { return Vec::new() };
        let nodes = keyspace.holders(home).map(|at| keyspace.partitions[at].node);
        let host_of = |node| self.hosts.iter().position(|host| host.node_id == node);
        nodes.filter_map(host_of).collect()
    }

    /// What all hosts say of groups, or said when they ended. One that is down has no longer all if
    /// it had it in memory alone or may have forgotten something.
    #[must_use]
    pub fn held(&self) -> Vec<(HostIndex, Groups)> {
        let mut said: Vec<(HostIndex, Groups)> = Vec::new();
        for (index, host) in self.hosts.iter().enumerate() {
            let mut groups = Groups::last_of(host, self.lane);
            let has_less = self.durability == Durability::Memory || host.has_forgotten;
            let is_less = host.running == Running::Down && has_less;
            for row in groups.rows.iter_mut().filter(|_| is_less) {
                (row.is_ready, row.has_all) = (false, false);
            }
            said.push((index, groups));
        }
        said
    }

    /// Whether these hosts may have the only copy of something in groups.
    #[must_use]
    pub fn may_lose_copies(&self, hosts: &[HostIndex]) -> bool {
        groups::may_lose_some(&self.held(), (hosts, &self.nodes(hosts)))
    }

    /// The nodes that these hosts are.
    #[must_use]
    pub fn nodes(&self, hosts: &[HostIndex]) -> Vec<NodeId> {
        hosts.iter().map(|host| self.hosts[*host].node_id).collect()
    }
}

/// What judges found in the histories of one workload.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The first violation: the judge and its words.
    pub violation: Option<(&'static str, String)>,
    /// Why a judge could not tell, if one could not.
    pub undecided: Option<String>,
}

impl Findings {
    /// What all judges of histories on keys find.
    pub(crate) fn of<'a>(
        judges: &mut Judges,
        histories: impl Iterator<Item = &'a History>,
    ) -> Findings {
        let mut findings = Findings::default();
        for history in histories {
            let report = judges.judge(history, STEPS_MAX);
            report.verdicts().for_each(|(judge, verdict)| findings.note(judge, verdict));
        }
        findings
    }

    /// What a judge found in each of its histories.
    pub(crate) fn told(verdicts: impl Iterator<Item = (&'static str, Verdict)>) -> Findings {
        let mut findings = Findings::default();
        verdicts.for_each(|(judge, verdict)| findings.note(judge, &verdict));
        findings
    }

    fn note(&mut self, judge: &'static str, verdict: &Verdict) {
        match verdict {
            Verdict::Holds => {}
            Verdict::Violated(explanation) => {
                self.violation.get_or_insert((judge, explanation.to_string()));
            }
            Verdict::Unknown { why } => {
                self.undecided.get_or_insert(format!("{judge}: {why}"));
            }
        }
    }
}

/// What the clients of one keyspace ask, and what is promised to them.
pub trait Workload {
    /// The clients begin.
    fn start(&mut self, fleet: &mut Fleet, scene: &mut Scene<'_>) {
        fleet.start(scene);
    }

    /// A stage begins.
    fn on_stage(&mut self, _stage: Stage, _now: Time) {}

    /// Whether a client has done all that its stage asks.
    fn is_done(&self, client: usize, fleet: &Fleet) -> bool;

    /// A client that is connected, and waits for nothing, asks.
    fn on_client(&mut self, client: usize, fleet: &mut Fleet, scene: &mut Scene<'_>);

    /// A host answers what was asked in a connection that stands.
    fn on_answer(
        &mut self,
        asked: Addressee,
        outcome: Outcome,
        fleet: &mut Fleet,
        scene: &mut Scene<'_>,
    );

    /// A client gives up all that it waits for: nobody knows what becomes of that.
    fn on_silence(&mut self, client: usize, fleet: &mut Fleet, scene: &mut Scene<'_>);

    /// Hosts are looked at now and then, before a disk is lost, and in the end; `anew` at all that
    /// they have, not only at what is new.
    fn watch(&mut self, _hosts: &[Host], _anew: bool) {}

    /// Whether the promise bears a fault now. What no protocol can do without is not taken: the
    /// last copy of what was acknowledged.
    fn bears(&self, what: &What, ground: &Ground<'_>) -> bool;

    /// Hosts have lost what they had not synced.
    fn on_loss(&mut self, _hosts: &[HostIndex], _ground: &Ground<'_>, _scene: &mut Scene<'_>) {}

    /// Hosts lose all that they hold of the keyspace, with their disks or with their memory. Where
    /// that was the only copy it is gone; where others have one, nothing is. Returns whether no
    /// client goes on as it was: then all of them begin anew, with [`Workload::on_blackout`].
    fn on_lost_copies(
        &mut self,
        _hosts: &[HostIndex],
        _ground: &Ground<'_>,
        _scene: &mut Scene<'_>,
    ) -> bool {
        false
    }

    /// The power of hosts is about to fail, which takes what they have not synced. Returns whether
    /// no client goes on as it was, as [`Workload::on_lost_copies`] does.
    fn on_power(
        &mut self,
        _hosts: &[HostIndex],
        _ground: &Ground<'_>,
        _scene: &mut Scene<'_>,
    ) -> bool {
        false
    }

    /// Everything was lost, as the keyspace's level allows or because the keyspace was dropped and
    /// made again, and every connection with it.
    fn on_blackout(&mut self) {}

    /// The clients have finished. Returns what keeps the run from its end: that something still
    /// moves, or that the end is being looked at as the promise demands.
    fn at_quiescence(&mut self, ground: &Ground<'_>, _fleet: &mut Fleet) -> Option<String> {
        ground.unsettled.map(str::to_owned)
    }

    /// Whether all that clients were told keeps the promise.
    fn judge(&mut self, judges: &mut Judges) -> Findings;
}

/// The workload of a keyspace.
#[must_use]
pub fn of(keyspace: &KeyspaceSection, rng: &mut Rng) -> Box<dyn Workload> {
    let section = &keyspace.workload;
    match section.name {
        Kind::Registers => Box::new(registers::Registers::new(section, rng)),
        Kind::Siblings => Box::new(siblings::Siblings::new(section, rng)),
        Kind::Orders => Box::new(orders::Orders::new(section, rng)),
        Kind::Transactions => Box::new(transactions::Transactions::new(section, rng)),
        Kind::Places => Box::new(places::Places::new(section, rng)),
        Kind::Tree => {
            let has_session_reads = keyspace.is_ever("reads", "session");
            Box::new(tree::Tree::new(section, has_session_reads, rng))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::clock::Clock;
    use crate::delay::{Delay, Distribution};
    use crate::disk::Disk;
    use crate::groups::tests::{row, said};
    use crate::queue::Queue;
    use quorate_kernel::ids::Lsn;
    use quorate_kernel::storage::Batch;

    /// A host whose disk was given something that it has not synced since this time, if any.
    pub(crate) fn periodic(unsynced_since: Option<u64>) -> Host {
        let delay = || Delay::new(&Distribution::Constant { us: 1 });
        let mut disk = Disk::new(0, delay(), delay(), 1, None, Rng::new(1));
        disk.open(1, 0);
        if let Some(since) = unsynced_since {
            let queue = &mut Queue::default();
            disk.commit(Batch { lsn: Lsn(1), must_sync: false, writes: Vec::new() }, 0, queue);
            disk.on_written(since, queue).expect("the store is well");
        }
        Host::new(0, NodeId(1), disk, Clock::new(0, 0, 0), Rng::new(1))
    }

    /// Where one replica has become three the disk of one is no loss, though another one is down.
    #[test]
    fn a_host_that_is_down_has_what_is_on_its_disk() {
        let mut hosts = [None; 4].map(periodic);
        let all = row(1, (0, 0), &[1, 2, 3]);
        let all = said(&[all.clone(), all.clone(), all]).into_iter().map(|(_, groups)| groups);
        for ((node, host), groups) in (1..).zip(&mut hosts).zip(all.chain([Groups::default()])) {
            host.node_id = NodeId(node);
            host.said.insert(LaneId::KEYSPACES, groups);
        }
        let loses =
            |hosts: &[Host], host, durability| ground(hosts, durability).may_lose_copies(&[host]);
        assert!(!loses(&hosts, 0, "sync") && !loses(&hosts, 3, "sync"));
        hosts[1].has_forgotten = true;
        assert!(loses(&hosts, 0, "periodic=50ms"), "one of the others has not all");
        assert!(!loses(&hosts, 3, "periodic=50ms"), "it has nothing");
        assert!(loses(&hosts, 2, "memory"), "nobody has it that is down");
        assert!(!loses(&hosts, 3, "memory"), "it had nothing");
    }

    /// A keyspace of three replicas on these hosts.
    pub(crate) fn ground<'a>(hosts: &'a [Host], durability: &str) -> Ground<'a> {
        Ground {
            hosts,
            lane: LaneId::KEYSPACES,
            engine: None,
            durability: durability.parse().expect("it is one"),
            replicas: 3,
            copies: 3,
            known: None,
            unsettled: None,
            has_lost_lately: false,
        }
    }
}
