//! `MULTI` and `EXEC` in a keyspace whose engine has transactions.

mod common;

use bytes::Bytes;
use common::{TRANSACTIONS, World, keyspace};
use quorate_doors::Session as _;
use quorate_kernel::expiry::Expiry;
use quorate_kernel::limits::TRANSACTION_ITEMS_MAX;
use quorate_kernel::operation::{Operation, Outcome, Refusal};
use quorate_kernel::refusal::Ended;
use quorate_kernel::transaction::Item;

fn world() -> World {
    let mut world = World::default();
    world.set_keyspaces(vec![keyspace("default", 1, &TRANSACTIONS)]);
    world
}

/// Operations under way, as short texts.
fn under_way(world: &World) -> Vec<String> {
    let keys = |operation: &Operation| {
        operation.keys().map(|key| String::from_utf8_lossy(key).into_owned()).collect::<Vec<_>>()
    };
    world.started.0.iter().map(|(.., operation)| keys(operation).join(" ")).collect()
}

#[test]
fn commands_between_multi_and_exec_are_one_operation() {
    let mut world = world();
    world.receive(b"SET a 0\r\nMULTI\r\nSET a 1\r\nMSET b 2 c 3\r\nGET a\r\nMGET b x\r\n");
    world.receive(b"DEL b c x\r\nEXISTS a b\r\nSTRLEN a\r\nEXEC\r\nGET a\r\n");
    assert_eq!(under_way(&world), ["a"], "what is queued is not begun, nor is it behind SET");
    world.complete(0);
    let begun = &world.started.0[..];
    let [(_, _, Operation::Transact { items, name: None })] = begun else { panic!("{begun:?}") };
    assert_eq!(items.len(), 12);
    let expiry = Expiry::Never;
    assert_eq!(items[0], Item::Put { key: "a".into(), value: "1".into(), expiry });
    assert_eq!(items[11], Item::Get { key: "a".into() });
    let said = String::from_utf8(world.settle()).expect("text");
    let queued = "+QUEUED\r\n".repeat(7);
    let told = "*7\r\n+OK\r\n+OK\r\n$1\r\n1\r\n*2\r\n$1\r\n2\r\n$-1\r\n:2\r\n:1\r\n:1\r\n";
    assert_eq!(said, format!("+OK\r\n+OK\r\n{queued}{told}$1\r\n1\r\n"));
    assert_eq!(world.session.held_bytes(), 0);
}

#[test]
fn it_waits_for_its_keys_and_others_run_beside_it() {
    let mut world = world();
    world.receive(b"SET a 1\r\nSET z 1\r\nMULTI\r\nGET a\r\nSET b 2\r\nEXEC\r\n");
    world.receive(b"GET b\r\nGET y\r\n");
    assert_eq!(under_way(&world), ["a", "z", "y"]);
    world.complete(0);
    assert_eq!(under_way(&world), ["z", "y", "a b"]);
    world.complete(2);
    assert_eq!(under_way(&world), ["z", "y", "b"], "only now it may be read");
    let said = String::from_utf8(world.settle()).expect("text");
    let told = "+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$1\r\n1\r\n+OK\r\n";
    assert_eq!(said, format!("{told}$1\r\n2\r\n$-1\r\n"));
}

#[test]
fn a_refusal_is_the_whole_reply() {
    let mut world = world();
    for (refusal, text) in [
        (Refusal::OutcomeUnknown, "-UNKNOWNOUTCOME the deadline passed"),
        (
            Refusal::OutcomeOpen { token: Bytes::from_static(b"to\xff") },
            "-UNKNOWNOUTCOME the deadline passed after the write was sent; it may have been \
             applied; TXN OUTCOME 746fff tells how it ended\r\n",
        ),
        (Refusal::Overloaded, "-OVERLOADED"),
        (Refusal::Unmet { item: 1 }, "-ERR what item 1 of the transaction checks does not hold"),
    ] {
        world.receive(b"MULTI\r\nSET a 1\r\nEXEC\r\n");
        let (number, ..) = world.started.0.remove(0);
        world.complete_with(number, Outcome::Refused(refusal));
        let said = String::from_utf8_lossy(&world.take()).into_owned();
        assert!(said.starts_with(&format!("+OK\r\n+QUEUED\r\n{text}")), "{said}");
    }
    world.receive(b"MULTI\r\nSET a 1\r\nGET a\r\nEXEC\r\n");
    let (number, ..) = world.started.0.remove(0);
    world.complete_with(number, Outcome::Transacted(Vec::new()));
    let said = String::from_utf8_lossy(&world.take()).into_owned();
    assert!(said.contains("-UNKNOWNOUTCOME the engine answered another question"), "{said}");
}

