//! Who is enough, and who is waited for.

use super::*;
use crate::epto::Sequence;
use quorate_kernel::ids::Incarnation;

fn event(time: u64) -> Option<EventKey> {
    Some(EventKey { time: LogicalTime(time), source: Incarnation::default() })
}

fn horizon(time: u64) -> Horizon {
    let sources = Vec::from([(Incarnation::default(), Sequence(time))]);
    Horizon { last: event(time), sources, ..Horizon::default() }
}

/// These have come so far, and have noted this.
fn joining<const N: usize>(told: [(u64, Vec<(Range, Heard)>); N]) -> Joining {
    let donor = |(time, noted)| Donor::said(horizon(time), noted);
    let donors = (1..).map(NodeId).zip(told.map(donor)).collect();
    Joining { since: Some(0), donors, ..Joining::default() }
}

fn halves() -> [Range; 2] {
    [Range::ALL.half(false), Range::ALL.half(true)]
}

/// Each has all of one half, and has begun to take over the other.
#[test]
fn what_some_have_of_each_part_is_skipped_by_nobody() {
    let [lower, upper] = halves();
    let some = |part, time| Vec::from([(part, Heard::Taken(LogicalTime(time)))]);
    let both = joining([(30, some(upper, 29)), (20, some(lower, 19))]);
    let had = Around::in_round(0).had;
    let told = both.horizon(horizon(5), &had);
    assert_eq!(Horizon { clock: LogicalTime(30), ..horizon(20) }, told);
    // What was given up goes as far as then, and nobody tells of which sources.
    let own = |part, time| Vec::from([(part, Heard::Own(LogicalTime(time)))]);
    let both = joining([(30, some(upper, 29)), (20, [some(lower, 19), own(upper, 9)].concat())]);
    let told = both.horizon(horizon(5), &had);
    assert_eq!((told.last, told.sources.len()), (event(9), 0));
    // Of a half that nobody has all of nothing is to come.
    let one = joining([(30, some(upper, 29)), (20, some(Range::ALL, 19))]);
    assert_eq!(one.horizon(horizon(5), &had).last, event(30));
    assert_eq!(one.lost(&had), [upper]);
    assert!(both.lost(&had).is_empty());
}

/// It gave the part up before all waits that has had its turn since.
#[test]
fn who_gave_a_part_up_is_no_copy_of_what_came_later() {
    let members: Vec<NodeId> = (1..=3).map(NodeId).collect();
    let around = Around { members, ..Around::in_round(99) };
    for (until, is_enough) in [(9, false), (12, true)] {
        let noted = Vec::from([(halves()[0], Heard::Own(LogicalTime(until)))]);
        let two = joining([(20, noted.clone()), (20, noted)]);
        let joining = Joining { floor: event(10), ..two };
        assert_eq!(joining.is_enough(&around), is_enough, "up to {until}");
    }
}

/// Three were heard to the end, but for the last one, which said this in that round.
fn one_is_coming(told: [(u64, Vec<(Range, Heard)>); 3], round: u64) -> Joining {
    let (last, noted) = told[2].clone();
    let mut joining = joining(told);
    let holder = joining.donors.get_mut(&NodeId(3)).expect("it is one");
    (holder.whole, holder.asked_at) = (None, round);
    joining.say(NodeId(3), (event(last), noted), round);
    joining
}

/// When a number of slices falls, those who hold a part are not ready for all that others take
/// over, and send for long, or are not asked for long. Others who lack it are heard to the end
/// at once.
#[test]
fn who_has_said_that_it_has_what_nobody_else_has_is_waited_for() {
    let lacks = || Vec::from([(Range::ALL, Heard::Nothing)]);
    let members: Vec<NodeId> = (1..=3).map(NodeId).collect();
    let late = 99 * 24;
    let around = Around { members, ..Around::in_round(late) };
    let mut joining = one_is_coming([(20, lacks()), (20, lacks()), (20, Vec::new())], late - 1);
    let long = Around { round: late + HOPE * 24, ..around.clone() };
    for around in [&around, &long] {
        assert!(!joining.is_enough(around), "it was not asked since");
    }
    let holder = joining.donors.get_mut(&NodeId(3)).expect("it is one");
    holder.asked_at = late + 1;
    assert!(!joining.is_enough(&around), "it may be late");
    assert!(joining.is_enough(&long), "it is no more");
    // That another one has not been asked at all may be just as well.
    let members: Vec<NodeId> = (1..=4).map(NodeId).collect();
    assert!(!joining.is_enough(&Around { members, ..long }));
}

/// All have stopped, the third one last: what was written then it alone has.
#[test]
fn an_own_old_disk_is_not_enough_while_a_newer_one_comes() {
    let old = |time| Had { noted: Vec::new(), last: event(time), ..Around::in_round(0).had };
    for members in [Vec::new(), Vec::from([1, 3].map(NodeId)), (1..=3).map(NodeId).collect()] {
        let has_own = true;
        for round in [99, 99 * 24] {
            let told = || [(5, Vec::new()), (5, Vec::new()), (20, Vec::new())];
            let coming = || Joining { takes_place: true, ..one_is_coming(told(), round) };
            let around = |time| {
                let members = members.clone();
                Around { members, has_own, had: old(time), ..Around::in_round(round) }
            };
            assert!(!coming().is_enough(&around(5)), "{members:?} in round {round}");
            assert!(coming().is_enough(&around(20)), "its own is as new");
            let mut heard = coming();
            heard.donors.extend(joining(told()).donors);
            assert!(heard.is_enough(&around(5)), "it was heard to the end");
        }
    }
}

