//! The vocabulary and the contract that every other crate shares.
//!
//! | module | what it holds |
//! |---|---|
//! | [`ids`] | node, start, incarnation, lane, lsn, ticket |
//! | [`time`] | monotonic time and wall time as plain numbers |
//! | [`rng`] | the seeded generator a process draws from |
//! | [`process`] | [`process::Process`]: what a protocol is, and the context it sees |
//! | [`effects`] | what a protocol may ask for |
//! | [`engine`] | an engine as a value: its settings, what it can do, how it is opened |
//! | [`lacking`] | the refusal of what an engine cannot do |
//! | [`lane`] | [`lane::Lane`]: a process with its types erased |
//! | [`news`] | what a node tells its lanes |
//! | [`operation`] | the words doors and engines share |
//! | [`transaction`] | operations over several keys: what is asked of each, and told |
//! | [`path`] | paths of trees |
//! | [`receipt`] | what answers say beside the value, where replicas may differ for a while |
//! | [`tree`] | the words of trees: nodes at paths, sessions, and what those follow |
//! | [`change`] | changes of a value where it stands |
//! | [`expiry`] | keys that end by themselves |
//! | [`evaluate`] | items that are done one after the other, on cells |
//! | [`refusal`] | why an operation is not done |
//! | [`cursor`] | where listings of keys go on |
//! | [`explanation`] | how a read was served |
//! | [`part`] | who holds what, and what is left when hosts go |
//! | [`values`] | the values of one key |
//! | [`write`] | what a write takes the place of, and its name |
//! | [`view`] | an immutable membership snapshot of a group, and what may follow it |
//! | [`watch`] | what clients can follow |
//! | [`ring`] | what a node believes of the hosts and their tokens |
//! | [`roll`] | who takes part in the cluster, as its members have agreed |
//! | [`storage`] | what may be read and written, and when it is durable |
//! | [`entries`] | logs in the store: their keys, and how entries are given up |
//! | [`wire`] | frames and the codec of messages |
//! | [`plain`] | values that are stored and sent as they are |
//! | [`sighting`] | what nodes have seen of each other's starts |
//! | [`rope`] | output bytes without copying large values |
//! | [`arena`] | room for short keys and records that are soon dropped |
//! | [`limits`] | every bound |
//! | [`invariant`] | `invariant!` and the coverage marks `probe!` |
//! | [`mutant`](mod@mutant) | planted bugs, in the simulator's build for them alone |
//! | [`error`] | the four kinds of failure |
//!
//! The crate is `no_std`: no clock, socket, thread, file or ambient randomness is in scope.
#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod contract;
mod encoding;
mod engines;
pub mod error;
mod hosts;
pub mod ids;
pub mod invariant;
pub mod limits;
pub mod mutant;
mod operations;
pub mod rng;
pub mod time;

pub use contract::{effects, entries, lane, news, observe, process, storage};
pub use encoding::{arena, plain, rope, wire};
pub use engines::{engine, keyspace, lacking, rules};
pub use hosts::{part, ring, roll, sighting, view};
pub use operations::{
    change, cursor, evaluate, expiry, explanation, operation, path, receipt, refusal, transaction,
    tree, values, watch, write,
};

/// What `no_std` leaves out of scope, and the shared byte buffer.
pub mod prelude {
    pub use alloc::borrow::ToOwned;
    pub use alloc::boxed::Box;
    pub use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
    pub use alloc::format;
    pub use alloc::string::{String, ToString};
    pub use alloc::sync::Arc;
    pub use alloc::vec;
    pub use alloc::vec::Vec;
    pub use bytes::{Bytes, BytesMut};
}
