//! The process: one roll, and what others are told of it.

use super::names::{self, Names, member, name};
use super::{Context, Message, Settings, keys};
use crate::membership::{self, Action, Configuration, Event, Roll, RollId, Shape, Status, TICK};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;
use quorate_kernel::effects::Recipients;
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::process::{Inspect, Process, Recovery, Request};
use quorate_kernel::ring::{Closing, Ring};
use quorate_kernel::time::Time;
use quorate_kernel::{invariant, mutant, roll};

/// The state.
#[derive(Debug)]
pub struct RollLane {
    settings: Settings,
    /// How often this host has come before.
    pub(super) coming: u64,
    pub(super) roll: Roll,
    /// The roll from which it was removed, with how often it had come then: those that are behind
    /// may hear of what was decided there from nobody else.
    pub(super) former: Option<(u64, Roll)>,
    names: Names,
    pub(super) ring: Arc<Ring>,
    /// When it is looked again at who should come and go.
    pub(super) wishes_at: Time,
    /// When it came last, and how often in short order.
    pub(super) came: Option<(Time, u32)>,
    /// What others were told last.
    told: Option<(RollId, bool)>,
}

impl RollLane {
    /// The lane before its start.
    #[must_use]
    pub fn new(settings: Settings) -> RollLane {
        RollLane {
            settings,
            coming: 0,
            roll: Roll::new(member(NodeId(0), 0)),
            former: None,
            names: Names::default(),
            ring: Arc::default(),
            wishes_at: Time(0),
            came: None,
            told: None,
        }
    }

    /// The newest configuration that is known here.
    #[must_use]
    pub fn configuration(&self) -> &Configuration {
        self.roll.configuration()
    }

    /// Begins the roll under this host's present name; returns the one before.
    pub(super) fn begin(&mut self, founding: Option<Configuration>, cx: &mut Context<'_>) -> Roll {
        let begun = Roll::new(member(cx.me.node, self.coming));
        let before = mem::replace(&mut self.roll, begun);
        self.call(cx, |roll, on| roll.start(founding, on));
        before
    }

    /// Calls the roll, and carries out what it asks for.
    pub(super) fn call<T>(
        &mut self,
        cx: &mut Context<'_>,
        call: impl FnOnce(&mut Roll, &mut membership::Context<'_>) -> T,
    ) -> T {
        let (coming, mut out) = (self.coming, Vec::new());
        let told = on(&mut self.roll, coming, (cx, &mut out), call);
        for event in self.carry_out(coming, &mut out, cx) {
            self.hear(event, cx);
        }
        told
    }

    /// Carries out what a roll asks for.
    fn carry_out(&self, coming: u64, out: &mut Vec<Action>, cx: &mut Context<'_>) -> Vec<Event> {
        out.retain_mut(|action| match action {
            Action::Write { key, .. } => {
                *key = keys::of(coming, key);
                true
            }
            Action::Send { to, .. } => self.address(to),
            _ => true,
        });
        membership::carry_out(out, cx.fx, |message| Message { coming, message })
    }

    /// Tells those that are behind the roll from which this host was removed.
    fn tell_who_is_behind(
        &mut self,
        from: Incarnation,
        message: &membership::Message,
        cx: &mut Context<'_>,
    ) {
        let Some((coming, former)) = &mut self.former else { return };
        let (coming, mut out) = (*coming, Vec::new());
        let call = |roll: &mut Roll, cx: &mut membership::Context<'_>| {
            roll.on_message(from, message.clone(), cx);
        };
        on(former, coming, (cx, &mut out), call);
        let told = self.carry_out(coming, &mut out, cx);
        invariant!(told.is_empty(), "who is out is told nothing");
    }

    /// Others know what the roll from which it was removed has come to: it is forgotten.
    fn forget_former(&mut self, cx: &mut Context<'_>) {
        let number = self.roll.roll().number;
        let is_known = |(_, former): &(u64, Roll)| former.roll().number < number;
        if !self.roll.is_member() || !self.former.as_ref().is_some_and(is_known) {
            return;
        }
        if let Some((coming, _)) = self.former.take() {
            cx.fx.put_state(keys::coming_key(), keys::store_coming(self.coming, None));
            keys::all_of(coming).into_iter().for_each(|key| cx.fx.delete_state(key));
        }
    }

    /// Puts hosts in place of their names; whether any of them is known. Who is not is told again.
    fn address(&self, to: &mut Recipients) -> bool {
        match to {
            Recipients::One(one) => match self.host(one.node) {
                Some(node) => one.node = node,
                None => return false,
            },
            Recipients::Group(names) => {
                let hosts: Arc<[NodeId]> = names.iter().filter_map(|it| self.host(*it)).collect();
                if hosts.is_empty() {
                    return false;
                }
                *names = hosts;
            }
        }
        true
    }

    /// The host of a name. One that is asked before anything was heard of it is asked by its node.
    fn host(&self, name: NodeId) -> Option<NodeId> {
        let member = self.configuration().member(name).and_then(|member| names::host(member));
        let of_ring = || self.ring.host(name).map(|host| host.who.node);
        member.or_else(|| self.names.host(name)).or_else(of_ring)
    }

    fn hear(&mut self, event: Event, cx: &mut Context<'_>) {
        match event {
            Event::Configuration(_) => self.forget_former(cx),
            Event::Left => {}
            Event::Kicked(_) | Event::Refused(membership::Refusal::Gone) => self.come_again(cx),
            Event::Refused(membership::Refusal::Full) => {}
            Event::Observers(observers) => {
                for observer in observers {
                    if let Some(host) = names::host(&observer) {
                        self.names.note(observer.id, host);
                    }
                }
            }
        }
    }

