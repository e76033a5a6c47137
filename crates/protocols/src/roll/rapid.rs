//! The roll that all members agree on, by majority ([`crate::membership`]).

use super::keeper::{From, Keeper, Keeping, RollNews, Stands, Wanted};
use super::names::{self, member};
use super::{Says, keys};
use crate::membership::{self, Action, Configuration, Event, Refusal, Roll, Status, TICK};
use alloc::vec::Vec;
use quorate_kernel::effects::Recipients;
use quorate_kernel::ids::{Incarnation, NodeId};
use quorate_kernel::process::Inspect;
use quorate_kernel::time::{Span, Time};
use quorate_kernel::{invariant, mutant};

/// Rapid's roll of this host, and the one that it was on before.
#[derive(Debug)]
pub(super) struct Rapid {
    roll: Roll,
    /// The roll from which it was removed, with how often it had come then: those that are behind
    /// may hear of what was decided there from nobody else.
    former: Option<(u64, Roll)>,
}

impl Rapid {
    /// Before its start.
    pub fn new() -> Rapid {
        Rapid { roll: Roll::new(member(NodeId(0), 0)), former: None }
    }

    /// Begins the roll under this host's present name; returns the one before.
    fn begin(&mut self, founding: Option<Configuration>, cx: &mut Keeping<'_>) -> Roll {
        let before = core::mem::replace(&mut self.roll, Roll::new(cx.own()));
        self.call(cx, |roll, on| roll.start(founding, on));
        before
    }

    /// Calls the roll, and asks for what it asks for.
    fn call<T>(
        &mut self,
        cx: &mut Keeping<'_>,
        call: impl FnOnce(&mut Roll, &mut membership::Context<'_>) -> T,
    ) -> T {
        let mut out = Vec::new();
        let told = on(&mut self.roll, cx.coming, (cx, &mut out), call);
        for event in ask(cx.coming, out, cx) {
            self.hear(event, cx);
        }
        told
    }

    fn hear(&mut self, event: Event, cx: &mut Keeping<'_>) {
        match event {
            Event::Configuration(_) => self.forget_former(cx),
            Event::Left | Event::Refused(Refusal::Full) => {}
            Event::Kicked(_) | Event::Refused(Refusal::Gone) => cx.tell(RollNews::Removed),
            Event::Observers(observers) => {
                for observer in observers {
                    if let Some(host) = names::host(&observer) {
                        cx.tell(RollNews::Named { name: observer.id, host });
                    }
                }
            }
        }
    }

    /// Tells those that are behind the roll from which this host was removed.
    fn tell_who_is_behind(
        &mut self,
        from: Incarnation,
        whom: Option<NodeId>,
        message: &membership::Message,
        cx: &mut Keeping<'_>,
    ) {
        let Some((coming, former)) = &mut self.former else { return };
        if whom.is_some_and(|whom| whom != former.own().id) {
            return;
        }
        let (coming, mut out) = (*coming, Vec::new());
        let call = |roll: &mut Roll, cx: &mut membership::Context<'_>| {
            roll.on_message(from, message.clone(), cx);
        };
        on(former, coming, (cx, &mut out), call);
        let told = ask(coming, out, cx);
        invariant!(told.is_empty(), "who is out is told nothing");
    }

    /// Others know what the roll from which it was removed has come to: it is forgotten.
    fn forget_former(&mut self, cx: &mut Keeping<'_>) {
        let number = self.roll.roll().number;
        let is_known = |(_, former): &(u64, Roll)| former.roll().number < number;
        if !self.roll.is_member() || !self.former.as_ref().is_some_and(is_known) {
            return;
        }
        if let Some((coming, _)) = self.former.take() {
            cx.write(keys::coming_key(), keys::store_coming(cx.coming, None));
            keys::all_of(coming).into_iter().for_each(|key| cx.delete(key));
        }
    }
}

