//! The process: one roll of either kind, and what others are told of it.

use super::keeper::{From, Keeper, Keeping, RollNews, Stands, Wanted};
use super::names::{self, Names, member, name};
use super::prime::Prime;
use super::rapid::Rapid;
use super::{Context, Message, Says, Settings, keys};
use crate::membership::{Configuration, RollId, Shape};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;
use quorate_kernel::effects::{Recipients, Release};
use quorate_kernel::ids::{Incarnation, NodeId, Ticket};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::process::{Inspect, Process, Recovery, Request};
use quorate_kernel::ring::{Closing, Ring, Standing};
use quorate_kernel::roll::{Kind, Roll};
use quorate_kernel::time::Time;
use quorate_kernel::{invariant, mutant};

/// The state.
#[derive(Debug)]
pub struct RollLane {
    settings: Settings,
    /// How often this host has come before.
    pub(super) coming: u64,
    pub(super) keeper: Box<dyn Keeper>,
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
        let keeper: Box<dyn Keeper> = match settings.kind {
            Kind::Rapid => Box::new(Rapid::new()),
            Kind::Prime => Box::new(Prime::new()),
        };
        RollLane {
            settings,
            coming: 0,
            keeper,
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
        self.keeper.configuration()
    }

    /// Calls what keeps the roll, and carries out what it asks for.
    pub(super) fn call(
        &mut self,
        cx: &mut Context<'_>,
        call: impl FnOnce(&mut dyn Keeper, &mut Keeping<'_>),
    ) {
        let mut keeping = Keeping {
            me: cx.me,
            coming: self.coming,
            now: cx.now,
            table: cx.table,
            ring: &self.ring,
            rng: cx.rng,
            asks: Vec::new(),
        };
        call(&mut *self.keeper, &mut keeping);
        let mut told = Vec::new();
        for ask in keeping.asks {
            match ask {
                Wanted::Write { key, value: Some(value) } => cx.fx.put_state(key, value),
                Wanted::Write { key, value: None } => cx.fx.delete_state(key),
                Wanted::Send { coming, to, is_for_any, says, release } => {
                    self.send((coming, to, is_for_any), says, release, cx);
                }
                Wanted::Tell(what) => told.push(what),
                Wanted::Refuse(what) => cx.fx.refuse(what),
            }
        }
        told.into_iter().for_each(|what| self.hear(what, cx));
    }

    fn send(
        &self,
        (coming, mut to, is_for_any): (u64, Recipients, bool),
        says: Says,
        release: Release,
        cx: &mut Context<'_>,
    ) {
        let whom = match &to {
            Recipients::One(one) if !is_for_any => Some(one.node).filter(|it| self.is_name(*it)),
            _ => None,
        };
        if !self.address(&mut to, cx.me.node) {
            return;
        }
        let message = Message { coming, whom, says };
        match release {
            // Whoever keeps the roll says at each message why it promises nothing.
            Release::Early => cx.fx.send_early(to, message),
            // The lane has nothing but protocol state.
            _ => cx.fx.send_after_state(to, message),
        }
    }

    /// Puts hosts in place of their names; whether any of them is known. Who is not is told again.
    fn address(&self, to: &mut Recipients, me: NodeId) -> bool {
        // What this host was called before is nobody any more.
        let is_other = |host: NodeId, name: NodeId| host != me || name == self.name(me);
        let found = |name: NodeId| self.host(name).filter(|host| is_other(*host, name));
        match to {
            Recipients::One(one) => match found(one.node) {
                Some(node) => one.node = node,
                None => return false,
            },
            Recipients::Group(names) => {
                let hosts: Arc<[NodeId]> = names.iter().filter_map(|it| found(*it)).collect();
                if hosts.is_empty() {
                    return false;
                }
                *names = hosts;
            }
        }
        true
    }

    /// This host's name.
    pub(super) fn name(&self, me: NodeId) -> NodeId {
        name(me, self.coming)
    }

    /// The host that is a member under this name, or was heard under it.
    fn named(&self, name: NodeId) -> Option<NodeId> {
        let member = self.configuration().member(name).and_then(|member| names::host(member));
        member.or_else(|| self.names.host(name))
    }

    fn is_name(&self, name: NodeId) -> bool {
        self.named(name).is_some()
    }

    /// The host of a name. One that is asked before anything was heard of it is asked by its node.
    fn host(&self, name: NodeId) -> Option<NodeId> {
        let of_ring = || self.ring.host(name).map(|host| host.who.node);
        self.named(name).or_else(of_ring)
    }

    fn hear(&mut self, told: RollNews, cx: &mut Context<'_>) {
        match told {
            RollNews::Removed => self.come_again(cx),
            RollNews::Named { name, host } => self.names.note(name, host),
        }
    }

    /// Tells the other lanes what is new.
    fn announce(&mut self, cx: &mut Context<'_>) {
        let is_going = self.keeper.stands(cx.now) == Stands::Member { goes_on: true };
        let is_going = is_going && self.reaches_majority();
        let goes_on = is_going || mutant!("roll_never_says_that_it_waits");
        let now = (self.keeper.roll(), goes_on);
        if self.told == Some(now) {
            return;
        }
        self.told = Some(now);
        let (number, nodes) = (now.0.number.0, names::hosts(self.configuration()));
        let kind = self.settings.kind;
        cx.fx.announce_roll(Arc::new(Roll { kind, number, nodes, goes_on }));
    }

    /// Whether it was said last that changes are decided.
    pub(super) fn goes_on(&self) -> bool {
        self.told.is_some_and(|(_, goes_on)| goes_on)
    }

    /// Whether a majority of the members seems to be there. Where many fail at once nobody may be
    /// left who observes some of them: no change is proposed then, and nothing is seen to wait.
    /// Where a few can have removed all others a majority of the members is not enough: they must
    /// be a majority of the hosts that have not left.
    fn reaches_majority(&self) -> bool {
        let configuration = self.configuration();
        let is_there = |node: NodeId| !self.ring.is_suspected(node);
        let there = configuration.members.iter().filter_map(|member| names::host(member));
        let count = there.filter(|node| is_there(*node)).count();
        let hosts = self.ring.hosts().iter().filter(|host| host.standing != Standing::Left);
        let is_of_all = self.keeper.is_certain()
            || count > hosts.count() / 2
            || mutant!("roll_prime_side_speaks_for_all");
        count >= configuration.majority() && is_of_all || mutant!("roll_of_few_goes_on")
    }

    fn tick(&mut self, cx: &mut Context<'_>) {
        cx.fx.arm((), cx.now + self.keeper.every());
        if self.ring.closing == Closing::No {
            self.call(cx, |keeper, cx| keeper.tick(cx));
            self.tick_wishes(cx);
        }
        self.announce(cx);
    }
}

impl Process for RollLane {
    type Message = Message;
    type Timer = ();
    const HEARS: &'static [Topic] = &[Topic::Ring];

