use super::super::super::configuration::Shape;
use super::*;
use quorate_kernel::time::Span;

const NOW: Time = Time(0);

fn member(id: u64) -> Arc<Member> {
    Arc::new(Member { id: NodeId(id), ..Member::default() })
}

fn of(count: u64) -> (Configuration, Rings) {
    let founders: Vec<Member> = (1..=count).map(|id| (*member(id)).clone()).collect();
    let one = Configuration::founding(Shape::DEFAULT, &founders).expect("they are different");
    let rings = Rings::of(&one);
    (one, rings)
}

fn leaves(cut: &Cut, configuration: &Configuration) -> Option<Vec<u64>> {
    let change = cut.proposal(configuration)?;
    Some(change.leaves.iter().map(|node| node.0).collect())
}

fn rings(count: u32) -> u16 {
    ((1_u32 << count) - 1) as u16
}

#[test]
fn a_subject_is_cut_with_nine_reports_and_not_with_eight() {
    let (configuration, _) = of(30);
    let mut cut = Cut::default();
    cut.count(NodeId(5), rings(8), None, NOW);
    assert_eq!(leaves(&cut, &configuration), None);
    cut.count(NodeId(5), rings(8), None, NOW);
    assert_eq!(leaves(&cut, &configuration), None, "a report that comes twice is one");
    cut.count(NodeId(5), 1 << 9, None, NOW);
    assert_eq!(leaves(&cut, &configuration), Some([5].into()));
}

#[test]
fn a_cut_waits_for_those_in_flux_and_not_for_noise() {
    let (configuration, _) = of(30);
    let mut cut = Cut::default();
    cut.count(NodeId(5), rings(9), None, NOW);
    cut.count(NodeId(6), rings(3), None, NOW);
    assert_eq!(leaves(&cut, &configuration), Some([5].into()), "three reports are noise");
    cut.count(NodeId(6), rings(4), None, NOW);
    assert_eq!(leaves(&cut, &configuration), None, "four are not");
    cut.count(NodeId(6), rings(10), None, NOW);
    assert_eq!(leaves(&cut, &configuration), Some([5, 6].into()));
}

/// Who fails together observes each other in some rings: nobody is left there to say so.
#[test]
fn edges_between_suspects_are_implied() {
    let (configuration, rings) = of(30);
    let down: BTreeSet<NodeId> = (1..=7).map(NodeId).collect();
    let mut cut = Cut::default();
    let mut is_reached = true;
    for subject in &down {
        for (ring, observer) in rings.observers(*subject) {
            if !down.contains(&observer) {
                cut.count(*subject, 1 << ring, None, NOW);
            }
        }
        is_reached &= cut.rings(*subject).count_ones() >= 9;
    }
    assert!(!is_reached, "live observers alone are too few");
    cut.imply(&rings, configuration.shape, NOW);
    assert_eq!(leaves(&cut, &configuration), Some((1..=7).collect()));
}

/// Three of seven are gone, and of one of them three observers are left in all.
#[test]
fn few_reports_count_after_a_while_if_all_other_observers_are_gone() {
    let (configuration, rings) = of(7);
    let down = |node: &NodeId| [NodeId(1), NodeId(2), NodeId(3)].contains(node);
    let mut cut = Cut::default();
    for (subject, most) in [(1, 3), (2, 10), (3, 10)] {
        let seen = rings.observers(NodeId(subject)).filter(|(_, observer)| !down(observer));
        seen.take(most).for_each(|(ring, _)| cut.count(NodeId(subject), 1 << ring, None, NOW));
    }
    cut.imply(&rings, configuration.shape, NOW);
    let before = cut.rings(NodeId(1)).count_ones();
    cut.imply(&rings, configuration.shape, NOW + REINFORCE);
    assert!(before == 3 && cut.rings(NodeId(1)).count_ones() > 3);
}

#[test]
fn one_report_on_a_live_member_implies_nothing_of_others() {
    let (configuration, rings) = of(30);
    let mut cut = Cut::default();
    cut.count(NodeId(5), 1, None, NOW);
    cut.imply(&rings, configuration.shape, NOW + Span::secs(100));
    assert_eq!(cut.rings(NodeId(5)), 1);
    assert_eq!(cut.lingering(configuration.shape, NOW + Span::secs(100)).count(), 0);
}

#[test]
fn who_lingers_in_flux_is_shown_to_its_observers() {
    let (configuration, _) = of(30);
    let mut cut = Cut::default();
    cut.count(NodeId(5), rings(5), None, NOW);
    cut.count(NodeId(99), rings(6), Some(&member(99)), NOW);
    let at = |now| {
        let all = cut.lingering(configuration.shape, now);
        all.map(|(node, member)| (node.0, member.is_some())).collect::<Vec<_>>()
    };
    assert_eq!(at(NOW + Span(REINFORCE.0 - 1)), []);
    assert_eq!(at(NOW + REINFORCE), [(5, false), (99, true)]);
}

/// Joins and leaves of one cut are one change, in one order (ADR 38).
#[test]
fn a_mixed_cut_is_one_change() {
    let (configuration, _) = of(10);
    let mut cut = Cut::default();
    for joiner in [99, 50] {
        cut.count(NodeId(joiner), rings(10), Some(&member(joiner)), NOW);
    }
    for leaver in [7, 3] {
        cut.count(NodeId(leaver), rings(10), None, NOW);
    }
    let change = cut.proposal(&configuration).expect("all are stable");
    assert_eq!(change.leaves, [NodeId(3), NodeId(7)]);
    assert_eq!(change.joins, [member(50), member(99)]);
    assert!(configuration.may_follow(&change));
}

/// One that joins and says different things to its observers is one thing to all who have heard
/// the same reports, in whatever order.
#[test]
fn a_joiner_is_the_smallest_of_what_it_says() {
    let (configuration, _) = of(10);
    let [one, mut other] = [(*member(99)).clone(), (*member(99)).clone()];
    other.address.push('x');
    let (one, other) = (Arc::new(one), Arc::new(other));
    let proposal = |first: &Arc<Member>, second: &Arc<Member>| {
        let mut cut = Cut::default();
        cut.count(NodeId(99), 0x1f, Some(first), NOW);
        cut.count(NodeId(99), 0x3e0, Some(second), NOW);
        cut.proposal(&configuration)
    };
    assert_eq!(proposal(&one, &other), proposal(&other, &one));
    assert!(proposal(&one, &other).is_some());
}

#[test]
fn somebody_always_stays_and_a_change_has_its_limit() {
    let (configuration, _) = of(3);
    let mut cut = Cut::default();
    (1..=3).for_each(|node| cut.count(NodeId(node), rings(10), None, NOW));
    assert_eq!(leaves(&cut, &configuration), Some([2, 3].into()));
    for joiner in 0..ROLL_JOINERS_MAX as u64 + 10 {
        cut.count(NodeId(1000 + joiner), rings(10), Some(&member(1000 + joiner)), NOW);
    }
    assert_eq!(cut.len(), 3 + ROLL_JOINERS_MAX, "of more it keeps nothing");
    let change = cut.proposal(&configuration).expect("all are stable");
    assert_eq!(change.joins.len() + change.leaves.len(), ROLL_CHANGE_MAX);
    assert!(configuration.may_follow(&change));
}
