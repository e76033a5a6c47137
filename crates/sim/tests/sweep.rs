//! The simulator as a whole: it repeats itself, its scenarios hold, and its judges see.

use bytes::Bytes;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, Ticket};
use quorate_kernel::lane::{Env, Lane, Raised};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Control, Operation, Outcome};
use quorate_kernel::part::Part;
use quorate_kernel::process::{Inspect, Recovery, Request};
use quorate_kernel::time::Time;
use quorate_kernel::wire::Decoder;
use quorate_sim::prepared::Prepared;
use quorate_sim::replay::Replay;
use quorate_sim::seed::{Report, Runner, Setup};
use quorate_sim::{shipped, shrink};

fn prepared(name: &str) -> Prepared {
    Prepared::new(shipped::find(name).expect("it ships")).expect("it is valid")
}

fn all() -> Vec<Prepared> {
    let prepare = |scenario| Prepared::new(scenario).expect("it is valid");
    shipped::scenarios().into_iter().map(prepare).collect()
}

fn run(runner: &mut Runner, prepared: &Prepared, seed: u64) -> Report {
    runner.run(prepared, Setup { seed, ..Setup::default() })
}

#[test]
fn a_seed_run_twice_leaves_the_same_trace() {
    for prepared in all() {
        let name = &prepared.scenario.name;
        let first = run(&mut Runner::default(), &prepared, 7);
        let mut used = Runner::default();
        run(&mut used, &prepared, 8);
        let second = run(&mut used, &prepared, 7);
        assert_eq!(first, second, "{name}");
        assert_ne!(first.hash, run(&mut used, &prepared, 8).hash, "{name}");
    }
}

#[test]
fn writing_the_trace_does_not_change_it() {
    let prepared = prepared("churn");
    let mut runner = Runner::default();
    let silent = run(&mut runner, &prepared, 3);
    let out: Box<dyn std::io::Write> = Box::new(std::io::sink());
    let told = runner.run(&prepared, Setup { seed: 3, out: Some(out), ..Setup::default() });
    assert_eq!(silent, told);
}

#[test]
fn every_scenario_holds() {
    let mut runner = Runner::default();
    for prepared in all() {
        let name = &prepared.scenario.name;
        for seed in 1000..1002 {
            assert_eq!(run(&mut runner, &prepared, seed).violation, None, "{name}, seed {seed}");
        }
    }
}

/// A lane that does what it should, except for what `lie` does to what it raised or was asked.
struct Liar {
    inner: Box<dyn Lane>,
    lie: fn(&mut Request, &mut Vec<Raised>, Ticket) -> bool,
}

