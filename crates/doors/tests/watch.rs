//! `WATCH`, and what else may stand around the commands of a transaction.

mod common;

use bytes::Bytes;
use common::{REGISTERS, TRANSACTIONS, World, keyspace};
use quorate_doors::Session as _;
use quorate_kernel::limits::{KEY_BYTES_MAX, TRANSACTION_BYTES_MAX, TRANSACTION_ITEMS_MAX};
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::transaction::{Condition, Item};

/// What `EXEC` says if a key that is watched has another value.
const NIL: &str = "*-1\r\n";

fn world() -> World {
    let mut world = World::default();
    let keyspaces = [("default", 1, &TRANSACTIONS), ("other", 2, &TRANSACTIONS)];
    let plain = keyspace("plain", 3, &REGISTERS);
    let all = keyspaces.into_iter().map(|(name, lane, engine)| keyspace(name, lane, engine));
    world.set_keyspaces(all.chain([plain]).collect());
    world
}

/// Another connection writes.
fn meanwhile(world: &mut World, key: &'static str, value: &'static str) {
    let operation = Operation::put(key.into(), value.into());
    world.map.apply(quorate_kernel::ids::LaneId(1), operation);
}

/// Sends commands, each when the one before was answered; the last reply.
fn all(world: &mut World, lines: &[&str]) -> String {
    lines.iter().fold(String::new(), |_, line| world.ask(line))
}

#[test]
fn exec_is_done_if_what_is_watched_is_as_it_was() {
    let mut world = world();
    meanwhile(&mut world, "a", "1");
    world.receive(b"WATCH a none\r\nMULTI\r\nSET a 2\r\nGET a\r\nEXEC\r\n");
    let keys = |world: &World| -> Vec<Bytes> {
        world.started.0.iter().flat_map(|(.., operation)| operation.keys().cloned()).collect()
    };
    assert_eq!(keys(&world), ["a", "none"], "nothing is read behind it before it has ended");
    world.complete(1);
    world.complete(0);
    let begun = &world.started.0[..];
    let [(_, _, Operation::Transact { items, name: None })] = begun else { panic!("{begun:?}") };
    let watched = [
        Item::Check { key: "a".into(), holds: Condition::Value("1".into()) },
        Item::Check { key: "none".into(), holds: Condition::Absent },
    ];
    assert_eq!((&items[..2], items.len()), (&watched[..], 4));
    let said = String::from_utf8(world.settle()).expect("text");
    assert_eq!(said, "+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n+OK\r\n$1\r\n2\r\n");
    // What was watched is watched no more.
    meanwhile(&mut world, "a", "3");
    assert_eq!(all(&mut world, &["MULTI", "GET a", "EXEC"]), "*1\r\n$1\r\n3\r\n");
    assert_eq!(world.session.held_bytes(), 0);
}

#[test]
fn exec_does_nothing_if_what_is_watched_has_changed() {
    let mut world = world();
    let change = ["MULTI", "SET b 1", "EXEC"];
    for key in ["a", "none"] {
        meanwhile(&mut world, "a", "1");
        assert_eq!(all(&mut world, &["WATCH a none", "MULTI", "SET b 1"]), "+QUEUED\r\n");
        meanwhile(&mut world, key, "2");
        assert_eq!(world.ask("EXEC"), NIL);
        assert_eq!(world.ask("GET b"), "$-1\r\n");
        world.ask("DEL none");
    }
    // By the same connection, too, and if there is nothing to be done.
    assert_eq!(all(&mut world, &["WATCH a", "SET a 3", "MULTI", "EXEC"]), NIL);
    assert_eq!(all(&mut world, &["WATCH a", "MULTI", "EXEC"]), "*0\r\n");
    // What a key had when it was watched first counts.
    all(&mut world, &["WATCH a", "SET a 4", "WATCH a b"]);
    assert!(world.session.describe().contains(" watch=2 "), "{}", world.session.describe());
    assert_eq!(all(&mut world, &change), NIL);
    // A value that came back is not noticed: it is the value that is checked.
    world.ask("WATCH a");
    meanwhile(&mut world, "a", "5");
    meanwhile(&mut world, "a", "4");
    assert_eq!(all(&mut world, &change), "*1\r\n+OK\r\n");
    let mut newer = self::world();
    newer.ask("HELLO 3");
    assert_eq!(all(&mut newer, &["WATCH a", "SET a 1", "MULTI", "EXEC"]), "_\r\n");
}

