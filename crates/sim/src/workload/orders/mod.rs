//! Orders to the catalog: keyspaces are made, altered, dropped and listed.
//!
//! Each client orders one thing at a time, of few names so that orders collide, and changes hosts.
//! What hosts store of the chain of decrees, and what they were told of it, is looked at for the
//! judge.

mod chain;

use super::fleet::{Addressee, End, Fleet, Stage};
use super::section::WorkloadSection;
use super::{Demand, Findings, Ground, Workload};
use crate::fault::What;
use crate::host::Host;
use crate::hosts::machines::Scene;
use chain::Chain;
use quorate_check::Judges;
use quorate_check::catalog::{self, CatalogOrder, Ending, History, OrderNumber};
use quorate_kernel::keyspace::{CatalogRefusal, KeyspaceOrder, NewKeyspace, Settings};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::rng::Rng;
use quorate_protocols::engines::ENGINES;

/// How many of a million orders are followed by a change of the host.
const MOVE_PPM: u32 = 500_000;
/// The setting that tells what an order has done: every engine takes any number for it.
const TAG: &str = "value";

/// What the clients of the catalog order, and what they saw.
pub struct Orders {
    section: WorkloadSection,
    names: u64,
    /// What each client waits for.
    open: Vec<Option<OrderNumber>>,
    tags: u64,
    chain: Chain,
    history: History,
    is_asked: bool,
}

impl Orders {
    /// Nothing was ordered yet.
    #[must_use]
    pub fn new(section: &WorkloadSection, rng: &mut Rng) -> Orders {
        Orders {
            section: section.clone(),
            names: rng.between(section.keys_min, section.keys),
            open: vec![None; section.clients],
            tags: 0,
            chain: Chain::default(),
            history: History::default(),
            is_asked: false,
        }
    }

    /// Draws what a client orders; nothing if it asks for a list.
    fn draw(&mut self, rng: &mut Rng) -> Option<(KeyspaceOrder, CatalogOrder)> {
        let name = format!("k{}", rng.below(self.names));
        let WorkloadSection { get: list, put: create, delete: drop, alter, .. } = self.section;
        let drawn = rng.below(u64::from(list + create + drop + alter)) as u32;
        self.tags += 1;
        let tag = self.tags;
        let settings = Settings::from([(TAG.to_owned(), tag.to_string())]);
        if drawn < list {
            None
        } else if drawn < list + create {
            let (engine, ask) = (ENGINES[0].name.to_owned(), name.clone());
            let order = KeyspaceOrder::Create(NewKeyspace { name, engine, settings });
            Some((order, CatalogOrder::Create { name: ask, tag }))
        } else if drawn < list + create + drop {
            Some((KeyspaceOrder::Drop { name: name.clone() }, CatalogOrder::Drop { name }))
        } else {
            let ask = CatalogOrder::Alter { name: name.clone(), tag };
            Some((KeyspaceOrder::Alter { name, settings }, ask))
        }
    }

    /// A host says which keyspaces there are, if it knows.
    fn list(&mut self, host: &Host) -> End {
        let Some(told) = &host.told else { return End::Refused };
        self.history.said(host.node_id, told.version, chain::known(told));
        End::Answered
    }

    /// An order has ended, or nobody knows.
    fn conclude(&mut self, client: usize, ending: Ending, told: &str, fleet: &mut Fleet) {
        let Some(order) = self.open[client].take() else { return };
        self.history.end(order, ending);
        let end = match ending {
            Ending::Done | Ending::Exists | Ending::Missing => End::Answered,
            Ending::Refused => End::Refused,
            Ending::Unknown => End::Unknown,
        };
        fleet.end(client, end, &|| told.to_owned());
    }
}

impl Workload for Orders {
    fn is_done(&self, client: usize, fleet: &Fleet) -> bool {
        fleet.seats[client].left == 0 || fleet.stage == Stage::Final
    }

    fn on_client(&mut self, index: usize, fleet: &mut Fleet, scene: &mut Scene<'_>) {
        let seat = &mut fleet.seats[index];
        seat.left -= 1;
        let host = seat.host.expect("it is connected");
        let Some((order, ask)) = self.draw(&mut seat.rng) else {
            // A host that has just started may not know yet.
            fleet.begin(index, 1, true, scene);
            let end = self.list(&scene.hosts[host]);
            fleet.end(index, end, &|| "nothing".to_owned());
            return fleet.go_on(index, MOVE_PPM, scene);
        };
        let name = fleet.name(index);
        scene.line(format_args!("{name} -> n{} {order:?}", host + 1));
        self.open[index] = Some(self.history.order(scene.hosts[host].me(), ask));
        fleet.begin(index, 1, false, scene);
        fleet.send(index, 0, Demand::Order(order));
    }

    fn on_answer(
        &mut self,
        asked: Addressee,
        outcome: Outcome,
        fleet: &mut Fleet,
        scene: &mut Scene<'_>,
    ) {
        let client = asked.client.expect("only clients order anything");
        let (name, told) = (fleet.name(client), format!("{outcome:?}"));
        scene.trace.note((client as u64) << 16 ^ told.len() as u64);
        scene.line(format_args!("{name}: {told}"));
        self.conclude(client, ending(&outcome), &told, fleet);
        fleet.go_on(client, MOVE_PPM, scene);
    }

    fn on_silence(&mut self, client: usize, fleet: &mut Fleet, _scene: &mut Scene<'_>) {
        self.conclude(client, Ending::Unknown, "nothing", fleet);
    }

    fn watch(&mut self, hosts: &[Host], anew: bool) {
        self.chain.watch(hosts, anew, &mut self.history);
    }

    /// The system group's own rule holds for every world.
    fn bears(&self, _what: &What, _ground: &Ground<'_>) -> bool {
        true
    }

    /// When all know the same, each host is asked.
    fn at_quiescence(&mut self, ground: &Ground<'_>, _fleet: &mut Fleet) -> Option<String> {
        if ground.unsettled.is_none() && !self.is_asked {
            self.is_asked = true;
            for host in ground.hosts {
                self.list(host);
            }
        }
        ground.unsettled.map(str::to_owned)
    }

    fn judge(&mut self, _judges: &mut Judges) -> Findings {
        let violation = catalog::judge(&self.history).err();
        Findings { violation: violation.map(|message| ("catalog", message)), undecided: None }
    }
}

/// What an answer means.
fn ending(outcome: &Outcome) -> Ending {
    match outcome {
        Outcome::Noted => Ending::Done,
        Outcome::Refused(Refusal::Catalog(CatalogRefusal::Exists { .. })) => Ending::Exists,
        Outcome::Refused(Refusal::Catalog(CatalogRefusal::Unknown { .. })) => Ending::Missing,
        Outcome::Refused(refusal) if !refusal.may_have_applied() => Ending::Refused,
        _ => Ending::Unknown,
    }
}