impl Lane for Liar {
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
        if !(self.lie)(&mut request, env.raised, ticket) {
            self.inner.on_request(ticket, request, env);
        }
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

fn answer(raised: &mut Vec<Raised>, ticket: Ticket, outcome: Outcome) -> bool {
    let release = quorate_kernel::effects::Release::Early;
    raised.push(Raised::Answer { ticket, outcome, release });
    true
}

/// Acknowledges every ninth put without doing it.
fn forgetful(inner: Box<dyn Lane>) -> Box<dyn Lane> {
    let lie = |request: &mut Request, raised: &mut Vec<Raised>, ticket: Ticket| {
        let is_put = matches!(request.operation, Operation::Put { .. });
        is_put && ticket.0.is_multiple_of(9) && answer(raised, ticket, Outcome::written())
    };
    Box::new(Liar { inner, lie })
}

/// Answers every ninth get with a value that nobody wrote.
fn inventive(inner: Box<dyn Lane>) -> Box<dyn Lane> {
    let lie = |request: &mut Request, raised: &mut Vec<Raised>, ticket: Ticket| {
        let is_get = matches!(request.operation, Operation::Get { .. });
        let invented = Outcome::value(Some(Bytes::from_static(b"invented")));
        is_get && ticket.0.is_multiple_of(9) && answer(raised, ticket, invented)
    };
    Box::new(Liar { inner, lie })
}

/// Never answers one put in nine.
fn silent(inner: Box<dyn Lane>) -> Box<dyn Lane> {
    let lie = |request: &mut Request, _: &mut Vec<Raised>, ticket: Ticket| {
        matches!(request.operation, Operation::Put { .. }) && ticket.0.is_multiple_of(9)
    };
    Box::new(Liar { inner, lie })
}

/// Breaks an invariant at the fiftieth request.
fn broken(inner: Box<dyn Lane>) -> Box<dyn Lane> {
    let lie = |_: &mut Request, _: &mut Vec<Raised>, ticket: Ticket| {
        assert!(ticket.0 < 50, "planted: ticket {} is too many", ticket.0);
        false
    };
    Box::new(Liar { inner, lie })
}

#[test]
fn planted_bugs_are_condemned_by_the_right_judge() {
    let prepared = prepared("calm");
    let plants: [(quorate_sim::host::Wrap, &[&str]); 4] = [
        (forgetful, &["linearizable", "durable"]),
        (inventive, &["linearizable", "durable"]),
        (silent, &["liveness"]),
        (broken, &["panic"]),
    ];
    for (index, (wrap, judges)) in plants.into_iter().enumerate() {
        let mut runner = Runner::default();
        let violation = (0..20).find_map(|seed| {
            let setup = Setup { seed, wrap: Some(wrap), ..Setup::default() };
            runner.run(&prepared, setup).violation
        });
        let violation = violation.unwrap_or_else(|| panic!("plant {index} survived"));
        assert!(judges.contains(&violation.judge), "plant {index}: {violation:?}");
        if violation.judge == "panic" {
            assert!(violation.message.contains("planted: ticket 50"), "{violation:?}");
        }
    }
}

#[test]
fn a_failing_seed_is_reduced_to_what_matters() {
    let prepared = prepared("churn");
    let mut runner = Runner::default();
    let replay = Replay::of(&prepared, 2);
    assert!(replay.faults.len() > 5);
    let shrunk = shrink::shrink(&mut runner, replay.clone(), Some(inventive));
    let shrunk = shrunk.expect("it can be run").expect("it fails");
    assert!(shrunk.replay.faults.is_empty(), "the planted bug needs no fault");
    assert!(shrunk.replay.scenario.workload.operations <= 40);
    let read_back = Replay::parse("test", &shrunk.replay.to_text()).expect("it is a replay");
    let again = shrink::run(&mut runner, &read_back, Some(inventive)).expect("it can be run");
    assert_eq!(again.violation, Some(shrunk.violation));
    assert!(shrink::shrink(&mut runner, replay, None).expect("it can be run").is_none());
}

/// Seeds that once showed a bug: a newcomer that acknowledged writes too early (moves), demands
/// that gave slow disks and networks too little time (power, views), two hosts that suspected each
/// other for ten seconds (partition, pause 19) or told each other so without end (loss), a purge
/// that was announced twice and refused puts (pause), newcomers that were asked at the speed of the
/// network (elastic 4), members left behind when all who knew had let go (elastic), invitations
/// that answered each other within no time (elastic from 1,000,000 on), a judge that did not wait
/// until the words of two equally loaded hosts had met (balance), learners that nobody wanted
/// (lagging 34), members that nobody remembered (elastic 2,106,128, purges), a removal of
/// tombstones left halfway (partition 3,000,084), a group of two of which one waited for the other
/// (lagging 4,003,533), a newcomer that was to gather and did not begin (lagging 6,000,187), a
/// member that was gone and forgotten by all (wiped 7,010,172), faults that took more than the
/// replicas can spare (churning, swarm60, periodic), a refusal that rested on a late reply
/// (catalog-calm), questions that waited for a decree that nobody completed (catalog-power), a
/// newcomer that waited for a lost host, whose position waited for the newcomer (both-churn), a
/// write that was given to a process of the past (causal-moves 9,014,493), a context that counted
/// as stored where it was not (causal-crash 21,128), a judge that took for rest what waited for a
/// delayed write (causal-lazy 10,025,295, causal-moves), and two records of a catalog under one
/// number (causal-moves 70,010,129).
#[test]
fn seeds_that_failed_once_hold() {
    let kept = [
        ("moves", 101_446),
        ("moves", 102_457),
        ("moves", 108_511),
        ("power", 106_919),
        ("views", 108_935),
        ("partition", 48),
        ("partition", 3_000_084),
        ("pause", 19),
        ("loss", 200_012),
        ("pause", 200_594),
        ("elastic", 4),
        ("elastic", 78),
        ("elastic", 164),
        ("elastic", 1_000_673),
        ("elastic", 1_007_305),
        ("elastic", 2_106_128),
        ("balance", 155),
        ("balance", 199),
        ("churning", 1_000_020),
        ("swarm60", 1_000_990),
        ("periodic", 2_000_185),
        ("paper", 3_000_184),
        ("purges", 393),
        ("lagging", 34),
        ("lagging", 453),
        ("lagging", 3_000_035),
        ("catalog-calm", 516),
        ("catalog-power", 12),
        ("lagging", 4_003_533),
        ("lagging", 6_000_187),
        ("wiped", 7_010_172),
        ("causal-crash", 21_128),
        ("causal-lazy", 10_025_295),
        ("causal-moves", 3_104),
        ("causal-moves", 4_774),
        ("causal-moves", 9_014_493),
        ("causal-moves", 10_026_830),
        ("causal-moves", 70_010_129),
        ("causal-pages", 7_239),
        ("causal-pages", 9_208),
        ("both-churn", 62),
        ("both-churn", 96),
    ];
    for (scenario, seed) in kept {
        let setup = Setup { seed, ..Setup::default() };
        let violation = Runner::default().run(&prepared(scenario), setup).violation;
        assert!(violation.is_none(), "{scenario} {seed}: {violation:?}");
    }
}
