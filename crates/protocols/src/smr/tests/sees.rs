//! A command sees the objects with what it has written itself.

use super::numbers::Numbers;
use crate::smr::{Execution, Objects};
use bytes::Bytes;
use quorate_kernel::rng::Rng;
use std::collections::BTreeMap;
use std::vec::Vec;

fn name(rng: &mut Rng) -> Bytes {
    let letters = (0..rng.below(4)).map(|_| b"abc"[rng.below(3) as usize]);
    letters.collect::<Vec<u8>>().into()
}

#[test]
fn what_is_written_is_seen_by_whoever_writes_it_in_the_order_of_keys() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let objects: Objects<Numbers> =
            (0..rng.below(12)).map(|number| (name(&mut rng), number)).collect();
        let mut on = Execution::<Numbers>::new(&objects, 5);
        let mut model: BTreeMap<Bytes, u64> = objects.clone();
        for number in 100..100 + rng.below(12) {
            let key = name(&mut rng);
            match rng.below(3) {
                0 => {
                    on.remove(key.clone());
                    model.remove(&key);
                }
                1 => {
                    let is_there = on.change(&key, |object| *object += number);
                    assert_eq!(is_there, model.contains_key(&key));
                    model.entry(key).and_modify(|object| *object += number);
                }
                _ => {
                    on.put(key.clone(), number);
                    model.insert(key, number);
                }
            }
        }
        let prefix = name(&mut rng);
        let below = on.below(&prefix).collect::<Vec<_>>();
        let expected = model.iter().filter(|(key, _)| key.starts_with(&prefix));
        assert_eq!(below, expected.collect::<Vec<_>>(), "seed {seed}");
        let from = on.from(&prefix).collect::<Vec<_>>();
        assert_eq!(from, model.range(prefix.clone()..).collect::<Vec<_>>(), "seed {seed}");
        assert_eq!(on.get(&prefix), model.get(&prefix));
        on.discard();
        assert!(on.from(b"").eq(objects.iter()), "seed {seed}: as it was before");
        assert_eq!(on.now_ms(), 5);
    }
}
