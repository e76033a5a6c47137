//! What nodes show of themselves, as hosts show it to their operators.

use quorate_kernel::process::{Inspect, Process};
use quorate_protocols::epidemic::Epidemic;
use std::fmt::Display;

/// Takes the fields of these names; a word instead of a number counts as 1 if it is `ready`.
struct Taker<'a, const N: usize> {
    names: &'a [&'static str; N],
    taken: [u64; N],
}

impl<const N: usize> Inspect for Taker<'_, N> {
    fn field(&mut self, name: &'static str, value: &dyn Display) {
        if let Some(place) = self.names.iter().position(|wanted| *wanted == name) {
            let text = value.to_string();
            self.taken[place] = text.parse().unwrap_or(u64::from(text == "ready"));
        }
    }
}

/// What a node shows under these names, in their order.
#[must_use]
pub fn shown<const N: usize>(node: &Epidemic, names: &[&'static str; N]) -> [u64; N] {
    let mut taker = Taker { names, taken: [0; N] };
    node.inspect(&mut taker);
    taker.taken
}
