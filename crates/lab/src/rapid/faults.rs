//! Fig. 8 to 10: a few of many members fail, each in some way, and all others stay.

use super::simulated::cluster::Second;
use super::simulated::{Cluster, Loss, costs};
use super::size::Size;
use super::{Spread, paper, seconds};
use crate::dotteddb::workers;
use crate::page::{Page, Table, fixed};
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_kernel::time::Span;
use quorate_protocols::membership::Shape;

/// How long all is well.
const CALM: Span = Span::secs(15);
/// How long a flip, and how long a flop lasts (paper §7).
const FLIP: Span = Span::secs(20);
/// A share of lost messages, of a million.
const LOST_PPM: u32 = 800_000;

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// They stop without a word.
    Crash,
    /// For 20 s nothing reaches them, for 20 s everything does, and so on.
    Flips,
    /// Four of five messages to them are lost.
    Ingress,
    /// Four of five messages from them are lost.
    Egress,
}

impl Fault {
    /// What it is called.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Fault::Crash => "crash",
            Fault::Flips => "20 s without ingress, 20 s with it",
            Fault::Ingress => "80 % ingress loss",
            Fault::Egress => "80 % egress loss",
        }
    }

    /// For how long it is looked at what comes of it.
    fn length(self) -> Span {
        match self {
            Fault::Crash => Span::secs(40),
            Fault::Flips => Span::secs(80),
            Fault::Ingress | Fault::Egress => Span::secs(60),
        }
    }

    fn make(self, cluster: &mut Cluster, nodes: &[usize]) {
        let lose = |cluster: &mut Cluster, loss, after| cluster.lose(nodes, loss, after);
        match self {
            Fault::Crash => cluster.crash(nodes),
            Fault::Ingress => {
                let loss = Loss { ingress_ppm: LOST_PPM, egress_ppm: 0 };
                lose(cluster, loss, Span(0));
            }
            Fault::Egress => {
                let loss = Loss { ingress_ppm: 0, egress_ppm: LOST_PPM };
                lose(cluster, loss, Span(0));
            }
            Fault::Flips => {
                for turn in 0..self.length().0 / FLIP.0 {
                    let ingress_ppm = if turn % 2 == 0 { 1_000_000 } else { 0 };
                    let loss = Loss { ingress_ppm, egress_ppm: 0 };
                    lose(cluster, loss, Span(FLIP.0 * turn));
                }
            }
        }
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// How many nodes there are, and how many of them fail.
    pub nodes: [usize; 2],
    /// How many configurations followed.
    pub configurations: usize,
    /// How many different sizes sound nodes reported, all nodes included.
    pub sizes: usize,
    /// From the fault until the first node had installed the next configuration.
    pub first: Option<Span>,
    /// From the fault until all sound nodes, and no others, were members and all of these knew it;
    /// none if that was not so at the end.
    pub last: Option<Span>,
    /// How many that failed were members at the end.
    pub kept: usize,
    /// How many sound ones were not.
    pub wronged: usize,
    /// What sound nodes counted, second by second since the fault.
    pub seconds: Vec<Second>,
    /// Bytes to, and from, a sound node in a second, ascending.
    pub traffic: [Vec<u32>; 2],
}

/// One run: all are members, and after a while some fail.
#[must_use]
pub fn measure(nodes: usize, faulty: usize, fault: Fault, seed: u64) -> Found {
    let mut cluster = Cluster::founded(nodes, Shape::DEFAULT, seed);
    cluster.run(CALM);
    let picked = cluster.pick(faulty);
    cluster.begin_measuring();
    let begun = cluster.now();
    fault.make(&mut cluster, &picked);
    cluster.run(fault.length());
    let [sound, kept] = cluster.members();
    let is_settled = cluster.is_settled();
    let mut traffic = std::mem::take(&mut cluster.traffic);
    traffic.iter_mut().for_each(|bytes| bytes.sort_unstable());
    let first = cluster.chain().map(|(at, _)| at).find(|at| *at > begun);
    Found {
        nodes: [nodes, faulty],
        configurations: cluster.chain().count() - 1,
        sizes: cluster.sizes.len(),
        first: first.map(|at| at - begun),
        last: is_settled.then(|| cluster.settled_at() - begun),
        kept,
        wronged: cluster.sound() - sound,
        seconds: cluster.seconds,
        traffic,
    }
}

