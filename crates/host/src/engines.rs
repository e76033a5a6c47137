//! The engines of this process: one list, said once.
//!
//! They are those of the build, unless the program's `main` declares others before anything else:
//! so can a program that is no part of the product serve an engine of its own.

use quorate_kernel::engine::Engine;
use std::sync::OnceLock;

/// Engines; the first is that of a keyspace that is made without a word on it.
pub type Engines = &'static [&'static Engine];

static ALL: OnceLock<Engines> = OnceLock::new();

/// Has this process serve these engines.
///
/// # Panics
/// Something has asked for the list already, or it is empty.
pub fn declare(engines: Engines) {
    assert!(!engines.is_empty(), "a program without engines serves nothing");
    assert!(ALL.set(engines).is_ok(), "engines are declared before anybody asks for them");
}

/// The list.
#[must_use]
pub fn all() -> Engines {
    ALL.get_or_init(|| quorate_protocols::engines::ENGINES)
}

/// The name of the engine of a keyspace that is made without a word on it.
#[must_use]
pub fn usual() -> &'static str {
    all()[0].name
}
