//! The laws of clocks, contexts and objects.

use super::clock::{Clock, Entry};
use super::context::CausalContext;
use super::dot::{ALL, Actor, Dot, Partition};
use super::object::{Object, Version};
use bytes::Bytes;
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use quorate_kernel::write::WriteId;
use std::collections::{BTreeMap, BTreeSet};
use std::vec::Vec;

fn actor(birth: u32) -> Actor {
    Actor { birth, ..Actor::default() }
}

fn dot((birth, counter): (u32, u64)) -> Dot {
    Dot { actor: actor(birth), counter }
}

fn any_dots() -> impl Strategy<Value = BTreeSet<(u32, u64)>> {
    btree_set((0u32..3, 1u64..12), 0..24)
}

fn clock_of(dots: &BTreeSet<(u32, u64)>) -> Clock {
    let mut clock = Clock::default();
    dots.iter().for_each(|pair| {
        clock.insert(dot(*pair));
    });
    clock
}

fn base_of(dots: &BTreeSet<(u32, u64)>, birth: u32) -> u64 {
    (1..).take_while(|counter| dots.contains(&(birth, *counter))).last().unwrap_or(0)
}

proptest! {
    #[test]
    fn a_clock_is_the_set_of_its_dots(order in vec((0u32..3, 1u64..12), 0..40)) {
        let mut clock = Clock::default();
        let mut model = BTreeSet::new();
        for pair in order {
            prop_assert_eq!(clock.insert(dot(pair)), model.insert(pair));
        }
        for birth in 0..3 {
            let entry = clock.get(actor(birth)).cloned().unwrap_or_default();
            prop_assert_eq!(entry.base(), base_of(&model, birth));
            prop_assert!(entry.is_well_formed());
            let highest = model.iter().filter(|(at, _)| *at == birth).map(|(_, n)| *n).max();
            prop_assert_eq!(entry.highest(), highest.unwrap_or(0));
            for counter in 1..14 {
                prop_assert_eq!(entry.contains(counter), model.contains(&(birth, counter)));
            }
        }
    }

    #[test]
    fn merging_clocks_is_the_union(one in any_dots(), other in any_dots(), third in any_dots()) {
        let merged = |one: &Clock, other: &Clock| {
            let mut merged = one.clone();
            merged.merge(other);
            merged
        };
        let (a, b, c) = (clock_of(&one), clock_of(&other), clock_of(&third));
        let union: BTreeSet<_> = one.union(&other).copied().collect();
        let same = |one: &Clock, other: &Clock| {
            (0..3).all(|birth| {
                (0..14).all(|counter| {
                    one.contains(dot((birth, counter))) == other.contains(dot((birth, counter)))
                }) && one.base(actor(birth)) == other.base(actor(birth))
            })
        };
        prop_assert!(same(&merged(&a, &b), &clock_of(&union)));
        prop_assert_eq!(merged(&a, &b), merged(&b, &a));
        prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        prop_assert_eq!(merged(&a, &a), a);
    }

    #[test]
    fn ranges_are_as_many_single_counters(
        ranges in vec((1u64..20, 0u64..6), 0..8), at in any::<Option<u64>>()
    ) {
        let (mut by_range, mut one_by_one) = (Entry::default(), Entry::default());
        for (first, length) in ranges {
            by_range.insert_range(first, first + length);
            (first..=first + length).rev().for_each(|counter| {
                one_by_one.insert(counter);
            });
        }
        prop_assert_eq!(&by_range, &one_by_one);
        if let Some(at) = at {
            by_range.insert_range(at, u64::MAX);
            prop_assert!(by_range.contains(u64::MAX) && by_range.contains(at.max(1)));
        }
    }
}

/// What happened to a key: every update with the set of updates it replaced.
#[derive(Clone, Debug)]
struct Past {
    writes: Vec<(Dot, BTreeSet<Dot>)>,
}

/// Any past: each write is at one of three actors, and has seen all earlier writes of its actor
/// and of some others; it replaced some of what it saw.
fn any_past() -> impl Strategy<Value = Past> {
    vec((0u32..3, any::<u16>()), 1..9).prop_map(|draws| {
        let mut writes: Vec<(Dot, BTreeSet<Dot>)> = Vec::new();
        let mut counters = BTreeMap::new();
        for (birth, chosen) in draws {
            let counter = counters.entry(birth).or_insert(0u64);
            *counter += 1;
            let mut replaced = BTreeSet::new();
            for (number, (dot, past)) in writes.iter().enumerate() {
                if chosen >> number & 1 == 1 {
                    replaced.insert(*dot);
                    replaced.extend(past.iter().copied());
                }
            }
            // A context says "up to", so whatever an actor wrote earlier is replaced too.
            let upto: Vec<Dot> = replaced.iter().copied().collect();
            for (dot, _) in &writes {
                let is_below = |seen: &Dot| seen.actor == dot.actor && seen.counter >= dot.counter;
                if upto.iter().any(is_below) {
                    replaced.insert(*dot);
                }
            }
            writes.push((dot((birth, *counter)), replaced));
        }
        Past { writes }
    })
}

