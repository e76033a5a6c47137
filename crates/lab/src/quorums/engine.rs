//! The wrapper as a process: it fills in what bare messages left out, and hands them on.

use super::message::{ANY_BASIS, Sent, can_be_bare, stamp_of};
use quorate_kernel::effects::{Effect, Effects};
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::limits::OPERATIONS_MAX;
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::Control;
use quorate_kernel::part::{Part, PartName};
use quorate_kernel::process::{self, Inspect, Process, Recovery, Request};
use quorate_kernel::time::Time;
use quorate_kernel::view::{Range, ViewId};
use quorate_protocols::linearizable::group::Standing;
use quorate_protocols::linearizable::message::Message;
use quorate_protocols::linearizable::timer::Timer;
use quorate_protocols::linearizable::{Linearizable, Settings};
use std::cmp::Reverse;

/// One keyspace on one node.
pub(super) struct Quorums {
    inside: Linearizable,
    /// What the engine inside asked for in one call.
    asked: Effects<Linearizable>,
    /// Whether messages carry what consistent quorums need.
    has_stamps: bool,
    /// The views that this node has installed, with their ranges, the newest first.
    views: Vec<(Range, ViewId)>,
    /// The views that operations in hand aim at, by their numbers. One that lasts longer than
    /// [`OPERATIONS_MAX`] others finds another view here, and asks again.
    aims: Vec<ViewId>,
}

pub(super) type Context<'a> = process::Context<'a, Quorums>;
type Inside<'a> = process::Context<'a, Linearizable>;

impl Quorums {
    pub(super) fn new(settings: Settings, has_stamps: bool) -> Quorums {
        let (inside, asked) = (Linearizable::new(settings), Effects::default());
        Quorums { inside, asked, has_stamps, views: Vec::new(), aims: Vec::new() }
    }

    /// Calls the engine inside, and passes on what it asks for.
    fn call(
        &mut self,
        cx: &mut Context<'_>,
        handler: impl FnOnce(&mut Linearizable, &mut Inside<'_>),
    ) {
        let mut inside = process::Context {
            me: cx.me,
            lane: cx.lane,
            now: cx.now,
            wall: cx.wall,
            rng: &mut *cx.rng,
            table: cx.table,
            fx: &mut self.asked,
        };
        handler(&mut self.inside, &mut inside);
        let mut asked = std::mem::take(&mut self.asked);
        for effect in asked.drain() {
            match effect {
                Effect::Send { to, message, release } => {
                    if let Some(sent) = self.sent(message) {
                        super::passing::send(to, sent, release, cx.fx);
                    }
                }
                other => super::passing::pass_on(other, cx.fx),
            }
        }
        self.asked = asked;
    }

    /// A message as it leaves; none if a bare one would say what it must not: that the sender has
    /// no part in the group, or has refused.
    fn sent(&mut self, message: Message) -> Option<Sent> {
        if self.has_stamps || !can_be_bare(&message) {
            return Some(Sent { message, is_bare: false });
        }
        let may_leave = match &message {
            Message::ReadA { op, view, .. } | Message::WriteA { op, view, .. } => {
                self.aim(*op, *view);
                true
            }
            Message::ReadB { stamp, .. } => stamp.standing != Standing::Outside,
            Message::WriteB { ok, .. } => *ok,
            other => unreachable!("{other:?} is never bare"),
        };
        may_leave.then_some(Sent { message, is_bare: true })
    }

    /// Notes the view that an operation aims at.
    fn aim(&mut self, op: u64, view: ViewId) {
        let at = op as usize % OPERATIONS_MAX;
        if at >= self.aims.len() {
            self.aims.resize(at + 1, ViewId::default());
        }
        self.aims[at] = view;
    }

    /// Fills in what a bare message left out; returns whether this node knows it.
    fn fill_in(&self, message: &mut Message) -> bool {
        let aim = |op: u64| self.aims.get(op as usize % OPERATIONS_MAX).copied();
        match message {
            Message::ReadA { view, key, .. } => {
                self.view_of(key).map(|known| *view = known).is_some()
            }
            Message::WriteA { view, basis, key, .. } => {
                *basis = ANY_BASIS;
                self.view_of(key).map(|known| *view = known).is_some()
            }
            Message::ReadB { op, stamp, .. } => {
                aim(*op).map(|view| *stamp = stamp_of(view)).is_some()
            }
            Message::WriteB { op, view, ok, stamp } => {
                (*ok, *view) = (true, aim(*op).unwrap_or_default());
                *stamp = stamp_of(*view);
                aim(*op).is_some()
            }
            other => unreachable!("{other:?} is never bare"),
        }
    }

    /// The newest view of this node in which a key lies; keys begin with their token.
    fn view_of(&self, key: &[u8]) -> Option<ViewId> {
        let token = u64::from_be_bytes(*key.first_chunk()?);
        let mut views = self.views.iter();
        views.find(|(range, _)| range.contains(token)).map(|(_, view)| *view)
    }

    /// Looks which views this node has.
    fn look(&mut self) {
        let view = |part: Part| match part.name {
            PartName::Group(view) if part.here.is_some() => Some((part.range, view)),
            _ => None,
        };
        self.views = self.inside.parts().into_iter().filter_map(view).collect();
        self.views.sort_by_key(|(_, view)| Reverse(view.version));
    }
}

impl Process for Quorums {
    type Message = Sent;
    type Timer = Timer;
    const HEARS: &'static [Topic] = Linearizable::HEARS;

    fn start(&mut self, recovery: Recovery, cx: &mut Context<'_>) {
        self.call(cx, |inside, cx| inside.start(recovery, cx));
        self.look();
    }

    fn on_message(&mut self, from: Incarnation, sent: Sent, cx: &mut Context<'_>) {
        let Sent { mut message, is_bare } = sent;
        let can_be_bare = can_be_bare(&message);
        if can_be_bare && is_bare == self.has_stamps {
            return cx.fx.refuse("a message of quorums of the other kind");
        }
        if is_bare && !self.fill_in(&mut message) {
            return;
        }
        self.call(cx, |inside, cx| inside.on_message(from, message, cx));
        if !can_be_bare {
            self.look();
        }
    }

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_>) {
        self.call(cx, |inside, cx| inside.on_request(ticket, request, cx));
    }

    fn on_control(
        &mut self,
        ticket: Ticket,
        control: Control,
        deadline: Time,
        cx: &mut Context<'_>,
    ) {
        self.call(cx, |inside, cx| inside.on_control(ticket, control, deadline, cx));
    }

    fn on_timer(&mut self, timer: Timer, cx: &mut Context<'_>) {
        self.call(cx, |inside, cx| inside.on_timer(timer, cx));
        if timer == Timer::Maintain {
            self.look();
        }
    }

    fn on_news(&mut self, news: News<'_>, cx: &mut Context<'_>) {
        self.call(cx, |inside, cx| inside.on_news(news, cx));
    }

    fn parts(&self) -> Vec<Part> {
        self.inside.parts()
    }

    fn inspect(&self, into: &mut dyn Inspect) {
        self.inside.inspect(into);
    }

    fn check(&self) {
        self.inside.check();
        assert!(self.aims.len() <= OPERATIONS_MAX, "what is noted of operations has a bound");
    }
}
