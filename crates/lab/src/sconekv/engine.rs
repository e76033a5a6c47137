//! Engine `logged-reads`: `serializable`, but that transactions which only read are committed as
//! those that write, in the logs of all their groups, as the paper has it (§6.1). Figure 8 and the
//! ablations measure keyspaces of both. No other program has it.

use quorate_kernel::engine::Engine;
use quorate_protocols::serializable;
use quorate_protocols::serializable::lane::{Settings, lane};

/// The engine.
pub const ENGINE: Engine = Engine {
    name: "logged-reads",
    open: |opening| Ok(lane(Settings { commits_reads: true, ..Settings::of(opening)? })),
    ..serializable::ENGINE
};
