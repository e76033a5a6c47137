//! The engines of this process: one list, said once.
//!
//! They are those of the product, and those that the program's `main` declares before anything
//! else: so can a program that is no part of the product serve an engine of its own.

use quorate_kernel::engine::Engine;
use quorate_protocols::engines::ENGINES;
use std::sync::OnceLock;

/// Engines; the first is that of a keyspace that is made without a word on it.
pub type Engines = &'static [&'static Engine];

static ALL: OnceLock<Vec<&'static Engine>> = OnceLock::new();

/// Has this process serve these engines, beside those of the product.
///
/// # Panics
/// Something has asked for the list already, or the product has an engine of one of the names.
pub fn declare(own: Engines) {
    let is_known = |engine: &&&Engine| ENGINES.iter().any(|other| other.name == engine.name);
    assert_eq!(
        own.iter().find(is_known).map(|engine| engine.name),
        None,
        "a name is of one engine"
    );
    let all = ENGINES.iter().chain(own).copied().collect();
    assert!(ALL.set(all).is_ok(), "engines are declared before anybody asks for them");
}

/// The list.
#[must_use]
pub fn all() -> Engines {
    ALL.get_or_init(|| ENGINES.to_vec())
}

/// The name of the engine of a keyspace that is made without a word on it.
#[must_use]
pub fn usual() -> &'static str {
    all()[0].name
}
