//! Histories that hold, and for each promise one that breaks it.

use super::*;
use alloc::string::ToString;
use quorate_kernel::ids::{LaneId, Start};

use Ending::{Done, Exists, Missing, Refused, Unknown};

fn host(node: u64) -> Incarnation {
    Incarnation { node: NodeId(node), start: Start(1) }
}

fn create(name: &str, tag: u64) -> CatalogOrder {
    CatalogOrder::Create { name: name.to_string(), tag }
}

fn alter(name: &str, tag: u64) -> CatalogOrder {
    CatalogOrder::Alter { name: name.to_string(), tag }
}

fn drop_it(name: &str) -> CatalogOrder {
    CatalogOrder::Drop { name: name.to_string() }
}

fn created(name: &str, tag: u64) -> Decree {
    Decree::Created { name: name.to_string(), tag }
}

/// A history of one host, whose decrees are numbered from 2 on.
#[derive(Default)]
struct Story(History, u64);

impl Story {
    fn decree(&mut self, decree: Decree) -> &mut Story {
        self.1 = self.1.max(1) + 1;
        self.0.chain.saw(self.1, host(1), decree);
        self
    }

    fn ask(&mut self, ask: CatalogOrder, ending: Ending) -> &mut Story {
        let number = self.0.order(host(1), ask);
        self.0.end(number, ending);
        self
    }

    fn says(&mut self, node: u64, version: u64, list: &[(u32, &str, u64)]) -> &mut Story {
        let known = list.iter().map(|(lane, name, tag)| (LaneId(*lane), name.to_string(), *tag));
        self.0.said(NodeId(node), version, known.collect());
        self
    }

    fn verdict(&self) -> String {
        judge(&self.0).err().unwrap_or_else(|| "holds".to_string())
    }
}

/// A keyspace that is made, altered and dropped, and made again.
fn life() -> Story {
    let mut story = Story::default();
    story.decree(created("a", 1)).decree(Decree::Altered { lane: LaneId(16), tag: 2 });
    story.decree(Decree::Dropped { lane: LaneId(16) }).decree(Decree::Other("members".into()));
    story.decree(created("a", 3));
    story
}

#[test]
fn what_was_done_in_its_order_and_refused_with_reason_holds() {
    let mut story = life();
    story.ask(create("a", 1), Done).ask(create("a", 9), Exists).ask(alter("a", 2), Done);
    story.says(1, 3, &[(16, "a", 2)]).says(2, 2, &[(16, "a", 1)]).says(1, 3, &[(16, "a", 2)]);
    story.ask(drop_it("a"), Done).ask(drop_it("a"), Missing).ask(alter("a", 8), Missing);
    story.ask(alter("a", 7), Refused).ask(create("a", 3), Unknown).ask(drop_it("a"), Unknown);
    story.says(2, 6, &[(17, "a", 3)]);
    assert_eq!(story.verdict(), "holds");
    assert_eq!(Story::default().says(1, 1, &[]).verdict(), "holds", "before any decree");
}

#[test]
fn orders_that_overlap_may_take_effect_either_way() {
    let mut story = life();
    let refused = story.0.order(host(2), create("a", 9));
    story.ask(create("a", 1), Done).ask(alter("a", 2), Done).ask(drop_it("a"), Done);
    let second = story.0.order(host(2), drop_it("a"));
    story.ask(create("a", 3), Done);
    story.0.end(refused, Exists);
    story.0.end(second, Missing);
    assert_eq!(story.verdict(), "holds");
}

#[test]
fn two_chains_are_condemned() {
    let mut story = life();
    story.0.chain.saw(4, host(1), created("b", 4));
    assert!(story.verdict().starts_with("decree 4 is "), "{}", story.verdict());
    let mut story = life();
    story.0.chain.saw(2, host(2), created("a", 1));
    assert!(story.verdict().contains("decree 2 is"), "wanted by another: {}", story.verdict());
    let mut story = life();
    story.0.chain.saw(9, host(1), Decree::Other("members".into()));
    assert_eq!(story.verdict(), "decree 9 follows decree 6");
}

