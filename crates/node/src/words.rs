//! Settings of a keyspace that have one of two words.

use crate::catalog::CatalogError;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

/// A setting of a keyspace that has one of two words.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident ($what:literal) {
        $(#[$one_doc:meta])* $one:ident = $one_text:literal,
        $(#[$other_doc:meta])* $other:ident = $other_text:literal,
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name {
            $(#[$one_doc])* #[default] $one,
            $(#[$other_doc])* $other,
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $name::$one => $one_text, $name::$other => $other_text })
            }
        }

        impl FromStr for $name {
            type Err = CatalogError;

            fn from_str(text: &str) -> Result<$name, CatalogError> {
                match text {
                    $one_text => Ok($name::$one),
                    $other_text => Ok($name::$other),
                    _ => Err(CatalogError::Word {
                        what: $what,
                        found: String::from(text),
                        allowed: concat!($one_text, " or ", $other_text),
                    }),
                }
            }
        }
    };
}

words! {
    /// Where a keyspace's keys stand on the ring.
    Order ("order") {
        /// At their hash: even, whatever the keys are.
        Hash = "hash",
        /// In the order of their bytes, so that neighbours can be listed together.
        Key = "key",
    }
}

words! {
    /// What an operation of a keyspace waits for.
    Mode ("mode") {
        /// A majority of the key's group: every key is an atomic register.
        Atomic = "atomic",
        /// One replica: the engine `causal`, or to measure what atomicity costs.
        Eventual = "eventual",
    }
}
