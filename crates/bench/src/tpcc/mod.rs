//! TPC-C's tables and transactions over a keyspace whose engine has transactions, through the
//! native client.
//!
//! It follows the standard, revision 5.11, in its nine tables, their cardinalities, the five
//! transactions with their mix and input, and the consistency conditions. It is no audited result:
//! terminals neither key in nor think, what they would show is not rendered, Delivery is done in
//! the foreground, and there is no price.
//!
//! | file | idea |
//! |---|---|
//! | `data/` | rows as bytes, their keys, how many there are, random input, what they begin with |
//! | `load` | writes that |
//! | `tables` | the keyspace: reads and transactions, and how they fail |
//! | `inputs` | which transaction comes next, and about what |
//! | `transactions/` | the five: each reads first, then commits if that is still so |
//! | `terminals/` | who asks, again after a conflict; fences; counts |
//! | `driven` | terminals whose transactions somebody else has done, such as a simulator |
//! | `audit/` | the conditions, over all rows at the end |
//! | `run`, `report` | from the load to the report |
//! | `config` | what to run, and the same as options on the command line |

mod audit;
pub(super) mod config;
mod data;
pub(super) mod driven;
mod inputs;
mod load;
pub(super) mod report;
pub(super) mod run;
mod tables;
mod terminals;
mod transactions;

pub use audit::AuditReport;
pub use audit::violations::{Rule, Violation};
pub use data::sizes::Sizes;
pub use inputs::Kind;
pub(super) use run::TERMINALS_PER_CLIENT;
pub(super) use tables::word;
