//! Values that are changed where they stand.

use super::promises::{SOON, bytes, key_of, three, transact};
use bytes::Bytes;
use quorate_kernel::change::{Change, Changed, Unchanged};
use quorate_kernel::operation::Outcome;
use quorate_kernel::transaction::{Item, ItemOutcome};
use std::vec::Vec;

#[test]
fn changes_are_done_where_values_stand_and_stay_in_their_slots() {
    let mut world = three(3);
    let [one, two] = [1, 2].map(|group| key_of(group, 3));
    let change = |key: &Bytes, change| Item::Change { key: key.clone(), change };
    let get = |key: &Bytes| Item::Get { key: key.clone() };
    let append = |text| Change::Append(bytes(text));
    let put_if = |exists, value| Change::PutIf { exists, value: bytes(value) };
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
