//! The engines that scenarios can name: those of the product, and those that a program declares as
//! its own.

use quorate_kernel::engine::Engine;
use quorate_protocols::engines::ENGINES;
use std::sync::OnceLock;

static ALL: OnceLock<Vec<&'static Engine>> = OnceLock::new();

/// Lets scenarios of this process name these engines, too.
///
/// # Panics
/// Something has asked for the list already.
pub fn declare(own: &[&'static Engine]) {
    assert!(ALL.set(with(own)).is_ok(), "engines are declared before anybody asks for them");
}

/// All of them.
#[must_use]
pub fn all() -> &'static [&'static Engine] {
    ALL.get_or_init(|| with(&[]))
}

fn with(own: &[&'static Engine]) -> Vec<&'static Engine> {
    ENGINES.iter().chain(own).copied().collect()
}
