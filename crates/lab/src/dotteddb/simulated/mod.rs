//! The cluster of the DottedDB evaluation: many nodes of one engine under a steady load, and what
//! that costs.
//!
//! It stands in the simulator's light world ([`quorate_sim::light`]), without nodes, gates and
//! disks around the engines, so that half a million keys at 64 nodes run faster than in life. What
//! is written is there at once; the cost of writing it is part of what a step costs its machine. It
//! proves nothing: engines are judged by the scenarios of [`quorate_sim`], under faults of every
//! kind.
//!
//! | module | what it holds |
//! |---|---|
//! | [`run`] | what is run, and what was found |
//! | [`subject`] | what the cluster must know of an engine |
//! | [`carried`] | what messages and objects consist of |
//! | `table` | what a node stores |
//! | `phases` | loading, measuring, resting |
//! | `cluster` | the nodes, and what is done to them |
//! | `machines` | what steps cost, and what is written and sent |
//! | `clients` | the load |
//! | `churn` | nodes that are replaced |
//! | `watch` | what becomes of each update at each replica |
//! | [`quiet`] | two replicas that have converged, or differ in a few keys |

pub mod carried;
mod churn;
mod clients;
mod cluster;
mod machines;
mod phases;
pub mod quiet;
pub mod run;
pub mod subject;
mod table;
mod watch;

pub use run::{Findings, Run, measure};
pub use subject::Subject;
