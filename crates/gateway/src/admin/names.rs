//! Whom a request may be for: the host answers to its own names only.
//!
//! A web page reads what its own host answers. If the page's name is made to point to this machine
//! while it is open (DNS rebinding), a browser would let it read this door; its requests still
//! carry the page's name. A name that is an address cannot be made to point anywhere.

use super::operate::failure;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header, uri::Authority};
use axum::middleware::Next;
use axum::response::Response;
use std::net::IpAddr;
use std::sync::Arc;

/// The names and addresses of this host.
#[derive(Clone, Debug)]
pub struct Names {
    /// Where the door listens.
    pub bind: IpAddr,
    /// Its names and further addresses, such as that of a port which is passed on to it: in lower
    /// case, without ports.
    pub names: Vec<String>,
}

impl Names {
    /// The names that the configuration gives, and those in addresses of this host.
    #[must_use]
    pub fn new<'a>(
        bind: IpAddr,
        configured: &[String],
        addresses: impl Iterator<Item = &'a str>,
    ) -> Names {
        let of_address = |text: &'a str| text.rsplit_once(':').map_or(text, |(name, _)| name);
        let names = configured.iter().map(String::as_str).chain(addresses.map(of_address));
        Names { bind, names: names.map(plain).collect() }
    }

    /// Whether a request for this `HOST` or `HOST:PORT` is meant for this host.
    fn allows(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else { return false };
        let name = plain(authority.host());
        let is_own = match name.parse::<IpAddr>() {
            // All addresses of the machine are the door's own if it listens on all of them.
            Ok(address) => {
                address.is_loopback() || address == self.bind || self.bind.is_unspecified()
            }
            Err(_) => name == "localhost",
        };
        is_own || self.names.contains(&name)
    }
}

/// A name as it is compared: in lower case, without the dot at its end, or the brackets of IPv6.
fn plain(name: &str) -> String {
    let bare = name.trim_matches(['[', ']']);
    let bare = bare.strip_suffix('.').unwrap_or(bare);
    match bare.parse::<IpAddr>() {
        // It may be written in several ways.
        Ok(address) => address.to_string(),
        Err(_) => bare.to_ascii_lowercase(),
    }
}

/// Refuses requests for other hosts. Programs that speak HTTP/1.0 may name none; browsers always
/// do.
pub(super) async fn check(
    State(names): State<Arc<Names>>,
    request: Request,
    next: Next,
) -> Response {
    let named = request.headers().get_all(header::HOST).iter();
    let absolute = request.uri().authority().map(Authority::as_str);
    let mut named = named.map(|value| value.to_str().unwrap_or_default()).chain(absolute);
    if let Some(other) = named.find(|host| !names.allows(host)) {
        let why = format!(
            "this host is not known as {other:?}: have http.hosts name it, or reach it where it \
             listens"
        );
        return failure(StatusCode::MISDIRECTED_REQUEST, why);
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_own_names_and_addresses_are_allowed() {
        let names = |bind: &str| {
            let addresses = ["Db-1.example:7411", "10.0.0.4:7411"];
            let bind = bind.parse().expect("an address");
            Names::new(bind, &[String::from("quorate.example")], addresses.into_iter())
        };
        let own = names("10.0.0.4");
        for allowed in [
            "localhost",
            "LOCALHOST:7412",
            "127.0.0.1:7412",
            "[::1]:7412",
            "10.0.0.4",
            "10.0.0.4:7412",
            "db-1.example:7412",
            "Quorate.Example",
            "quorate.example.:7412",
        ] {
            assert!(own.allows(allowed), "{allowed}");
        }
        for other in ["evil.example", "localhost.evil.example:7412", "10.0.0.5", "", "a b", "[::1"]
        {
            assert!(!own.allows(other), "{other}");
        }
        // Behind a port that is passed on, clients come by another address than the door has.
        let configured = ["[2001:DB8::4]", "2001:db8:0::5"].map(String::from);
        let addresses = ["192.168.1.10:7411", "[fd00::1]:7411"];
        let inner = "172.17.0.2".parse().expect("an address");
        let passed_on = Names::new(inner, &configured, addresses.into_iter());
        for allowed in
            ["172.17.0.2", "192.168.1.10:80", "[fd00:0::1]:1", "[2001:db8::4]", "[2001:db8::5]:1"]
        {
            assert!(passed_on.allows(allowed), "{allowed}");
        }
        assert!(!passed_on.allows("192.168.1.11") && !passed_on.allows("[fd00::2]"));
        assert!(names("0.0.0.0").allows("10.9.9.9:1") && !names("0.0.0.0").allows("evil.example"));
    }
}
