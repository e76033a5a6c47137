//! What engines let be set: one table for each, and what `alter` may change in it.

use crate::engine::Engine;
use crate::keyspace::{CatalogRefusal, Settings};
use crate::storage::Durability;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A setting of an engine.
#[derive(Debug)]
pub struct Setting {
    /// What operators write before `=`; no other setting of the engine has it.
    pub name: &'static str,
    /// What it takes.
    pub takes: Takes,
    /// What it is unless it is said otherwise.
    pub default: &'static str,
    /// Whether it may be altered, and what that means.
    pub alter: Alter,
}

/// What a setting takes.
#[derive(Clone, Copy, Debug)]
pub enum Takes {
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number from the first to the second.
    Whole(u64, u64),
    /// A whole number from 1 to what the other settings allow.
    Copies(fn(&Settings) -> u64),
    /// A level of durability.
    Durability,
}

/// Whether a setting may be altered.
#[derive(Clone, Copy, Debug)]
pub enum Alter {
    /// At any time; what happens then, to the data above all.
    Live(&'static str),
    /// The same of a setting that the engine did not have from its beginning: a keyspace that says
    /// nothing of it is served with the default, as it was before.
    Later(&'static str),
    /// The same, where everything that is acknowledged is on disk. Elsewhere a group may lose what
    /// it was given, after who had it before has dropped it.
    Synced(&'static str),
    /// Never; why.
    Never(&'static str),
}

/// Why a setting stays that may be altered where everything is on disk.
const UNSYNCED: &str = "with `durability` other than `sync` a group may lose what it was given by \
                        another; make another keyspace and copy";

impl Takes {
    /// The one spelling of a value, or what is expected.
    ///
    /// # Errors
    /// The setting does not take it; what it takes.
    pub fn spell(&self, value: &str) -> Result<String, String> {
        match self {
            Takes::Word(words) => {
                let found = words.iter().find(|word| **word == value);
                found.map(ToString::to_string).ok_or_else(|| words.join(" or "))
            }
            Takes::Whole(low, high) => {
                let number = value.parse().ok().filter(|number| (low..=high).contains(&number));
                number
                    .map(|number: u64| number.to_string())
                    .ok_or_else(|| alloc::format!("a whole number from {low} to {high}"))
            }
            Takes::Copies(_) => {
                let number = value.parse().ok().filter(|number| *number > 0);
                number
                    .map(|number: u64| number.to_string())
                    .ok_or_else(|| String::from("a whole number from 1 on"))
            }
            Takes::Durability => value
                .parse()
                .map(|level: Durability| level.to_string())
                .map_err(ToString::to_string),
        }
    }
}

impl Engine {
    /// The settings of a new keyspace: those asked for, and defaults.
    ///
    /// # Errors
    /// A setting is not the engine's, or does not take its value.
    pub fn complete(&self, asked: &Settings) -> Result<Settings, CatalogRefusal> {
        let mut all = self.spell(asked)?;
        for setting in self.settings {
            all.entry(setting.name.to_string()).or_insert_with(|| setting.default.to_string());
        }
        self.agree(&all)?;
        Ok(all)
    }

    /// Whether settings go together: no count of copies is above what the others allow.
    fn agree(&self, all: &Settings) -> Result<(), CatalogRefusal> {
        for setting in self.settings {
            let Takes::Copies(most) = setting.takes else { continue };
            let (value, most) = (all.get(setting.name), most(all));
            if let Some(value) = value.filter(|value| value.parse().is_ok_and(|n: u64| n > most)) {
                let (name, value) = (setting.name.to_string(), value.clone());
                let expected =
                    alloc::format!("a whole number from 1 to {most}, as the others are set");
                return Err(CatalogRefusal::Value { name, value, expected });
            }
        }
        Ok(())
    }

    /// Whether settings are all there but those that came later, each as it is spelt, and go
    /// together: those of a keyspace that this build can serve.
    ///
    /// # Errors
    /// One is not, or they do not.
    pub fn check(&self, all: &Settings) -> Result<(), CatalogRefusal> {
        for setting in self.settings {
            let said = all.get(setting.name).cloned();
            if said.is_none() && matches!(setting.alter, Alter::Later(_)) {
                continue;
            }
            let value = said.ok_or_else(|| CatalogRefusal::Unset {
                engine: self.name.to_string(),
                name: setting.name.to_string(),
            })?;
            if setting.takes.spell(&value).as_ref() != Ok(&value) {
                let expected = setting.takes.spell(&value).err().unwrap_or_default();
                return Err(CatalogRefusal::Value {
                    name: setting.name.to_string(),
                    value,
                    expected,
                });
            }
        }
        self.agree(all)
    }

    /// The settings that an alteration really changes.
    ///
    /// # Errors
    /// A setting is not the engine's, does not take its value, or may not be altered.
    pub fn alter(&self, now: &Settings, asked: &Settings) -> Result<Settings, CatalogRefusal> {
        let mut changed = self.spell(asked)?;
        changed.retain(|name, value| now.get(name) != Some(value));
        let durability: Option<Durability> =
            now.get("durability").and_then(|text| text.parse().ok());
        let is_synced = durability.unwrap_or_default() == Durability::Sync;
        for name in changed.keys() {
            let why = match self.setting(name)?.alter {
                Alter::Live(_) | Alter::Later(_) => continue,
                Alter::Synced(_) if is_synced => continue,
                Alter::Synced(_) => UNSYNCED,
                Alter::Never(why) => why,
            };
            return Err(CatalogRefusal::Fixed { name: name.clone(), why: why.to_string() });
        }
        let mut all = now.clone();
        all.extend(changed.clone());
        self.agree(&all)?;
        Ok(changed)
    }

    fn spell(&self, asked: &Settings) -> Result<Settings, CatalogRefusal> {
        let spelt = asked.iter().map(|(name, value)| {
            let wrong = |expected| {
                let (name, value) = (name.clone(), value.clone());
                CatalogRefusal::Value { name, value, expected }
            };
            let value = self.setting(name)?.takes.spell(value).map_err(wrong)?;
            Ok((name.clone(), value))
        });
        spelt.collect()
    }

    fn setting(&self, name: &str) -> Result<&Setting, CatalogRefusal> {
        self.settings.iter().find(|setting| setting.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.settings.iter().map(|setting| setting.name).collect();
            CatalogRefusal::Setting {
                engine: self.name.to_string(),
                name: name.to_string(),
                known: known.join(", "),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing;

    const RULES: Engine = Engine {
        settings: &[
            Setting {
                name: "replicas",
                takes: Takes::Word(&["1", "3"]),
                default: "3",
                alter: Alter::Live("members come and go"),
            },
            Setting {
                name: "value",
                takes: Takes::Whole(1, 100),
                default: "10",
                alter: Alter::Live("longer ones stay"),
            },
            Setting {
                name: "durability",
                takes: Takes::Durability,
                default: "sync",
                alter: Alter::Never("it says what is on disk"),
            },
        ],
        ..testing::ENGINE
    };

    fn settings(pairs: &[(&str, &str)]) -> Settings {
        pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
    }

    #[test]
    fn settings_are_spelt_one_way_and_completed() {
        let all = RULES.complete(&settings(&[("durability", "periodic"), ("value", "007")]));
        let wanted =
            settings(&[("replicas", "3"), ("value", "7"), ("durability", "periodic=50ms")]);
        assert_eq!(all, Ok(wanted));
        let text = |pairs: &[(&str, &str)]| {
            RULES.complete(&settings(pairs)).expect_err("refused").to_string()
        };
        assert_eq!(
            text(&[("ttl", "1")]),
            "engine `fast` has no setting `ttl`; it has: replicas, value, durability"
        );
        assert_eq!(text(&[("replicas", "2")]), "setting `replicas` cannot be `2`; use 1 or 3");
        assert_eq!(
            text(&[("value", "101")]),
            "setting `value` cannot be `101`; use a whole number from 1 to 100"
        );
        assert!(text(&[("durability", "maybe")]).contains("expected `sync`"));
    }

    #[test]
    fn a_keyspace_of_an_older_build_is_refused_by_the_setting_that_it_lacks() {
        let mut all = RULES.complete(&Settings::new()).expect("defaults");
        assert_eq!(RULES.check(&all), Ok(()));
        all.remove("value");
        let older = RULES.check(&all).expect_err("that build did not have it").to_string();
        assert!(older.starts_with("the keyspace says nothing of `value`: it was made"), "{older}");
        // Setting it is enough.
        all.extend(RULES.alter(&all, &settings(&[("value", "7")])).expect("it may be altered"));
        assert_eq!(RULES.check(&all), Ok(()));
    }

    #[test]
    fn a_keyspace_need_not_say_what_came_later() {
        const LATER: Engine = Engine {
            settings: &[Setting {
                name: "reads",
                takes: Takes::Word(&["all", "some"]),
                default: "all",
                alter: Alter::Later("as it is asked"),
            }],
            ..testing::ENGINE
        };
        let older = Settings::new();
        assert_eq!(LATER.check(&older), Ok(()));
        assert_eq!(LATER.complete(&older), Ok(settings(&[("reads", "all")])));
        let altered = LATER.alter(&older, &settings(&[("reads", "some")]));
        assert_eq!(altered, Ok(settings(&[("reads", "some")])));
        assert!(LATER.check(&settings(&[("reads", "none")])).is_err());
    }

    #[test]
    fn copies_are_bounded_by_what_the_other_settings_say_also_when_those_change() {
        fn most(all: &Settings) -> u64 {
            all["value"].parse().unwrap_or(1)
        }
        let copies = Setting {
            name: "copies",
            takes: Takes::Copies(most),
            default: "1",
            alter: Alter::Live("at once"),
        };
        let [_, value, _] = RULES.settings else { panic!("three settings") };
        let value = Setting { alter: Alter::Live("at once"), ..*value };
        let settings_of = alloc::boxed::Box::leak(alloc::boxed::Box::new([value, copies]));
        let rules = Engine { settings: settings_of, ..testing::ENGINE };
        let all = rules.complete(&settings(&[("copies", "010")])).expect("ten are allowed");
        assert_eq!(all["copies"], "10");
        let text = |refused: CatalogRefusal| refused.to_string();
        let wanted = "setting `copies` cannot be `10`; use a whole number from 1 to 9, as the \
                      others are set";
        let fewer = rules.alter(&all, &settings(&[("value", "9")]));
        assert_eq!(fewer.map_err(text), Err(wanted.to_string()));
        assert!(rules.alter(&all, &settings(&[("value", "9"), ("copies", "9")])).is_ok());
        let none = rules.complete(&settings(&[("copies", "0")])).map_err(text);
        assert!(none.is_err_and(|text| text.ends_with("use a whole number from 1 on")));
    }

    #[test]
    fn only_what_may_be_altered_and_differs_is_altered() {
        let now = RULES.complete(&Settings::new()).expect("defaults");
        let asked = settings(&[("replicas", "1"), ("value", "10"), ("durability", "sync")]);
        assert_eq!(RULES.alter(&now, &asked), Ok(settings(&[("replicas", "1")])));
        let refused = RULES.alter(&now, &settings(&[("durability", "memory")]));
        let text = refused.expect_err("it is fixed").to_string();
        assert_eq!(text, "setting `durability` stays as it is: it says what is on disk");
    }

    #[test]
    fn what_rests_on_the_disk_is_altered_where_everything_is_synced() {
        let groups = Setting {
            name: "groups",
            takes: Takes::Whole(0, 256),
            default: "0",
            alter: Alter::Synced("keys move"),
        };
        let [_, _, durability] = RULES.settings else { panic!("three settings") };
        let durability = Setting { alter: Alter::Never("it is fixed"), ..*durability };
        let settings_of = alloc::boxed::Box::leak(alloc::boxed::Box::new([groups, durability]));
        let rules = Engine { settings: settings_of, ..testing::ENGINE };
        for (level, may) in [("sync", true), ("periodic", false), ("memory", false)] {
            let all = rules.complete(&settings(&[("durability", level)])).expect("it is one");
            let altered = rules.alter(&all, &settings(&[("groups", "3")]));
            assert_eq!(altered.is_ok(), may, "{level}: {altered:?}");
        }
    }
}
