//! One node, and what others say to it: the mistakes that are easy to make.

use crate::epto::{
    Action, Ball, BroadcastError, Copied, Digest, Epto, Event, EventKey, Horizon, LogicalTime,
    Message, Parameters, Payloads, STABLE_AFTER, Scale, Sequence,
};
use bytes::Bytes;
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::limits::EPTO_PAYLOAD_BYTES_MAX;
use std::vec::Vec;

const TTL: u16 = 12;
const ME: Incarnation = Incarnation { node: NodeId(1), start: Start(1) };
const PEERS: [NodeId; 2] = [NodeId(2), NodeId(3)];

/// An event whose payload is the number of its source and place.
pub fn event(time: u64, node: u64, sequence: u64) -> Event {
    let source = Incarnation { node: NodeId(node), start: Start(1) };
    let key = EventKey { time: LogicalTime(time), source };
    Event { key, sequence: Sequence(sequence), ttl_max: TTL, payload: Digest::of(&payload(key)) }
}

fn payload(key: EventKey) -> Bytes {
    Bytes::from(std::format!("{key}"))
}

pub fn copy(event: Event, ttl: u16) -> Copied {
    Copied { event, ttl, is_held: true }
}

/// A node of the first ones, and all that it has asked for and told.
pub struct Solo {
    pub epto: Epto,
    pub told: Vec<Action>,
}

impl Solo {
    pub fn new() -> Solo {
        let scale = Scale { nodes: 3, exponent: 2, surviving_ppm: 1_000_000 };
        let parameters = Parameters { ttl: TTL, ..Parameters::of(scale) };
        Solo { epto: Epto::found(ME, parameters), told: Vec::new() }
    }

    pub fn ball(&mut self, from: u64, copies: &[Copied]) {
        let ball = Ball(copies.to_vec());
        assert!(ball.is_sound());
        self.epto.on_ball(NodeId(from), &ball, &mut self.told);
        self.epto.check();
    }

    /// Rounds pass. Whoever is asked answers, if `answers`.
    pub fn rounds(&mut self, count: u16, answers: bool) {
        for _ in 0..count {
            let before = self.told.len();
            self.epto.on_round(1, &PEERS, &mut self.told);
            for (peer, keys) in self.pulls(before) {
                if answers {
                    let found = keys.iter().map(|key| (*key, payload(*key).len() as u32));
                    let bytes = keys.iter().flat_map(|key| payload(*key)).collect();
                    let answer = Payloads { found: found.collect(), absent: Vec::new(), bytes };
                    self.epto.on_payloads(peer, &answer);
                }
            }
            self.epto.check();
        }
    }

    /// What it has asked of whom, in the actions from that one on.
    pub fn pulls(&self, from: usize) -> Vec<(NodeId, Vec<EventKey>)> {
        let pull = |action: &Action| match action {
            Action::Send { to, message: Message::Pull(keys) } => Some((to[0], keys.clone())),
            _ => None,
        };
        self.told[from..].iter().filter_map(pull).collect()
    }

    pub fn delivered(&self) -> Vec<EventKey> {
        let delivered = |action: &Action| match action {
            Action::Deliver { event, payload: told } => {
                assert_eq!(*told, payload(event.key), "it is what was broadcast");
                Some(event.key)
            }
            _ => None,
        };
        self.told.iter().filter_map(delivered).collect()
    }

    fn has_told(&self, action: &Action) -> bool {
        self.told.contains(action)
    }
}

#[test]
fn of_one_time_the_higher_name_waits_for_the_lower() {
    let mut solo = Solo::new();
    let (lower, higher) = (event(5, 2, 1), event(5, 3, 1));
    solo.ball(2, &[copy(higher, TTL - 1)]);
    solo.rounds(2, true);
    solo.ball(2, &[copy(lower, 1)]);
    solo.rounds(4, true);
    assert!(solo.delivered().is_empty(), "the lower one is not stable");
    solo.rounds(TTL, true);
    assert_eq!(solo.delivered(), [lower.key, higher.key]);
}