impl Past {
    /// The state of a replica that has seen the first updates of each actor.
    fn seen(&self, upto: [u64; 3]) -> Object {
        let is_seen = |dot: &Dot| dot.counter <= upto[dot.actor.birth as usize];
        let mut context: CausalContext =
            (0..3).map(|birth| (actor(birth), upto[birth as usize])).collect();
        let mut replaced: BTreeSet<Dot> = BTreeSet::new();
        for (dot, past) in self.writes.iter().filter(|(dot, _)| is_seen(dot)) {
            context.raise(dot.actor, dot.counter);
            past.iter().for_each(|dot| context.raise(dot.actor, dot.counter));
            replaced.extend(past.iter().copied());
        }
        let live = self.writes.iter().filter(|(dot, _)| is_seen(dot) && !replaced.contains(dot));
        let version = |dot: &Dot| Version { id: None, value: Bytes::from(std::format!("{dot}")) };
        let versions = live.map(|(dot, _)| (*dot, version(dot))).collect();
        Object { versions, context, ..Object::default() }
    }
}

fn any_seen() -> impl Strategy<Value = [u64; 3]> {
    [0u64..5, 0u64..5, 0u64..5]
}

fn merged(one: &Object, other: &Object) -> Object {
    let mut merged = one.clone();
    merged.merge(other.clone());
    merged
}

proptest! {
    #[test]
    fn merging_objects_has_the_laws_of_a_join(
        past in any_past(), a in any_seen(), b in any_seen(), c in any_seen()
    ) {
        let (a, b, c) = (past.seen(a), past.seen(b), past.seen(c));
        prop_assert_eq!(merged(&a, &b), merged(&b, &a));
        prop_assert_eq!(merged(&merged(&a, &b), &c), merged(&a, &merged(&b, &c)));
        prop_assert_eq!(merged(&a, &a), a);
    }

    #[test]
    fn merging_keeps_what_nobody_replaced_and_nothing_else(
        past in any_past(), a in any_seen(), b in any_seen()
    ) {
        let both: Vec<u64> = a.iter().zip(b).map(|(a, b)| (*a).max(b)).collect();
        let all = past.seen([both[0], both[1], both[2]]);
        prop_assert_eq!(merged(&past.seen(a), &past.seen(b)).versions, all.versions);
    }

    #[test]
    fn what_is_stripped_is_filled_again(
        past in any_past(), seen in any_seen(), dots in any_dots(), closed: [bool; 3]
    ) {
        let object = past.seen(seen);
        let mut clock = clock_of(&dots);
        for (birth, _) in (0..3).zip(closed).filter(|(_, is_closed)| *is_closed) {
            clock.close(actor(birth));
        }
        let mut filled = object.clone();
        filled.fill(&clock, |_| true);
        let mut again = filled.clone();
        again.context.strip(&clock);
        prop_assert!(again.context.len() <= filled.context.len());
        again.fill(&clock, |_| true);
        prop_assert_eq!(&again, &filled, "fill after strip changes nothing");
        let mut twice = filled.clone();
        twice.fill(&clock, |_| true);
        prop_assert_eq!(twice, filled);
        let mut stripped = object.clone();
        stripped.context.strip(&clock);
        for (actor, counter) in object.context.iter() {
            let is_left = stripped.context.iter().any(|(left, _)| left == actor);
            prop_assert_eq!(is_left, counter > clock.base(actor));
        }
    }

    #[test]
    fn an_object_is_read_back_and_any_bytes_are_survived(
        past in any_past(), seen in any_seen(), id: Option<u128>, bytes: Vec<u8>, cut: u8,
        replaced in btree_set(1u64..9, 0..3)
    ) {
        let mut object = past.seen(seen);
        object.replaced =
            replaced.into_iter().map(|n| (dot((9, n)), WriteId(u128::from(n)))).collect();
        object.versions.values_mut().for_each(|version| version.id = id.map(WriteId));
        let encoded = object.to_bytes();
        prop_assert_eq!(Object::from_bytes(&encoded), Ok(object));
        let _ = Object::from_bytes(&Bytes::from(bytes));
        let cut = usize::from(cut) % encoded.len();
        prop_assert!(Object::from_bytes(&encoded.slice(..cut)).is_err());
    }
}

