//! Bugs that tests plant into lanes, to see that judges condemn them.

use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::lane::{Env, Kept, Lane, Raised};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::Control;
use quorate_kernel::part::Part;
use quorate_kernel::process::{Inspect, Recovery, Request};
use quorate_kernel::time::Time;
use quorate_kernel::watch::Watch;
use quorate_kernel::wire::Decoder;

/// What is wrong with how a lane serves requests.
#[derive(Clone, Copy)]
pub struct Bug {
    /// What happens to a request before the lane is asked; whether it is not asked at all.
    pub on_request: fn(&mut Request, &mut Vec<Raised>, Ticket) -> bool,
    /// What happens to what the lane asks for when it was asked: to all from this place on.
    pub on_raised: fn(&mut Vec<Raised>, usize),
}

impl Bug {
    /// Nothing is wrong.
    pub const NONE: Bug = Bug { on_request: |_, _, _| false, on_raised: |_, _| {} };
}

/// A lane that does what it should, except for a bug.
pub struct Planted {
    inner: Box<dyn Lane>,
    bug: Bug,
}

impl Planted {
    /// Plants a bug into a lane.
    #[must_use]
    pub fn around(inner: Box<dyn Lane>, bug: Bug) -> Box<dyn Lane> {
        Box::new(Planted { inner, bug })
    }
}

impl Lane for Planted {
    fn start(&mut self, recovery: Recovery, env: &mut Env<'_>) {
        self.inner.start(recovery, env);
    }

    fn on_frame(
        &mut self,
        from: Incarnation,
        message: &Decoder,
        env: &mut Env<'_>,
    ) -> Result<(), WireError> {
        self.inner.on_frame(from, message, env)
    }

    fn on_local(&mut self, slot: u32, env: &mut Env<'_>) {
        self.inner.on_local(slot, env);
    }

    fn on_request(&mut self, ticket: Ticket, mut request: Request, env: &mut Env<'_>) {
        let mut kept = Kept { table: &*env.out, raised: Vec::new() };
        if !(self.bug.on_request)(&mut request, &mut kept.raised, ticket) {
            let before = kept.raised.len();
            let Env { me, lane, now, wall, .. } = *env;
            let mut inner = Env { me, lane, now, wall, rng: &mut *env.rng, out: &mut kept };
            self.inner.on_request(ticket, request, &mut inner);
            (self.bug.on_raised)(&mut kept.raised, before);
        }
        kept.raised.into_iter().for_each(|raised| env.out.take(raised));
    }

    fn on_watch(&mut self, ticket: Ticket, watch: Watch, env: &mut Env<'_>) {
        self.inner.on_watch(ticket, watch, env);
    }

    fn on_unwatch(&mut self, ticket: Ticket, env: &mut Env<'_>) {
        self.inner.on_unwatch(ticket, env);
    }

    fn on_timer(&mut self, code: u32, env: &mut Env<'_>) {
        self.inner.on_timer(code, env);
    }

    fn on_control(&mut self, ticket: Ticket, control: Control, deadline: Time, env: &mut Env<'_>) {
        self.inner.on_control(ticket, control, deadline, env);
    }

    fn hears(&self, topic: Topic) -> bool {
        self.inner.hears(topic)
    }

    fn on_news(&mut self, news: News<'_>, env: &mut Env<'_>) {
        self.inner.on_news(news, env);
    }

    fn parts(&self) -> Vec<Part> {
        self.inner.parts()
    }

    fn inspect(&self, into: &mut dyn Inspect) {
        self.inner.inspect(into);
    }

    fn check(&self) {
        self.inner.check();
    }
}
