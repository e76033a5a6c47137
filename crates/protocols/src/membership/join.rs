//! Joining, on the side of the one that joins (paper §4.1): it asks a contact for its observers,
//! and these to report it. When all have agreed, it hears that it is a member, and fetches the
//! configuration.
//!
//! Nothing of it is stored. One that is restarted begins again, and learns that it is a member if
//! it was let in meanwhile: it has voted for nothing, as votes wait for a stored configuration.

use super::action::{Context, Denied, Event};
use super::configuration::Member;
use super::keys::Standing;
use super::message::{Body, Refusal};
use super::number::{Number, RollId};
use super::roll::Roll;
use super::timer::{JOIN_ASK, JOIN_WAIT, ORDER_AGAIN};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use quorate_kernel::effects::Release;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::limits::ROLL_SEEDS_MAX;
use quorate_kernel::time::Time;
use quorate_kernel::{invariant, probe};

/// What one that joins is at.
#[derive(Clone, Debug)]
pub(super) struct Joining {
    seeds: Vec<NodeId>,
    next_seed: usize,
    /// Who was asked last.
    contact: NodeId,
    /// The configuration that the observers are of; number 0 while they are asked for.
    roll: RollId,
    /// The rings of each.
    observers: BTreeMap<NodeId, u16>,
    /// When it begins again.
    until: Time,
    /// When the observers are told again.
    again_at: Time,
    pub tries: u64,
}

impl Roll {
    /// This node wants to be a member; `seeds` are nodes to ask. It goes on until it is one, or is
    /// told that it cannot be.
    ///
    /// # Errors
    /// Nothing was changed.
    pub fn join(&mut self, seeds: &[NodeId], cx: &mut Context<'_>) -> Result<(), Denied> {
        if self.head.standing != Standing::New || self.joining.is_some() {
            return Err(Denied::HasJoined);
        }
        if !(1..=ROLL_SEEDS_MAX).contains(&seeds.len()) || seeds.contains(&self.me) {
            return Err(Denied::Contacts);
        }
        self.joining = Some(Joining {
            seeds: seeds.to_vec(),
            next_seed: 0,
            contact: seeds[0],
            roll: RollId::default(),
            observers: BTreeMap::new(),
            until: cx.now,
            again_at: cx.now,
            tries: 0,
        });
        self.tick_joining(cx);
        Ok(())
    }

    /// Whom one that tries to join has asked last for its observers.
    #[must_use]
    pub fn contact(&self) -> Option<NodeId> {
        self.joining.as_ref().map(|joining| joining.contact)
    }

    /// Other nodes to ask, for one that still tries to join: those that it was given may be gone.
    ///
    /// # Errors
    /// Nothing was changed.
    pub fn set_contacts(&mut self, seeds: &[NodeId]) -> Result<(), Denied> {
        if !(1..=ROLL_SEEDS_MAX).contains(&seeds.len()) || seeds.contains(&self.me) {
            return Err(Denied::Contacts);
        }
        let joining = self.joining.as_mut().ok_or(Denied::NotJoining)?;
        joining.seeds = seeds.to_vec();
        Ok(())
    }

    /// Asks again, or the next one.
    pub(super) fn tick_joining(&mut self, cx: &mut Context<'_>) {
        let Some(joining) = &mut self.joining else { return };
        if cx.now >= joining.until {
            joining.contact = joining.seeds[joining.next_seed % joining.seeds.len()];
            joining.next_seed += 1;
            return self.ask_for_observers(cx);
        }
        if joining.roll.number > Number(0) && cx.now >= joining.again_at {
            self.ask_observers(cx);
        }
    }

    fn ask_for_observers(&mut self, cx: &mut Context<'_>) {
        let Some(joining) = &mut self.joining else { return };
        joining.tries += 1;
        joining.roll = RollId::default();
        joining.observers.clear();
        joining.until = cx.now + JOIN_ASK;
        let contact = joining.contact;
        // Early: it asks, and promises nothing; nor does what it asks of observers.
        self.tell(contact, Body::PreJoin, Release::Early, cx);
    }

    fn ask_observers(&mut self, cx: &mut Context<'_>) {
        let Some(joining) = &mut self.joining else { return };
        joining.again_at = cx.now + ORDER_AGAIN;
        let (roll, observers) = (joining.roll, joining.observers.clone());
        for (observer, rings) in observers {
            let body = Body::Join { member: Arc::clone(self.own()), rings };
            // In the configuration that has named them: in another one they might be others.
            cx.send(observer, super::message::Message { roll, body }, Release::Early);
        }
    }

    /// A contact has answered.
    pub(super) fn on_observers(
        &mut self,
        from: Incarnation,
        roll: RollId,
        observers: &[Arc<Member>],
        cx: &mut Context<'_>,
    ) {
        invariant!(self.joining.is_none() || !self.is_member(), "members do not join");
        let Some(joining) = &mut self.joining else { return };
        if joining.contact != from.node || joining.roll.number > Number(0) {
            return;
        }
        joining.roll = roll;
        joining.until = cx.now + JOIN_WAIT;
        for (ring, observer) in observers.iter().enumerate() {
            *joining.observers.entry(observer.id).or_default() |= 1 << ring;
        }
        invariant!(joining.observers.len() <= 16, "one for each ring");
        cx.tell(Event::Observers(observers.to_vec()));
        self.ask_observers(cx);
    }

    /// The configuration has changed without letting this node in: it begins again, with one that
    /// is up to date.
    pub(super) fn on_outside(&mut self, from: Incarnation, roll: RollId, cx: &mut Context<'_>) {
        invariant!(self.joining.is_none() || !self.is_member(), "members do not join");
        let Some(joining) = &mut self.joining else { return };
        let is_waiting = joining.roll.number > Number(0);
        if roll.number <= joining.roll.number || !is_waiting {
            return;
        }
        probe!("roll/left_outside");
        joining.contact = from.node;
        self.ask_for_observers(cx);
        invariant!(self.joining.is_some(), "it goes on");
    }

    /// A contact says that this node cannot be let in.
    pub(super) fn on_refused(&mut self, from: Incarnation, why: Refusal, cx: &mut Context<'_>) {
        invariant!(self.joining.is_none() || !self.is_member(), "members do not join");
        let Some(joining) = &mut self.joining else { return };
        if joining.contact != from.node && !joining.observers.contains_key(&from.node) {
            return;
        }
        match why {
            // Somebody may leave.
            Refusal::Full => joining.until = cx.now + JOIN_WAIT,
            Refusal::Gone => {
                self.joining = None;
                self.ahead = None;
                cx.tell(Event::Refused(why));
            }
        }
        invariant!(!self.is_member(), "it was not let in");
    }
}
