//! A deterministic simulator of a whole cluster: one event queue, a hostile network, disk and
//! clock, clients that record what they were told, and judges.
//!
//! The hosts run the same node as the server, through the same [`quorate_node::pump::turn`]. A seed
//! decides everything, so a run can be repeated, traced and reduced.
//!
//! | module | what it holds |
//! |---|---|
//! | [`world`] | hosts, network, clients and faults around one event queue |
//! | `machines` | hosts, network and queue, the same in every world |
//! | `turns` | how a world lets its hosts work |
//! | [`queue`] | the events and their order |
//! | [`host`] | one process with a node in it |
//! | [`net`], [`disk`], [`clock`] | what frames, writes and time go through |
//! | [`delay`] | distributions of times |
//! | [`fault`], [`nemesis`] | faults as data, and how a seed draws them |
//! | `plan` | how they happen to any world |
//! | `forger` | frames that no correct peer sends |
//! | `faults` | which of them the groups can bear |
//! | [`membership`], [`groups`] | who takes part, and what must hold of all groups together |
//! | [`workload`] | clients that record histories |
//! | [`scenario`], [`shipped`], [`prepared`] | scenario files |
//! | [`trace`] | one line for each event, and their hash |
//! | [`seed`] | runs one seed and judges it |
//! | [`run`], [`summary`], [`marks`] | many seeds on all cores, and what they have done |
//! | [`replay`], [`shrink`] | keeps and reduces a failing run |
//! | [`service`] | hosts with one core each: how throughput grows with hosts
//! | [`causal`] | the world of a keyspace that keeps siblings |
//! | [`catalog`] | the world of keyspaces that come and go |
//! | [`mixed`] | the world of a cluster with keyspaces of both engines |
//! | [`dotted`] | many nodes of a keyspace that keeps siblings, under load: what that costs |
//! | [`overlay`] | many overlays and nothing else: what membership costs |
//! | [`args`], [`command`] | the command line |

pub mod args;
pub mod balance;
pub mod catalog;
pub mod causal;
pub mod clock;
mod closing;
pub mod command;
pub mod delay;
pub mod disk;
pub mod dotted;
pub mod fault;
mod faults;
mod forger;
pub mod groups;
pub mod host;
mod machines;
pub mod marks;
pub mod membership;
pub mod memory;
pub mod mixed;
pub mod nemesis;
pub mod net;
mod operators;
pub mod overlay;
mod plan;
pub mod prepared;
pub mod queue;
pub mod replay;
pub mod run;
pub mod scenario;
pub mod seed;
pub mod service;
pub mod shipped;
pub mod shrink;
pub mod summary;
pub mod trace;
mod turns;
pub mod workload;
pub mod world;
