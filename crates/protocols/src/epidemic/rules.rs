//! The engine as a value: what its keyspaces let be set, and how one is opened.

use super::keys::wire_key;
use super::replica::range::position;
use super::token::Tokens;
use super::{Epidemic, Level, Settings};
use crate::slices::estimate::Bounds;
use alloc::boxed::Box;
use quorate_kernel::engine::{Capability, Engine, Listing, Opening, Pace as Numbers, Placement};
use quorate_kernel::keyspace::{CatalogRefusal, Settings as Words};
use quorate_kernel::lane::Hosted;
use quorate_kernel::rules::{Alter, Setting, Takes};
use quorate_kernel::time::Span;

/// The most members that a slice can be told to have at least.
const REPLICAS_MAX: u64 = 63;
/// The longest value: it travels in one event, or in one message.
const VALUE_BYTES_MAX: u64 = 512 * 1024;

/// The engine.
pub const ENGINE: Engine = Engine {
    name: "epidemic",
    placement: Placement::Everywhere,
    can: &[Capability::Values, Capability::Receipts, Capability::Listing],
    listing: Listing {
        // What one replica has not heard of yet is not listed, however long ago it was written.
        is_complete: false,
        text: "each part of the listing is what one replica has: a write that it has not heard of \
               yet may be missing, and a key that is deleted elsewhere may be listed; a key that \
               all its replicas have throughout is listed, also while hosts come and go; the \
               listing as a whole is no snapshot, and each key's value is read by itself",
    },
    // Whoever has it hands it on.
    quorum: |_| 1,
    token: |_, key| position(&wire_key(key)).0,
    mode: |_| "eventual",
    open: |opening| Ok(Box::new(Hosted::new(Epidemic::new(Settings::of(opening)?)))),
    numbers: &["events", "fanout", "grace", "keep_rounds", "repair_rounds", "ttl", "window"],
    settings: &[
        Setting {
            name: "replicas",
            takes: Takes::Whole(1, REPLICAS_MAX),
            default: "3",
            alter: Alter::Never("nodes that differ in it would cut slices at different times"),
        },
        Setting {
            name: "acks",
            takes: Takes::Copies(replicas),
            default: "2",
            alter: Alter::Live("how many replicas the next answers wait for; the data stays"),
        },
        Setting {
            name: "level",
            takes: Takes::Word(&["strong", "eventual", "none"]),
            default: "strong",
            alter: Alter::Never("what was written at one level promises nothing at another"),
        },
        Setting {
            name: "round_ms",
            takes: Takes::Whole(5, 10_000),
            default: "20",
            alter: Alter::Live("from the next round on; longer than nearly all messages take"),
        },
        Setting {
            name: "durability",
            takes: Takes::Durability,
            default: "sync",
            alter: Alter::Never(
                "it says what of the data is on disk; make another keyspace and copy",
            ),
        },
        Setting {
            name: "value",
            takes: Takes::Whole(1, VALUE_BYTES_MAX),
            default: "524288",
            alter: Alter::Live("longer values that are there stay, and can be read"),
        },
    ],
};

fn number(words: &Words, name: &str) -> Option<u64> {
    words.get(name)?.parse().ok()
}

fn replicas(words: &Words) -> u64 {
    number(words, "replicas").unwrap_or(1)
}

fn level(words: &Words) -> Level {
    match words.get("level").map(|word| &word[..]) {
        Some("none") => Level::None,
        Some("eventual") => Level::Eventual,
        _ => Level::Strong,
    }
}

/// No slice has fewer members than are set while there are so many nodes; on average they have up
/// to twice as many, or more where positions lie far apart.
fn bounds(words: &Words) -> Bounds {
    let least = u16::try_from(replicas(words)).unwrap_or(1);
    Bounds { replicas_min: least, replicas_max: 2 * least, floor: least, ..Bounds::USUAL }
}

impl Settings {
    /// What a keyspace is set to as the catalog has it.
    ///
    /// # Errors
    /// A setting cannot be read.
    pub fn of(opening: &Opening<'_>) -> Result<Settings, CatalogRefusal> {
        let words = &opening.keyspace.settings;
        ENGINE.check(words)?;
        let mut settings = Settings::usual(level(words));
        settings.bounds = bounds(words);
        settings.tokens = Tokens::with_key(opening.signing_key);
        settings.alter(words);
        settings.pace(opening.pace);
        Ok(settings)
    }