#[test]
fn watching_ends_with_unwatch_discard_and_reset() {
    let mut world = world();
    for end in [&["UNWATCH"][..], &["MULTI", "DISCARD"], &["RESET"], &["MULTI", "NOSUCH", "EXEC"]] {
        all(&mut world, &["SET a 1", "WATCH a", "SET a 2"]);
        all(&mut world, end);
        assert_eq!(world.session.held_bytes(), 0, "{end:?}");
        assert_eq!(all(&mut world, &["MULTI", "GET a", "EXEC"]), "*1\r\n$1\r\n2\r\n", "{end:?}");
    }
    // Queued, it is too late.
    all(&mut world, &["WATCH a", "SET a 3", "MULTI"]);
    assert_eq!(world.ask("UNWATCH"), "+QUEUED\r\n");
    assert_eq!(world.ask("WATCH a"), "-ERR WATCH inside MULTI is not allowed\r\n");
    assert_eq!(world.ask("EXEC"), NIL);
}

#[test]
fn a_key_that_cannot_be_watched_keeps_exec_from_being_done() {
    let mut world = world();
    world.receive(b"WATCH a b\r\nMULTI\r\nSET a 1\r\nEXEC\r\nGET a\r\n");
    let (number, ..) = world.started.0.remove(0);
    world.complete_with(number, Outcome::Refused(Refusal::NoRoute));
    let said = String::from_utf8(world.settle()).expect("text");
    assert!(said.starts_with("-NOQUORUM no replica"), "{said}");
    let lost = "-EXECABORT Transaction discarded because a key could not be watched\r\n$-1\r\n";
    assert!(said.ends_with(&format!("+OK\r\n+QUEUED\r\n{lost}")), "{said}");
    assert_eq!(all(&mut world, &["MULTI", "SET a 1", "EXEC"]), "*1\r\n+OK\r\n");
    let many = format!("WATCH {}", "a ".repeat(TRANSACTION_ITEMS_MAX + 1));
    assert!(world.ask(&many).starts_with("-ERR a transaction of 1025 items is over the limit"));
    let most = format!("WATCH {}", "a ".repeat(TRANSACTION_ITEMS_MAX));
    assert_eq!(world.ask(&most), "+OK\r\n", "more than run at once");
    let plain = all(&mut world, &["UNWATCH", "SELECT plain", "WATCH a"]);
    assert!(plain.starts_with("-ERR WATCH needs an engine with transactions"), "{plain}");
}

#[test]
fn what_is_not_about_keys_may_stand_between() {
    let mut world = world();
    world.receive(b"MULTI\r\nPING\r\nSET a 1\r\nPING hey\r\nECHO you\r\nEXEC\r\n");
    let said = String::from_utf8(world.settle()).expect("text");
    let told = "*4\r\n+PONG\r\n+OK\r\n$3\r\nhey\r\n$3\r\nyou\r\n";
    assert_eq!(said, format!("+OK\r\n{}{told}", "+QUEUED\r\n".repeat(4)));
    assert_eq!(all(&mut world, &["MULTI", "PING", "EXEC"]), "*1\r\n+PONG\r\n");
}