const HEAD: [&str; 11] = [
    "nodes",
    "faulty",
    "what",
    "runs",
    "first removed (s)",
    "all removed and known (s), mean",
    "lowest",
    "highest",
    "configurations",
    "faulty that stay",
    "sound ones removed",
];

/// What all runs of one kind amount to.
fn row(fault: Fault, found: &[Found]) -> Vec<String> {
    let [nodes, faulty] = found[0].nodes;
    let of = |of: fn(&Found) -> Option<Span>| {
        let spans = found.iter().filter_map(of);
        Spread::of(&spans.map(|span| span.0 as f64 / 1e9).collect::<Vec<_>>())
    };
    let counts = |of: fn(&Found) -> usize| {
        Spread::of(&found.iter().map(|it| of(it) as f64).collect::<Vec<_>>()).whole()
    };
    let missed = found.iter().filter(|it| it.last.is_none()).count();
    let runs = match missed {
        0 => found.len().to_string(),
        _ => format!("{}, of which {missed} did not end", found.len()),
    };
    let last = of(|it| it.last);
    vec![
        nodes.to_string(),
        faulty.to_string(),
        fault.name().to_owned(),
        runs,
        seconds(of(|it| it.first).mean),
        seconds(last.mean),
        seconds(last.low),
        seconds(last.high),
        counts(|it| it.configurations),
        counts(|it| it.kept),
        counts(|it| it.wronged),
    ]
}

/// All runs of some faults: of each fault and number of nodes, all seeds.
fn runs(size: &Size, faults: &[Fault]) -> Vec<(Fault, Vec<Found>)> {
    let kinds: Vec<(Fault, usize)> =
        faults.iter().flat_map(|fault| size.nodes.iter().map(|nodes| (*fault, *nodes))).collect();
    let work: Vec<(Fault, usize, u64)> = kinds
        .iter()
        .flat_map(|(fault, nodes)| (1..=size.seeds).map(|seed| (*fault, *nodes, seed)))
        .collect();
    let found = workers::all(&work, size.threads, |(fault, nodes, seed)| {
        eprintln!("{}: {nodes} nodes, seed {seed}", fault.name());
        measure(*nodes, faulty(*nodes), *fault, *seed)
    });
    let found = found.chunks(size.seeds as usize).map(<[Found]>::to_vec);
    kinds.iter().map(|(fault, _)| *fault).zip(found).collect()
}

/// One percent of the nodes, as in the paper, and one at least.
fn faulty(nodes: usize) -> usize {
    (nodes / 100).max(1)
}

fn page(size: &Size, name: &str, title: &str, faults: &[Fault], paper: &str) -> (Page, Vec<Found>) {
    let runs = runs(size, faults);
    let mut table = Table::new(name, "From the fault on; all seeds together", &HEAD);
    runs.iter().for_each(|(fault, found)| table.push(row(*fault, found)));
    let charts: Vec<Chart> = faults
        .iter()
        .filter_map(|fault| {
            let of_fault = runs.iter().rev().find(|(of, _)| of == fault);
            of_fault.map(|(_, found)| chart(*fault, &found[0]))
        })
        .collect();
    let page = Page {
        name: name.to_owned(),
        title: title.to_owned(),
        notes: vec![
            format!(
                "All nodes are members from the beginning; after {} s one percent of them, drawn \
                 at random, fail, and for {} s more it is looked at what comes of it. K, H and L \
                 are 10, 9 and 4, our defaults (the paper: 10, 9 and 3). Seeds 1 to {}. A \
                 cell with two dots is the lowest and the highest of all runs. `First removed` is \
                 the mean until the first node has the next configuration; a run has ended when \
                 all sound nodes are members, no others are, and all sound ones know it.",
                CALM.0 / 1_000_000_000,
                faults[0].length().0 / 1_000_000_000,
                size.seeds
            ),
            costs::words(),
            paper.to_owned(),
        ],
        tables: vec![table],
        picture: render(title, &charts),
    };
    let last = runs.into_iter().next_back();
    (page, last.map(|(_, found)| found).unwrap_or_default())
}

