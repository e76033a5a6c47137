//! The engine as a value: what its keyspaces let be set, and how one is opened.

use super::keys::hash_of_key;
use super::map::{Map, PARTITIONS_DEFAULT, Shape};
use super::token::Tokens;
use super::{Causal, Limits, Plain, Settings};
use alloc::string::String;
use quorate_kernel::engine::{Capability, Engine, Listing, Opening, Pace as Numbers, Placement};
use quorate_kernel::keyspace::{CatalogRefusal, Keyspace, Settings as Words};
use quorate_kernel::limits::{GROUP_MEMBERS_MAX, PARTITIONS_MAX, SIBLING_BYTES_MAX};
use quorate_kernel::rules::{Alter, Setting, Takes};
use quorate_kernel::time::Span;

const ON_OFF: Takes = Takes::Word(&["on", "off"]);
/// The longest interval that can be set.
const INTERVAL_MS_MAX: u64 = 60_000;

/// The engine.
pub const ENGINE: Engine = Engine {
    name: "causal",
    placement: Placement::Partitions,
    can: &[Capability::Values, Capability::Siblings, Capability::Replies, Capability::Listing],
    listing: Listing {
        // What one replica has not heard of yet is not listed, however long ago it was written.
        is_complete: false,
        text: "each part of the listing is what one replica has: a key whose last write has \
               reached that replica is listed as it was left there, a write that is still on its \
               way may be missing; the listing as a whole is no snapshot, and each key's values \
               are read by themselves",
    },
    // One replica has what the others fetch from it.
    quorum: |_| 1,
    token: |_, key| hash_of_key(key),
    mode: |_| "eventual",
    open: |opening| Ok(super::lane(Settings::of(opening)?)),
    numbers: &["clock_ranges", "names", "page_bytes", "scan_keys", "spare_dots", "writes"],
    settings: &[
        Setting {
            name: "replicas",
            takes: Takes::Whole(1, GROUP_MEMBERS_MAX as u64),
            default: "3",
            alter: Alter::Never("replicas' clocks speak of the keys they always held; copy"),
        },
        Setting {
            name: "partitions",
            takes: Takes::Whole(1, PARTITIONS_MAX as u64),
            default: "64",
            alter: Alter::Never("replicas' clocks speak of the keys they always held; copy"),
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
            takes: Takes::Whole(1, SIBLING_BYTES_MAX as u64),
            default: "1048576",
            alter: Alter::Live("longer values that are there stay, and can be read"),
        },
        Setting {
            name: "r",
            takes: Takes::Copies(replicas),
            default: "1",
            alter: Alter::Live("how many replicas answer the next gets; the data stays"),
        },
        Setting {
            name: "w",
            takes: Takes::Copies(acknowledgements),
            default: "1",
            alter: Alter::Live("how many replicas hold the next writes; the data stays"),
        },
        Setting {
            name: "replication",
            takes: ON_OFF,
            default: "on",
            alter: Alter::Live("off: writes spread by anti-entropy alone, and `w` is 1"),
        },
        Setting {
            name: "sync_interval_ms",
            takes: Takes::Whole(10, INTERVAL_MS_MAX),
            default: "100",
            alter: Alter::Live("from the next exchange on"),
        },
        Setting {
            name: "strip_interval_ms",
            takes: Takes::Whole(10, INTERVAL_MS_MAX),
            default: "1000",
            alter: Alter::Live("from the next pass on"),
        },
        Setting {
            name: "read_repair",
            takes: ON_OFF,
            default: "off",
            alter: Alter::Live("gets send what they merged to replicas that were behind, or not"),
        },
        Setting {
            name: "siblings",
            takes: Takes::Word(&["error", "newest"]),
            default: "error",
            alter: Alter::Live("what gets without contexts answer; the siblings stay"),
        },
        Setting {
            name: "sibling_warning",
            takes: Takes::Whole(1, 1_000_000),
            default: "16",
            alter: Alter::Live("from how many siblings on a write is counted"),
        },
    ],
};

const _: () = assert!(PARTITIONS_DEFAULT == 64, "the default above");

fn number(words: &Words, name: &str) -> Option<u64> {
    words.get(name)?.parse().ok()
}

fn replicas(words: &Words) -> u64 {
    number(words, "replicas").unwrap_or(1)
}

/// How many durable copies a write can wait for.
fn acknowledgements(words: &Words) -> u64 {
    if is_on(words, "replication") { replicas(words) } else { 1 }
}

