//! The protocol of ZooKeeper's clients, of its versions 3.4 to 3.9.
//!
//! ```text
//!            bytes         frame             Act              Operation
//!  client ─────────▶ wire ─────────▶ requests ─────▶ session ───────────▶ engine
//!         ◀─────────────── answers ◀──────────────────────────── Outcome ◀──┘
//! ```
//!
//! | place | what it holds |
//! |---|---|
//! | `wire/` | the format: frames, the codec, numbers |
//! | `requests/` | what is asked |
//! | `answers/` | what is told, and in which order |
//! | `session` | one connection |
//! | [`client`] | the client's side, for the command line |
//! | `words`, `counters`, `connections` | four-letter words, and what they tell |
//! | `shared` | what all connections share |
//!
//! # What holds
//! - Answers leave in the order of the requests. Where events leave among them is told in
//!   `answers/queue`.
//! - Whatever bytes come, they are answered or the connection is closed. A frame that has a wrong
//!   length or no header closes it; one with another record is answered with -5.
//! - Requests, answers and events that wait are bounded. A client that does not read is not read
//!   from, and loses its connection if it is told too much meanwhile.
//! - A connection is closed, with no answer, if it is not known whether a request was done, if the
//!   service cannot be reached, and if the session has moved.
//!
//! # Keyspaces
//! Clients work on the first keyspace whose engine has trees: they have no word to choose another.
//! If there is none, connections are closed.
//!
//! # Where it differs from ZooKeeper
//! - A path is checked by the rules that ZooKeeper's clients keep to, and is refused with -8. The
//!   ZooKeeper server takes more from clients that do not check, and finds no node there.
//! - A multi of writes with one that cannot be asked at all fails by that one, even if one before
//!   it would have failed.
//! - A listing or a multi of reads whose answer is longer than clients take is answered with -5,
//!   and data that could not be read back is refused with -125: ZooKeeper lets the client find out
//!   and lose its connection.
//! - An unknown request is answered with -6 and the connection stays. So are `sasl`, `check`
//!   outside a multi, and what only ZooKeeper's servers ask; `reconfig` is answered with -123, as
//!   by ZooKeeper unless it is set otherwise.
//! - Containers and nodes with a time to live show no owner in their stat.
//! - Of four-letter words `ruok`, `srvr`, `stat`, `envi`, `isro`, `mntr`, `conf`, `cons`, `dirs`
//!   and `wchs` are answered, without the lines that a host cannot know. `srvr` and `stat` tell a
//!   time at which nothing was built, since builds tell none and Go's client wants one; it wants
//!   all of a line of `cons` too, also of whoever asks for it. A host without a member of the
//!   tree's group says that it stands alone.

mod answers;
pub mod client;
mod connections;
mod counters;
mod requests;
mod session;
mod shared;
pub mod wire;
mod words;

pub use shared::DOOR;
pub use words::ZOOKEEPER_VERSION;