#[test]
fn a_keyspace_that_is_selected_counts_when_exec_is_done() {
    let mut world = world();
    world.receive(b"MULTI\r\nSELECT other\r\nSET a 1\r\nSELECT 0\r\nSELECT 1\r\nEXEC\r\nGET a\r\n");
    assert_eq!(world.started.0.len(), 1, "what is behind it waits to know where");
    let said = String::from_utf8(world.settle()).expect("text");
    let told = "*4\r\n+OK\r\n+OK\r\n+OK\r\n+OK\r\n$1\r\n1\r\n";
    assert_eq!(said, format!("+OK\r\n{}{told}", "+QUEUED\r\n".repeat(4)));
    assert_eq!(all(&mut world, &["SELECT 0", "GET a"]), "$-1\r\n");
    // What is not done selects nothing.
    for end in [&["DISCARD"][..], &["NOSUCH", "EXEC"], &["RESET"]] {
        all(&mut world, &["MULTI", "SELECT 1"]);
        all(&mut world, end);
        assert_eq!(world.ask("GET a"), "$-1\r\n", "{end:?}");
    }
    assert_eq!(all(&mut world, &["WATCH a", "SET a 0", "MULTI", "SELECT 1", "EXEC"]), NIL);
    assert_eq!(world.ask("GET a"), "$1\r\n0\r\n");
    assert_eq!(all(&mut world, &["MULTI", "SELECT 1", "EXEC", "GET a"]), "$1\r\n1\r\n");
    // Of two keyspaces it cannot be.
    let of_two = "-ERR a transaction is about one keyspace, and ";
    let said = all(&mut world, &["MULTI", "GET a", "SELECT 0", "GET a"]);
    assert!(said.starts_with(&format!("{of_two}the keys of earlier commands")), "{said}");
    assert!(world.ask("EXEC").starts_with("-EXECABORT"));
    let said = all(&mut world, &["WATCH a", "SELECT 0", "WATCH a"]);
    assert!(said.starts_with(&format!("{of_two}the keys that are watched")), "{said}");
    assert!(all(&mut world, &["MULTI", "GET a", "EXEC"]).starts_with("-EXECABORT"));
    let said = all(&mut world, &["SELECT 1", "WATCH a", "SELECT 0", "MULTI", "GET a", "EXEC"]);
    assert!(said.starts_with(&format!("{of_two}the keys that are watched")), "{said}");
    assert_eq!(all(&mut world, &["MULTI", "GET a", "EXEC"]), "*1\r\n$1\r\n0\r\n");
    // The engine of the keyspace that it is of must be able to.
    let said = all(&mut world, &["MULTI", "SELECT plain", "SET a 1", "EXEC"]);
    assert!(said.starts_with("-ERR EXEC needs an engine with transactions"), "{said}");
}

#[test]
fn the_commands_are_listed() {
    let mut world = world();
    let listed = world.ask("COMMAND LIST FILTERBY ACLCAT transaction");
    for name in ["multi", "exec", "discard", "watch", "unwatch"] {
        assert!(listed.contains(&format!("\r\n{name}\r\n")), "{listed}");
        assert!(world.ask(&format!("COMMAND DOCS {name}")).contains("summary"));
        assert!(world.ask(&format!("COMMAND INFO {name}")).contains("@transaction"));
    }
    assert_eq!(world.ask("COMMAND GETKEYS WATCH a b"), "*2\r\n$1\r\na\r\n$1\r\nb\r\n");
}

#[test]
fn a_watch_that_is_refused_keeps_exec_from_being_done() {
    let mut world = world();
    let change = ["MULTI", "SET b 1", "EXEC"];
    let lost = "-EXECABORT Transaction discarded because a key could not be watched\r\n";
    let long = format!("WATCH {}", "k".repeat(KEY_BYTES_MAX + 1));
    let many = format!("WATCH {}", "a ".repeat(TRANSACTION_ITEMS_MAX + 1));
    for before in [&[&long[..]][..], &[&many], &["WATCH a", "SELECT 1", "WATCH a"]] {
        assert!(all(&mut world, before).starts_with("-ERR "), "{:.40}", before[0]);
        assert_eq!(all(&mut world, &change), lost, "{:.40}", before[0]);
        // Once is enough; and it can be taken back.
        assert_eq!(all(&mut world, &change), "*1\r\n+OK\r\n");
        all(&mut world, before);
        assert_eq!(all(&mut world, &["UNWATCH"]), "+OK\r\n");
        assert_eq!(all(&mut world, &change), "*1\r\n+OK\r\n");
    }
    // One that names no key asks for nothing, and one behind MULTI comes too late.
    assert!(world.ask("WATCH").starts_with("-ERR wrong number"));
    assert_eq!(all(&mut world, &change), "*1\r\n+OK\r\n");
    assert!(all(&mut world, &["MULTI", "SET b 2", "WATCH a"]).starts_with("-ERR WATCH inside"));
    assert_eq!(world.ask("EXEC"), "*1\r\n+OK\r\n");
}