    fn start(&mut self, _: Recovery, cx: &mut Context<'_>) {
        // All that it stores is protocol state, which no durability level forgets.
        (self.coming, _) = keys::load_coming(cx.table);
        let founders = mem::take(&mut self.settings.founders);
        let members: Vec<_> = founders.iter().map(|node| member(*node, 0)).collect();
        let founding = Configuration::founding(Shape::DEFAULT, &members);
        let founding = founding.filter(|_| self.coming == 0);
        self.call(cx, |keeper, cx| keeper.start(founding, cx));
        self.announce(cx);
        cx.fx.arm((), cx.now + self.keeper.every());
    }

    fn on_message(&mut self, from: Incarnation, message: Message, cx: &mut Context<'_>) {
        let Message { coming, whom, says } = message;
        let name = name(from.node, coming);
        self.names.note(name, from.node);
        self.call(cx, |keeper, cx| keeper.on_message(From { host: from, name }, whom, says, cx));
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
        let roll = self.keeper.roll();
        into.field("number", &roll.number.0);
        into.field("digest", &((roll.digest.0 >> 64) as u64));
        into.field("members", &self.configuration().members.len());
        into.field("hosts", &names::hosts(self.configuration()).len());
        into.field("is_member", &u8::from(self.keeper.is_member()));
        into.field("goes_on", &u8::from(self.goes_on()));
        into.field("came", &(self.coming + 1));
        self.keeper.inspect(into);
        for member in &self.configuration().members {
            if let Some(host) = names::host(member) {
                into.row("roll", &[("node", &host), ("name", &member.id)]);
            }
        }
    }

    fn check(&self) {
        self.keeper.check();
    }
}
