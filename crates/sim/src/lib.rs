//! A deterministic simulator of a whole cluster: one event queue, a hostile network, disk and
//! clock, clients that record what they were told, and judges.
//!
//! The hosts run the same node as the server, through the same [`quorate_node::pump::turn`]. A seed
//! decides everything, so a run can be repeated, traced and reduced.
//!
//! | module | what it holds |
//! |---|---|
//! | [`world`] | hosts, network, keyspaces, clients and faults around one event queue |
//! | [`machines`] | hosts, network and queue together |
//! | [`queue`] | the events and their order |
//! | [`host`] | one process with a node in it |
//! | [`net`], [`disk`], [`clock`] | what frames, writes and time go through |
//! | [`delay`] | distributions of times |
//! | [`fault`], [`nemesis`] | faults as data, and how a seed draws them |
//! | [`forger`] | frames that no correct peer sends |
//! | [`groups`] | what hosts say of groups, and what must hold of all together |
//! | [`workload`] | clients, what they ask, and what is promised to them |
//! | [`scenario`], [`keyspace`], [`shipped`], [`prepared`] | scenario files |
//! | [`engines`] | the engines that scenarios can name |
//! | [`plant`] | bugs that tests plant into lanes |
//! | [`trace`] | one line for each event, and their hash |
//! | [`seed`] | runs one seed and judges it |
//! | [`run`], [`summary`], [`marks`] | many seeds on all cores, and what they have done |
//! | [`replay`], [`shrink`] | keeps and reduces a failing run |
//! | [`light`] | thousands of nodes of one protocol and nothing else |
//! | [`overlay`] | many overlays in it: what membership costs |
//! | [`args`], [`command`] | the command line |

pub mod args;
pub mod command;
pub mod engines;
mod faults;
pub mod groups;
mod hosts;
pub mod light;
pub mod overlay;
mod scenarios;
mod sweep;
pub mod workload;
pub mod world;

pub use faults::{fault, forger, nemesis, plant};
pub use hosts::{clock, delay, disk, host, machines, memory, net, queue};
pub use scenarios::{keyspace, prepared, scenario, shipped};
pub use sweep::{marks, replay, run, seed, shrink, summary, trace};
