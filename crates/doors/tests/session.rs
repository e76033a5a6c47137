//! Commands and their replies, byte for byte, and what a session holds back.

mod common;

use bytes::Bytes;
use common::World;
use quorate_doors::Session as _;
use quorate_kernel::limits::{CLIENT_QUEUE_BYTES_MAX, KEY_BYTES_MAX};
use quorate_kernel::operation::{Operation, Outcome, Refusal};

/// Asks line by line; each pair is a command and its whole reply.
fn table(pairs: &[(&str, &str)]) {
    let mut world = World::default();
    for (line, reply) in pairs {
        assert_eq!(world.ask(line), *reply, "{line}");
    }
}

#[test]
fn values() {
    table(&[
        ("GET a", "$-1\r\n"),
        ("SET a hello", "+OK\r\n"),
        ("get a", "$5\r\nhello\r\n"),
        ("STRLEN a", ":5\r\n"),
        ("STRLEN none", ":0\r\n"),
        ("GETRANGE a -3 -1", "$3\r\nllo\r\n"),
        ("SUBSTR a 0 0", "$1\r\nh\r\n"),
        ("GETRANGE none 0 -1", "$0\r\n\r\n"),
        ("GETRANGE a x y", "-ERR value is not an integer or out of range\r\n"),
        ("MSET b 1 c 2 b 3", "+OK\r\n"),
        ("MGET a b none c a", "*5\r\n$5\r\nhello\r\n$1\r\n3\r\n$-1\r\n$1\r\n2\r\n$5\r\nhello\r\n"),
        ("MSET a", "-ERR wrong number of arguments for 'mset' command\r\n"),
        ("MSET a 1 b", "-ERR wrong number of arguments for 'mset' command\r\n"),
        ("GET", "-ERR wrong number of arguments for 'get' command\r\n"),
        ("GET a b", "-ERR wrong number of arguments for 'get' command\r\n"),
        ("SET '' ''", "+OK\r\n"),
        ("GET ''", "$0\r\n\r\n"),
    ]);
}