#[test]
fn nothing_is_done_if_a_command_cannot_be_part_of_it() {
    let abort = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    for (line, said) in [
        ("TIME", "-ERR TIME cannot be done in a transaction; DISCARD ends it\r\n"),
        ("SELECT 9", "-ERR DB index is out of range"),
        ("SCAN 0", "-ERR SCAN cannot be done in a transaction"),
        ("INCR a", "-ERR INCR needs an engine with changes in place; this keyspace is"),
        ("CGET a", "-ERR CGET needs an engine with values side by side"),
        ("GET", "-ERR wrong number of arguments for 'get' command\r\n"),
        ("NOSUCH", "-ERR unknown command 'NOSUCH'"),
    ] {
        let mut world = world();
        assert_eq!(world.ask("MULTI"), "+OK\r\n");
        assert_eq!(world.ask("SET a 1"), "+QUEUED\r\n");
        let told = world.ask(line);
        assert!(told.starts_with(said), "{line}: {told}");
        assert_eq!(world.ask("SET a 2"), "+QUEUED\r\n", "as in Redis");
        assert_eq!(world.ask("EXEC"), abort, "{line}");
        assert_eq!(world.ask("GET a"), "$-1\r\n");
        assert_eq!(world.ask("EXEC"), "-ERR EXEC without MULTI\r\n");
    }
    let mut world = world();
    world.ask("MULTI");
    assert_eq!(world.ask("MULTI"), "-ERR MULTI calls can not be nested\r\n");
    world.ask("SET a 1");
    assert!(world.session.describe().contains(" multi=1 "), "{}", world.session.describe());
    assert_eq!(world.ask("DISCARD"), "+OK\r\n");
    assert_eq!(world.ask("DISCARD"), "-ERR DISCARD without MULTI\r\n");
    world.ask("MULTI");
    assert_eq!(world.ask("EXEC"), "*0\r\n");
    world.ask("MULTI");
    world.ask("SET a 1");
    assert_eq!(world.ask("RESET"), "+RESET\r\n");
    assert_eq!(world.ask("GET a"), "$-1\r\n");
}

/// Behind a command that was refused the others are queued for nothing, as in Redis, and each is
/// told what is wrong with it by itself.
#[test]
fn what_follows_a_refused_command_is_told_as_redis_tells_it() {
    let mut world = world();
    world.set_keyspaces(vec![
        keyspace("default", 1, &TRANSACTIONS),
        keyspace("other", 2, &TRANSACTIONS),
    ]);
    for end in ["EXEC", "DISCARD"] {
        for (line, said) in [
            ("MULTI", "+OK\r\n"),
            ("SET a 1", "+QUEUED\r\n"),
            ("NOSUCH", "-ERR unknown command 'NOSUCH'"),
            ("SET a 2", "+QUEUED\r\n"),
            ("SET a 2 PX nine", "+QUEUED\r\n"),
            ("MSET a 2 b 2", "+QUEUED\r\n"),
            ("GET", "-ERR wrong number of arguments for 'get' command\r\n"),
            ("PING", "+QUEUED\r\n"),
            ("SELECT other", "+QUEUED\r\n"),
            ("UNWATCH", "+QUEUED\r\n"),
            ("TIME", "-ERR TIME cannot be done in a transaction"),
            ("LPUSH a 1", "-ERR LPUSH works on lists"),
            ("ALSONOSUCH", "-ERR unknown command 'ALSONOSUCH'"),
            ("MULTI", "-ERR MULTI calls can not be nested\r\n"),
            ("WATCH a", "-ERR WATCH inside MULTI is not allowed\r\n"),
            ("SET a 3", "+QUEUED\r\n"),
        ] {
            let told = world.ask(line);
            assert!(told.starts_with(said), "{line}: {told}");
        }
        assert_eq!(world.session.held_bytes(), 0, "nothing is kept of it");
        let abort = "-EXECABORT Transaction discarded because of previous errors.\r\n";
        assert_eq!(world.ask(end), if end == "EXEC" { abort } else { "+OK\r\n" });
        assert_eq!(world.ask("GET a"), "$-1\r\n", "it works on the keyspace of before");
        assert_eq!(world.ask("EXEC"), "-ERR EXEC without MULTI\r\n");
    }
}

