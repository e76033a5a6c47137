//! Who may do what with a node: lists of it, as ZooKeeper reads them.

use super::command::Who;
use super::object::Node;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::net::IpAddr;
use quorate_kernel::limits::TREE_ACL_MAX;
use quorate_kernel::tree::{self as words, Acl, Failure, Id};

/// The most bytes of the id of one entry: lists go with what is told of a node's changes.
const ID_BYTES_MAX: usize = 1024;

/// The client must have one of these permissions of the node.
///
/// # Errors
/// [`Failure::NoAuth`]: it has none.
pub fn require(node: &Node, permissions: u32, who: &Who) -> Result<(), Failure> {
    let Some(acl) = &node.acl else { return Ok(()) };
    grants(acl, permissions, who).then_some(()).ok_or(Failure::NoAuth)
}

/// Whether a list gives a client one of these permissions.
#[must_use]
pub fn grants(acl: &[Acl], permissions: u32, who: &Who) -> bool {
    let grants = |entry: &Acl| entry.permissions & permissions != 0 && is_of(&entry.id, who);
    acl.iter().any(grants)
}

/// The list of a node that not everybody may read.
#[must_use]
pub fn guard(node: &Node) -> Option<Arc<[Acl]>> {
    let anyone = |entry: &Acl| entry.permissions & words::READ != 0 && entry.id == Id::anyone();
    node.acl.clone().filter(|acl| !acl.iter().any(anyone))
}

/// The list of a node as somebody sees it who may read it: the digests of passwords are for those
/// alone who may set it.
pub fn shown(node: &Node, who: &Who) -> Vec<Acl> {
    let mut acl = node.acl();
    if require(node, words::ADMIN, who).is_err() {
        for entry in acl.iter_mut().filter(|entry| entry.id.scheme == "digest") {
            let user = entry.id.id.split(':').next().unwrap_or_default();
            entry.id.id = [user, ":x"].concat();
        }
    }
    acl
}

/// The list that a client gives a node: `auth` is whoever the client has shown that it is, and what
/// is there twice is there once. None is everybody everything.
///
/// # Errors
/// [`Failure::InvalidAcl`]: there is nothing in it, or somebody of no scheme that is known here, or
/// it is too long, or one of its ids is.
pub fn given(acl: &[Acl], who: &Who) -> Result<Option<Arc<[Acl]>>, Failure> {
    if acl.is_empty() || acl.len() > TREE_ACL_MAX {
        return Err(Failure::InvalidAcl);
    }
    let mut list: Vec<Acl> = Vec::new();
    let mut add = |permissions, id: &Id| {
        if !list.iter().any(|had| had.permissions == permissions && had.id == *id) {
            list.push(Acl { permissions, id: id.clone() });
        }
    };
    for Acl { permissions, id } in acl {
        let is_valid = match id.scheme.as_str() {
            "world" => id.id == "anyone",
            "digest" => is_digest(&id.id),
            "ip" => Network::of(&id.id).is_some(),
            "auth" => {
                let digests = who.ids.iter().filter(|id| id.scheme == "digest");
                digests.map(|id| add(*permissions, id)).count() > 0
            }
            _ => false,
        };
        if !is_valid {
            return Err(Failure::InvalidAcl);
        }
        if id.scheme != "auth" {
            add(*permissions, id);
        }
    }
    // Also with those in it that the client has shown.
    if list.len() > TREE_ACL_MAX || list.iter().any(|entry| entry.id.id.len() > ID_BYTES_MAX) {
        return Err(Failure::InvalidAcl);
    }
    let is_open = list == Acl::open();
    Ok((!is_open).then(|| list.into()))
}

/// The list of nodes that everybody may read, and nobody change.
pub fn read_only() -> Option<Arc<[Acl]>> {
    Some([Acl { permissions: words::READ, id: Id::anyone() }].into())
}

fn is_of(id: &Id, who: &Who) -> bool {
    match id.scheme.as_str() {
        "world" => id.id == "anyone",
        "ip" => who.peer.zip(Network::of(&id.id)).is_some_and(|(peer, net)| net.has(peer)),
        _ => who.ids.contains(id),
    }
}

/// A user, and the digest of its password.
fn is_digest(id: &str) -> bool {
    id.split_once(':').is_some_and(|(_, digest)| !digest.is_empty() && !digest.contains(':'))
}

/// Addresses whose first bits are these.
struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    /// Reads an address, or one with the number of bits that count.
    fn of(text: &str) -> Option<Network> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(most);
        (bits <= most).then_some(Network { address, bits })
    }

    fn has(&self, peer: IpAddr) -> bool {
        // A socket of both families gives addresses of the older one in those of the newer one.
        let (differs, spare) = match (self.address, peer.to_canonical()) {
            (IpAddr::V4(of), IpAddr::V4(peer)) => {
                (u128::from(of.to_bits() ^ peer.to_bits()), 32 - self.bits)
            }
            (IpAddr::V6(of), IpAddr::V4(peer)) => {
                (of.to_bits() ^ peer.to_ipv6_mapped().to_bits(), 128 - self.bits)
            }
            (IpAddr::V6(of), IpAddr::V6(peer)) => (of.to_bits() ^ peer.to_bits(), 128 - self.bits),
            (IpAddr::V4(_), IpAddr::V6(_)) => return false,
        };
        differs.checked_shr(spare).unwrap_or(0) == 0
    }
}
