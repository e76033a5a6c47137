use super::*;
use quorate_kernel::ids::{Incarnation, Start};
use std::string::String;
use std::vec::Vec;

fn ring(suspected: &[u64]) -> Arc<Ring> {
    let host = |node: u64| RingHost {
        who: Incarnation { node: NodeId(node), start: Start(1) },
        address: String::new(),
        zone: String::new(),
        tokens: Vec::from([node]),
        standing: Standing::Up,
        is_suspected: suspected.contains(&node),
        doors: Vec::new(),
    };
    Arc::new(Ring::new(1, (1..=4).map(host).collect()))
}

fn roll(nodes: &[u64], goes_on: bool) -> Arc<Roll> {
    let nodes = nodes.iter().map(|node| NodeId(*node)).collect();
    Arc::new(Roll { number: 1, nodes, goes_on, ..Roll::default() })
}

fn at(seconds: u64) -> Time {
    Time(0) + Span::secs(seconds)
}

#[test]
fn who_is_not_on_the_roll_has_failed_and_who_is_suspected_by_one_alone_has_not() {
    let mut hosts = Hosts::default();
    hosts.follow(&roll(&[1, 2, 3, 4], true), at(0));
    hosts.see(&ring(&[2]), at(1));
    assert_eq!(hosts.silent(NodeId(2), at(100)), None, "it is on the roll");
    hosts.follow(&roll(&[1, 2, 4], true), at(10));
    assert_eq!(hosts.silent(NodeId(3), at(70)), Some(Span::secs(60)));
    assert!(!hosts.may_take(NodeId(3)), "seats are for those on the roll");
    assert!(hosts.is_removed(NodeId(3)) && !hosts.is_removed(NodeId(2)));
    assert!(!hosts.may_take(NodeId(2)), "and not for those that are silent here");
    assert!(hosts.may_take(NodeId(4)));
    // It has come again: it was away for nothing.
    hosts.follow(&roll(&[1, 2, 3, 4], true), at(71));
    assert_eq!(hosts.silent(NodeId(3), at(72)), None);
    assert!(hosts.may_take(NodeId(3)));
}

#[test]
fn where_the_roll_stands_still_rumours_say_who_has_failed() {
    let mut hosts = Hosts::default();
    hosts.see(&ring(&[2]), at(1));
    assert_eq!(hosts.silent(NodeId(2), at(61)), Some(Span::secs(60)), "there is no roll");
    hosts.follow(&roll(&[1, 2, 3, 4], true), at(2));
    hosts.follow(&roll(&[1, 2, 3], true), at(2));
    assert_eq!(hosts.silent(NodeId(2), at(61)), None, "it is on it");
    assert!(!hosts.may_take(NodeId(4)));
    hosts.follow(&roll(&[1, 2, 3], false), at(10));
    assert_eq!(hosts.silent(NodeId(2), at(61)), Some(Span::secs(51)), "from then on");
    assert!(hosts.may_take(NodeId(4)), "who comes now can be on no roll");
    assert!(!hosts.is_removed(NodeId(4)), "nobody says who is there");
    // It goes on: the time in which nobody could come does not count.
    hosts.follow(&roll(&[1, 2, 3], true), at(100));
    assert_eq!(hosts.silent(NodeId(4), at(102)), Some(Span::secs(10)));
    assert_eq!(hosts.silent(NodeId(2), at(102)), None);
}

/// A roll that stands still for a second now and then says who has failed all the same.
#[test]
fn short_standstills_do_not_keep_a_seat_for_who_is_gone() {
    let mut hosts = Hosts::default();
    hosts.see(&ring(&[]), at(0));
    hosts.follow(&roll(&[1, 2, 3, 4], true), at(0));
    hosts.follow(&roll(&[1, 2, 3], true), at(0));
    for begin in [20, 40, 60] {
        hosts.follow(&roll(&[1, 2, 3], false), at(begin));
        hosts.follow(&roll(&[1, 2, 3], true), at(begin + 1));
    }
    assert_eq!(hosts.silent(NodeId(4), at(65)), Some(Span::secs(62)));
    // Who is taken off while it stands still has all of its time.
    hosts.follow(&roll(&[1, 2, 3], false), at(70));
    hosts.follow(&roll(&[1, 2], false), at(75));
    hosts.follow(&roll(&[1, 2], true), at(80));
    assert_eq!(hosts.silent(NodeId(3), at(81)), Some(Span::secs(1)));
}

#[test]
fn who_was_never_on_the_roll_is_judged_by_rumours() {
    let mut hosts = Hosts::default();
    hosts.see(&ring(&[]), at(1));
    hosts.follow(&roll(&[1, 2], true), at(2));
    assert_eq!(hosts.silent(NodeId(3), at(100)), None, "it may keep no roll");
    assert!(hosts.may_take(NodeId(3)));
    hosts.see(&ring(&[3]), at(100));
    assert_eq!(hosts.silent(NodeId(3), at(130)), Some(Span::secs(30)));
}
