//! When keys expire, as parameters and as fields of items say it.

use super::super::expiry::END_MS_MAX;
use super::super::problem::{self, Problem};
use super::ask::Parameters;
use quorate_api::v1::expiry::End;
use quorate_api::v1::{self, ExpireWhen, expire};
use serde::Deserialize;

const AFTER: &str = "expire_after_ms";
const AT: &str = "expire_at_ms";
const KEEP: &str = "keep_expiry";
/// The parameters of a put that say it.
pub const PARAMETERS: [&str; 3] = [AFTER, AT, KEEP];

/// What an item says of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fields {
    pub expire_after_ms: Option<u64>,
    pub expire_at_ms: Option<u64>,
    pub keep_expiry: Option<bool>,
}

/// On which condition a key is given a time at which it expires.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum When {
    Always,
    IfNone,
    IfSome,
    IfLater,
    IfSooner,
    IfSomeAndSooner,
}

impl From<When> for ExpireWhen {
    fn from(when: When) -> ExpireWhen {
        match when {
            When::Always => ExpireWhen::Always,
            When::IfNone => ExpireWhen::IfNone,
            When::IfSome => ExpireWhen::IfSome,
            When::IfLater => ExpireWhen::IfLater,
            When::IfSooner => ExpireWhen::IfSooner,
            When::IfSomeAndSooner => ExpireWhen::IfSomeAndSooner,
        }
    }
}

/// When a key that is put expires, by the parameters of the request.
pub fn of_parameters(parameters: &Parameters) -> Result<Option<v1::Expiry>, Problem> {
    let fields = Fields {
        expire_after_ms: parameters.long(AFTER, 1, END_MS_MAX)?,
        expire_at_ms: parameters.long(AT, 1, END_MS_MAX)?,
        keep_expiry: Some(parameters.flag(KEEP)?),
    };
    of_put("expiry", fields)
}

/// When a key that is put expires, if it does; `field` is what an error calls it.
pub fn of_put(field: &str, fields: Fields) -> Result<Option<v1::Expiry>, Problem> {
    let Fields { expire_after_ms, expire_at_ms, keep_expiry } = fields;
    let end = match (expire_after_ms, expire_at_ms, keep_expiry.unwrap_or_default()) {
        (None, None, false) => return Ok(None),
        (Some(ms), None, false) => End::AfterMs(ms),
        (None, Some(ms), false) => End::AtMs(ms),
        (None, None, true) => End::Keep(v1::Keep {}),
        _ => {
            let what = "it says in more than one way when the key expires";
            let right = format!("give one of {AFTER}, {AT} and {KEEP}");
            return Err(problem::invalid(field, what, right));
        }
    };
    Ok(Some(v1::Expiry { end: Some(end) }))
}

/// What an item asks that gives a key a time at which it expires.
pub fn of_expire(field: &str, fields: Fields, when: Option<When>) -> Result<v1::Expire, Problem> {
    let end = match of_put(field, fields)?.and_then(|expiry| expiry.end) {
        Some(End::AfterMs(ms)) => expire::End::AfterMs(ms),
        Some(End::AtMs(ms)) => expire::End::AtMs(ms),
        Some(End::Keep(_)) | None => {
            let what = "it does not say when the key expires";
            return Err(problem::invalid(field, what, format!("give {AFTER} or {AT}")));
        }
    };
    let when = when.map_or(ExpireWhen::Always, ExpireWhen::from);
    Ok(v1::Expire { end: Some(end), when: when.into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_api::v1::Kind;

    fn of(query: &str) -> Result<Option<End>, Problem> {
        let uri = format!("/?{query}").parse().expect("a path");
        let parameters = Parameters::of(&uri, &PARAMETERS)?;
        Ok(of_parameters(&parameters)?.and_then(|expiry| expiry.end))
    }

    #[test]
    fn a_put_says_in_one_parameter_when_its_key_expires() {
        assert_eq!(of(""), Ok(None));
        assert_eq!(of("keep_expiry=false"), Ok(None));
        assert_eq!(of("keep_expiry=true"), Ok(Some(End::Keep(v1::Keep {}))));
        assert_eq!(of("expire_after_ms=1"), Ok(Some(End::AfterMs(1))));
        let last = of(&format!("expire_at_ms={END_MS_MAX}&keep_expiry=false"));
        assert_eq!(last, Ok(Some(End::AtMs(END_MS_MAX))));
        for bad in [
            "expire_after_ms=0",
            "expire_after_ms=-1",
            "expire_after_ms=1.5",
            "expire_at_ms=0",
            "expire_at_ms=4611686018427387904",
            "expire_at_ms=99999999999999999999",
            "keep_expiry=1",
            "expire_after_ms=1&expire_at_ms=1",
            "expire_after_ms=1&keep_expiry=true",
        ] {
            let problem = of(bad).expect_err("it is no time");
            assert_eq!(problem.kind(), Kind::Invalid, "{bad}");
            assert!(problem.right.starts_with("give "), "{problem:?}");
        }
    }

    #[test]
    fn an_item_that_expires_a_key_says_when() {
        let after = Fields { expire_after_ms: Some(9), ..Fields::default() };
        let asked = of_expire("items[0]", after, Some(When::IfLater)).expect("all is said");
        assert_eq!(asked.end, Some(expire::End::AfterMs(9)));
        assert_eq!(asked.when(), ExpireWhen::IfLater);
        assert_eq!(of_expire("items[0]", after, None).expect("it is").when(), ExpireWhen::Always);
        let keep = Fields { keep_expiry: Some(true), ..Fields::default() };
        for bad in [keep, Fields::default()] {
            let problem = of_expire("items[0]", bad, None).expect_err("it does not say when");
            assert_eq!(problem.field, "items[0]");
        }
    }
}