/// Calls the roll of one coming.
fn on<T>(
    roll: &mut Roll,
    coming: u64,
    (cx, out): (&Keeping<'_>, &mut Vec<Action>),
    call: impl FnOnce(&mut Roll, &mut membership::Context<'_>) -> T,
) -> T {
    let me = Incarnation { node: roll.own().id, start: cx.me.start };
    let table = keys::OfComing { coming, table: cx.table };
    call(roll, &mut membership::Context { me, now: cx.now, table: &table, out })
}

/// Asks for what a roll asks for; returns what it tells.
fn ask(coming: u64, out: Vec<Action>, cx: &mut Keeping<'_>) -> Vec<Event> {
    let mut events = Vec::new();
    for action in out {
        match action {
            Action::Write { key, value } => cx.write(keys::of(coming, &key), value),
            Action::Send { to, message, release } => {
                // Each member takes what all are told.
                let is_for_any = matches!(to, Recipients::Group(_));
                let says = Says::Rapid(message);
                cx.asks.push(Wanted::Send { coming, to, is_for_any, says, release });
            }
            Action::Tell(event) => events.push(event),
            Action::Refuse(what) => cx.asks.push(Wanted::Refuse(what)),
        }
    }
    events
}

impl Keeper for Rapid {
    fn every(&self) -> Span {
        TICK
    }

    fn start(&mut self, founding: Option<Configuration>, cx: &mut Keeping<'_>) {
        let (_, former) = keys::load_coming(cx.table);
        self.former = former.map(|coming| {
            let (mut roll, mut out) = (Roll::new(member(cx.me.node, coming)), Vec::new());
            on(&mut roll, coming, (cx, &mut out), |roll, cx| roll.start(None, cx));
            invariant!(roll.is_out() && out.is_empty(), "it was removed");
            (coming, roll)
        });
        self.begin(founding, cx);
    }

    fn come_again(&mut self, cx: &mut Keeping<'_>) {
        // One that never was a member knows nothing that others may need.
        let is_needed = self.roll.is_out() && !mutant!("roll_keeps_no_former");
        let before = cx.coming - 1;
        let roll = self.begin(None, cx);
        let forgotten = match is_needed {
            true => self.former.replace((before, roll)).map(|(coming, _)| coming),
            false => Some(before),
        };
        for key in forgotten.into_iter().flat_map(keys::all_of) {
            cx.delete(key);
        }
        let former = self.former.as_ref().map(|(coming, _)| *coming);
        cx.write(keys::coming_key(), keys::store_coming(cx.coming, former));
    }

    fn tick(&mut self, cx: &mut Keeping<'_>) {
        if let Some((coming, former)) = &mut self.former {
            // It takes part in nothing, and may answer as many as before.
            on(former, *coming, (cx, &mut Vec::new()), Roll::tick);
        }
        self.call(cx, Roll::tick);
    }

    fn on_message(&mut self, from: From, whom: Option<NodeId>, says: Says, cx: &mut Keeping<'_>) {
        let Says::Rapid(message) = says else { return cx.refuse_kind() };
        let From { host, name } = from;
        self.tell_who_is_behind(Incarnation { node: name, ..host }, whom, &message, cx);
        // A contact was asked by its node, whatever its name is.
        let is_contact =
            self.roll.contact() == Some(host.node) && !mutant!("roll_contacts_have_one_name");
        let from = Incarnation { node: if is_contact { host.node } else { name }, ..host };
        let is_own = whom.is_none_or(|whom| whom == self.roll.own().id);
        if is_own || mutant!("roll_takes_what_is_for_another") {
            self.call(cx, |roll, on| roll.on_message(from, message, on));
        }
    }

    fn join(&mut self, contacts: &[NodeId], cx: &mut Keeping<'_>) {
        if matches!(self.roll.status(cx.now), Status::Joining { .. }) {
            // Without any it goes on with those that it has.
            _ = self.roll.set_contacts(contacts);
        } else {
            // Without any it waits until the ring knows somebody; a member has no need of it.
            _ = self.call(cx, |roll, on| roll.join(contacts, on));
        }
    }

    fn leave(&mut self, cx: &mut Keeping<'_>) {
        // The last one stays, and is alone.
        _ = self.call(cx, |roll, on| roll.leave(on));
    }

    fn send_away(&mut self, name: NodeId, cx: &mut Keeping<'_>) {
        // Who cannot now is sent away at a later look.
        _ = self.call(cx, |roll, on| roll.kick(name, on));
    }

    fn configuration(&self) -> &Configuration {
        self.roll.configuration()
    }

    fn is_member(&self) -> bool {
        self.roll.is_member()
    }

    fn stands(&self, now: Time) -> Stands {
        match self.roll.status(now) {
            Status::Idle => Stands::Away,
            Status::Joining { .. } => Stands::Joining,
            Status::Member => Stands::Member { goes_on: true },
            Status::Waiting { .. } => Stands::Member { goes_on: false },
            Status::Left | Status::Kicked => Stands::Out,
        }
    }

    fn is_certain(&self) -> bool {
        true
    }

    fn inspect(&self, _: &mut dyn Inspect) {}

    fn check(&self) {
        let is_member = self.roll.is_member();
        invariant!(self.roll.contact().is_none() || !is_member, "members do not join");
    }
}
