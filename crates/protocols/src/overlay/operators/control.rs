//! An operator's orders about hosts, and what is wrong with those that are refused.

use crate::gossip::record::{HostRecord, News};
use crate::overlay::learn::Origin;
use crate::overlay::{Context, Overlay};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use quorate_kernel::ids::{NodeId, Ticket};
use quorate_kernel::operation::{Control, Outcome, Refusal};
use quorate_kernel::ring::Standing;

impl Overlay {
    /// Takes an order or refuses it. One that is taken is durable before it is answered and before
    /// anybody hears of it.
    pub(crate) fn order(&mut self, ticket: Ticket, control: &Control, cx: &mut Context<'_>) {
        let wish = match control {
            Control::Drain { node, undo: false, replicas } => {
                self.may_drain(*node, Standing::Leaving, *replicas)
            }
            Control::Drain { node, undo: true, replicas } => {
                self.may_drain(*node, Standing::Up, *replicas)
            }
            Control::Remove { node, force } => self.may_remove(*node, *force),
            // It places nothing.
            Control::Examine { .. } => {
                return cx.fx.answer_early(ticket, Outcome::parts(Vec::new()));
            }
            Control::Explain { .. } | Control::Shutdown | Control::Idle | Control::Keyspace(_) => {
                // Nothing was done, so nothing need be durable.
                return cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Unsupported));
            }
        };
        match wish {
            Ok((mut record, standing)) if record.standing != standing => {
                let node = record.who.node;
                record.order = record.order.next(cx.me.node);
                record.standing = standing;
                let news = News { suspected_by: None, ..News::of(record) };
                self.learn(&news, Origin::Own, cx);
                self.store(node, cx);
                cx.fx.answer(ticket, Outcome::Noted);
            }
            // It stands so already. That may not be durable yet here, so the answer waits.
            Ok((record, _)) => {
                self.store(record.who.node, cx);
                cx.fx.answer(ticket, Outcome::Noted);
            }
            Err(why) => {
                // Nothing was done, so nothing need be durable.
                cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Membership { why }));
            }
        }
    }

    fn known(&self, node: NodeId) -> Result<&News, String> {
        self.state.hosts.get(node).ok_or_else(|| {
            format!("host {node} is not known here; `quorate status` lists the hosts that are")
        })
    }

    fn others_not_leaving(&self, node: NodeId) -> usize {
        let is_counted = |news: &&News| news.node() != node && news.record.standing == Standing::Up;
        self.state.hosts.iter().filter(is_counted).count()
    }

    fn may_drain(
        &self,
        node: NodeId,
        to: Standing,
        needed: usize,
    ) -> Result<(HostRecord, Standing), String> {
        let news = self.known(node)?;
        let left = self.others_not_leaving(node);
        if news.record.standing == Standing::Left {
            return Err(format!(
                "host {node} has left already, and a host that has left stays away"
            ));
        }
        if to == Standing::Leaving && news.record.standing == Standing::Up && left < needed {
            return Err(format!(
                "draining {node} would leave {left} hosts for keyspaces of {needed} replicas; \
                 add a host first"
            ));
        }
        Ok((HostRecord::clone(&news.record), to))
    }

    /// What a removal would cost each group is asked of the groups before it is ordered. Here
    /// counts only that a few hosts, cut off from the rest, do not remove the rest.
    fn may_remove(&self, node: NodeId, force: bool) -> Result<(HostRecord, Standing), String> {
        let news = self.known(node)?;
        let is_left = news.record.standing == Standing::Left;
        if !is_left && news.suspected_by.is_none() && news.record.standing != Standing::Leaving {
            return Err(format!("host {node} answers; drain it first, or stop it"));
        }
        let remains = |news: &&News| news.record.standing != Standing::Left;
        let all = self.state.hosts.iter().filter(remains).count();
        let answers = |news: &&News| news.node() != node && news.suspected_by.is_none();
        let answering = self.state.hosts.iter().filter(remains).filter(answers).count();
        if !is_left && !force && answering * 2 < all {
            return Err(format!(
                "{answering} of the {all} hosts answer, fewer than half: bring hosts back first, \
                 or ask a host that reaches the others"
            ));
        }
        Ok((HostRecord::clone(&news.record), Standing::Left))
    }
}
