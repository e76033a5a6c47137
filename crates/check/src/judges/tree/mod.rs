//! Trees with sessions and watches: what the engine `coordination` promises.
//!
//! - **One order.** Each change has a zxid of its own. Done in their order on a model of the tree,
//!   changes give each write its answer and each read what it shows, at the zxid that the answer
//!   tells; and whoever asks is shown at least what anybody knew of by then.
//! - **Reads of sessions**, where hosts answer them: what they show is committed, and may be older
//!   than what others know. What a session was told before it never sees undone, on whichever host.
//! - **Sessions.** What a session has asked earlier shows in what it asks later.
//! - **Watches.** Whoever follows a node is told of each change of it before anything that shows
//!   the change, in the order of changes: once, or of each, as it has asked for. Nobody is told
//!   anything else. What a client asks for again at another host tells it of all it has missed.
//! - **Ephemeral nodes.** They end with their session, and not before: nobody sees one whose
//!   session is known to have ended, and a session ends only when its client was silent for its
//!   time-out, or has asked for it.
//!
//! Of some changes nobody was told the zxid: writes of unknown outcome, plain writes, and the ends
//! of sessions that expire. Where they matter they are found by search.
//!
//! | module | what it holds |
//! |---|---|
//! | `record` | what clients asked and were told |
//! | `facts` | what that says for certain, and what is open |
//! | `lives` | which zxids there can be |
//! | `evidence` | what it says of the change of one zxid |
//! | `model` | the tree as its clients know it |
//! | `marks` | what operations have to do with each other |
//! | `order` | time, and the order of each session |
//! | `replay` | all changes one after the other, held against what was told |
//! | `stream`, `follow` | what comes on a connection, and what it follows |
//! | `quiet` | the zxids that have changed no node |
//! | `places` | where open changes can be |
//! | `search` | which open change has which zxid |
//!
//! Lists of who may do what, nodes that end by themselves and quotas are not judged here: no client
//! may set a limit while its history is recorded. What a client asks for again at another host it
//! must ask for before it follows anything there.

mod evidence;
mod facts;
mod follow;
mod lives;
mod marks;
mod model;
mod order;
mod places;
mod quiet;
mod record;
mod replay;
mod search;
mod stream;
#[cfg(test)]
mod tests;

pub use record::{AskedId, Connection, ConnectionId, Invocation, Record};

use crate::explain::{Explanation, row_of};
use crate::report::Verdict;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use bytes::Bytes;
use evidence::AllEvidence;
use facts::Facts;
use quorate_kernel::operation::Operation;
use quorate_kernel::tree::{Acl, Item, Kind};
use search::{Finding, Search};

/// What a step of a search costs, in steps of other judges: one zxid of a replay.
const STEP_COST: u64 = 10;

/// Judges a record; the search ends after about `steps_max` steps ([`crate::STEPS_MAX_DEFAULT`]).
#[must_use]
pub fn judge(record: &Record, steps_max: u64) -> Verdict {
    if record.asked.iter().any(is_beyond) {
        let why = "lists of who may do what, and nodes that end by themselves, are not judged here";
        return Verdict::Unknown { why: why.into() };
    }
    let facts = match Facts::of(record) {
        Ok(facts) => facts,
        Err((asked, why)) => return violated(record, &asked, why),
    };
    let streams = stream::streams(record);
    let evidence = AllEvidence::of(&facts, &streams);
    if let Err((asked, why)) = order::check(&facts, &evidence) {
        return violated(record, &asked, why);
    }
    if record.is_of_rest {
        return Verdict::Holds;
    }
    let left = steps_max / (STEP_COST * (facts.zxids().count() as u64 + 1)) + 1;
    match Search::new(&facts, &evidence, &streams, left).run() {
        Finding::Explained => Verdict::Holds,
        Finding::Unexplained(conflict) => violated(record, &conflict.asked, conflict.why),
        Finding::CutOff => Verdict::Unknown {
            why: format!(
                "the search for the zxids of {} changes was cut off after {left} replays of {} \
                 operations",
                facts.open.len(),
                record.asked.len()
            ),
        },
    }
}

/// Whether an operation is of a kind that is not judged here.
fn is_beyond(asked: &Invocation) -> bool {
    let is_item = |item: &Item| match item {
        Item::Create { acl, kind, .. } => {
            *acl != Acl::open() || matches!(kind, Kind::Container | Kind::Ttl(_))
        }
        Item::SetAcl { .. } => true,
        _ => false,
    };
    match &asked.operation {
        Operation::Tree(ask) => marks::items(&ask.act).iter().any(is_item),
        Operation::Transact { .. } => true,
        _ => false,
    }
}

fn violated(record: &Record, asked: &[usize], why: String) -> Verdict {
    let row = |index: &usize| {
        let asked = &record.asked[*index];
        row_of(asked.client, &asked.operation, asked.invoked, asked.completed.as_ref())
    };
    let rows: Vec<[String; 5]> = asked.iter().map(row).collect();
    let headline = "the tree: no order of changes explains this";
    let explanation = Explanation::of_rows(Bytes::new(), headline, asked.to_vec(), &rows, why);
    Verdict::Violated(Box::new(explanation))
}
