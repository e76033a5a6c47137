//! Values that are changed where they stand.

use super::promises::{SOON, bytes, key_of, led, three, transact};
use super::world::settings;
use crate::serializable::lane::Settings;
use crate::serializable::rules::BYTES_MAX;
use bytes::Bytes;
use quorate_kernel::change::{Change, Changed, Unchanged};
use quorate_kernel::expiry::Expiry;
use quorate_kernel::limits::TRANSACTION_ITEMS_MAX;
use quorate_kernel::operation::{Outcome, Refusal};
use quorate_kernel::storage::Durability;
use quorate_kernel::transaction::{Condition, Item, ItemOutcome};
use std::vec::Vec;

#[test]
fn changes_are_done_where_values_stand_and_stay_in_their_slots() {
    let mut world = three(3);
    let [one, two] = [1, 2].map(|group| key_of(group, 3));
    let change = |key: &Bytes, change| Item::Change { key: key.clone(), change };
    let get = |key: &Bytes| Item::Get { key: key.clone() };
    let append = |text| Change::Append(bytes(text));
    let put_if =
        |exists, value| Change::PutIf { exists, value: bytes(value), expiry: Expiry::Never };
    let told = world.ask(
        0,
        transact(Vec::from([
            change(&one, Change::Add(41)),
            change(&two, append("x")),
            change(&one, Change::Add(1)),
            change(&two, Change::Add(1)),
            change(&two, put_if(false, "y")),
        ])),
        SOON,
    );
    let is = |changed| ItemOutcome::Changed(changed);
    let not = |why| ItemOutcome::Unchanged(why);
    let wanted = [
        is(Changed::Integer(41)),
        is(Changed::Length(1)),
        is(Changed::Integer(42)),
        not(Unchanged::NotAnInteger),
        not(Unchanged::Condition),
    ];
    assert_eq!(told, Outcome::Transacted(wanted.into()));
    // Beside reads of the same keys, which see what was done before them and after.
    let told = world.ask(
        1,
        transact(Vec::from([
            get(&one),
            change(&one, Change::AddFloat(bytes("0.5"))),
            change(&one, Change::Add(1)),
            get(&one),
            change(&two, put_if(true, "abc")),
            change(&two, Change::SetRange { offset: 1, bytes: bytes("_") }),
            get(&two),
        ])),
        SOON,
    );
    let value = |text| ItemOutcome::Value(Some(bytes(text)));
    let wanted = [
        value("42"),
        is(Changed::Float(bytes("42.5"))),
        not(Unchanged::NotAnInteger),
        value("42.5"),
        is(Changed::Put),
        is(Changed::Length(3)),
        value("a_c"),
    ];
    assert_eq!(told, Outcome::Transacted(wanted.into()));
}

#[test]
fn values_grow_to_what_the_keyspace_takes_and_not_beyond() {
    let of = settings(3, 3, 1, Durability::Sync);
    let mut world = led(Settings { value_bytes_max: 4, ..of });
    let key = bytes("k");
    let append = |text| Item::Change { key: key.clone(), change: Change::Append(bytes(text)) };
    let length = |length| ItemOutcome::Changed(Changed::Length(length));
    let long = ItemOutcome::Unchanged(Unchanged::TooLong);
    let get = Item::Get { key: key.clone() };
    let told = world.ask(0, transact([append("abc"), append("de"), get].into()), SOON);
    let value = ItemOutcome::Value(Some(bytes("abc")));
    assert_eq!(told, Outcome::Transacted([length(3), long.clone(), value].into()));
    let told = world.ask(1, transact([append("de"), append("d")].into()), SOON);
    assert_eq!(told, Outcome::Transacted([long, length(4)].into()));
    // What a key is compared with may be longer: it was put when more was taken.
    let holds = Condition::Value(bytes("abcde"));
    let told = world.ask(2, transact([Item::Check { key, holds }].into()), SOON);
    assert_eq!(told, Outcome::Refused(Refusal::Unmet { item: 0 }));
}

#[test]
fn few_bytes_that_would_make_many_are_refused() {
    let of = settings(3, 3, 1, Durability::Sync);
    let mut world = led(Settings { value_bytes_max: 1 << 20, ..of });
    let grow = |number: usize| {
        let change = Change::SetRange { offset: (1 << 20) - 1, bytes: bytes("x") };
        Item::Change { key: std::format!("k{number}").into(), change }
    };
    // One value is overwritten as often as items allow: it is as long as it was.
    let told = world.ask(0, transact((0..TRANSACTION_ITEMS_MAX).map(|_| grow(0)).collect()), SOON);
    assert!(matches!(told, Outcome::Transacted(_)), "{told:?}");
    for reads in [false, true] {
        let get = reads.then(|| Item::Get { key: bytes("k0") });
        let items: Vec<Item> = (0..100).map(grow).chain(get).collect();
        let told = world.ask(1, transact(items), SOON);
        let is_refused =
            matches!(told, Outcome::Refused(Refusal::TooLarge { what: "transaction", .. }));
        assert!(is_refused, "{told:?} of {BYTES_MAX} bytes at most");
    }
    let told = world.ask(2, transact((0..9).map(grow).collect()), SOON);
    assert!(matches!(told, Outcome::Transacted(_)), "{told:?}");
}

#[test]
fn what_several_groups_have_done_is_told_however_much_it_is() {
    let of = settings(3, 3, 8, Durability::Sync);
    let mut world = led(Settings { value_bytes_max: 1 << 20, ..of });
    let grow = |number: usize| {
        let change = Change::SetRange { offset: (1 << 20) - 1, bytes: bytes("x") };
        Item::Change { key: std::format!("k{number}").into(), change }
    };
    // No group makes as much as it may, and all of them together more than one may.
    let told = world.ask(0, transact((0..40).map(grow).collect()), SOON);
    let length = ItemOutcome::Changed(Changed::Length(1 << 20));
    assert_eq!(told, Outcome::Transacted(std::vec![length; 40]));
    // What is put anew is made again each time.
    let put = Item::Put { key: bytes("k0"), value: bytes("v"), expiry: Expiry::Never };
    let again = std::vec![[put, grow(0)]; 40].concat();
    let told = world.ask(1, transact(again), SOON);
    assert!(matches!(told, Outcome::Refused(Refusal::TooLarge { .. })), "{told:?}");
}