#[test]
fn an_old_copy_moves_the_clock_and_nothing_else() {
    let mut solo = Solo::new();
    let (lower, higher) = (event(8, 2, 1), event(9, 3, 1));
    solo.ball(2, &[copy(higher, TTL - 1)]);
    solo.rounds(TTL, true);
    assert_eq!(solo.delivered(), [higher.key]);
    solo.ball(2, &[copy(lower, TTL), copy(event(40, 3, 2), TTL)]);
    solo.rounds(3 * TTL, true);
    assert_eq!(solo.delivered(), [higher.key]);
    let key = solo.epto.broadcast(Bytes::new()).expect("it may");
    assert_eq!(key.time, LogicalTime(41));
}

#[test]
fn a_late_event_is_told_once_and_not_delivered() {
    let mut solo = Solo::new();
    let (lower, higher) = (event(8, 2, 1), event(9, 3, 1));
    solo.ball(2, &[copy(higher, TTL - 1)]);
    solo.rounds(TTL, true);
    for _ in 0..3 {
        solo.ball(2, &[copy(lower, 3), copy(higher, 3)]);
        solo.rounds(1, true);
    }
    solo.rounds(2 * TTL, true);
    assert_eq!(solo.delivered(), [higher.key]);
    assert!(solo.has_told(&Action::Late { event: lower }));
    assert_eq!(solo.epto.counters().late, 1);
}

/// A node that thinks the cluster is small holds what others broadcast for as long as they do.
#[test]
fn an_event_is_judged_by_the_ttl_that_it_carries() {
    let mut solo = Solo::new();
    let parameters = Parameters { ttl: 4, ..*solo.epto.parameters() };
    solo.epto.set_parameters(parameters);
    let (lower, higher) = (event(8, 2, 1), event(9, 3, 1));
    solo.ball(2, &[copy(higher, 0)]);
    solo.rounds(TTL, true);
    solo.ball(2, &[copy(lower, TTL - 1)]);
    solo.rounds(STABLE_AFTER + 3, true);
    assert_eq!(solo.delivered(), [lower.key, higher.key]);
    solo.rounds(1, true);
    let relayed = |action: &Action| match action {
        Action::Send { message: Message::Ball(ball), .. } => Some(ball.0[0].ttl),
        _ => None,
    };
    assert_eq!(solo.told.iter().filter_map(relayed).max(), Some(TTL - 1), "and relays it");
}

/// It holds the others back for some rounds; then it is a hole, never something empty.
#[test]
fn an_event_whose_payload_is_lost_is_a_hole() {
    let mut solo = Solo::new();
    let (lost, found) = (event(8, 2, 1), event(9, 3, 1));
    let unheld = Copied { is_held: false, ..copy(lost, 0) };
    solo.ball(3, &[unheld, copy(found, 0)]);
    let hold = solo.epto.parameters().hold_rounds;
    solo.rounds(TTL + STABLE_AFTER + 1 + hold, true);
    assert!(solo.delivered().is_empty(), "nothing goes past it");
    solo.rounds(1, true);
    assert!(solo.has_told(&Action::Hole { event: lost }));
    assert_eq!(solo.delivered(), [found.key]);
    solo.rounds(hold + 1, true);
    assert_eq!((solo.epto.waiting(), solo.epto.held_bytes()), (0, 0), "nothing is left of it");
}

#[test]
fn who_does_not_answer_is_not_waited_for() {
    let mut solo = Solo::new();
    let one = event(8, 2, 1);
    solo.ball(2, &[copy(one, 0)]);
    solo.ball(3, &[copy(one, 0)]);
    solo.rounds(8, false);
    let asked: Vec<NodeId> = solo.pulls(0).into_iter().map(|(peer, _)| peer).collect();
    assert_eq!(asked, [NodeId(2), NodeId(3), NodeId(2)], "in turn, and not each round");
    let absent = Payloads { absent: Vec::from([one.key]), ..Payloads::default() };
    solo.epto.on_payloads(NodeId(2), &absent);
    let before = solo.told.len();
    solo.rounds(1, true);
    assert_eq!(solo.pulls(before), [(NodeId(3), Vec::from([one.key]))], "at once");
    solo.rounds(TTL, true);
    assert_eq!(solo.delivered(), [one.key]);
}