#[test]
fn keys() {
    table(&[
        ("DBSIZE", ":0\r\n"),
        ("RANDOMKEY", "$-1\r\n"),
        ("MSET a 1 b 2", "+OK\r\n"),
        ("EXISTS a a b none", ":3\r\n"),
        ("EXISTS a", ":1\r\n"),
        ("TOUCH a none", ":1\r\n"),
        ("TYPE a", "+string\r\n"),
        ("TYPE none", "+none\r\n"),
        ("TTL a", ":-1\r\n"),
        ("PTTL none", ":-2\r\n"),
        ("EXPIRETIME a", ":-1\r\n"),
        ("PEXPIRETIME none", ":-2\r\n"),
        ("MEMORY USAGE a", ":2\r\n"),
        ("MEMORY USAGE none", "$-1\r\n"),
        ("MEMORY USAGE a SAMPLES x", "-ERR value is not an integer or out of range\r\n"),
        ("DBSIZE", ":2\r\n"),
        ("KEYS b*", "*1\r\n$1\r\nb\r\n"),
        ("DEL b none b", ":1\r\n"),
        ("RANDOMKEY", "$1\r\na\r\n"),
        ("SCAN 0", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n"),
        ("SCAN 0 TYPE string MATCH a COUNT 5", "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n"),
        ("SCAN 0 TYPE hash", "*2\r\n$1\r\n0\r\n*0\r\n"),
        ("SCAN 0 MATCH x*", "*2\r\n$1\r\n0\r\n*0\r\n"),
        ("SCAN x", "-ERR invalid cursor\r\n"),
        ("SCAN 18446744073709551616", "-ERR invalid cursor\r\n"),
        ("SCAN 0 foo", "-ERR syntax error\r\n"),
        ("SCAN 0 COUNT 0", "-ERR syntax error\r\n"),
        ("SCAN 0 COUNT x", "-ERR value is not an integer or out of range\r\n"),
        ("UNLINK a", ":1\r\n"),
        ("DEL a", ":0\r\n"),
    ]);
}

#[test]
fn a_scan_in_pages_shows_every_key() {
    let mut world = World::default();
    for n in 0..1000 {
        world.ask(&format!("SET key{n} {n}"));
    }
    let (mut cursor, mut seen) = (String::from("0"), Vec::new());
    loop {
        let reply = world.ask(&format!("SCAN {cursor} COUNT 70"));
        let mut lines = reply.split("\r\n").skip(2);
        cursor = lines.next().expect("a cursor").into();
        seen.extend(lines.filter(|line| line.starts_with("key")).map(String::from));
        if cursor == "0" {
            break;
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 1000);
    assert_eq!(world.ask("DBSIZE"), ":1000\r\n");
    assert!(world.ask("KEYS *").starts_with("*1000\r\n"));
    for n in 1000..3000 {
        world.ask(&format!("SET key{n} {n}"));
    }
    let size: i64 = world.ask("DBSIZE")[1..].trim().parse().expect("a number");
    assert!((2700..3300).contains(&size), "about 3000, not {size}");
    assert!(world.ask("KEYS *").starts_with("*3000\r\n"));
}

#[test]
fn connection() {
    let greeting = "*16\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$5\r\n7.2.4\r\n$5\r\nproto\r\n:2\r\n\
        $2\r\nid\r\n:7\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n\
        $7\r\nmodules\r\n*0\r\n$15\r\nquorate_version\r\n$5\r\n0.1.0\r\n";
    let third = greeting.replace("*16", "%8").replace(":2\r\n$2", ":3\r\n$2");
    let wrong = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
    table(&[
        ("PING", "+PONG\r\n"),
        ("PING 'a b'", "$3\r\na b\r\n"),
        ("PING a b", "-ERR wrong number of arguments for 'ping' command\r\n"),
        ("ECHO hi", "$2\r\nhi\r\n"),
        ("HELLO", greeting),
        ("HELLO 2", greeting),
        ("HELLO 3", &third),
        ("GET none", "_\r\n"),
        ("RESET", "+RESET\r\n"),
        ("GET none", "$-1\r\n"),
        ("HELLO 4", "-NOPROTO unsupported protocol version\r\n"),
        ("HELLO x", "-ERR Protocol version is not an integer or out of range\r\n"),
        ("HELLO 3 foo", "-ERR Syntax error in HELLO option 'foo'\r\n"),
        ("HELLO 3 AUTH default", "-ERR Syntax error in HELLO option 'AUTH'\r\n"),
        ("HELLO 3 AUTH bob x", wrong),
        ("HELLO 2 AUTH default x SETNAME me", greeting),
        ("CLIENT GETNAME", "$2\r\nme\r\n"),
        (
            "AUTH x",
            "-ERR AUTH <password> called without any password configured for the default user. \
             Are you sure your configuration is correct?\r\n",
        ),
        ("AUTH bob x", wrong),
        ("AUTH default x", "+OK\r\n"),
        ("SET a 1", "+OK\r\n"),
        ("SELECT 1", "+OK\r\n"),
        ("GET a", "$-1\r\n"),
        ("SELECT default", "+OK\r\n"),
        ("GET a", "$1\r\n1\r\n"),
        ("SELECT 2", "-ERR DB index is out of range\r\n"),
        ("SELECT -1", "-ERR DB index is out of range\r\n"),
        ("SELECT nope", "-ERR no keyspace is named 'nope'; there are: default, other\r\n"),
    ]);
    let mut world = World::default();
    assert_eq!(world.ask("QUIT"), "+OK\r\n");
    assert!(world.session.is_closing() && !world.session.wants_input());
    assert_eq!(world.ask("PING"), "");
}

#[test]
fn client_commands() {
    let name = "-ERR Client names cannot contain spaces, newlines or special characters.\r\n";
    table(&[
        ("CLIENT ID", ":7\r\n"),
        ("CLIENT GETNAME", "$-1\r\n"),
        ("CLIENT SETNAME 'a b'", name),
        ("CLIENT SETNAME joe", "+OK\r\n"),
        ("CLIENT GETNAME", "$3\r\njoe\r\n"),
        ("CLIENT SETNAME", "-ERR wrong number of arguments for 'client|setname' command\r\n"),
        ("CLIENT SETINFO LIB-NAME redis-py", "+OK\r\n"),
        ("CLIENT SETINFO lib-ver 8.0", "+OK\r\n"),
        ("CLIENT SETINFO foo x", "-ERR Unrecognized option 'foo'\r\n"),
        (
            "CLIENT SETINFO lib-ver 'a b'",
            "-ERR lib-ver cannot contain spaces, newlines or special characters.\r\n",
        ),
        (
            "CLIENT MAINT_NOTIFICATIONS ON moving-endpoint-type none",
            "-ERR unknown subcommand 'MAINT_NOTIFICATIONS'. Try CLIENT HELP.\r\n",
        ),
        ("CLIENT", "-ERR wrong number of arguments for 'client' command\r\n"),
        ("CLIENT NO-EVICT on", "+OK\r\n"),
        ("CLIENT NO-TOUCH foo", "-ERR syntax error\r\n"),
        ("CLIENT LIST TYPE foo", "-ERR Unknown client type 'foo'\r\n"),
        ("CLIENT LIST TYPE pubsub", "$0\r\n\r\n"),
        ("CLIENT LIST ID 3 4", "$0\r\n\r\n"),
        ("CLIENT LIST ID x", "-ERR Invalid client ID\r\n"),
        ("CLIENT REPLY foo", "-ERR syntax error\r\n"),
    ]);
    let mut world = World::default();
    world.ask("CLIENT SETINFO LIB-NAME redis-py");
    for line in ["CLIENT LIST", "CLIENT INFO", "CLIENT LIST ID 7 8"] {
        let reply = world.ask(line);
        for part in ["id=7 addr=127.0.0.1:5 ", " db=0 ", " resp=2 lib-name=redis-py lib-ver=\n"] {
            assert!(reply.contains(part), "{reply}");
        }
    }
    assert!(world.ask("CLIENT HELP").starts_with("*21\r\n+CLIENT <subcommand> [<arg>"));
}

#[test]
fn replies_can_be_switched_off() {
    table(&[
        ("CLIENT REPLY SKIP", ""),
        ("SET a 1", ""),
        ("GET a", "$1\r\n1\r\n"),
        ("CLIENT REPLY OFF", ""),
        ("PING", ""),
        ("CLIENT REPLY SKIP", ""),
        ("GET a", ""),
        ("NOSUCH", ""),
        ("CLIENT REPLY ON", "+OK\r\n"),
        ("PING", "+PONG\r\n"),
    ]);
}

#[test]
fn what_a_register_cannot_do() {
    let lacks = |name: &str| {
        format!(
            "-ERR {name} needs an engine with transactions; this keyspace is linearizable: no \
             engine of this version can do it\r\n"
        )
    };
    let mut world = World::default();
    for (line, name) in [
        ("INCR a", "INCR"),
        ("INCRBY a 1", "INCRBY"),
        ("DECR a", "DECR"),
        ("SETNX a 1", "SETNX"),
        ("SET a 1 NX", "SET NX"),
        ("SET a 1 xx ex 5", "SET XX"),
        ("SET a 1 GET", "SET GET"),
        ("GETSET a 1", "GETSET"),
        ("GETDEL a", "GETDEL"),
        ("APPEND a x", "APPEND"),
        ("SETRANGE a 0 x", "SETRANGE"),
    ] {
        assert_eq!(world.ask(line), lacks(name));
    }
    for (line, part) in [
        ("MSETNX a 1", "-ERR MSETNX needs an engine with transactions; this keyspace is linear"),
        ("WATCH a", "-ERR WATCH needs an engine with transactions; this keyspace is linearizable"),
        ("EXPIRE a 5", "-ERR EXPIRE needs an engine with expiry; this keyspace is linearizable"),
        ("PERSIST a", "-ERR PERSIST needs an engine with expiry; this keyspace is linearizable"),
        ("MOVE a 1", "-ERR MOVE needs moving a key, which this server does not offer\r\n"),
        ("COPY a b", "-ERR COPY needs an engine with transactions; this keyspace is linearizable"),
        ("SETEX a 5 x", "-ERR SETEX needs an engine with expiry; this keyspace is linearizable"),
        ("SET a 1 KEEPTTL", "-ERR SET KEEPTTL needs an engine with expiry; this keyspace is "),
        ("GETEX a EX 5", "-ERR GETEX needs an engine with expiry; this keyspace is linearizable"),
        ("SET a 1 PX 5", "-ERR SET PX needs an engine with expiry; this keyspace is linearizable"),
        ("HSET h f v", "-ERR HSET works on hashes, but a linearizable keyspace holds plain byte"),
        ("LPUSH l v", "-ERR LPUSH works on lists, but"),
        ("FLUSHALL", "-ERR FLUSHALL needs emptying all keyspaces, which this server does not"),
        ("INCR", "-ERR wrong number of arguments for 'incr' command\r\n"),
        ("SET a 1 NX XX", "-ERR syntax error\r\n"),
        ("SET a 1 EX", "-ERR syntax error\r\n"),
        ("SET a 1 EX 5 PX 5", "-ERR syntax error\r\n"),
        ("SET a 1 foo", "-ERR syntax error\r\n"),
        ("SET a 1 EX abc", "-ERR value is not an integer or out of range\r\n"),
        ("SET a 1 EX 0", "-ERR invalid expire time in 'set' command\r\n"),
        ("SUBSCRIBE x", "-ERR there is no channel 'x'; there is: events\r\n"),
        (
            "XADD s * a b",
            "-ERR unknown command 'XADD', with args beginning with: 's' '*' 'a' 'b' \r\n",
        ),
        ("foo", "-ERR unknown command 'foo', with args beginning with: \r\n"),
        ("CLUSTER INFO", "-ERR This instance has cluster support disabled\r\n"),
    ] {
        let reply = world.ask(line);
        assert!(reply.starts_with(part), "{line}: {reply}");
    }
    assert_eq!(world.ask("DBSIZE"), ":0\r\n", "nothing of all this was executed");
    let many = format!("FOO {} z", "y".repeat(200));
    let shown =
        format!("-ERR unknown command 'FOO', with args beginning with: '{}' \r\n", "y".repeat(128));
    assert_eq!(world.ask(&many), shown);
}

#[test]
fn nothing_behind_a_refused_multi_runs() {
    let mut world = World::default();
    world.receive(b"MULTI\r\nSET a 1\r\nEXEC\r\nGET a\r\n");
    let replies = String::from_utf8(world.settle()).expect("text");
    let lines: Vec<&str> = replies.split("\r\n").collect();
    assert!(lines[0].starts_with("-ERR MULTI needs an engine with transactions"));
    assert!(lines[1].starts_with("-ERR not executed"));
    assert_eq!(lines[2], "-EXECABORT Transaction discarded because of previous errors.");
    assert_eq!(lines[3], "$-1");
    assert_eq!(world.ask("EXEC"), "-ERR EXEC without MULTI\r\n");
    assert_eq!(world.ask("DISCARD"), "-ERR DISCARD without MULTI\r\n");
    world.ask("MULTI");
    assert_eq!(world.ask("DISCARD"), "+OK\r\n");
    assert_eq!(world.ask("PING"), "+PONG\r\n");
}

#[test]
fn server() {
    let mut world = World::default();
    let info = world.ask("INFO");
    for part in [
        "# Server\r\nredis_version:7.2.4\r\nredis_mode:standalone\r\n",
        "tcp_port:6379\r\n",
        "uptime_in_seconds:100\r\n",
        "\r\n\r\n# Clients\r\nconnected_clients:1\r\n",
        "loading:0\r\n",
        "role:master\r\nconnected_slaves:0\r\n",
        "cluster_enabled:0\r\n",
        "# Keyspace\r\n",
    ] {
        assert!(info.contains(part), "{part:?} in {info}");
    }
    assert_eq!(world.ask("INFO foo"), "$0\r\n\r\n");
    assert_eq!(world.ask("INFO cluster"), "$30\r\n# Cluster\r\ncluster_enabled:0\r\n\r\n");
    assert_eq!(
        world.ask("CONFIG GET save appendonly"),
        "*4\r\n$10\r\nappendonly\r\n$3\r\nyes\r\n$4\r\nsave\r\n$0\r\n\r\n"
    );
    assert_eq!(world.ask("TIME"), "*2\r\n$10\r\n1700000100\r\n$6\r\n250000\r\n");
    assert_eq!(world.ask("LASTSAVE"), ":1700000000\r\n");
    assert_eq!(world.ask("SLOWLOG GET 10"), "*0\r\n");
    assert_eq!(world.ask("SLOWLOG LEN"), ":0\r\n");
    assert!(world.ask("CONFIG SET a b").starts_with("-ERR the configuration"));
    assert_eq!(world.ask("CONFIG FOO"), "-ERR unknown subcommand 'FOO'. Try CONFIG HELP.\r\n");
    world.ask("HELLO 3");
    assert_eq!(world.ask("CONFIG GET databas*"), "%1\r\n$9\r\ndatabases\r\n$1\r\n2\r\n");
    assert!(world.ask("INFO server").starts_with("="));
}

#[test]
fn introspection() {
    let get = "*10\r\n$3\r\nget\r\n:2\r\n*2\r\n+readonly\r\n+fast\r\n:1\r\n:1\r\n:1\r\n\
        *3\r\n+@read\r\n+@string\r\n+@fast\r\n*0\r\n*1\r\n*6\r\n$5\r\nflags\r\n*2\r\n+RO\r\n+access\r\n\
        $12\r\nbegin_search\r\n*4\r\n$4\r\ntype\r\n$5\r\nindex\r\n$4\r\nspec\r\n*2\r\n$5\r\nindex\r\n:1\r\n\
        $9\r\nfind_keys\r\n*4\r\n$4\r\ntype\r\n$5\r\nrange\r\n$4\r\nspec\r\n*6\r\n$7\r\nlastkey\r\n:0\r\n\
        $7\r\nkeystep\r\n:1\r\n$5\r\nlimit\r\n:0\r\n*0\r\n";
    table(&[
        ("COMMAND INFO get foo restore", &format!("*3\r\n{get}$-1\r\n$-1\r\n")),
        ("COMMAND GETKEYS get a", "*1\r\n$1\r\na\r\n"),
        ("COMMAND GETKEYS mset a b c d", "*2\r\n$1\r\na\r\n$1\r\nc\r\n"),
        ("COMMAND GETKEYS del a b", "*2\r\n$1\r\na\r\n$1\r\nb\r\n"),
        ("COMMAND GETKEYS memory usage a", "*1\r\n$1\r\na\r\n"),
        ("COMMAND GETKEYS foo a", "-ERR Invalid command specified\r\n"),
        ("COMMAND GETKEYS get a b", "-ERR Invalid number of arguments specified for command\r\n"),
        ("COMMAND GETKEYS echo a", "-ERR The command has no key arguments\r\n"),
        ("COMMAND GETKEYS", "-ERR wrong number of arguments for 'command|getkeys' command\r\n"),
        ("COMMAND FOO", "-ERR unknown subcommand 'FOO'. Try COMMAND HELP.\r\n"),
        ("COMMAND LIST FILTERBY PATTERN getr*", "*1\r\n$8\r\ngetrange\r\n"),
        ("COMMAND LIST FILTERBY MODULE x", "*0\r\n"),
        ("COMMAND LIST FILTERBY foo x", "-ERR syntax error\r\n"),
        (
            "COMMAND DOCS get nosuch",
            "*2\r\n$3\r\nget\r\n*6\r\n$7\r\nsummary\r\n$22\r\nGet the value of a key\r\n\
             $5\r\nsince\r\n$5\r\n1.0.0\r\n$5\r\ngroup\r\n$6\r\nstring\r\n",
        ),
    ]);
    let mut world = World::default();
    let count: usize = world.ask("COMMAND COUNT")[1..].trim().parse().expect("a number");
    assert!(world.ask("COMMAND").starts_with(&format!("*{count}\r\n*10\r\n")));
    assert!(world.ask("COMMAND DOCS").starts_with(&format!("*{}\r\n", count * 2)));
}

#[test]
fn limits_are_errors_of_one_command() {
    let mut world = World::default();
    let key = "k".repeat(KEY_BYTES_MAX + 1);
    let mut set = format!("*3\r\n$3\r\nSET\r\n${}\r\n{key}\r\n$1\r\nv\r\n", key.len()).into_bytes();
    set.extend_from_slice(b"PING\r\n");
    world.receive(&set);
    let (length, limit) = (key.len(), KEY_BYTES_MAX);
    let replies = format!("-ERR key of {length} bytes is over the limit of {limit}\r\n+PONG\r\n");
    assert_eq!(world.settle(), replies.as_bytes());
    world.receive(b"GET a\r\n*1\r\n$99999999\r\nabc");
    assert!(!world.session.is_closing(), "the reply before the error must be written first");
    assert!(world.settle().starts_with(b"$-1\r\n-ERR Protocol error: invalid bulk length: 9"));
    assert!(world.session.is_closing());
}

#[test]
fn a_browser_is_cut_off() {
    let mut world = World::default();
    world.receive(b"POST / HTTP/1.1\r\nSET a 1\r\n");
    assert!(world.session.is_closing() && world.started.0.is_empty());
    assert_eq!(world.settle(), b"");
}

#[test]
fn refusals_keep_their_words() {
    let mut world = World::default();
    world.receive(b"GET a\r\nSET b 1\r\nMGET a c\r\nDEL a b\r\nKEYS *\r\n");
    let mut replies = Vec::new();
    while let Some((number, _, operation)) = world.started.0.pop() {
        let refusal = match operation {
            Operation::Put { .. } => Refusal::OutcomeUnknown,
            Operation::Delete { key, .. } if key == "b" => Refusal::OutcomeUnknown,
            Operation::Scan { .. } => Refusal::Overloaded,
            _ => Refusal::NoQuorum { reached: 1, needed: 2 },
        };
        world.complete_with(number, Outcome::Refused(refusal));
        replies.extend_from_slice(&world.take());
    }
    let text = String::from_utf8(replies).expect("text");
    let starts: Vec<&str> =
        text.lines().map(|line| line.split(' ').next().expect("a word")).collect();
    let expected = ["-NOQUORUM", "-UNKNOWNOUTCOME", "-NOQUORUM", "-UNKNOWNOUTCOME", "-OVERLOADED"];
    assert_eq!(starts, expected);
    assert!(text.contains("not every key was surely deleted; unknown: 'b'; unchanged: 'a'"));
}

#[test]
fn earlier_replies_keep_their_version() {
    let mut world = World::default();
    world.receive(b"GET a\r\nHELLO 3\r\nGET b\r\n");
    let replies = String::from_utf8(world.settle()).expect("text");
    assert!(replies.starts_with("$-1\r\n%8\r\n") && replies.ends_with("_\r\n"));
}

#[test]
fn a_listing_waits_for_what_is_before_it_and_holds_what_is_behind() {
    let mut world = World::default();
    world.receive(b"SET a 1\r\nSET b 1\r\nDBSIZE\r\nSET c 1\r\n");
    assert_eq!(world.started.0.len(), 2);
    world.complete(1);
    assert_eq!(world.started.0.len(), 1);
    world.complete(0);
    assert!(matches!(world.started.0[..], [(_, _, Operation::Scan { .. })]));
    world.complete(0);
    assert_eq!(world.take(), Bytes::from_static(b"+OK\r\n+OK\r\n:2\r\n"));
    assert!(matches!(world.started.0[..], [(_, _, Operation::Put { .. })]));
}

/// A client that asks for large values and never takes them makes nobody's memory grow.
#[test]
fn a_client_that_never_reads_is_bounded() {
    let mut world = World::default();
    let value = Bytes::from(vec![b'v'; 1 << 20]);
    for key in ["a", "b", "c"] {
        let key = Bytes::from_static(key.as_bytes());
        let lane = quorate_kernel::ids::LaneId(1);
        world.map.apply(lane, Operation::put(key, value.clone()));
    }
    world.receive("GET a\r\nGET b\r\nMGET a b c\r\n".repeat(60).as_bytes());
    while !world.started.0.is_empty() {
        world.complete(world.started.0.len() - 1);
    }
    let waits = world.session.output().len();
    assert!(waits < 8 * CLIENT_QUEUE_BYTES_MAX, "{waits} bytes wait");
    assert!(!world.session.wants_input());
    let mut replies = world.settle().len();
    while !world.session.is_idle() || !world.input.is_empty() {
        replies += world.settle().len();
    }
    assert!(replies > 60 * 5 * (1 << 20), "all was answered once the client read");
}

#[test]
fn finishing_answers_what_was_read() {
    let mut world = World::default();
    world.receive(b"GET a\r\n");
    world.session.finish();
    world.receive(b"GET b\r\n");
    assert!(!world.session.is_closing());
    assert_eq!(world.settle(), b"$-1\r\n");
    assert!(world.session.is_closing());
}
