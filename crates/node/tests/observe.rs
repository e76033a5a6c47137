//! What a lane has observed ends with the lane, and what is told of it reaches it alone.

mod common;

use common::{Never, Silence};
use quorate_kernel::ids::{Incarnation, LaneId, Lsn, NodeId, Start, Ticket};
use quorate_kernel::keyspace::{Keyspace, Keyspaces, Settings};
use quorate_kernel::lane::{Hosted, LaneSpec};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::observe::Every;
use quorate_kernel::operation::{Operation, Outcome};
use quorate_kernel::process::{Context, Process, Recovery, Request};
use quorate_kernel::ring::Ring;
use quorate_kernel::storage::{Batch, Durability, Nothing};
use quorate_kernel::time::{Time, WallTime};
use quorate_kernel::wire::Frame;
use quorate_node::host::Host;
use quorate_node::node::Node;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

const ASKER: LaneId = LaneId(16);
const PEER: NodeId = NodeId(2);

/// What lanes were told, in order.
type Told = Rc<RefCell<Vec<String>>>;

/// A lane that has a peer observed, and two when that is silent; and the one that does it, which
/// says what it is asked to.
struct Asker {
    told: Told,
    keyspaces: Vec<Arc<Keyspace>>,
}

impl Asker {
    fn spec(lane: LaneId, told: &Told, keyspaces: Vec<Arc<Keyspace>>) -> LaneSpec {
        let process = Box::new(Hosted::new(Asker { told: Rc::clone(told), keyspaces }));
        LaneSpec { lane, durability: Durability::Sync, recovery: Recovery::Intact, process }
    }

    fn say(&self, lane: LaneId, what: &str) {
        self.told.borrow_mut().push(format!("{} {what}", lane.0));
    }
}

impl Process for Asker {
    type Message = Silence;
    type Timer = Never;
    const HEARS: &'static [Topic] = &[Topic::Observe, Topic::Silence];

    fn start(&mut self, _recovery: Recovery, cx: &mut Context<'_, Asker>) {
        if cx.lane == ASKER {
            cx.fx.observe(Arc::from([PEER]), Every::Ms50);
        }
    }

    fn on_message(&mut self, _: Incarnation, _: Silence, _: &mut Context<'_, Asker>) {}
    fn on_timer(&mut self, _: Never, _: &mut Context<'_, Asker>) {}

    fn on_request(&mut self, ticket: Ticket, request: Request, cx: &mut Context<'_, Asker>) {
        let Operation::Put { key, .. } = request.operation else { panic!("it is told by puts") };
        cx.fx.announce_silence(ASKER, PEER, &key[..] == b"back");
        let kept = if &key[..] == b"drop" { 1 } else { 0 };
        let list = self.keyspaces[kept..].iter().map(|it| (Arc::clone(it), Start(1))).collect();
        let keyspaces = Keyspaces { version: 1, list, ..Keyspaces::default() };
        cx.fx.announce_keyspaces(Arc::new(keyspaces));
        cx.fx.answer(ticket, Outcome::written());
    }

    fn on_news(&mut self, news: News<'_>, cx: &mut Context<'_, Asker>) {
        match news {
            News::Observe { lane, observation } if cx.lane == LaneId::OVERLAY => {
                self.say(lane, &format!("observes {}", observation.peers.len()));
            }
            News::Observe { .. } => {}
            News::Silence { peer, is_over } => {
                self.say(cx.lane, &format!("hears of {}: {is_over}", peer.0));
                cx.fx.observe(Arc::from([PEER, NodeId(3)]), Every::Ms50);
            }
            news => panic!("{news:?}"),
        }
    }
}

struct Outside;

impl Host for Outside {
    fn transmit(&mut self, _frame: &Frame) {}
    fn answer(&mut self, _ticket: Ticket, _outcome: Outcome) {}
    fn commit(&mut self, _batch: Batch) {}
    fn ring(&mut self, _ring: &Arc<Ring>) {}
}

#[test]
fn a_lane_hears_of_whom_it_observes_until_it_is_dropped() {
    let told = Told::default();
    let keyspace = |lane| Arc::new(Keyspace::new("k", LaneId(lane), "e", Settings::new(), 1));
    let overlay = Asker::spec(LaneId::OVERLAY, &told, vec![keyspace(16), keyspace(17)]);
    let heard = Rc::clone(&told);
    let opener = Box::new(move |keyspace: &Keyspace, _| {
        Some(Asker::spec(keyspace.lane, &heard, Vec::new()))
    });
    let me = Incarnation { node: NodeId(1), start: Start(1) };
    let mut node = Node::new(me, 7, Lsn(0), Box::new(Nothing), vec![overlay]).with_opener(opener);
    let mut say = |what: &'static str| {
        node.begin(Time(0), WallTime(0));
        let request =
            Request { operation: Operation::put(what.into(), what.into()), deadline: Time(9) };
        node.request(LaneId::OVERLAY, Ticket(1), request, &mut Outside);
        node.end(&mut Outside).expect("no disk");
        told.take()
    };
    assert_eq!(say("open"), ["16 observes 1"], "before, nobody was told");
    assert_eq!(say("silent"), ["16 hears of 2: false", "16 observes 2"], "17 did not ask");
    assert_eq!(say("back"), ["16 hears of 2: true", "16 observes 2"]);
    // What it asks last comes when it is closed.
    assert_eq!(say("drop"), ["16 hears of 2: false", "16 observes 0"]);
    assert_eq!(say("drop"), [""; 0], "there is none any more");
}
