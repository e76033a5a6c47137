//! RESP, the protocol of Redis clients, in its second and third version.
//!
//! ```text
//!             bytes                 Command              Plan                 Operation
//!  client ──────────▶ parse/frame ──────────▶ commands ────────▶ session/work ─────────▶ engine
//!         ◀────────── reply ◀───────────────────────────── Answer ◀──────────── Outcome
//! ```
//!
//! | file | what it holds |
//! |---|---|
//! | `frame`, `parse`, `inline` | requests out of bytes, without copies |
//! | `commands/` | one file per group: arguments in, a plan out |
//! | `work`, `single` | what a command's operations add up to |
//! | `order` | operations under way, in order per key |
//! | `session` | one connection: order of replies, and what bounds memory |
//! | `reply`, `error` | what replies look like, and what errors say |
//! | `shared`, `state` | what all connections share, what one remembers |
//! | [`client`] | the other side: commands in, replies out |
//!
//! # What holds
//! - Replies leave in the order of the commands, each in the version of the protocol that was in
//!   force when its command was read.
//! - An operation starts only after the earlier ones of the connection on the same key have ended,
//!   so a client sees its own writes. Operations on different keys run at once.
//! - A command that lists keys starts after all earlier operations have ended, and holds back what
//!   is behind it until it has ended.
//! - A command on many keys is one transaction where the engine has them. Elsewhere it does each by
//!   itself: `MSET` is not atomic, and if some keys fail, the error says which were written, which
//!   are unknown and which are unchanged.
//! - `SIBLINGS` says that a key has several values where one was asked for.
//! - The first word of an error tells what became of the data: `NOQUORUM`, `OVERLOADED` and
//!   `SHUTDOWN` mean that nothing was changed, `UNKNOWNOUTCOME` that a write may have happened.
//! - After a refused `MULTI` nothing runs until `EXEC`, `DISCARD` or `RESET`: commands a client
//!   sent behind it on trust must not run on their own.
//! - A length is checked against its limit when it is announced. Commands, operations and replies
//!   that wait are bounded per connection; a client that does not read is not read from.
//!
//! # Commands
//! | group | commands |
//! |---|---|
//! | values | `GET`, `SET`, `MGET`, `MSET`, `STRLEN`, `GETRANGE`, `SUBSTR` |
//! | changes, of engines that have them | `INCR` and its kin, `APPEND`, `SETRANGE`, `SETNX`, `GETSET`, `GETDEL`, `MSETNX`, `SET` with `NX`, `XX` and `GET` |
//! | expiry, of engines that have it | `EXPIRE`, `PEXPIRE`, `EXPIREAT`, `PEXPIREAT` with their conditions, `PERSIST`, `TTL`, `PTTL`, `EXPIRETIME`, `PEXPIRETIME`, `SETEX`, `PSETEX`, `GETEX`, `SET` with `EX`, `PX`, `EXAT`, `PXAT` and `KEEPTTL` |
//! | siblings | `CGET key`, `CSET key context value`, `CDEL key context`, of causal keyspaces |
//! | keys | `DEL`, `UNLINK`, `EXISTS`, `TOUCH`, `TYPE`, `KEYS`, `SCAN` with `MATCH`, `COUNT` and `TYPE`, `RANDOMKEY`, `DBSIZE` |
//! | connection | `PING`, `ECHO`, `HELLO`, `AUTH`, `SELECT` by number or name, `QUIT`, `RESET`, `CLIENT` with `ID`, `GETNAME`, `SETNAME`, `SETINFO`, `INFO`, `LIST`, `REPLY`, `NO-EVICT`, `NO-TOUCH`, `HELP` |
//! | events | `SUBSCRIBE events`, `UNSUBSCRIBE` |
//! | server | `INFO`, `CONFIG GET`, `TIME`, `LASTSAVE`, `SLOWLOG`, `MEMORY USAGE`, `COMMAND` with `COUNT`, `INFO`, `DOCS`, `LIST`, `GETKEYS` |
//!
//! `CGET` answers a context and all values; `CSET` and `CDEL` replace what that context covers and
//! answer the one for the next write, which is empty if the key has values that the client has not
//! seen. An empty context is that of a blind write. On a causal keyspace the other commands know no
//! context: `SET` and `MSET` are blind writes that leave what is there as siblings, `DEL` deletes
//! what `GET` would show, and reads of a key with siblings answer an error. A keyspace may say that
//! reads show the newest; then `SET` and `MSET` replace what this host sees.
//!
//! The one channel, `events`, tells what happens to keyspaces and hosts, each as a JSON object:
//! first what there is, then `current`, then each change that this host learns of. Nobody
//! publishes. A client that takes less than comes is told so by an error once a megabyte waits for
//! it, and its connection closes, as at the end of the host.
//!
//! Where they differ from Redis:
//! - `DBSIZE` is approximate: it reads pages from the start of the hash space until it has counted
//!   more than a thousand keys. If nothing follows them, the count is exact; else it is their
//!   density times the whole space, within about 3 % in two of three cases.
//! - The cursor of `SCAN` is a token in the 64-bit hash space. A key present throughout appears
//!   at least once. `COUNT` is cut at the limit of a page. As in Redis it has 64 bits: a client
//!   that reads it as a signed number, or as one with a fraction, cannot go on with some.
//! - `RANDOMKEY` takes the first key at or after a random token, so a key behind a wide gap is
//!   likelier.
//! - `TTL` and its kin answer -1 or -2 where the engine has no expiry. Times count by the clock of
//!   this host; the engine removes keys by that of another one. A time that is no number is refused
//!   when it is queued behind `MULTI`, and of a key that is absent.
//! - `INFO` has no numbers of keys: no host knows them without asking. `DBSIZE` asks.
//! - `MEMORY USAGE` is the length of key and value.
//! - `WATCH` keeps values, which `EXEC` compares: a key that was changed and has its old value
//!   again is not noticed, unless the connection has read the other one; nor is one that ends at
//!   another time. One that has ended is. The keys of a transaction are of one keyspace, whatever
//!   it selects. Of commands without keys only `PING`, `ECHO`, `SELECT` and `UNWATCH` may be part
//!   of it.
//! - `SLOWLOG` is empty, and `LASTSAVE` the time of the start: an acknowledged write is as durable
//!   as its keyspace promises.
//!
//! What the keyspace's engine cannot do answers an error that says what it needs, and which engines
//! have that; what works on lists, hashes, sets and sorted sets says that values are byte strings;
//! everything else is an unknown command. The texts are those of Redis 7 where it has one.

pub mod client;
mod commands;
mod delay;
mod error;
mod glob;
mod many;
mod order;
mod reply;
mod requests;
mod session;
mod shared;
mod single;
mod state;
mod transaction;
mod watched;
mod work;

pub use reply::{Encoder, Protocol};
pub use requests::frame::Command;
pub use requests::parse::{Parser, ProtocolError};
pub use session::Session;
pub use shared::{DOOR, REDIS_VERSION, Shared};
