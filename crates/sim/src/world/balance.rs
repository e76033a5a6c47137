//! Worlds in which hosts even out their load: what a scenario says of it, and what is judged.
//!
//! At the end, when nothing fails any more and clients are silent, no host may wish for a further
//! move (moves that never cease are a violation of liveness), and no host may hold much more than
//! the others.

use super::World;
use crate::groups::Groups;
use crate::host::Running;
use crate::queue::HostIndex;

use quorate_kernel::ids::LaneId;
use quorate_kernel::time::Span;
use quorate_protocols::overlay::tokens::balance::Least;
use quorate_protocols::overlay::tokens::weights::Balance;
use serde::{Deserialize, Serialize};

/// For how many looks nobody must have wished for a move. Two hosts that take each other for the
/// most loaded one are both silent until their words have met.
const CONTENT_LOOKS: u64 = 10;

/// How the hosts of a scenario even out their load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BalanceSection {
    /// Between two looks at the load in milliseconds.
    pub look_ms: u64,
    /// What is too little for a move: a mean of so many bytes.
    pub bytes_min: u64,
    /// What is too little for a move: a mean of so many operations a second.
    pub operations_min: u64,
    /// How many tokens every second host has; all have as many if it is not given.
    #[serde(default)]
    pub tokens_fewer: Option<usize>,
    /// The most bytes that a host may hold at the end, in hundredths of the mean.
    pub share_percent_max: u64,
    /// How many tokens must have been moved, added or given up.
    #[serde(default)]
    pub moves_min: u64,
    /// How many may have been.
    pub moves_max: u64,
}

impl BalanceSection {
    /// What hosts are told.
    #[must_use]
    pub fn settings(&self) -> Balance {
        let least = Least { bytes: self.bytes_min, operations: self.operations_min };
        Balance { look: Span::millis(self.look_ms), least }
    }

    /// What is wrong with it.
    #[must_use]
    pub fn problem(&self) -> Option<&'static str> {
        let checks = [
            (self.look_ms > 0, "look_ms must be above 0"),
            (self.tokens_fewer != Some(0), "a host needs a token"),
        ];
        checks.iter().find(|(holds, _)| !holds).map(|(_, message)| *message)
    }
}

impl World<'_> {
    /// Who still weighs, or wishes for a move.
    pub(super) fn unbalanced(&mut self) -> Option<String> {
        let content_ns =
            self.prepared.scenario.balance.as_ref()?.look_ms * CONTENT_LOOKS * 1_000_000;
        let mut pending = None;
        let mut moves = 0;
        for (index, host) in self.machines.hosts.iter().enumerate() {
            if host.running == Running::Up {
                let mut said = Groups::default();
                host.inspect_state(LaneId::OVERLAY, &mut said);
                moves += said.number("tokens_moved");
                if said.number("balance_pending") > 0 {
                    let (heard, moves) =
                        (said.number("hosts_weighed"), said.number("tokens_moved"));
                    pending.get_or_insert_with(|| {
                        format!("n{} balances: {heard} hosts weighed, {moves} moves", index + 1)
                    });
                }
            }
        }
        // A host that starts again counts anew.
        self.token_moves = self.token_moves.max(moves);
        if pending.is_some() || !self.are_finished() {
            self.content_since = None;
            return pending;
        }
        let since = *self.content_since.get_or_insert(self.machines.now);
        (self.machines.now < since + content_ns)
            .then(|| "all are content since a moment ago".to_owned())
    }

    /// Judges how even the load is in the end.
    pub(super) fn judge_balance(&mut self) {
        let Some(section) = &self.prepared.scenario.balance else { return };
        let said: Vec<(HostIndex, Groups)> =
            self.tenants.iter().flat_map(|tenant| self.said(tenant.lane())).collect();
        let held = |(host, groups): &(HostIndex, Groups)| (groups.bytes(), *host);
        let Some((largest, host)) = said.iter().map(held).max() else { return };
        let total: u64 = said.iter().map(|(_, groups)| groups.bytes()).sum();
        let percent = largest * said.len() as u64 * 100 / total.max(1);
        let is_much = total / said.len() as u64 >= section.bytes_min;
        if is_much && percent > section.share_percent_max {
            let message = format!("n{} holds {percent} % of the mean, {largest} bytes", host + 1);
            self.machines.condemn("balance", message);
        }
        if self.token_moves > section.moves_max {
            self.machines.condemn("balance", format!("{} tokens were moved", self.token_moves));
        }
    }
}
