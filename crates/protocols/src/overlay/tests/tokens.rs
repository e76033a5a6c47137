//! Where tokens are put.

use crate::overlay::tokens::places::{founding, joining};
use quorate_kernel::ids::{Incarnation, NodeId, Start};
use quorate_kernel::ring::{Ring, RingHost, Standing};
use quorate_kernel::rng::Rng;
use std::collections::BTreeSet;
use std::string::String;
use std::vec::Vec;

fn ring_of(tokens: &[Vec<u64>]) -> Ring {
    let host = |(node, tokens): (usize, &Vec<u64>)| RingHost {
        who: Incarnation { node: NodeId(node as u64), start: Start(1) },
        address: String::new(),
        zone: String::new(),
        tokens: tokens.clone(),
        standing: Standing::Up,
        is_suspected: false,
        doors: Vec::new(),
    };
    Ring::new(1, tokens.iter().enumerate().map(host).collect())
}

#[test]
fn founders_stand_evenly_and_in_turn() {
    let tokens = founding(3, 4);
    let mut all: Vec<(u64, usize)> = Vec::new();
    for (host, tokens) in tokens.iter().enumerate() {
        assert!(tokens.len() == 4 && tokens.windows(2).all(|pair| pair[0] < pair[1]));
        all.extend(tokens.iter().map(|token| (*token, host)));
    }
    all.sort_unstable();
    assert!(all.iter().enumerate().all(|(place, (_, host))| *host == place % 3));
    let widths = all.windows(2).map(|pair| pair[1].0 - pair[0].0);
    assert!(widths.into_iter().all(|width| width.abs_diff(u64::MAX / 12) <= 1));
    assert_eq!(all.last().map(|(token, _)| *token), Some(u64::MAX), "the last range ends there");
    assert_eq!(founding(1, 1), [[u64::MAX]]);
}

#[test]
fn who_joins_takes_its_share_and_no_more() {
    let founders = founding(4, 8);
    let ring = ring_of(&founders);
    let chosen = joining(&ring, &[], 8, &mut Rng::new(4));
    assert!(chosen.len() == 8 && chosen.windows(2).all(|pair| pair[0] < pair[1]));
    let before = |token: u64| {
        let all = ring.tokens().map(|(token, _)| token).chain(chosen.iter().copied());
        all.filter(|other| *other != token).min_by_key(|other| token.wrapping_sub(*other))
    };
    let share: u64 = chosen.iter().map(|one| one.wrapping_sub(before(*one).expect("others"))).sum();
    let fair = u64::MAX / 5;
    assert!(share > fair / 2 && share <= fair, "{share:x} of {fair:x}");
    assert_eq!(joining(&Ring::default(), &[], 3, &mut Rng::new(1)).len(), 3);
    assert_ne!(joining(&ring, &[], 8, &mut Rng::new(5)), chosen, "two that join at once differ");
}

/// Groups are split at tokens and never merged, so every place ever taken bounds one for good.
#[test]
fn joins_and_departures_without_end_need_few_places() {
    let places = |is_told: bool| {
        let mut rng = Rng::new(7);
        let mut tokens = founding(4, 4);
        let mut ever: BTreeSet<u64> = tokens.iter().flatten().copied().collect();
        for _ in 0..100 {
            let ring = ring_of(&tokens);
            let taken: BTreeSet<u64> = ring.tokens().map(|(token, _)| token).collect();
            let former: Vec<u64> = ever.difference(&taken).copied().collect();
            let former = if is_told { former } else { Vec::new() };
            let joined = joining(&ring, &former, 4, &mut rng);
            assert!(joined.iter().all(|token| !taken.contains(token)));
            ever.extend(joined.iter().copied());
            tokens.push(joined);
            tokens.remove(rng.below(tokens.len() as u64) as usize);
        }
        ever.len()
    };
    assert_eq!(places(false), 16 + 400);
    assert!(places(true) <= 16 + 64, "{}", places(true));
}