#[test]
fn one_write_under_two_dots_is_one_value() {
    let version =
        |text: &'static str, id| Version { id, value: Bytes::from_static(text.as_bytes()) };
    let id = Some(WriteId(7));
    let mut object = Object::default();
    object.versions.insert(dot((0, 1)), version("v", id));
    object.versions.insert(dot((1, 4)), version("v", id));
    object.versions.insert(dot((2, 1)), version("w", None));
    assert_eq!(object.values(), [&b"v"[..], b"w"]);
    assert_eq!(object.versions.len(), 3, "each stands for it where the other is not known");
}

/// The one object has a dot of a write, the second has replaced it, and the third has another dot.
#[test]
fn a_twin_goes_in_whatever_order_objects_are_gathered() {
    let version = Version { id: Some(WriteId(7)), value: Bytes::from_static(b"v") };
    let of = |versions: &[Dot], upto: &[Dot]| Object {
        versions: versions.iter().map(|dot| (*dot, version.clone())).collect(),
        context: upto.iter().map(|dot| (dot.actor, dot.counter)).collect(),
        ..Object::default()
    };
    let (one, twin) = (dot((0, 1)), dot((1, 4)));
    let objects = [of(&[one], &[one]), of(&[], &[one]), of(&[twin], &[twin])];
    for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        let mut united = Object::default();
        order.iter().for_each(|place| {
            united.gather(objects[*place].clone());
        });
        assert_eq!(united.values(), [] as [Bytes; 0], "{order:?}");
    }
}

#[test]
fn what_is_closed_speaks_for_all_earlier_actors_of_its_partition() {
    let mut clock = clock_of(&[(1, 2), (2, 1), (2, 5), (3, 4)].into_iter().collect());
    let far = Actor { partition: Partition(1), ..actor(1) };
    clock.insert(Dot { actor: far, counter: 9 });
    assert!(clock.is_next_to_close(actor(1)) && !clock.is_next_to_close(actor(2)));
    assert_eq!(clock.close(actor(1)), []);
    assert!(clock.is_next_to_close(actor(2)) && clock.is_next_to_close(far));
    assert_eq!(clock.close(actor(2)), [actor(1)]);
    let heard: Vec<Actor> = clock.iter().map(|(actor, _)| actor).collect();
    assert_eq!(heard, [actor(2), actor(3), far]);
    for birth in 0..=2 {
        assert!(clock.contains(dot((birth, 7))) && clock.base(actor(birth)) == ALL);
        assert!(!clock.insert(dot((birth, 7))), "it has no entry again");
    }
    assert!(!clock.contains(dot((3, 3))) && !clock.contains(Dot { actor: far, counter: 1 }));
    assert_eq!(clock.len(), 3);
}

#[test]
fn a_context_names_one_closed_actor_of_a_partition() {
    let (names, far) = ([(1, 3), (2, 5), (4, 1)], Actor { partition: Partition(1), ..actor(1) });
    let mut context: CausalContext = names.iter().map(|(at, n)| (actor(*at), *n)).collect();
    context.raise(far, 9);
    let (before, mut closed) = (context.clone(), CausalContext::default());
    closed.raise(actor(3), ALL);
    context.merge(&closed);
    let named: Vec<_> = context.iter().collect();
    assert_eq!(named, [(actor(3), ALL), (actor(4), 1), (far, 9)]);
    assert!((0..=3).all(|birth| context.covers(dot((birth, 99)))));
    assert!(!context.covers(dot((4, 2))) && !context.covers(Dot { actor: far, counter: 10 }));
    // One from before adds nothing, and merges to the same the other way round.
    let mut other = closed.clone();
    other.merge(&before);
    assert_eq!(other, context);
    context.raise(actor(2), ALL);
    assert_eq!(other, context, "what is under it is said");
    // A clock that has closed as much strips all of it, and one that has not leaves it.
    let mut clock = clock_of(&[(3, 1), (3, 2)].into_iter().collect());
    context.strip(&clock);
    assert_eq!(context.iter().next(), Some((actor(3), ALL)));
    clock.close(actor(4));
    context.strip(&clock);
    assert_eq!(context.iter().collect::<Vec<_>>(), [(far, 9)]);
}