#[test]
fn a_payload_that_is_another_is_asked_for_elsewhere() {
    let mut solo = Solo::new();
    let one = event(8, 2, 1);
    solo.ball(2, &[copy(one, 0)]);
    solo.ball(3, &[copy(one, 0)]);
    solo.rounds(1, false);
    let found = Vec::from([(one.key, 5)]);
    let wrong = Payloads { found, absent: Vec::new(), bytes: Bytes::from_static(b"wrong") };
    solo.epto.on_payloads(NodeId(2), &wrong);
    assert_eq!(solo.epto.counters().damaged, 1);
    solo.rounds(TTL + 3, true);
    assert_eq!(solo.delivered(), [one.key]);
}

#[test]
fn what_is_missing_of_a_source_is_told() {
    let mut solo = Solo::new();
    let events = [event(3, 2, 1), event(4, 3, 2), event(8, 2, 2), event(9, 2, 6)];
    solo.ball(2, &events.map(|one| copy(one, 1)));
    solo.rounds(2 * TTL, true);
    assert_eq!(solo.delivered().len(), 4);
    let gap = |node: u64, first, last| {
        let source = Incarnation { node: NodeId(node), start: Start(1) };
        Action::Gap { source, first: Sequence(first), last: Sequence(last) }
    };
    assert!(solo.has_told(&gap(3, 1, 1)) && solo.has_told(&gap(2, 3, 5)));
    assert_eq!(solo.epto.counters().missing, 4);
}

#[test]
fn who_stood_still_says_that_it_lost_its_place_and_delivers_nothing() {
    let mut solo = Solo::new();
    solo.ball(2, &[copy(event(8, 2, 1), TTL - 1)]);
    solo.rounds(1, true);
    solo.epto.on_round(u32::from(TTL) + 1, &PEERS, &mut solo.told);
    assert!(solo.has_told(&Action::LostPlace) && !solo.epto.has_place());
    solo.ball(2, &[copy(event(9, 2, 2), TTL - 1)]);
    solo.rounds(TTL, true);
    assert_eq!(solo.delivered(), []);
    assert_eq!(solo.epto.broadcast(Bytes::new()), Err(BroadcastError::Early));
    assert!(solo.epto.horizon().is_none(), "it has none to give");
}

/// The events in the balls of some actions.
fn told_in_balls(told: &[Action]) -> usize {
    let copies = |action: &Action| match action {
        Action::Send { message: Message::Ball(ball), .. } => ball.0.len(),
        _ => 0,
    };
    told.iter().map(copies).sum()
}

#[test]
fn what_nobody_hears_waits_until_somebody_is_there() {
    let mut solo = Solo::new();
    solo.epto.broadcast(Bytes::from_static(b"a")).expect("it may");
    solo.ball(2, &[copy(event(5, 2, 1), 0)]);
    for _ in 0..3 {
        solo.epto.on_round(1, &[], &mut solo.told);
    }
    assert_eq!(told_in_balls(&solo.told), 0);
    solo.epto.on_round(1, &PEERS, &mut solo.told);
    assert_eq!(told_in_balls(&solo.told), 2);
    let mut alone = Solo::new();
    for _ in 0..10_000 {
        let told = alone.epto.broadcast(Bytes::from_static(b"a"));
        assert!(told.is_ok(), "what is too old does not wait for ever: {told:?}");
        alone.epto.on_round(1, &[], &mut alone.told);
    }
}

/// All that has it may be lost: no copy comes back then.
#[test]
fn a_source_says_its_own_events_until_they_are_old() {
    let mut solo = Solo::new();
    solo.epto.broadcast(Bytes::from_static(b"a")).expect("it may");
    let mut rounds = 0;
    loop {
        let before = solo.told.len();
        solo.epto.on_round(1, &PEERS, &mut solo.told);
        if told_in_balls(&solo.told[before..]) == 0 {
            break;
        }
        rounds += 1;
    }
    assert_eq!(rounds, TTL + 1, "from the round of the broadcast on");
}

