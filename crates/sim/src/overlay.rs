//! Many overlays and nothing else: what membership costs, and how fast it converges.
//!
//! It drives the protocol of the overlay's lane directly, without a node around it, so a thousand
//! of them run many times faster than in real time. Messages stay values by default; `--encode`
//! puts each through its bytes, as hosts do, to account for that too.

use crate::delay::{Delay, Distribution};
use crate::light::{Counts, Light, Said, node_id};
use crate::run::busy;
use clap::Args;
use quorate_kernel::effects::Note;
use quorate_kernel::ids::{Incarnation, LaneId, Start};
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_kernel::rng::Rng;
use quorate_kernel::time::Span;
use quorate_protocols::overlay::{Overlay, Settings};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

/// Runs the overlays of many hosts, crashes one, and tells what it cost.
#[derive(Args, Clone, Debug)]
pub struct OverlayArgs {
    /// How many hosts.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u64).range(2..=4096))]
    pub nodes: u64,
    /// How many simulated seconds, after the hosts have settled.
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    pub seconds: u64,
    /// How many tokens each host has on the ring.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=64))]
    pub tokens: u64,
    /// The mean of the exponential one-way delay in microseconds.
    #[arg(long, default_value_t = 1000, value_name = "US")]
    pub delay_us: u64,
    /// Decides everything.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Encodes and decodes every message.
    #[arg(long)]
    pub encode: bool,
}

/// Hosts that run their overlay, and no other lane.
struct Overlays {
    light: Light<Overlay>,
    /// What each host says of the ring.
    rings: Vec<Arc<Ring>>,
}

impl Overlays {
    fn new(args: &OverlayArgs) -> Overlays {
        let count = args.nodes as usize;
        let mut rng = Rng::new(args.seed);
        // Drawn by chance, so that a host with several has several neighbours: the worst case.
        let mut draw = || {
            let mut tokens: Vec<u64> = (0..args.tokens).map(|_| rng.next()).collect();
            tokens.sort_unstable();
            tokens
        };
        let known: Vec<RingHost> = (0..count)
            .map(|host| RingHost {
                // Nobody was heard yet in its present start, which is the first.
                who: Incarnation { node: node_id(host), start: Start(0) },
                address: format!("10.0.{}.{}:7400", host / 256, host % 256),
                zone: String::new(),
                tokens: draw(),
                standing: Standing::Up,
                is_suspected: false,
                doors: Vec::new(),
            })
            .collect();
        let delay = Delay::new(&Distribution::Exponential { mean_us: args.delay_us });
        let mut light = Light::new(LaneId::OVERLAY, delay, rng, args.encode);
        for host in &known {
            light.add(Overlay::new(Settings {
                address: host.address.clone(),
                zone: String::new(),
                doors: Vec::new(),
                tokens: host.tokens.clone(),
                hosts: known.clone(),
                balance: None,
            }));
        }
        Overlays { light, rings: vec![Arc::default(); count] }
    }

    fn run(&mut self, span: Span) {
        self.light.run(span);
        for (host, _, said) in self.light.said.drain(..) {
            if let Said::Note(Note::Ring(ring)) = said {
                self.rings[host] = ring;
            }
        }
    }

    /// Runs until a condition holds at every host that is up; returns how long that took.
    fn until(&mut self, limit: Span, holds: impl Fn(&Ring) -> bool) -> Option<Span> {
        let begin = self.light.now();
        let holds_at = |overlays: &Overlays, host: usize| {
            !overlays.light.is_up(host) || holds(&overlays.rings[host])
        };
        while !(0..self.rings.len()).all(|host| holds_at(self, host)) {
            if self.light.now() - begin > limit {
                return None;
            }
            self.run(Span::millis(100));
        }
        Some(self.light.now() - begin)
    }
}

/// What a run found.
#[derive(Clone, Debug)]
pub struct OverlayReport {
    nodes: u64,
    seconds: u64,
    /// Until every host knew every other in its present start.
    settled: Option<Span>,
    /// Until every host suspected one that crashed.
    noticed: Option<Span>,
    counts: [u64; 4],
    /// How long a core was busy with what was measured.
    busy_seconds: f64,
}

impl OverlayReport {
    /// Whether everybody settled, and noticed the crash.
    #[must_use]
    pub fn is_converged(&self) -> bool {
        self.settled.is_some() && self.noticed.is_some()
    }
}

impl fmt::Display for OverlayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [messages, bytes, events, writes] = self.counts;
        let host_seconds = (self.nodes * self.seconds) as f64;
        let seconds = |span: Option<Span>| match span {
            Some(span) => format!("{:.1} s", span.0 as f64 / 1e9),
            None => "never".to_owned(),
        };
        writeln!(
            f,
            "{} hosts, {} s simulated in {:.2} s of a core",
            self.nodes, self.seconds, self.busy_seconds
        )?;
        writeln!(f, "all know all after       {}", seconds(self.settled))?;
        writeln!(f, "a crash is known after   {}", seconds(self.noticed))?;
        writeln!(f, "messages/s per host      {:.2}", messages as f64 / host_seconds)?;
        if bytes > 0 {
            // A message to several is encoded once, so these are the bytes of distinct messages.
            writeln!(f, "bytes encoded/s per host {:.0}", bytes as f64 / host_seconds)?;
        }
        writeln!(f, "events/s per host        {:.2}", events as f64 / host_seconds)?;
        writeln!(f, "writes/s per host        {:.4}", writes as f64 / host_seconds)?;
        let percent = 100.0 * self.busy_seconds / host_seconds;
        writeln!(f, "CPU per host             {percent:.4} % of a core")?;
        write!(f, "faster than real time    {:.0}x", self.seconds as f64 / self.busy_seconds)
    }
}

/// Runs it.
#[must_use]
pub fn run(args: &OverlayArgs) -> OverlayReport {
    let mut overlays = Overlays::new(args);
    let all = args.nodes as usize;
    let is_settled = |ring: &Ring| {
        let mut hosts = ring.hosts().iter();
        ring.hosts().len() == all && hosts.all(|host| host.who.start.0 == 1 && !host.is_suspected)
    };
    let settled = overlays.until(Span::secs(120), is_settled);
    // The first news of everybody's start is over before anything is measured.
    overlays.run(Span::secs(10));
    overlays.light.counts = Counts::default();
    let begun = Instant::now();
    let before = busy(begun);
    overlays.run(Span::secs(args.seconds));
    let busy_seconds = (busy(begun) - before).as_secs_f64();
    let Counts { messages, bytes, events, writes } = overlays.light.counts;
    let victim = all / 2;
    overlays.light.crash(victim);
    let noticed = overlays.until(Span::secs(60), |ring| ring.is_suspected(node_id(victim)));
    OverlayReport {
        nodes: args.nodes,
        seconds: args.seconds,
        settled,
        noticed,
        counts: [messages, bytes, events, writes],
        busy_seconds,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_run_converges_and_repeats() {
        let args = |encode| OverlayArgs {
            nodes: 40,
            seconds: 20,
            tokens: 2,
            delay_us: 1000,
            seed: 3,
            encode,
        };
        let (first, second) = (run(&args(false)), run(&args(true)));
        assert!(first.is_converged(), "{first}");
        assert_eq!(first.counts[0], second.counts[0], "encoding changes nothing");
        assert!(first.noticed == second.noticed && second.counts[1] > 0);
    }
}