/// Its node has heard all of that time, and was not at a later event; or it was.
#[test]
fn what_was_given_up_at_an_event_goes_as_far_as_that() {
    let at = |time, node| {
        let source = Incarnation { node: NodeId(node), ..Incarnation::default() };
        Some(EventKey { time: LogicalTime(time), source })
    };
    let noted = [(halves()[0], Heard::Own(LogicalTime(9)))];
    let is_far = |last, floor| has_reached(&noted, (&halves()[0], last), floor);
    assert!(is_far(at(9, 5), at(9, 5)) && is_far(at(9, 5), at(9, 4)));
    assert!(is_far(at(11, 5), at(9, 6)), "it has come to all of that time");
    assert!(!is_far(at(9, 5), at(9, 6)) && !is_far(at(11, 5), at(10, 1)));
    assert_eq!(reached(&noted, &halves()[0], at(9, 5)), at(9, 5));
    assert_eq!(reached(&noted, &halves()[0], at(11, 5)), event(9), "nothing is skipped");
}

/// Without an order nothing tells what was written since.
#[test]
fn without_an_order_what_was_given_up_is_no_copy() {
    let own = || Vec::from([(Range::ALL, Heard::Own(LogicalTime(0)))]);
    let members: Vec<NodeId> = (1..=3).map(NodeId).collect();
    let mut joining = joining([(0, own()), (0, own())]);
    joining.donors.values_mut().for_each(|donor| donor.forget_last());
    for is_unordered in [true, false] {
        let had = Had { is_unordered, ..Around::in_round(0).had };
        let around = Around { members: members.clone(), had, ..Around::in_round(99) };
        assert_eq!(joining.is_enough(&around), !is_unordered);
    }
}

/// What was given up is as old as then, and who takes a place knows how far others are.
#[test]
fn what_was_given_up_is_no_copy_for_who_takes_a_place() {
    let own = || Vec::from([(halves()[1], Heard::Own(LogicalTime(9)))]);
    let members: Vec<NodeId> = (1..=3).map(NodeId).collect();
    let around = Around { members, ..Around::in_round(99) };
    for (takes_place, heard, is_enough) in [(true, 20, false), (true, 9, true), (false, 20, true)] {
        let two = joining([(heard, own()), (heard, own())]);
        let joining = Joining { takes_place, heard: event(heard), ..two };
        assert_eq!(joining.is_enough(&around), is_enough, "{takes_place}, {heard}");
    }
}

/// All events behind what those had who have the range are gone: it goes on where others are.
#[test]
fn who_is_left_behind_goes_on_where_others_are() {
    let mut joining = joining([(20, Vec::new()), (30, [(Range::ALL, Heard::Nothing)].into())]);
    let had = Around::in_round(0).had;
    assert_eq!(joining.horizon(horizon(5), &had).last, event(20));
    joining.is_left_behind = true;
    assert_eq!(joining.horizon(horizon(5), &had).last, event(30));
}

/// Its own disk may be the only copy. Without one it waits for long, for one that may come.
#[test]
fn who_knows_no_copy_waits_for_long_and_not_for_ever() {
    let lacks = || Vec::from([(Range::ALL, Heard::Taken(LogicalTime(0)))]);
    for members in [Vec::new(), Vec::from([1, 2].map(NodeId)), (1..=3).map(NodeId).collect()] {
        let is_all = members.len() < 3;
        let mut joining = joining([(20, lacks()), (20, lacks())]);
        // The third one is asked, and never heard.
        joining.donors.insert(NodeId(3), Donor::new(0, 0));
        let around = |round| Around { members: members.clone(), ..Around::in_round(round) };
        assert!(!joining.is_enough(&around(16 * 24 - 1)));
        assert!(joining.is_enough(&around(16 * 24)));
        let had = Had { noted: Vec::new(), ..around(0).had };
        assert_eq!(joining.is_enough(&Around { had, ..around(99) }), is_all, "its own");
        let all = Around { is_told_all: true, ..around(99) };
        assert_eq!(joining.is_enough(&all), is_all, "nobody else can have it");
        let had = Had { lives: false, ..around(0).had };
        assert!(joining.is_enough(&Around { had, ..around(99) }), "nothing was written");
        let ready = Joining { heard_ready: Some(16 * 24 - 9), ..joining.clone() };
        assert!(!ready.is_enough(&around(16 * 24)), "one was there just now");
        let hopes = Joining { hope: Some(16 * 24 - 9), ..joining.clone() };
        assert!(!hopes.is_enough(&around(16 * 24)), "one will come as far just now");
        let mut one = hopes;
        one.donors.insert(NodeId(2), Donor::new(0, 0));
        assert!(!one.is_enough(&around(99)));
        assert!(one.is_enough(&around(99 * 24)), "the others say nothing");
    }
}