/// Whoever stood still before it could send it: others would look for what nobody has.
#[test]
fn what_reached_nobody_is_not_counted() {
    let mut solo = Solo::new();
    solo.epto.broadcast(Bytes::from_static(b"a")).expect("it may");
    solo.rounds(1, false);
    solo.epto.broadcast(Bytes::from_static(b"b")).expect("it may");
    solo.epto.on_round(u32::from(TTL), &PEERS, &mut solo.told);
    assert!(solo.has_told(&Action::LostPlace));
    while !solo.epto.may_resume() {
        solo.epto.on_round(1, &[], &mut solo.told);
    }
    solo.epto.resume_at(&Horizon::default()).expect("it may");
    let key = solo.epto.broadcast(Bytes::from_static(b"c")).expect("it may");
    let before = solo.told.len();
    solo.epto.on_round(1, &PEERS, &mut solo.told);
    let sequences = solo.told[before..].iter().find_map(|action| match action {
        Action::Send { message: Message::Ball(ball), .. } => {
            let copies = ball.0.iter().filter(|copy| copy.event.key == key);
            copies.map(|copy| copy.event.sequence).next()
        }
        _ => None,
    });
    assert_eq!(sequences, Some(Sequence(2)), "the one that was sent is the first");
}

/// Its source takes the cluster for a small one: what others have said before it is on its way yet.
#[test]
fn an_event_of_a_short_ttl_waits_for_those_of_longer_ones() {
    let mut solo = Solo::new();
    let (lower, higher) = (event(8, 2, 1), event(9, 3, 1));
    let higher = Event { ttl_max: 2, ..higher };
    solo.ball(2, &[copy(higher, 1)]);
    solo.rounds(6, true);
    assert!(solo.delivered().is_empty(), "others may live longer");
    solo.ball(2, &[copy(lower, TTL - 1)]);
    solo.rounds(2 * TTL, true);
    assert_eq!(solo.delivered(), [lower.key, higher.key]);
    assert_eq!(solo.epto.counters().late, 0);
}

#[test]
fn bounds_may_be_set_below_what_is_held() {
    let mut solo = Solo::new();
    (1..=4).for_each(|number| solo.ball(2, &[copy(event(8 + number, 2, number), 0)]));
    solo.rounds(2, true);
    let parameters = Parameters { events_max: 2, held_bytes_max: 0, ..*solo.epto.parameters() };
    solo.epto.set_parameters(parameters);
    solo.epto.check();
    solo.rounds(2 * TTL, true);
    assert_eq!(solo.delivered().len(), 4);
}

/// All that were known to have it are gone.
#[test]
fn who_has_a_payload_is_heard_though_others_were_known_before() {
    let mut solo = Solo::new();
    let one = event(8, 2, 1);
    (2..=5).for_each(|peer| solo.ball(peer, &[copy(one, 0)]));
    solo.rounds(2, false);
    solo.ball(9, &[copy(one, 1)]);
    let before = solo.told.len();
    solo.rounds(4, false);
    let asked: Vec<NodeId> = solo.pulls(before).into_iter().map(|(peer, _)| peer).collect();
    assert!(asked.contains(&NodeId(9)), "{asked:?}");
}

/// Each is the first when it comes, and is still held when the next one does.
#[test]
fn firsts_one_after_the_other_do_not_exceed_the_bound() {
    let mut solo = Solo::new();
    let parameters = Parameters { held_bytes_max: 0, ..*solo.epto.parameters() };
    solo.epto.set_parameters(parameters);
    for time in (8..12).rev() {
        let bytes = Bytes::from(std::vec![time as u8; EPTO_PAYLOAD_BYTES_MAX]);
        let one = Event { payload: Digest::of(&bytes), ..event(time, 2, 1) };
        solo.ball(2, &[copy(one, 0)]);
        solo.epto.on_round(1, &PEERS, &mut solo.told);
        let found = Vec::from([(one.key, EPTO_PAYLOAD_BYTES_MAX as u32)]);
        solo.epto.on_payloads(NodeId(2), &Payloads { found, absent: Vec::new(), bytes });
        solo.epto.check();
    }
    assert_eq!(solo.epto.held_bytes(), EPTO_PAYLOAD_BYTES_MAX);
}
