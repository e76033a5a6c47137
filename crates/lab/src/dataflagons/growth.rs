//! Four times as many nodes within a minute: how long until slices and replicas follow.

use super::super::dotteddb::workers;
use super::super::page::{Page, Table, fixed};
use super::run::SETTLE_ROUNDS;
use super::simulated::Cluster;
use super::size::Size;
use quorate_chart::svg::{Axis, Chart, Scale, Series, render};
use quorate_kernel::time::Span;

/// Within how long the others come.
const MINUTE: Span = Span::secs(60);
/// For how long clients write before.
const BEFORE: Span = Span::secs(20);

/// What was found.
struct Growth {
    nodes: usize,
    /// Slices before and after.
    slices: [Option<u64>; 2],
    /// Until all are ready and agree, from the first newcomer on.
    agreed: Option<Span>,
    /// Until each member of each slice has the newest version of its keys.
    equal: Option<Span>,
    /// Each second: what share of nodes is ready, in percent.
    ready: Vec<(f64, f64)>,
    requests: [usize; 2],
    holes: (u64, u64),
}

/// Simulates it.
#[must_use]
pub fn figure(size: &Size) -> Page {
    let found = workers::all(&size.nodes, size.threads, |nodes| {
        eprintln!("growth: to {nodes} nodes");
        grow(size, *nodes)
    });
    let mut table = Table::new(
        "growth",
        "From a quarter of the nodes to all within a minute; times from the first newcomer on",
        &[
            "nodes",
            "slices before",
            "after",
            "all ready (s)",
            "replicas equal (s)",
            "asked",
            "failed",
            "pairs",
            "holes",
        ],
    );
    let seconds =
        |span: Option<Span>| span.map_or("never".to_owned(), |it| fixed(it.0 as f64 / 1e9, 0));
    let number = |slices: Option<u64>| slices.map_or("-".to_owned(), |it| it.to_string());
    for one in &found {
        table.push(vec![
            one.nodes.to_string(),
            number(one.slices[0]),
            number(one.slices[1]),
            seconds(one.agreed),
            seconds(one.equal),
            one.requests[1].to_string(),
            (one.requests[1] - one.requests[0]).to_string(),
            one.holes.0.to_string(),
            one.holes.1.to_string(),
        ]);
    }
    let chart = Chart {
        title: "nodes that are ready".to_owned(),
        x: Axis { label: "seconds after the first newcomer".to_owned(), scale: Scale::Linear },
        y: Axis { label: "percent of those that are there".to_owned(), scale: Scale::Linear },
        series: found
            .iter()
            .map(|one| Series { name: format!("{} nodes", one.nodes), points: one.ready.clone() })
            .collect(),
        marks: vec![(60.0, "all are there".to_owned())],
    };
    Page {
        name: "growth".to_owned(),
        title: "Four times as many nodes within a minute".to_owned(),
        notes: vec![
            "A quarter of the nodes serves clients; then the others come, \
             evenly within a minute, each told of 20 that are there. Clients go on, and ask nodes \
             that are ready. A node is ready when it has taken over all of its slice. Replicas are \
             equal when each member of a slice has the newest version of each of its keys; that is \
             looked for after all are ready and clients have stopped."
                .to_owned(),
        ],
        tables: vec![table],
        picture: render("Growth by four", &[chart]),
    }
}

fn grow(size: &Size, nodes: usize) -> Growth {
    let shape = size.shape(nodes / 4, 1);
    let mut cluster = Cluster::new(&shape);
    cluster.settle(SETTLE_ROUNDS);
    let before = cluster.agreed();
    cluster.load();
    cluster.run(BEFORE);
    let begun = cluster.now();
    cluster.grow(nodes - nodes / 4, MINUTE);
    let mut ready = Vec::new();
    let mut agreed = None;
    let limit = Span(shape.round.0 * SETTLE_ROUNDS);
    while cluster.now() - begun < limit && agreed.is_none() {
        cluster.run(Span::secs(1));
        let passed = cluster.now() - begun;
        let share = 100.0 * cluster.sums(&["standing"])[0] as f64 / cluster.size() as f64;
        ready.push((passed.0 as f64 / 1e9, share));
        if passed >= MINUTE && cluster.agreed().is_some() {
            agreed = Some(passed);
        }
    }
    cluster.rest();
    let is_equal =
        |cluster: &Cluster| cluster.agreed().is_some_and(|slices| cluster.missing(slices) == 0);
    let equal = cluster.until(SETTLE_ROUNDS, is_equal).map(|_| cluster.now() - begun);
    cluster.check();
    let delivered = cluster.delivered();
    Growth {
        nodes,
        slices: [before, cluster.agreed()],
        agreed,
        equal,
        ready,
        requests: [
            cluster.requests().filter(|request| request.latency().is_some()).count(),
            cluster.requests().count(),
        ],
        holes: (delivered.pairs, delivered.holes),
    }
}