fn is_on(words: &Words, name: &str) -> bool {
    words.get(name).is_some_and(|word| word == "on")
}

/// How many partitions and replicas words mean; none if they mean none.
#[must_use]
pub fn shape(words: &Words) -> Option<Shape> {
    let (partitions, replicas) = (number(words, "partitions")?, number(words, "replicas")?);
    let are_sound = (1..=GROUP_MEMBERS_MAX as u64).contains(&replicas)
        && (replicas..=PARTITIONS_MAX as u64).contains(&partitions);
    are_sound.then(|| Shape::new(partitions as u16, replicas as u16))
}

impl Settings {
    /// What a keyspace is set to as the catalog has it.
    ///
    /// # Errors
    /// A setting cannot be read, or they contradict each other.
    pub fn of(opening: &Opening<'_>) -> Result<Settings, CatalogRefusal> {
        let keyspace = opening.keyspace;
        ENGINE.check(&keyspace.settings)?;
        let refused = |why: &str| CatalogRefusal::Partitions { why: String::from(why) };
        let none = "the keyspace has no partitions for its replicas";
        let shape = shape(&keyspace.settings).ok_or_else(|| refused(none))?;
        let map = Map::of(keyspace);
        let tokens = Tokens::with_key(opening.signing_key, opening.cluster);
        let mut settings = Settings::usual(shape, None, tokens);
        settings.alter(&keyspace.settings);
        settings.limits = Limits::of(opening.pace);
        settings.born = keyspace.created;
        settings.first_map = map.fits(shape).then_some(map);
        match settings.problem() {
            Some(why) => Err(refused(why)),
            None => Ok(settings),
        }
    }

    /// Takes the settings that may be altered; what cannot be read stays as it is.
    fn alter(&mut self, words: &Words) {
        let small = |name| number(words, name).and_then(|n| u8::try_from(n).ok());
        let span = |name| number(words, name).map(Span::millis);
        let size = |name| number(words, name).and_then(|n| usize::try_from(n).ok());
        let most = self.shape.replicas as u8;
        self.r = small("r").unwrap_or(self.r).clamp(1, most);
        self.w = small("w").unwrap_or(self.w).clamp(1, most);
        self.replicate_on_write = is_on(words, "replication");
        if !self.replicate_on_write {
            self.w = 1;
        }
        self.sync_interval = span("sync_interval_ms").unwrap_or(self.sync_interval);
        self.strip_interval = span("strip_interval_ms").unwrap_or(self.strip_interval);
        self.read_repair = is_on(words, "read_repair");
        self.siblings_warn = size("sibling_warning").unwrap_or(self.siblings_warn);
        self.value_bytes_max = size("value").unwrap_or(self.value_bytes_max);
        self.plain = match words.get("siblings").map(|word| &word[..]) {
            Some("newest") => Plain::Newest,
            _ => Plain::Error,
        };
    }
}

impl Limits {
    /// The usual limits, but for what these numbers say: a small world can reach smaller ones.
    fn of(numbers: &Numbers) -> Limits {
        let usual = Limits::default();
        let size = |name, usual| {
            numbers.get(name).and_then(|number| usize::try_from(number).ok()).unwrap_or(usual)
        };
        Limits {
            page_bytes: size("page_bytes", usual.page_bytes),
            scan_keys: size("scan_keys", usual.scan_keys),
            clock_ranges: size("clock_ranges", usual.clock_ranges),
            names: size("names", usual.names),
            writes: size("writes", usual.writes),
            backoff_intervals: usual.backoff_intervals,
            spare_dots: size("spare_dots", usual.spare_dots),
        }
    }
}