#[test]
fn what_is_watched_is_within_the_bounds_of_a_transaction() {
    let mut world = world();
    let value = "v".repeat(1 << 20);
    let half = TRANSACTION_BYTES_MAX / (1 << 20) / 2 + 1;
    let keys: Vec<String> = (0..half * 2).map(|at| format!("k{at}")).collect();
    for key in &keys {
        let put = Operation::put(key.clone().into(), value.clone().into());
        world.map.apply(quorate_kernel::ids::LaneId(1), put);
    }
    // Those of one command, and those of several together.
    let watch = |keys: &[String]| format!("WATCH {}", keys.join(" "));
    for lines in [&[watch(&keys)][..], &[watch(&keys[..half]), watch(&keys[half..])]] {
        let said = lines.iter().fold(String::new(), |_, line| world.ask(line));
        assert!(said.starts_with("-ERR watched data of "), "{said}");
        assert_eq!(world.session.held_bytes(), 0, "nothing of it is kept");
        let said = all(&mut world, &["MULTI", "SET b 1", "EXEC"]);
        assert!(said.starts_with("-EXECABORT"), "{said}");
    }
    assert_eq!(world.ask(&watch(&keys[..half])), "+OK\r\n");
    assert_eq!(all(&mut world, &["MULTI", "SET b 1", "EXEC"]), "*1\r\n+OK\r\n");
}

#[test]
fn what_is_watched_can_always_be_forgotten() {
    let mut world = world();
    all(&mut world, &["SET a 1", "WATCH a", "SET a 2", "SELECT plain"]);
    assert_eq!(world.ask("UNWATCH"), "+OK\r\n");
    assert_eq!(all(&mut world, &["SELECT 0", "MULTI", "GET a", "EXEC"]), "*1\r\n$1\r\n2\r\n");
    all(&mut world, &["SELECT 1", "WATCH a", "SET a 1"]);
    let rest = [keyspace("default", 1, &TRANSACTIONS), None];
    world.set_keyspaces(rest.to_vec());
    assert_eq!(world.ask("UNWATCH"), "+OK\r\n");
    assert_eq!(all(&mut world, &["SELECT 0", "MULTI", "GET a", "EXEC"]), "*1\r\n$1\r\n2\r\n");
}

#[test]
fn what_was_read_of_a_watched_key_is_as_it_was_watched() {
    // A client that reads what another one takes back decides by what is not there.
    for read in ["GET a", "MGET b a", "STRLEN a", "EXISTS a", "EXISTS b a", "WATCH a"] {
        let mut world = world();
        meanwhile(&mut world, "a", "1");
        world.ask("WATCH a");
        meanwhile(&mut world, "a", "22");
        world.ask(read);
        meanwhile(&mut world, "a", "1");
        assert_eq!(all(&mut world, &["MULTI", "SET b 1", "EXEC"]), NIL, "{read}");
        assert_eq!(all(&mut world, &["GET b"]), "$-1\r\n");
        assert_eq!(all(&mut world, &["WATCH a", "GET a", "MULTI", "EXEC"]), "*0\r\n");
        // Another keyspace has other keys.
        let other = ["WATCH a", "SELECT 1", "GET a", "SELECT 0", "MULTI", "EXEC"];
        assert_eq!(all(&mut world, &other), "*0\r\n");
    }
}
