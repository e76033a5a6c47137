//! Members that hear of failures, each in an order of its own, without a network.

use super::node::member;
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::process::Table;
use quorate_kernel::rng::Rng;
use quorate_kernel::storage::Class;
use quorate_kernel::time::{Span, Time};
use quorate_protocols::membership::{
    Action, Alert, Body, Change, Configuration, Context, Digest, Message, Roll, Shape, TICK,
};
use quorate_sim::light::{index_of, node_id};

/// Nothing is ever read.
struct Empty;

impl Table for Empty {
    fn get(&self, _: Class, _: &Bytes) -> Option<Bytes> {
        None
    }

    fn scan(&self, _: Class, _: &[u8], _: &mut dyn FnMut(&[u8], &Bytes) -> bool) {}
}

fn founding(nodes: usize, shape: Shape) -> Configuration {
    let founders: Vec<_> = (0..nodes).map(|index| member(node_id(index), index)).collect();
    Configuration::founding(shape, &founders).expect("they are different")
}

fn who(index: usize) -> Incarnation {
    Incarnation { node: node_id(index), start: Start(1) }
}

/// One member, and what it asks for.
struct Alone {
    index: usize,
    roll: Roll,
}

impl Alone {
    fn new(index: usize, founding: &Configuration) -> Alone {
        let mut alone = Alone { index, roll: Roll::new(member(node_id(index), index)) };
        alone.act(Time(0), |roll, cx| roll.start(Some(founding.clone()), cx));
        alone
    }

    /// What it says in one step.
    fn act(
        &mut self,
        now: Time,
        act: impl FnOnce(&mut Roll, &mut Context<'_>),
    ) -> Vec<(Vec<NodeId>, Message)> {
        use quorate_kernel::effects::Recipients;
        let mut out = Vec::new();
        act(
            &mut self.roll,
            &mut Context { me: who(self.index), now, table: &Empty, out: &mut out },
        );
        let said = |action| match action {
            Action::Send { to: Recipients::One(to), message, .. } => Some((vec![to.node], message)),
            Action::Send { to: Recipients::Group(nodes), message, .. } => {
                Some((nodes.to_vec(), message))
            }
            Action::Refuse(what) => panic!("refused: {what}"),
            _ => None,
        };
        out.into_iter().filter_map(said).collect()
    }
}

/// What all observers of some nodes report.
pub struct AllAlerts {
    failed: Vec<NodeId>,
    alerts: Vec<(usize, Alert)>,
}

/// So many of so many nodes fail: what their observers report, one alert for each observer and
/// node. Who observes whom does not depend on H and L.
#[must_use]
pub fn alerts(nodes: usize, failed: usize, rng: &mut Rng) -> AllAlerts {
    let founding = founding(nodes, Shape::DEFAULT);
    // Node 0 tells the others; it does not fail.
    let mut indexes: Vec<usize> = Vec::new();
    while indexes.len() < failed {
        let one = 1 + rng.below(nodes as u64 - 1) as usize;
        if !indexes.contains(&one) {
            indexes.push(one);
        }
    }
    let mut told =
        AllAlerts { failed: indexes.iter().map(|it| node_id(*it)).collect(), alerts: vec![] };
    let mut teller = Alone::new(0, &founding);
    for node in told.failed.clone() {
        // To remove somebody is to ask its observers to report it.
        let said = teller.act(Time(0), |roll, cx| {
            roll.kick(node, cx).expect("it is a member, and few are to go");
        });
        for (to, message) in said {
            if matches!(message.body, Body::Depart { node: of } if of == node) {
                told.alerts.extend(to.into_iter().flat_map(|to| report(&founding, to, &message)));
            }
        }
    }
    told
}

/// What an observer reports that is asked to.
fn report(founding: &Configuration, observer: NodeId, asked: &Message) -> Vec<(usize, Alert)> {
    let index = index_of(observer);
    let mut alone = Alone::new(index, founding);
    alone.act(Time(0), |roll, cx| roll.on_message(who(0), asked.clone(), cx));
    let said = alone.act(Time(0) + TICK + Span::millis(1), Roll::tick);
    let alerts = said.into_iter().filter_map(|(_, message)| match message.body {
        Body::Alerts { alerts } => Some(alerts),
        _ => None,
    });
    alerts.flatten().map(|alert| (index, alert)).collect()
}

/// Members of a cluster in which that was reported.
pub struct Hearer<'a> {
    founding: Configuration,
    told: &'a AllAlerts,
    all: Digest,
}

impl Hearer<'_> {
    /// Those of so many nodes, with this H and L.
    #[must_use]
    pub fn new(nodes: usize, shape: Shape, told: &AllAlerts) -> Hearer<'_> {
        let all = Change::new(Vec::new(), told.failed.clone()).digest();
        Hearer { founding: founding(nodes, shape), told, all }
    }

    /// Whether a random sound member, which hears all alerts in a random order, proposes something
    /// else than that all that failed leave.
    #[must_use]
    pub fn differs(&self, rng: &mut Rng) -> bool {
        let nodes = self.founding.members.len() as u64;
        let mut index = 0;
        while index == 0 || self.told.failed.contains(&node_id(index)) {
            index = rng.below(nodes) as usize;
        }
        let mut alerts = self.told.alerts.clone();
        for last in (1..alerts.len()).rev() {
            alerts.swap(last, rng.below(last as u64 + 1) as usize);
        }
        let mut alone = Alone::new(index, &self.founding);
        for (observer, alert) in alerts {
            let body = Body::Alerts { alerts: vec![alert] };
            let message = Message { roll: self.founding.id, body };
            let said = alone.act(Time(0), |roll, cx| roll.on_message(who(observer), message, cx));
            for (_, message) in said {
                if let Body::FastVote { digest } = message.body {
                    return digest != self.all;
                }
            }
        }
        panic!("it has heard of all, and proposes nothing");
    }
}
