//! The states a search has met, kept in full: two states are equal only if all their bits are.

use alloc::vec::Vec;
use hashbrown::HashTable;
use quorate_kernel::rng::mix;

/// How many words of states are kept at the most. A state beyond is simply not remembered, which
/// makes the search slower but not wrong.
const WORDS_MAX: usize = 1 << 24;

#[derive(Clone, Copy)]
struct Slot {
    start: u32,
    length: u32,
}

/// A set of states.
#[derive(Default)]
pub(crate) struct Memo {
    table: HashTable<Slot>,
    words: Vec<u64>,
}

impl Memo {
    /// Forgets all states but keeps the room.
    pub fn clear(&mut self) {
        self.table.clear();
        self.words.clear();
    }

    /// Adds a state: its present value, the used open writes, and the taken operations from a word
    /// on. Says whether it is new.
    pub fn insert(&mut self, value: u32, word: u32, used: &[u64], taken: &[u64]) -> bool {
        let start = self.words.len();
        if start >= WORDS_MAX {
            return true;
        }
        self.words.push(u64::from(value) << 32 | u64::from(word));
        self.words.extend_from_slice(used);
        self.words.extend_from_slice(taken);
        let words = &self.words;
        let state = &words[start..];
        let hash = hash(state);
        if self.table.find(hash, |slot| slot_words(words, *slot) == state).is_some() {
            self.words.truncate(start);
            return false;
        }
        let length = u32::try_from(state.len()).expect("a state is shorter than its history");
        let slot = Slot { start: u32::try_from(start).expect("below WORDS_MAX"), length };
        self.table.insert_unique(hash, slot, |slot| self::hash(slot_words(words, *slot)));
        true
    }
}

fn slot_words(words: &[u64], slot: Slot) -> &[u64] {
    &words[slot.start as usize..][..slot.length as usize]
}

fn hash(words: &[u64]) -> u64 {
    words.iter().fold(words.len() as u64, |hash, word| mix(hash ^ word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_new_once() {
        let mut memo = Memo::default();
        for round in 0..2 {
            for value in 0..100 {
                assert_eq!(memo.insert(value, 7, &[1], &[2, 3]), round == 0);
                assert_eq!(memo.insert(value, 8, &[1], &[2, 3]), round == 0);
                assert_eq!(memo.insert(value, 8, &[1], &[2]), round == 0);
            }
        }
        memo.clear();
        assert!(memo.insert(0, 7, &[1], &[2, 3]));
    }
}
