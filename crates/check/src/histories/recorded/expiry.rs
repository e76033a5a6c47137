//! When keys end, as fields of a line: times are milliseconds since 1970.

use super::read::Fields;
use alloc::format;
use alloc::string::{String, ToString};
use bytes::Bytes;
use quorate_kernel::expiry::{Expiry, Lifetime, When};
use quorate_kernel::time::WallTime;
use quorate_kernel::transaction::{Item, ItemOutcome};

/// When an end is set, by the word of it.
const WHENS: [(&str, When); 6] = [
    ("always", When::Always),
    ("none", When::IfNone),
    ("some", When::IfSome),
    ("later", When::IfLater),
    ("sooner", When::IfSooner),
    ("some_and_sooner", When::IfSomeAndSooner),
];

/// What becomes of the end of a key that is put: fields to add to the item.
pub(super) fn json_of_expiry(expiry: Expiry) -> String {
    match expiry {
        Expiry::Never => String::new(),
        Expiry::Keep => r#","keeps_end":true"#.to_string(),
        Expiry::At(WallTime(at)) => format!(r#","ends":{at}"#),
    }
}

/// The fields of an item that sets an end, but its key.
pub(super) fn json_of_expire(at: Option<WallTime>, when: When) -> String {
    let (word, _) = WHENS.iter().find(|(_, it)| *it == when).expect("each has a word");
    let at = at.map_or_else(|| "null".to_string(), |at| at.0.to_string());
    format!(r#","ends":{at},"when":"{word}""#)
}

/// How long a key is there, as JSON.
pub(super) fn json_of_lifetime(lifetime: Lifetime) -> String {
    let rest = match lifetime {
        Lifetime::Absent => r#""is":"absent""#.to_string(),
        Lifetime::Endless => r#""is":"endless""#.to_string(),
        Lifetime::Until(WallTime(at)) => format!(r#""is":"until","ends":{at}"#),
    };
    format!(r#"{{"outcome":"lifetime",{rest}}}"#)
}

/// Reads what becomes of the end of a key that is put.
pub(super) fn expiry_of(fields: &mut Fields) -> Result<Expiry, String> {
    if fields.has("keeps_end") && fields.flag("keeps_end")? {
        return Ok(Expiry::Keep);
    }
    match fields.has("ends") {
        true => Ok(Expiry::At(WallTime(fields.integer("ends")?))),
        false => Ok(Expiry::Never),
    }
}

/// Reads an item about the end of a key; none if it has another name.
pub(super) fn expire_of(
    name: &str,
    key: &Bytes,
    fields: &mut Fields,
) -> Result<Option<Item>, String> {
    let key = key.clone();
    match name {
        "lifetime" => Ok(Some(Item::Lifetime { key })),
        "expire" => {
            let whole = |value: &serde_json::Value| value.as_i64().ok_or("expected a whole number");
            let at = fields.nullable("ends", whole)?.map(WallTime);
            let said = fields.text("when")?;
            let when = WHENS.iter().find(|(word, _)| *word == said);
            let (_, when) = when.ok_or_else(|| format!("no end is set when {said:?}"))?;
            Ok(Some(Item::Expire { key, at, when: *when }))
        }
        _ => Ok(None),
    }
}

/// Reads what such an item was told; none if it has another name.
pub(super) fn outcome_of_expiry(
    name: &str,
    fields: &mut Fields,
) -> Result<Option<ItemOutcome>, String> {
    let lifetime = match name {
        "expiry" => return Ok(Some(ItemOutcome::Expiry { changed: fields.flag("changed")? })),
        "lifetime" => match fields.text("is")?.as_str() {
            "absent" => Lifetime::Absent,
            "endless" => Lifetime::Endless,
            "until" => Lifetime::Until(WallTime(fields.integer("ends")?)),
            other => return Err(format!("no key lives {other:?}")),
        },
        _ => return Ok(None),
    };
    Ok(Some(ItemOutcome::Lifetime(lifetime)))
}
