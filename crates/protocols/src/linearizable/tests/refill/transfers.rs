//! Moves of more data than fits one message: many lists, many pages, in many turns.

use crate::linearizable::tests::traps::schedule;
use std::format;
use std::string::String;

/// More than two lists hold, and some ten pages of records.
const KEYS: usize = 700;

/// What the answers show of a value of 900 letters.
const SHOWN: &str = "xxxxxxxx..(900 bytes)";

fn puts() -> String {
    let put = |key| format!("given put 1 k{key} x*900\n# told put k{key} {SHOWN}: written\n");
    (0..KEYS).map(put).collect()
}

fn gets(node: u64) -> String {
    let get = |key| format!("given get {node} k{key}\n# told get k{key}: value {SHOWN}\n");
    (0..KEYS).map(get).collect()
}

/// All members are replaced one after the other, while answers get lost and one source stops; then
/// those who came hold everything.
#[test]
fn every_record_of_a_long_move_arrives() {
    schedule(&format!(
        "nodes 3 spare 3 first 100 brisk
         {}
         ring all 4:4 5:5 6:6 a1:1 a2:2 a3:3
         run 60ms
         tick 20ms
         cut 1
         run 60ms
         mend 1
         run 40ms
         given put 1 k7 new
         # told put k7 new: written
         cut 3
         run 1s
         mend 3
         run 12s
         show 4 ready view
         # last 4: view 4
         crash 1
         crash 2
         crash 3
         given get 6 k7
         # told get k7: value new
         given put 6 k7 x*900
         # told put k7 xxxxxxxx..(900 bytes): written
         {}",
        puts(),
        gets(6),
    ));
}

/// However much is asked for, one turn does only so much of it: clients come in between.
#[test]
fn a_source_does_a_little_in_each_turn() {
    schedule(&format!(
        "nodes 3 spare 1 first 100
         {}
         view 1 2 1 2 4
         view 2 2 1 2 4
         view 3 2 1 2 4
         deliver all
         show 4 moved_keys
         # last 4: moved_keys 0
         run 1s
         show 4 moved_keys
         # last 4: moved_keys 700",
        puts(),
    ));
}
