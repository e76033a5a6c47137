//! The world of [`hosts`], with the lane of this engine.

use crate::sealed::Sealer;
use crate::serializable::Optimizations;
use crate::serializable::lane::groups::hosted::Hosted;
use crate::serializable::lane::{FAILED, Message, Serializable, Settings, founders};
use crate::testing::hosts::{self, Simulated};
use crate::vsr::{Kept, Replica};
use quorate_kernel::ids::{GroupId, NodeId};
use quorate_kernel::keyspace::Birth;
use quorate_kernel::storage::Durability;
use quorate_kernel::time::Span;
use quorate_kernel::view::{Range, View, ViewId};
use std::format;
use std::string::String;
use std::vec::Vec;

pub type World = hosts::World<Serializable>;
pub type Host = hosts::Host<Serializable>;

/// What a log keeps: little, so that many who were away copy.
const KEPT: Kept = Kept { entries: 20, bytes: 2000 };

/// What a keyspace on so many hosts is set to.
pub fn settings(hosts: u64, replicas: usize, groups: u64, durability: Durability) -> Settings {
    let view = |host| {
        let id = ViewId { group: GroupId(host), version: 0 };
        View::new(id, Range::ALL, Vec::from([NodeId(host)]))
    };
    let birth = Birth::Groups((1..=hosts).map(view).collect());
    let founders = founders(&birth, replicas, groups, 256);
    let (purged, value_bytes_max) = (Span::millis(300), 1000);
    let (groups, failed, kept) = (0, FAILED, KEPT);
    let sealer = Sealer::new([7; 32], b"end");
    Settings {
        founders,
        replicas,
        groups,
        failed,
        durability,
        value_bytes_max,
        purged,
        kept,
        sealer,
        reads_any: false,
        optimizations: Optimizations::default(),
        commits_reads: false,
        by_membership: false,
    }
}

impl Simulated for Serializable {
    type Settings = Settings;

    fn born(settings: &Settings) -> Serializable {
        Serializable::new(settings.clone())
    }

    fn durability(settings: &Settings) -> Durability {
        settings.durability
    }

    fn name(message: &Message) -> &'static str {
        message.name()
    }

    fn logs(&self) -> Vec<(GroupId, &Replica)> {
        self.groups.iter().map(|(group, hosted)| (*group, &hosted.replica)).collect()
    }
}

impl World {
    /// How each group stands at each host.
    pub fn show(&self) -> Vec<String> {
        let of = |host: &Host| {
            let groups = host.process.iter().flat_map(|process| &process.groups);
            let line = |(group, its): (&GroupId, &Hosted)| {
                let (log, member) = (&its.replica, &its.member);
                let (status, view) = (log.status(), log.view());
                let ends = (log.commit(), log.applied(), log.log().end());
                let led = (log.is_serving(), member.leads(), member.in_hand(), log.owes());
                let head = &its.state.head;
                let votes = (&head.pending, &head.taken_back, &head.revoked);
                let votes =
                    if member.leads() { format!("{votes:?} {member:?}") } else { String::new() };
                format!("{} {group:?} {status:?} {view:?} {ends:?} {led:?} {votes}", host.me)
            };
            groups.map(line).collect::<Vec<_>>()
        };
        self.hosts.iter().flat_map(of).collect()
    }
}
