//! Tests of the parts together, in a small world of replicas.

mod calm;
mod clients;
mod copying;
mod golden;
mod judge;
mod machine;
mod mangled;
mod nemesis;
mod node;
mod random;
mod seen;
mod traps;
mod wire;
mod world;

use super::{Event, Message};
use std::format;
use std::string::String;

/// A message in readable form.
fn show(message: &Message) -> String {
    format!("{message:?}")
}

/// An event in readable form.
fn show_event(event: &Event) -> String {
    format!("{event:?}")
}