    /// Tells the other lanes what is new.
    fn announce(&mut self, cx: &mut Context<'_>) {
        let is_going = self.roll.status(cx.now) == Status::Member && self.reaches_majority();
        let goes_on = is_going || mutant!("roll_never_says_that_it_waits");
        let now = (self.roll.roll(), goes_on);
        if self.told == Some(now) {
            return;
        }
        self.told = Some(now);
        let (number, nodes) = (now.0.number.0, names::hosts(self.configuration()));
        cx.fx.announce_roll(Arc::new(roll::Roll { number, nodes, goes_on }));
    }

    /// Whether it was said last that changes are decided.
    pub(super) fn goes_on(&self) -> bool {
        self.told.is_some_and(|(_, goes_on)| goes_on)
    }

    /// Whether a majority of the members seems to be there. Where many fail at once nobody may be
    /// left who observes some of them: no change is proposed then, and nothing is seen to wait.
    fn reaches_majority(&self) -> bool {
        let members = &self.configuration().members;
        let is_there = |node: NodeId| !self.ring.is_suspected(node);
        let there = members.iter().filter_map(|member| names::host(member));
        let count = there.filter(|node| is_there(*node)).count();
        count >= self.configuration().majority() || mutant!("roll_of_few_goes_on")
    }

    fn tick(&mut self, cx: &mut Context<'_>) {
        cx.fx.arm((), cx.now + TICK);
        if let Some((coming, former)) = &mut self.former {
            // It takes part in nothing, and may answer as many as before.
            on(former, *coming, (cx, &mut Vec::new()), Roll::tick);
        }
        if self.ring.closing == Closing::No {
            self.call(cx, Roll::tick);
            self.tick_wishes(cx);
        }
        self.announce(cx);
    }
}

/// Calls the roll of one coming.
fn on<T>(
    roll: &mut Roll,
    coming: u64,
    (cx, out): (&Context<'_>, &mut Vec<Action>),
    call: impl FnOnce(&mut Roll, &mut membership::Context<'_>) -> T,
) -> T {
    let me = Incarnation { node: roll.own().id, start: cx.me.start };
    let table = keys::OfComing { coming, table: cx.table };
    call(roll, &mut membership::Context { me, now: cx.now, table: &table, out })
}

impl Process for RollLane {
    type Message = Message;
    type Timer = ();
    const HEARS: &'static [Topic] = &[Topic::Ring];

    fn start(&mut self, _: Recovery, cx: &mut Context<'_>) {
        // All that it stores is protocol state, which no durability level forgets.
        let former;
        (self.coming, former) = keys::load_coming(cx.table);
        self.former = former.map(|coming| {
            let (mut roll, mut out) = (Roll::new(member(cx.me.node, coming)), Vec::new());
            on(&mut roll, coming, (cx, &mut out), |roll, cx| roll.start(None, cx));
            invariant!(roll.is_out() && out.is_empty(), "it was removed");
            (coming, roll)
        });
        let founders = mem::take(&mut self.settings.founders);
        let members: Vec<_> = founders.iter().map(|node| member(*node, 0)).collect();
        let founding = Configuration::founding(Shape::DEFAULT, &members);
        self.begin(founding.filter(|_| self.coming == 0), cx);
        self.announce(cx);
        cx.fx.arm((), cx.now + TICK);
    }

    fn on_message(&mut self, from: Incarnation, message: Message, cx: &mut Context<'_>) {
        let Message { coming, message } = message;
        let (name, contact) = (name(from.node, coming), self.roll.contact());
        self.names.note(name, from.node);
        // A contact was asked by its node, whatever its name is.
        let is_contact = contact == Some(from.node) && !mutant!("roll_contacts_have_one_name");
        let node = if is_contact { from.node } else { name };
        let from = Incarnation { node, start: from.start };
        self.tell_who_is_behind(Incarnation { node: name, ..from }, &message, cx);
        self.call(cx, |roll, on| roll.on_message(from, message, on));
        invariant!(self.roll.own().id == super::names::name(cx.me.node, self.coming), "its name");
        invariant!(self.told.is_some(), "it has started");
        self.announce(cx);
    }

    fn on_request(&mut self, ticket: Ticket, _: Request, cx: &mut Context<'_>) {
        // Nothing was done.
        cx.fx.answer_early(ticket, Outcome::Refused(Refusal::Unsupported));
    }

    fn on_timer(&mut self, (): (), cx: &mut Context<'_>) {
        self.tick(cx);
    }

    fn on_news(&mut self, news: News<'_>, _: &mut Context<'_>) {
        match news {
            News::Ring(ring) => self.ring = Arc::clone(ring),
            _ => unreachable!("a lane is told what it hears"),
        }
    }

    fn inspect(&self, into: &mut dyn Inspect) {
        into.field("number", &self.roll.roll().number.0);
        into.field("digest", &((self.roll.roll().digest.0 >> 64) as u64));
        into.field("members", &self.configuration().members.len());
        into.field("hosts", &names::hosts(self.configuration()).len());
        into.field("is_member", &u8::from(self.roll.is_member()));
        into.field("goes_on", &u8::from(self.goes_on()));
        into.field("came", &(self.coming + 1));
        for member in &self.configuration().members {
            if let Some(host) = names::host(member) {
                into.row("roll", &[("node", &host), ("name", &member.id)]);
            }
        }
    }

    fn check(&self) {
        invariant!(self.roll.contact().is_none() || !self.roll.is_member(), "members do not join");
    }
}
