//! Writes that were on their way when tombstones were removed, and what each of them rests on.

use crate::linearizable::tests::traps::schedule;

/// Two members take themselves for the leader of a removal and announce the same generation. A
/// tombstone that only one member held when the generation was enforced has spread since: the one
/// that lists later must not take it for one that all have held, or what a get read in the enforced
/// generation, before the tombstone came to its members, brings the value back.
#[test]
fn two_leaders_share_no_fence() {
    schedule(
        "nodes 3 spare 2 first 100 brisk
         put 5 k v
         deliver ReadA 5->
         deliver ReadB ->5
         drop WriteA 5->3
         deliver WriteA 5->
         deliver WriteB ->5
         # told put k v: written
         given put 1 t a
         # told put t a: written
         given delete 1 t
         # told delete t: deleted 1
         delete 4 k
         deliver ReadA 4->
         deliver ReadB ->4
         deliver WriteA 4->1
         drop all
         crash 4
         ring 1 1:1 2:2 3:3
         run 300ms
         ring 2 2:2 3:3 1:1:suspected
         run 860ms
         show 3 tombstones_purged
         # last 3: tombstones_purged 1
         get 5 k within 60s
         delay ReadA 5->1
         deliver ReadA 5->
         deliver ReadB ->5
         tick 4ms
         delay WriteA 5->3
         drop all
         crash 5
         given get 1 k
         # told get k: nothing
         run 3s
         show 3 tombstones_purged
         # last 3: tombstones_purged 2
         release
         drop ReadA
         deliver WriteA 5->3
         given get 3 k
         # told get k: nothing",
    );
}

/// A get whose quorum straddles a removal: one member answered before the tombstone came, the other
/// one when it was gone. What it imposes rests on the older of the two.
#[test]
fn what_a_get_imposes_rests_on_the_lowest_generation() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         put 1 k v
         deliver ReadA 1->
         deliver ReadB ->1
         drop WriteA 1->3
         deliver WriteA 1->
         deliver WriteB ->1
         # told put k v: written
         get 4 k within 60s
         deliver ReadA 4->2
         deliver ReadB 2->4
         delay ReadA 4->1
         delay ReadA 4->3
         cut 4
         given delete 1 k
         # told delete k: deleted 1
         ring all 1:1 2:2 3:3
         run 4s
         show 3 tombstones_purged
         # last 3: tombstones_purged 1
         mend 4
         release
         deliver ReadA 4->3
         deliver ReadB 3->4
         tick 4ms
         drop ReadA
         deliver WriteA 4->
         crash 4
         drop all
         given get 3 k
         # told get k: nothing",
    );
}

/// The parts of a group that is split go on in its generation: a put that read before a tombstone
/// was there, and asks a part to store its value when the tombstone is gone, is refused there too.
#[test]
fn the_parts_of_a_split_keep_the_fence() {
    schedule(
        "nodes 3 spare 1 first 100 brisk
         ring all 1:1 2:2 3:3
         put 4 k old within 60s
         deliver ReadA 4->
         deliver ReadB ->4
         cut 4
         drop all
         given put 1 k a
         # told put k a: written
         given delete 2 k
         # told delete k: deleted 1
         run 4s
         show 1 tombstones_purged
         # last 1: tombstones_purged 1
         split 1 1 a000000000000000
         split 2 1 a000000000000000
         split 3 1 a000000000000000
         run 1s
         mend 4
         run 3s
         given get 3 k
         # told get k: nothing",
    );
}

/// A get imposes what it read, is refused as a tombstone is removed, reads again and imposes
/// something else: an acknowledgement of the first comes late, and counts for nothing.
#[test]
fn an_acknowledgement_of_what_was_imposed_first_counts_for_nothing_else() {
    schedule(
        "nodes 3 spare 4 first 100 brisk
         given put 7 k x
         # told put k x: written
         given put 7 t z
         # told put t z: written
         given delete 7 t
         # told delete t: deleted 1
         put 5 k a within 60s
         deliver ReadA
         deliver ReadB
         deliver WriteA 5->1
         drop WriteA
         drop WriteB
         cut 5
         ring all 1:1 2:2 3:3
         run 700ms
         tick 500ms
         deliver TombstonesA
         put 6 k b within 60s
         deliver ReadA
         deliver ReadB
         get 7 k within 60s
         deliver ReadA 7->1
         deliver ReadA 7->2
         drop ReadA 7->3
         deliver ReadB
         tick 3ms
         deliver TombstonesB
         deliver FloorA 1->2
         deliver WriteA 7->2
         deliver WriteA 7->3
         deliver WriteB 2->7
         deliver WriteA 6->2
         drop WriteA 6->
         drop WriteB 2->6
         cut 6
         deliver ReadA 7->1
         deliver ReadA 7->2
         drop ReadA 7->3
         deliver ReadB ->7
         tick 3ms
         deliver WriteB 3->7
         # told nothing
         run 2s
         # told get k: value b
         cut 2
         get 7 k
         run 1s
         # told get k: value b",
    );
}
