//! What a lane tells the catalog, it tells when everything it wrote before is durable: the catalog
//! passes it on, and whoever held a partition before lets go of its data.

use bytes::Bytes;
use quorate_kernel::effects::Note;
use quorate_kernel::error::WireError;
use quorate_kernel::ids::{Incarnation, LaneId, Lsn, NodeId, Start, Ticket};
use quorate_kernel::keyspace::Settlement;
use quorate_kernel::lane::LaneSpec;
use quorate_kernel::lane::{Env, Lane, Raised};
use quorate_kernel::news::{News, Topic};
use quorate_kernel::operation::{Control, Outcome};
use quorate_kernel::part::Part;
use quorate_kernel::process::{Inspect, Recovery, Request};
use quorate_kernel::ring::Ring;
use quorate_kernel::storage::{Batch, Class, Durability, Durable, Nothing};
use quorate_kernel::time::{Time, WallTime};
use quorate_kernel::watch::Watch;
use quorate_kernel::wire::{Decoder, Frame};
use quorate_node::host::Host;
use quorate_node::node::Node;
use quorate_node::pump::{Input, turn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

const LANE: LaneId = LaneId(7);

/// A lane that writes something when it starts and says that it is settled, and one that counts
/// how often it is told so.
struct Teller {
    writes: bool,
    told: Arc<AtomicU64>,
}

impl Lane for Teller {
    fn start(&mut self, _recovery: Recovery, env: &mut Env<'_>) {
        if self.writes {
            let (key, value) = (Bytes::from_static(b"k"), Some(Bytes::from_static(b"v")));
            env.out.take(Raised::Write { class: Class::Data, key, value });
            let settlement = Settlement::HandedOver;
            env.out.take(Raised::Note(Note::Settled { partition: 3, since: 9, settlement }));
        }
    }

    fn hears(&self, topic: Topic) -> bool {
        topic == Topic::Settled
    }

    fn on_news(&mut self, news: News<'_>, _env: &mut Env<'_>) {
        let News::Settled { lane, partition, since, settlement } = news else { panic!("{news:?}") };
        assert_eq!((lane, partition, since, settlement), (LANE, 3, 9, Settlement::HandedOver));
        self.told.fetch_add(1, Ordering::Relaxed);
    }

    fn on_frame(
        &mut self,
        _from: Incarnation,
        _message: &Decoder,
        _env: &mut Env<'_>,
    ) -> Result<(), WireError> {
        Ok(())
    }

    fn on_local(&mut self, _slot: u32, _env: &mut Env<'_>) {}
    fn on_request(&mut self, _ticket: Ticket, _request: Request, _env: &mut Env<'_>) {}
    fn on_control(&mut self, _: Ticket, _: Control, _: Time, _env: &mut Env<'_>) {}
    fn on_watch(&mut self, _: Ticket, _: Watch, _: &mut Env<'_>) {}
    fn on_unwatch(&mut self, _: Ticket, _: &mut Env<'_>) {}
    fn on_timer(&mut self, _code: u32, _env: &mut Env<'_>) {}
    fn inspect(&self, _into: &mut dyn Inspect) {}
    fn check(&self) {}

    fn parts(&self) -> Vec<Part> {
        Vec::new()
    }
}

/// Keeps the batch that was committed last.
#[derive(Default)]
struct Disk(Option<Batch>);

impl Host for Disk {
    fn transmit(&mut self, _frame: &Frame) {}
    fn answer(&mut self, _ticket: Ticket, _outcome: Outcome) {}
    fn ring(&mut self, _ring: &Arc<Ring>) {}
    fn commit(&mut self, batch: Batch) {
        self.0 = Some(batch);
    }
}

#[test]
fn a_partition_is_settled_when_its_data_is_durable_and_not_before() {
    let told = Arc::new(AtomicU64::new(0));
    let lane = |lane, writes| LaneSpec {
        lane,
        durability: Durability::Sync,
        recovery: Recovery::Intact,
        process: Box::new(Teller { writes, told: Arc::clone(&told) }),
    };
    let me = Incarnation { node: NodeId(1), start: Start(1) };
    let lanes = vec![lane(LaneId::CATALOG, false), lane(LANE, true)];
    let (mut node, mut disk) =
        (Node::new(me, 1, Lsn(0), Box::new(Nothing), lanes), Disk::default());
    node.begin(Time(0), WallTime(0));
    node.start(&mut disk);
    let mut step = |node: &mut Node, at, durable: Option<Durable>| {
        let mut inputs: Vec<Input> = durable.map(Input::Durable).into_iter().collect();
        turn(node, Time(at), WallTime(0), &mut inputs, &mut disk).expect("the store works");
        told.load(Ordering::Relaxed)
    };
    assert_eq!(step(&mut node, 1, None), 0, "nothing is on the disk");
    let written = Durable { written: Lsn(1), synced: Lsn(0) };
    assert_eq!(step(&mut node, 2, Some(written)), 0, "it is written, a power loss takes it");
    let synced = Durable { written: Lsn(1), synced: Lsn(1) };
    assert_eq!(step(&mut node, 3, Some(synced)), 1);
}
