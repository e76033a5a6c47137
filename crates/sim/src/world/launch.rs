//! What runs on a host: the overlay, the catalog, events, and the lanes that the catalog opens.

use super::founders::Founders;
use super::{RollSection, World};
use crate::engines;
use crate::host::{Host, Surroundings, Wrap};
use crate::keyspace::usual_pace;
use crate::prepared::Prepared;
use crate::queue::HostIndex;
use crate::scenario::Scenario;
use quorate_kernel::engine::{Opening, Pace};
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::{ClusterId, LaneId, Start};
use quorate_kernel::keyspace::{Keyspace, NewKeyspace};
use quorate_kernel::lane::LaneSpec;
use quorate_kernel::process::Recovery;
use quorate_kernel::ring::Ring;
use quorate_kernel::roll::Kind;
use quorate_kernel::storage::Durability;
use quorate_node::node::Opener;
use quorate_protocols::catalog::{Founding, Settings};
use quorate_protocols::engines::{always, open};
use quorate_protocols::{overlay, roll};
use std::sync::Arc;

/// What hosts know of lanes that the catalog will open.
pub struct Lanes {
    founding: Vec<NewKeyspace>,
    known: Arc<[Known]>,
}

/// What hosts know of the lane of one keyspace.
#[derive(Clone)]
struct Known {
    name: String,
    pace: Pace,
    wrap: Option<Wrap>,
}

impl Lanes {
    /// Those of a scenario's keyspaces, each with another lane around it where a test plants a bug.
    #[must_use]
    pub fn new(prepared: &Prepared, wraps: &[Option<Wrap>]) -> Lanes {
        let mut founding: Vec<(LaneId, NewKeyspace)> = Vec::new();
        let mut known = Vec::new();
        for (index, keyspace) in prepared.keyspaces.iter().enumerate() {
            let wrap = wraps.get(index).copied().flatten();
            let (name, pace) = (keyspace.name.clone(), keyspace.pace.clone());
            known.push(Known { name, pace, wrap });
            founding.extend(keyspace.founding.clone().map(|founding| (keyspace.lane, founding)));
        }
        founding.sort_by_key(|(lane, _)| *lane);
        let founding = founding.into_iter().map(|(_, keyspace)| keyspace).collect();
        Lanes { founding, known: known.into() }
    }

    /// Starts the process of a host that is down; a founder is given the founders' ring.
    ///
    /// # Errors
    /// The store of the host failed.
    pub fn launch(
        &self,
        host: &mut Host,
        overlay: overlay::Settings,
        (ring, roll): (Option<&Ring>, Option<Kind>),
        around: &mut Surroundings<'_>,
    ) -> Result<(), Fatal> {
        let born = (LaneId::KEYSPACES.0..).map(LaneId).take(self.founding.len());
        let keyspaces = self.founding.clone();
        let catalog = Settings {
            engines: engines::all(),
            lanes: if ring.is_some() { born.collect() } else { Vec::new() },
            founding: ring.cloned().map(|ring| Founding { ring, keyspaces }),
        };
        let opener = self.opener(host);
        let roll = roll.map(|kind| roll::Settings::of(kind, ring));
        host.launch(always(overlay, catalog, roll), opener, around)
    }

    /// Makes the lanes of keyspaces.
    fn opener(&self, host: &Host) -> Opener {
        let known = Arc::clone(&self.known);
        let (recovery, start) = (host.recovery(), host.me().start.next());
        let (cluster, signing_key) = (ClusterId(1), [7; 32]);
        Box::new(move |keyspace: &Keyspace, since: Start| {
            // What it has heard of in this start it cannot have forgotten.
            let is_intact = keyspace.durability() == Durability::Sync || since == start;
            let recovery = if is_intact { Recovery::Intact } else { recovery };
            // Its lane is another one after it was made again.
            let of_lane = known.iter().find(|known| known.name == keyspace.name);
            let usual = usual_pace();
            let pace = of_lane.map_or(&usual, |known| &known.pace);
            let opening = Opening { keyspace, cluster, signing_key, pace };
            let spec = open(engines::all(), &opening, recovery).ok()?;
            Some(match of_lane.and_then(|known| known.wrap) {
                Some(wrap) => LaneSpec { process: wrap(spec.process), ..spec },
                None => spec,
            })
        })
    }
}

impl World<'_> {
    /// Starts the node of a host that is down.
    pub(super) fn launch(&mut self, host: HostIndex) -> Result<(), Fatal> {
        let World { founders, lanes, prepared, machines, .. } = self;
        let scenario: &Scenario = &prepared.scenario;
        let overlay = Founders::overlay(founders, scenario, &machines.hosts, host);
        let ring = founders.ring(machines.hosts[host].node_id);
        let (target, mut around) = machines.lend(host);
        lanes.launch(target, overlay, (ring, scenario.roll.map(RollSection::kind)), &mut around)
    }
}
