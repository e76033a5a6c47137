//! Where a read or a write stands, and what an answer rests on.

use super::super::problem::{self, Problem};
use super::answer;
use super::ask::{self, Parameters};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use quorate_api::v1::place::Place as Where;
use quorate_api::v1::{Place, Receipt};

/// The header that carries the token of a receipt, in base64.
const TOKEN: &str = "x-quorate-token";
/// The headers that carry what else a receipt says.
const ACKS: &str = "x-quorate-acks";
const DEGRADED: &str = "x-quorate-degraded";
/// The parameter that names a version of a client.
pub const VERSION: &str = "version";

/// Where a read or a write stands: behind a token, or at a version.
pub fn of(headers: &HeaderMap, parameters: &Parameters) -> Result<Option<Place>, Problem> {
    let right = "give the token of an earlier answer as it was";
    let token = ask::decoded(headers, TOKEN, ("the token is no base64", right))?;
    let place = match (token, parameters.long(VERSION, 0, u64::MAX)?) {
        (None, None) => return Ok(None),
        (Some(token), None) => Where::After(token),
        (None, Some(version)) => Where::Version(version),
        (Some(_), Some(_)) => {
            let what = "a version is asked for behind a token: versions of clients have no order";
            return Err(problem::invalid(TOKEN, what, "give one of the two"));
        }
    };
    Ok(Some(Place { place: Some(place) }))
}

/// Adds a receipt as headers: its token where requests take it from, and what else it says.
pub fn with_receipt(mut response: Response, receipt: Option<&Receipt>) -> Response {
    let Some(Receipt { token, acks, is_degraded }) = receipt else { return response };
    let token = HeaderValue::try_from(answer::context(token));
    let headers = response.headers_mut();
    headers.insert(TOKEN, token.expect("base64 is a header's value"));
    headers.insert(ACKS, HeaderValue::from(*acks));
    headers.insert(DEGRADED, HeaderValue::from(u32::from(*is_degraded)));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::Uri;
    use bytes::Bytes;

    #[test]
    fn a_place_is_a_token_or_a_version() {
        let of = |token: Option<&'static str>, query: &str| {
            let uri: Uri = format!("/v1/kv/default/k{query}").parse().expect("a path");
            let parameters = Parameters::of(&uri, &[VERSION]).expect("it is known");
            let header = token.map(|token| (TOKEN, token));
            let headers = header.into_iter().map(|(name, value)| {
                (name.parse().expect("a name"), HeaderValue::from_static(value))
            });
            super::of(&headers.collect(), &parameters)
        };
        assert_eq!(of(None, ""), Ok(None));
        let token = Where::After(Bytes::from_static(b"\x01"));
        assert_eq!(of(Some("AQ=="), ""), Ok(Some(Place { place: Some(token) })));
        let version = Where::Version(7);
        assert_eq!(of(None, "?version=7"), Ok(Some(Place { place: Some(version) })));
        for (token, query, field) in [
            (Some("A"), "", TOKEN),
            (Some("AQ=="), "?version=7", TOKEN),
            (None, "?version=x", VERSION),
        ] {
            assert_eq!(of(token, query).expect_err("it breaks a rule").field, field);
        }
    }
}
