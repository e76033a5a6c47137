//! Engine `quorums`: `linearizable`, with consistent quorums or without.
//!
//! CATS §6.4 measures what consistent quorums cost beside the same program, whose messages carry no
//! views. So does the lab: Fig. 6 and 7 are of keyspaces of this engine. No other program has it.
//!
//! # Promise
//! With `stamps=yes` that of `linearizable`, message for message. With `stamps=no` plain majorities
//! of the members that the coordinator knows: atomic as long as no view changes, nobody forgets and
//! no tombstone is removed, and **not linearizable** otherwise. A member that was replaced answers
//! as if it were one still, so majorities of two views need not meet; a newcomer answers before it
//! has the data.
//!
//! # How
//! `linearizable` is wrapped: index, records, storage, retries and all that is not measured are the
//! same code on both sides. What crosses the network are bare `ReadA`, `ReadB`, `WriteA` and
//! `WriteB`: the operation, the key, the timestamp and the record. Whoever receives one fills in
//! the view that it knows itself, and says that nothing is wrong.
//!
//! What was ruled out: a register of its own over the same placement. It would differ from
//! `linearizable` in more than what is measured, and that is one or two percent. The wrapper takes
//! time too; therefore keyspaces with stamps are in it as well, and it stands on both sides of each
//! ratio. What this leaves on both sides is making stamps and comparing them, which is copying and
//! comparing some words: the price found is that of writing, sending and reading them.

mod engine;
mod message;
mod passing;
#[cfg(test)]
mod tests;

use engine::Quorums;
use quorate_kernel::engine::{Engine, Opening};
use quorate_kernel::keyspace::CatalogRefusal;
use quorate_kernel::lane::{Hosted, Lane};
use quorate_kernel::rules::{Alter, Setting, Takes};
use quorate_protocols::linearizable::{self, Settings};

/// The name of the setting that says whether quorums are consistent: `yes` or `no`.
pub const STAMPS: &str = "stamps";

/// The engine.
pub const ENGINE: Engine =
    Engine { name: "quorums", settings: SETTINGS, open, ..linearizable::ENGINE };

const SETTINGS: &[Setting] = &[
    inside(0),
    inside(1),
    inside(2),
    inside(3),
    inside(4),
    Setting {
        name: STAMPS,
        takes: Takes::Word(&["yes", "no"]),
        default: "yes",
        alter: Alter::Never("quorums of both kinds need not meet"),
    },
];

/// A setting of the engine inside.
const fn inside(index: usize) -> Setting {
    let Setting { name, takes, default, alter } = linearizable::ENGINE.settings[index];
    Setting { name, takes, default, alter }
}

fn open(opening: &Opening<'_>) -> Result<Box<dyn Lane>, CatalogRefusal> {
    ENGINE.check(&opening.keyspace.settings)?;
    let has_stamps = opening.keyspace.setting(STAMPS) == "yes";
    Ok(Box::new(Hosted::new(Quorums::new(Settings::of(opening)?, has_stamps))))
}

const _: () = assert!(SETTINGS.len() == linearizable::ENGINE.settings.len() + 1, "one more");