/// Redis looks at the arity alone before `EXEC`, which lets these pass.
#[test]
fn arguments_that_go_by_pairs_are_counted_when_it_is_done() {
    let mut world = world();
    world.receive(b"MULTI\r\nSET a 1\r\nMSET a 2 b\r\nPING x y\r\nGET a\r\nEXEC\r\n");
    let said = String::from_utf8(world.settle()).expect("text");
    let wrong = |name| format!("-ERR wrong number of arguments for '{name}' command\r\n");
    let told = format!("*4\r\n+OK\r\n{}{}$1\r\n1\r\n", wrong("mset"), wrong("ping"));
    assert_eq!(said, format!("+OK\r\n{}{told}", "+QUEUED\r\n".repeat(4)));
}

#[test]
fn it_has_bounds() {
    let mut world = world();
    world.ask("MULTI");
    for _ in 0..TRANSACTION_ITEMS_MAX {
        assert_eq!(world.ask("GET a"), "+QUEUED\r\n");
    }
    let many = "-ERR a transaction of 1025 items is over the limit of 1024; nothing was changed";
    assert!(world.ask("GET a").starts_with(many));
    assert!(world.ask("EXEC").starts_with("-EXECABORT"));
    let value = "v".repeat(1 << 20);
    let set = format!("*3\r\n$3\r\nSET\r\n$1\r\na\r\n${}\r\n{value}\r\n", value.len());
    world.ask("MULTI");
    for _ in 0..33 {
        world.receive(set.as_bytes());
        assert_eq!(&world.take()[..], b"+QUEUED\r\n");
    }
    assert!(world.session.held_bytes() > 33 << 20, "it counts as memory");
    assert!(world.ask("EXEC").starts_with("-ERR transaction of 34603041 bytes is over the limit"));
    assert_eq!((world.session.held_bytes(), &world.ask("GET a")[..]), (0, "$-1\r\n"));
}

#[test]
fn a_wrong_number_of_arguments_aborts_whatever_the_command() {
    let abort = "-EXECABORT Transaction discarded because of previous errors.\r\n";
    for line in ["WATCH", "MULTI x", "DISCARD x", "RESET x", "EXEC x"] {
        let mut world = world();
        world.receive(b"MULTI\r\nSET a 1\r\n");
        world.take();
        assert!(world.ask(line).starts_with("-ERR wrong number of arguments"), "{line}");
        assert_eq!(world.ask("EXEC"), abort, "{line}");
        assert_eq!(world.ask("GET a"), "$-1\r\n");
        // Where no transaction is, nothing is aborted.
        world.ask(line);
        assert_eq!(world.ask("GET a"), "$-1\r\n");
    }
}

#[test]
fn how_one_ended_is_asked_with_the_token_of_its_reply() {
    let mut world = world();
    for (outcome, said) in [
        (Outcome::Ended(Ended::Committed), "+COMMITTED\r\n"),
        (Outcome::Ended(Ended::Partial), "+PARTIAL\r\n"),
        (Outcome::Ended(Ended::Aborted), "+ABORTED\r\n"),
        (
            Outcome::Refused(Refusal::OutcomeForgotten),
            "-UNKNOWNOUTCOME nobody remembers any more how the transaction ended; it may have been \
             applied\r\n",
        ),
        (Outcome::written(), "-UNKNOWNOUTCOME the engine answered another question"),
    ] {
        world.receive(b"txn outcome 746FfF\r\n");
        let (number, _, operation) = world.started.0.remove(0);
        assert_eq!(operation, Operation::HowEnded { token: Bytes::from_static(b"to\xff") });
        world.complete_with(number, outcome);
        let told = String::from_utf8_lossy(&world.take()).into_owned();
        assert!(told.starts_with(said), "{told}");
    }
    let long = "00".repeat(200);
    for (line, said) in [
        ("TXN OUTCOME", "-ERR wrong number of arguments for 'txn|outcome' command\r\n"),
        ("TXN VERDICT 00", "-ERR unknown subcommand 'VERDICT'. Try TXN HELP.\r\n"),
        ("TXN OUTCOME 0", "-ERR the token is damaged"),
        ("TXN OUTCOME zz", "-ERR the token is damaged"),
        (&format!("TXN OUTCOME {long}"), "-ERR the token is damaged"),
        ("TXN HELP", "*5\r\n+TXN <subcommand>"),
    ] {
        let told = world.ask(line);
        assert!(told.starts_with(said), "{line}: {told}");
    }
    let mut world = World::default();
    let told = world.ask("TXN OUTCOME 00");
    assert!(told.starts_with("-ERR TXN OUTCOME needs an engine with transactions"), "{told}");
}
