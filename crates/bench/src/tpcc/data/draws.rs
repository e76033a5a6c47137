//! Random input as clauses 2.1.5, 2.1.6, 4.3.2 and 4.3.3 have it.

use quorate_kernel::rng::{Rng, mix};

use crate::tpcc::data::rows::Address;
use crate::tpcc::data::sizes::Sizes;

/// What last names are made of, one for each digit.
const SYLLABLES: [&str; 10] =
    ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];
/// How far the constant for last names of a run is from that of the load (clause 2.1.6.1).
const NAME_DELTAS: (u64, u64) = (65, 119);
/// Deltas between these that are not allowed.
const NAME_DELTAS_BARRED: [u64; 2] = [96, 112];
/// The largest constant for last names.
const NAME_CONSTANT_MAX: u64 = 255;

const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

/// The constants of the skewed draws, each the same for a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constants {
    /// For last names.
    pub name: u32,
    customer: u32,
    item: u32,
}

impl Constants {
    /// Those of a load.
    #[must_use]
    pub fn of_load(seed: u64) -> Constants {
        let mut rng = Rng::new(mix(seed ^ 0x10ad));
        let name = rng.between(0, NAME_CONSTANT_MAX) as u32;
        Constants { name, customer: rng.below(1_024) as u32, item: rng.below(8_192) as u32 }
    }

    /// Those of a run over data that was loaded with this constant for last names.
    #[must_use]
    pub fn of_run(seed: u64, loaded_name: u32) -> Constants {
        let mut rng = Rng::new(mix(seed ^ 0x0049));
        let (low, high) = NAME_DELTAS;
        let delta = loop {
            let delta = rng.between(low, high);
            if !NAME_DELTAS_BARRED.contains(&delta) {
                break delta as u32;
            }
        };
        let is_above = u64::from(loaded_name + delta) <= NAME_CONSTANT_MAX;
        let name = if is_above { loaded_name + delta } else { loaded_name - delta };
        Constants { name, customer: rng.below(1_024) as u32, item: rng.below(8_192) as u32 }
    }
}

/// NURand(A, x, y) of clause 2.1.6, a skewed number in `low..=high`.
fn skewed(rng: &mut Rng, a: u64, constant: u32, low: u32, high: u32) -> u32 {
    let drawn = rng.between(0, a) | rng.between(u64::from(low), u64::from(high));
    let span = u64::from(high - low) + 1;
    ((drawn + u64::from(constant)) % span) as u32 + low
}

/// A customer of a district.
pub fn customer(rng: &mut Rng, constants: &Constants, sizes: Sizes) -> u32 {
    skewed(rng, 1_023, constants.customer, 1, sizes.customers())
}

/// An item.
pub fn item(rng: &mut Rng, constants: &Constants, sizes: Sizes) -> u32 {
    skewed(rng, 8_191, constants.item, 1, sizes.items())
}

/// The number of a last name that customers have.
pub fn name_number(rng: &mut Rng, constants: &Constants, sizes: Sizes) -> u32 {
    skewed(rng, 255, constants.name, 0, sizes.last_names() - 1)
}

/// The last name of a number below a thousand.
#[must_use]
pub fn last_name(number: u32) -> String {
    assert!(number < 1_000, "there are a thousand last names");
    [number / 100, number / 10 % 10, number % 10].map(|digit| SYLLABLES[digit as usize]).concat()
}

fn text_of(rng: &mut Rng, alphabet: &[u8], low: u64, high: u64) -> String {
    let length = rng.between(low, high);
    let mut letter = |_| char::from(alphabet[rng.below(alphabet.len() as u64) as usize]);
    (0..length).map(&mut letter).collect()
}

/// An a-string of this many letters.
pub fn text(rng: &mut Rng, low: u64, high: u64) -> String {
    text_of(rng, LETTERS, low, high)
}

/// An n-string of this many digits.
pub fn digits(rng: &mut Rng, count: u64) -> String {
    text_of(rng, b"0123456789", count, count)
}

/// I_DATA and S_DATA: every tenth has ORIGINAL somewhere.
pub fn item_data(rng: &mut Rng) -> String {
    const MARK: &str = "ORIGINAL";
    let mut data = text(rng, 26, 50);
    if rng.below(10) == 0 {
        let at = rng.below((data.len() - MARK.len() + 1) as u64) as usize;
        data.replace_range(at..at + MARK.len(), MARK);
    }
    data
}

/// An address.
pub fn address(rng: &mut Rng) -> Address {
    Address {
        streets: [(); 2].map(|()| text(rng, 10, 20)),
        city: text(rng, 10, 20),
        state: text_of(rng, b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", 2, 2),
        zip: format!("{}11111", digits(rng, 4)),
    }
}

/// Numbers in random order.
pub fn shuffle<T>(rng: &mut Rng, numbers: &mut [T]) {
    for last in (1..numbers.len()).rev() {
        numbers.swap(last, rng.below(last as u64 + 1) as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skewed_draws_stay_in_their_ranges_and_are_skewed() {
        let mut rng = Rng::new(7);
        for scale in [1, 7, 100] {
            let sizes = Sizes { warehouses: 1, scale };
            let constants = Constants::of_run(3, Constants::of_load(5).name);
            for _ in 0..5_000 {
                assert!((1..=sizes.customers()).contains(&customer(&mut rng, &constants, sizes)));
                assert!((1..=sizes.items()).contains(&item(&mut rng, &constants, sizes)));
                assert!(name_number(&mut rng, &constants, sizes) < sizes.last_names());
            }
        }
        let sizes = Sizes { warehouses: 1, scale: 1 };
        let constants = Constants { name: 0, customer: 0, item: 0 };
        // The lowest bit is set by one of the two draws three times of four.
        let mut draw = || customer(&mut rng, &constants, sizes);
        let even = (0..10_000).filter(|_| draw() % 2 == 0).count();
        assert!((6_000..9_000).contains(&even), "{even}: odd numbers moved up by one");
    }

    #[test]
    fn constants_for_last_names_are_apart() {
        for seed in 0..200 {
            let loaded = Constants::of_load(seed).name;
            let run = Constants::of_run(seed, loaded).name;
            let delta = u64::from(loaded.abs_diff(run));
            assert!((65..=119).contains(&delta) && !NAME_DELTAS_BARRED.contains(&delta));
            assert!(u64::from(run) <= NAME_CONSTANT_MAX);
        }
    }

    #[test]
    fn last_names_are_made_of_syllables() {
        let names = [0, 371, 999].map(last_name);
        assert_eq!(names, ["BARBARBAR", "PRICALLYOUGHT", "EINGEINGEING"]);
    }

    #[test]
    fn texts_have_their_lengths() {
        let mut rng = Rng::new(1);
        let originals = (0..1_000).filter(|_| {
            let data = item_data(&mut rng);
            assert!((26..=50).contains(&data.len()));
            data.contains("ORIGINAL")
        });
        let count = originals.count();
        assert!((60..150).contains(&count), "{count} of a thousand");
        assert_eq!(address(&mut rng).zip.len(), 9);
        assert_eq!(digits(&mut rng, 16).len(), 16);
        let mut numbers: Vec<u32> = (0..50).collect();
        shuffle(&mut rng, &mut numbers);
        assert_ne!(numbers, (0..50).collect::<Vec<_>>());
        numbers.sort_unstable();
        assert_eq!(numbers, (0..50).collect::<Vec<_>>());
    }
}