    /// Takes the settings that may be altered; what cannot be read stays as it is.
    pub(super) fn alter(&mut self, words: &Words) {
        let acks = number(words, "acks").and_then(|acks| u8::try_from(acks).ok());
        let most = u8::try_from(self.bounds.replicas_min).unwrap_or(u8::MAX);
        self.acks = acks.unwrap_or(self.acks).clamp(1, most);
        self.round = number(words, "round_ms").map_or(self.round, Span::millis);
    }

    /// Takes what a small world has otherwise.
    fn pace(&mut self, numbers: &Numbers) {
        let number = |name, usual| numbers.get(name).unwrap_or(usual);
        self.grace = number("grace", self.grace);
        self.window = number("window", self.window);
        self.repair_rounds = number("repair_rounds", self.repair_rounds);
        self.keep_rounds = number("keep_rounds", self.keep_rounds);
        let fanout = numbers.get("fanout").and_then(|fanout| usize::try_from(fanout).ok());
        let ttl = numbers.get("ttl").and_then(|ttl| u16::try_from(ttl).ok());
        let events = numbers.get("events").and_then(|events| usize::try_from(events).ok());
        self.events = events.or(self.events);
        (self.fanout, self.ttl) = (fanout.or(self.fanout), ttl.or(self.ttl));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use quorate_kernel::engine::Pace;
    use quorate_kernel::ids::{ClusterId, LaneId};
    use quorate_kernel::keyspace::Keyspace;

    fn words(pairs: &[(&str, &str)]) -> Words {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    /// Section 4.2 of the paper tunes them to 11 and 8 for 300 nodes.
    #[test]
    fn what_is_tuned_by_hand_does_not_follow_the_formulas() {
        let usual = Settings::usual(Level::Strong);
        let formula = usual.parameters(300, None);
        assert_eq!((formula.fanout, formula.ttl), (18, 25));
        let mut tuned = usual.clone();
        tuned.pace(&Pace::default().with("fanout", 11).with("ttl", 8));
        assert_eq!(tuned.problem(), None);
        let both = tuned.parameters(300, None);
        assert_eq!((both.fanout, both.ttl), (11, 8));
        assert_eq!(Settings { fanout: None, ..tuned.clone() }.parameters(300, None).fanout, 18);
        let few = Settings { events: Some(1), ..usual.clone() };
        for wrong in
            [Settings { ttl: Some(0), ..usual }, Settings { fanout: Some(65), ..tuned }, few]
        {
            assert!(wrong.problem().is_some());
        }
    }

    fn settings_of(pairs: &[(&str, &str)]) -> Settings {
        let settings = ENGINE.complete(&words(pairs)).expect("they are allowed");
        let keyspace = &Keyspace::new("k", LaneId(17), ENGINE.name, settings, 9);
        let pace = &Pace::default().with("grace", 9_000_000).with("keep_rounds", 7);
        let opening = Opening { keyspace, cluster: ClusterId(1), signing_key: [7; 32], pace };
        Settings::of(&opening).expect("they can be read")
    }

    #[test]
    fn every_setting_is_taken() {
        let usual = settings_of(&[]);
        assert_eq!((usual.level, usual.acks, usual.round), (Level::Strong, 2, Span::millis(20)));
        assert_eq!((usual.bounds.replicas_min, usual.bounds.replicas_max), (3, 6));
        assert_eq!((usual.grace, usual.keep_rounds), (9_000_000, 7));
        let pairs = [("replicas", "5"), ("acks", "5"), ("level", "none"), ("round_ms", "125")];
        let mut other = settings_of(&pairs);
        assert_eq!((other.level, other.acks, other.round), (Level::None, 5, Span::millis(125)));
        assert_eq!((other.bounds.replicas_min, other.bounds.replicas_max), (5, 10));
        assert_eq!(settings_of(&[("level", "eventual")]).level, Level::Eventual);
        other.alter(&words(&[("acks", "1"), ("round_ms", "10")]));
        assert_eq!((other.acks, other.round), (1, Span::millis(10)));
        for all in [usual, other, settings_of(&[("replicas", "63"), ("acks", "63")])] {
            assert_eq!(all.problem(), None);
        }
    }

    #[test]
    fn more_acknowledgements_than_replicas_are_refused() {
        let refused = ENGINE.complete(&words(&[("replicas", "1")])).expect_err("two of one");
        assert_eq!(
            refused.to_string(),
            "setting `acks` cannot be `2`; use a whole number from 1 to 1, as the others are set"
        );
        assert!(ENGINE.complete(&words(&[("replicas", "1"), ("acks", "1")])).is_ok());
    }
}