impl Causal {
    /// Takes the settings that may be altered; what rests on them follows at the next look.
    pub(super) fn alter(&mut self, keyspace: &Keyspace) {
        let before = self.settings.sync_interval;
        self.settings.alter(&keyspace.settings);
        if self.settings.sync_interval != before {
            // A backoff is so many intervals of before.
            self.durable.replicas.values_mut().for_each(|replica| replica.rounds.backoff.end());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;
    use quorate_kernel::engine::Pace;
    use quorate_kernel::ids::{ClusterId, LaneId, NodeId};
    use quorate_kernel::keyspace::Partition;

    fn words(pairs: &[(&str, &str)]) -> Words {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    fn keyspace(pairs: &[(&str, &str)]) -> Keyspace {
        let settings = ENGINE.complete(&words(pairs)).expect("they are allowed");
        let count = number(&settings, "partitions").expect("a number");
        let place = |at: u64| Partition { node: NodeId(1 + at % 3), since: 9, is_settled: true };
        let keyspace = Keyspace::new("k", LaneId(17), "causal", settings, 9);
        Keyspace { changed: 12, partitions: (0..count).map(place).collect(), ..keyspace }
    }

    fn settings_of(keyspace: &Keyspace) -> Result<Settings, CatalogRefusal> {
        let (signing_key, pace) = ([7; 32], &Pace::default());
        let cluster = ClusterId(1);
        Settings::of(&Opening { keyspace, cluster, signing_key, pace })
    }

    #[test]
    fn the_defaults_are_the_usual_settings() {
        let keyspace = keyspace(&[("partitions", "66")]);
        let settings = settings_of(&keyspace).expect("they can be read");
        let usual = Settings::usual(Shape::new(66, 3), None, Tokens::new(b"secret", ClusterId(1)));
        assert_eq!((settings.r, settings.w), (usual.r, usual.w));
        assert_eq!(settings.sync_interval, usual.sync_interval);
        assert_eq!(settings.strip_interval, usual.strip_interval);
        assert_eq!(settings.replicate_on_write, usual.replicate_on_write);
        assert_eq!(settings.read_repair, usual.read_repair);
        assert_eq!(settings.siblings_warn, usual.siblings_warn);
        assert_eq!(settings.plain, usual.plain);
        let map = settings.first_map.expect("it has one");
        assert_eq!((settings.born, map.version), (9, 12));
        assert!(map.fits(settings.shape));
    }

    #[test]
    fn copies_are_bounded_and_without_replication_there_is_one() {
        for bad in [
            &[("w", "4")][..],
            &[("r", "4")],
            &[("w", "2"), ("replication", "off")],
            &[("w", "2"), ("replicas", "1")],
        ] {
            assert!(ENGINE.complete(&words(bad)).is_err(), "{bad:?}");
        }
        let all = ENGINE.complete(&words(&[("w", "3"), ("r", "2")])).expect("three replicas");
        assert!(ENGINE.alter(&all, &words(&[("replication", "off")])).is_err());
        let both = words(&[("replication", "off"), ("w", "1")]);
        assert_eq!(ENGINE.alter(&all, &both), Ok(both.clone()));
        for fixed in ["replicas", "partitions"] {
            assert!(ENGINE.alter(&all, &words(&[(fixed, "2")])).is_err(), "{fixed}");
        }
    }

    #[test]
    fn limits_are_the_usual_ones_unless_a_number_says_otherwise() {
        assert_eq!(Limits::of(&Pace::default()), Limits::default());
        let small = Pace::default().with("page_bytes", 1).with("names", 9);
        let limits = Limits::of(&small);
        assert_eq!((limits.page_bytes, limits.names), (1, 9));
        assert_eq!(limits.scan_keys, Limits::default().scan_keys);
    }

    #[test]
    fn a_keyspace_with_fewer_partitions_than_replicas_is_not_opened() {
        let mut few = keyspace(&[]);
        few.settings.insert("partitions".to_string(), "2".to_string());
        let refused = settings_of(&few).map(|_| ()).expect_err("three replicas need three");
        assert!(matches!(refused, CatalogRefusal::Partitions { .. }), "{refused}");
    }

    #[test]
    fn every_setting_that_may_be_altered_is_taken() {
        let mut settings = settings_of(&keyspace(&[])).expect("they can be read");
        let other = keyspace(&[
            ("value", "7"),
            ("r", "2"),
            ("w", "3"),
            ("sync_interval_ms", "20"),
            ("strip_interval_ms", "30"),
            ("read_repair", "on"),
            ("siblings", "newest"),
            ("sibling_warning", "5"),
        ]);
        settings.alter(&other.settings);
        assert_eq!((settings.value_bytes_max, settings.r, settings.w), (7, 2, 3));
        assert_eq!(
            (settings.sync_interval, settings.strip_interval),
            (Span::millis(20), Span::millis(30))
        );
        assert!(settings.read_repair && settings.replicate_on_write);
        assert_eq!((settings.plain, settings.siblings_warn), (Plain::Newest, 5));
        settings.alter(&keyspace(&[("replication", "off")]).settings);
        assert!(!settings.replicate_on_write && settings.w == 1);
    }
}