/// Fig. 8 and Table 2: crashes.
#[must_use]
pub fn crashes(size: &Size) -> Page {
    let title = "Figure 8 and Table 2: one percent crash at one moment";
    let (mut page, largest) = page(size, "fig8", title, &[Fault::Crash], paper::CRASHES);
    if let Some(found) = largest.first() {
        page.tables.push(bandwidth(found));
    }
    page
}

/// Fig. 9: flip-flops.
#[must_use]
pub fn flips(size: &Size) -> Page {
    let title = "Figure 9: one percent hear nothing for 20 s, everything for 20 s, and so on";
    page(size, "fig9", title, &[Fault::Flips], paper::FLIPS).0
}

/// Fig. 10: loss.
#[must_use]
pub fn loss(size: &Size) -> Page {
    let title = "Figure 10: 80 % one-way loss at one percent";
    page(size, "fig10", title, &[Fault::Ingress, Fault::Egress], paper::LOSS).0
}

/// What a node receives and sends in a second.
fn bandwidth(found: &Found) -> Table {
    let title = format!(
        "Kilobytes that a sound node receives and sends in a second, {} nodes, seed 1, the {} s \
         after the crash",
        found.nodes[0],
        Fault::Crash.length().0 / 1_000_000_000
    );
    let head = ["", "received", "sent", "the paper: received", "sent "];
    let mut table = Table::new("table2", &title, &head);
    let kilobytes = |bytes: &[u32]| {
        let at = |share: usize| {
            let place = (bytes.len().max(1) - 1) * share / 100;
            f64::from(bytes.get(place).copied().unwrap_or_default()) / 1e3
        };
        let sum: u64 = bytes.iter().map(|bytes| u64::from(*bytes)).sum();
        [sum as f64 / 1e3 / bytes.len().max(1) as f64, at(99), at(100)]
    };
    let [received, sent] = [kilobytes(&found.traffic[0]), kilobytes(&found.traffic[1])];
    let is_papers = found.nodes[0] == 1000;
    for (place, name) in ["mean", "99 %", "most"].into_iter().enumerate() {
        let (theirs, other) = paper::BANDWIDTH[place];
        let theirs = if is_papers { [theirs, other] } else { ["-", "-"] };
        let ours = [fixed(received[place], 2), fixed(sent[place], 2)];
        let cells = [name.to_owned()].into_iter().chain(ours);
        table.push(cells.chain(theirs.map(str::to_owned)).collect());
    }
    table
}

/// What sound nodes count.
fn chart(fault: Fault, found: &Found) -> Chart {
    let series = |name: &str, of: fn(&Second) -> usize| Series {
        name: name.to_owned(),
        points: found
            .seconds
            .iter()
            .enumerate()
            .map(|(second, counted)| (second as f64 + 1.0, of(counted) as f64))
            .collect(),
    };
    Chart {
        title: format!("{}: members that sound nodes count, seed 1", fault.name()),
        x: Axis { label: "seconds after the fault".to_owned(), scale: Scale::Linear },
        y: Axis { label: "members".to_owned(), scale: Scale::Linear },
        series: vec![series("most", |it| it.most), series("fewest", |it| it.fewest)],
        marks: Vec::new(),
    }
}