#[test]
fn a_name_and_a_lane_are_given_once() {
    let mut story = Story::default();
    story.decree(created("a", 1)).decree(created("a", 2));
    assert!(story.verdict().ends_with("takes a name that is taken"), "{}", story.verdict());
    let mut story = life();
    story.0.chain.saw_lane(2, LaneId(16));
    story.0.chain.saw_lane(6, LaneId(16));
    assert!(story.verdict().ends_with("gives a lane again"), "{}", story.verdict());
    let mut story = life();
    story.0.chain.saw_lane(2, LaneId(16));
    story.0.chain.saw_lane(2, LaneId(17));
    assert!(story.verdict().starts_with("decree 2 made"), "{}", story.verdict());
    let mut story = life();
    story.decree(Decree::Dropped { lane: LaneId(16) });
    assert!(story.verdict().ends_with("drops what is not there"), "{}", story.verdict());
    let mut story = life();
    story.decree(Decree::Altered { lane: LaneId(16), tag: 5 });
    assert!(story.verdict().ends_with("alters what is not there"), "{}", story.verdict());
}

/// The orders of [`life`], but for one that may end otherwise.
fn ordered(last: Ending) -> Story {
    let mut story = life();
    story.ask(create("a", 1), Done).ask(alter("a", 2), Done).ask(drop_it("a"), Done);
    story.ask(create("a", 3), last);
    story
}

#[test]
fn what_was_acknowledged_is_in_the_chain_and_what_was_refused_is_not() {
    assert_eq!(ordered(Done).verdict(), "holds");
    assert_eq!(ordered(Unknown).verdict(), "holds");
    assert_eq!(
        ordered(Refused).verdict(),
        format!("nobody can have ordered decree 6 at {}", host(1))
    );
    assert_eq!(ordered(Exists).verdict(), ordered(Refused).verdict());
    let mut story = ordered(Done);
    story.ask(drop_it("a"), Done);
    let verdict = story.verdict();
    assert!(verdict.starts_with("drop a was acknowledged and is decree 4, before"), "{verdict}");
    let mut story = ordered(Done);
    story.ask(create("b", 4), Done);
    assert_eq!(story.verdict(), "create b=4 was acknowledged and is not in the chain");
    let mut story = ordered(Done);
    story.decree(Decree::Dropped { lane: LaneId(17) }).decree(created("a", 3));
    story.ask(drop_it("a"), Done);
    assert!(story.verdict().starts_with("nobody can have ordered decree 8"), "done twice");
}

#[test]
fn what_ended_before_another_began_comes_first() {
    let mut story = life();
    story.ask(create("a", 1), Done).ask(drop_it("a"), Done).ask(alter("a", 2), Done);
    let verdict = story.verdict();
    assert!(verdict.starts_with("alter a=2 was acknowledged and is decree 3, before"), "{verdict}");
    // Nobody knows how the alteration ended, but it was asked for too late.
    let mut story = life();
    story.ask(create("a", 1), Done).ask(drop_it("a"), Done).ask(alter("a", 2), Unknown);
    story.ask(create("a", 3), Done);
    assert!(story.verdict().starts_with("nobody can have ordered decree 3"), "{}", story.verdict());
}

#[test]
fn a_refusal_that_was_wrong_all_the_time_is_condemned() {
    let mut story = ordered(Done);
    story.ask(drop_it("a"), Missing);
    let verdict = story.verdict();
    assert!(verdict.starts_with("drop a was refused because the name is free"), "{verdict}");
    let mut story = ordered(Done);
    story.ask(create("b", 9), Exists);
    assert!(story.verdict().contains("the name is taken, which"), "{}", story.verdict());
    // What was true before the dropping was acknowledged is no excuse.
    let mut story = Story::default();
    story.decree(created("a", 1)).decree(Decree::Dropped { lane: LaneId(16) });
    story.ask(create("a", 1), Done).ask(drop_it("a"), Done).ask(create("a", 9), Exists);
    assert!(story.verdict().contains("create a=9 was refused"), "{}", story.verdict());
}

#[test]
fn hosts_say_what_is_in_the_chain_and_never_less_than_before() {
    let mut story = ordered(Done);
    story.says(1, 5, &[]);
    assert!(story.verdict().ends_with("is at 5 and was at 6 before"), "{}", story.verdict());
    let mut story = ordered(Done);
    story.says(2, 3, &[(16, "a", 2)]).says(2, 2, &[(16, "a", 1)]);
    assert!(story.verdict().ends_with("is at 2 and was at 3 before"), "{}", story.verdict());
    for wrong in [&[(16, "a", 1)][..], &[(17, "a", 2)], &[(16, "b", 2)], &[]] {
        let mut story = ordered(Done);
        story.says(2, 3, wrong);
        assert!(story.verdict().contains("at 3, which is"), "{}", story.verdict());
    }
    let mut story = ordered(Done);
    story.says(2, 7, &[(17, "a", 3)]);
    assert!(story.verdict().ends_with("at 7, which is None"), "{}", story.verdict());
}
