//! Where the API's words of trees meet those of the kernel.

use super::failures;
use crate::native::problem::{self, Problem};
use bytes::Bytes;
use quorate_api::v1;
use quorate_api::v1::node_item::Action;
use quorate_kernel::limits::TRANSACTION_ITEMS_MAX;
use quorate_kernel::tree::{
    ALL, Acl, Act, Ask, Failure, Id, Item, Kind, Password, SessionId, Stat, Told,
};

/// The longest time to live of a node in milliseconds, as ZooKeeper has it.
pub const TTL_MS_MAX: u64 = (1 << 40) - 1;

/// A node that is to be made; `field` is what an error calls it.
pub fn create(node: Option<v1::NewNode>, field: &str) -> Result<Item, Problem> {
    let Some(node) = node else {
        return Err(problem::invalid(field, "no node is given", "say which node is made"));
    };
    let Ok(kind) = v1::NodeKind::try_from(node.kind) else {
        let what = format!("the kind {}", node.kind);
        return Err(problem::invalid("kind", what, "ask for a kind of NodeKind"));
    };
    let kind = match (kind, node.ttl_ms) {
        (v1::NodeKind::Persistent, 0) => Kind::Persistent,
        (v1::NodeKind::Ephemeral, 0) => Kind::Ephemeral,
        (v1::NodeKind::Container, 0) => Kind::Container,
        (v1::NodeKind::Ttl, ttl_ms @ 1..=TTL_MS_MAX) => Kind::Ttl(ttl_ms),
        (v1::NodeKind::Ttl, ttl_ms) => {
            let what = format!("a time to live of {ttl_ms} ms");
            let right = format!("give one from 1 to {TTL_MS_MAX} milliseconds");
            return Err(problem::invalid("ttl_ms", what, right));
        }
        _ => {
            let what = "a time to live is given, but the node is of another kind";
            return Err(problem::invalid("ttl_ms", what, "leave it out, or ask for the kind ttl"));
        }
    };
    if kind == Kind::Container && node.sequential {
        let what = "a container has no number";
        return Err(problem::invalid("sequential", what, "make it without, or another kind"));
    }
    let acl = if node.acl.is_empty() { Acl::open() } else { acl(node.acl)? };
    let (path, data, sequential) = (node.path, Some(node.data), node.sequential);
    Ok(Item::Create { path, data, acl, kind, sequential })
}

/// An access list as the kernel has it. Permissions that there are not, and none, are refused.
pub fn acl(list: Vec<v1::Acl>) -> Result<Vec<Acl>, Problem> {
    let one = |it: v1::Acl| match it.permissions {
        1..=ALL => Ok(Acl { permissions: it.permissions, id: Id { scheme: it.scheme, id: it.id } }),
        _ => Err(failures::problem(Failure::InvalidAcl)),
    };
    list.into_iter().map(one).collect()
}

/// An access list as the API says it.
pub fn told_acl(list: Vec<Acl>) -> Vec<v1::Acl> {
    let one = |it: Acl| v1::Acl { permissions: it.permissions, scheme: it.id.scheme, id: it.id.id };
    list.into_iter().map(one).collect()
}

/// The items of a multi.
pub fn items(all: Vec<v1::NodeItem>) -> Result<Vec<Item>, Problem> {
    if !(1..=TRANSACTION_ITEMS_MAX).contains(&all.len()) {
        let what = format!("{} items", all.len());
        let right = format!("send one item at least and {TRANSACTION_ITEMS_MAX} at most");
        return Err(problem::invalid("items", what, right));
    }
    let one = |(at, item): (usize, v1::NodeItem)| {
        let field = format!("items[{at}]");
        Ok(match item.action {
            Some(Action::Create(node)) => {
                let made = create(Some(node), &field);
                made.map_err(|problem| Box::new(v1::Error { field, ..*problem }))?
            }
            Some(Action::Delete(it)) => Item::Delete { path: it.path, version: it.version },
            Some(Action::Check(it)) => Item::Check { path: it.path, version: it.version },
            Some(Action::Set(it)) => {
                Item::Set { path: it.path, data: Some(it.data), version: it.version }
            }
            None => {
                let what = "the item says nothing of what to do";
                let right = "set create, delete, set or check";
                return Err(problem::invalid(&field, what, right));
            }
        })
    };
    all.into_iter().enumerate().map(one).collect()
}

/// A session as its client shows it.
#[derive(Clone, Copy)]
pub struct Shown {
    /// Which.
    pub session: SessionId,
    /// What only its client knows.
    pub password: Password,
    /// Which opening of it the client asks in, if it says.
    pub opening: Option<u64>,
}

/// Reads what a client shows.
pub fn session(shown: &v1::Session) -> Result<Shown, Problem> {
    let password = Password::try_from(&shown.password[..]).map_err(|_| {
        let what = format!("a password of {} bytes", shown.password.len());
        problem::invalid("session.password", what, "give the one that the session was opened with")
    })?;
    let opening = Some(shown.opening).filter(|opening| *opening > 0);
    Ok(Shown { session: SessionId(shown.id), password, opening })
}

/// How a node is.
pub fn stat(stat: &Stat) -> v1::Stat {
    v1::Stat {
        czxid: stat.czxid.0,
        mzxid: stat.mzxid.0,
        pzxid: stat.pzxid.0,
        ctime_ms: stat.ctime,
        mtime_ms: stat.mtime,
        version: stat.version,
        cversion: stat.cversion,
        aversion: stat.aversion,
        ephemeral_owner: stat.ephemeral_owner.0,
        data_length: stat.data_length,
        children: stat.children,
    }
}

/// What the items of a multi were told; if one has failed, which, and why.
pub fn answers(told: Vec<Result<Told, Failure>>) -> Result<Vec<v1::NodeItemAnswer>, Problem> {
    let is_cause = |failure: &Failure| !matches!(failure, Failure::NotDone | Failure::NotTried);
    let cause = told.iter().enumerate().find_map(|(at, told)| match told {
        Err(failure) if is_cause(failure) => Some((at, *failure)),
        _ => None,
    });
    if let Some((at, failure)) = cause {
        let field = format!("items[{at}]");
        return Err(Box::new(v1::Error { field, ..*failures::problem(failure) }));
    }
    let one = |told: Result<Told, Failure>| match told {
        Ok(Told::Created { path, stat: made }) => {
            Ok(v1::NodeItemAnswer { path, stat: Some(stat(&made)) })
        }
        Ok(Told::Stat(set)) => {
            Ok(v1::NodeItemAnswer { stat: Some(stat(&set)), ..Default::default() })
        }
        Ok(Told::Done) => Ok(v1::NodeItemAnswer::default()),
        _ => Err(problem::mismatch()),
    };
    told.into_iter().map(one).collect()
}

/// All that is asked, in pieces by which two requests can be told apart: data by itself, since it
/// is long, and all else as text.
pub fn pieces(ask: &Ask) -> Vec<(String, Option<Bytes>)> {
    let whose = (format!("{:?}", ask.session), None);
    let (name, items) = match &ask.act {
        Act::One(item) => ("one", std::slice::from_ref(item)),
        Act::All(items) => ("all", &items[..]),
        act => return vec![whose, (format!("{act:?}"), None)],
    };
    let one = |item: &Item| {
        let (mut rest, mut long) = (item.clone(), None);
        if let Item::Create { data, .. } | Item::Set { data, .. } = &mut rest {
            long = data.take();
        }
        (format!("{rest:?}"), long)
    };
    let name = (String::from(name), None);
    [whose, name].into_iter().chain(items.iter().map(one)).collect()
}

/// Whether two passwords are the same, in a time that does not tell where they differ.
pub fn is_same(one: &Password, other: &Password) -> bool {
    one.iter().zip(other).fold(0, |all, (one, other)| all | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_api::v1::{NewNode, NodeFailure, NodeItem, NodeKind, NodeVersion};

    fn node(kind: NodeKind, ttl_ms: u64, sequential: bool) -> Option<NewNode> {
        let path = String::from("/a");
        Some(NewNode { path, kind: kind.into(), ttl_ms, sequential, ..NewNode::default() })
    }

    #[test]
    fn a_time_to_live_goes_with_its_kind_alone() {
        for (kind, ttl_ms, made) in [
            (NodeKind::Persistent, 0, Kind::Persistent),
            (NodeKind::Ephemeral, 0, Kind::Ephemeral),
            (NodeKind::Container, 0, Kind::Container),
            (NodeKind::Ttl, TTL_MS_MAX, Kind::Ttl(TTL_MS_MAX)),
        ] {
            let item = create(node(kind, ttl_ms, false), "node").expect("it is right");
            let Item::Create { kind, acl, data, .. } = item else { panic!("it is made") };
            assert_eq!((kind, acl, data), (made, Acl::open(), Some(Bytes::new())));
        }
        for (asked, field) in [
            (node(NodeKind::Ttl, 0, false), "ttl_ms"),
            (node(NodeKind::Ttl, TTL_MS_MAX + 1, false), "ttl_ms"),
            (node(NodeKind::Persistent, 1, false), "ttl_ms"),
            (node(NodeKind::Container, 0, true), "sequential"),
            (Some(NewNode { kind: 4, ..NewNode::default() }), "kind"),
            (Some(NewNode { kind: -1, ..NewNode::default() }), "kind"),
            (None, "node"),
        ] {
            assert_eq!(create(asked, "node").expect_err("it is wrong").field, field);
        }
    }

    #[test]
    fn an_entry_of_an_access_list_has_some_of_the_permissions_that_there_are() {
        let list = |permissions| {
            let (scheme, id) = (String::from("world"), String::from("anyone"));
            vec![v1::Acl { permissions, scheme, id }]
        };
        for permissions in [1, 31] {
            let told = acl(list(permissions)).expect("it is right");
            assert_eq!(told_acl(told), list(permissions));
        }
        for permissions in [0, 32, u32::MAX] {
            let why = acl(list(permissions)).expect_err("it is wrong");
            let told = (why.field.as_str(), why.kind(), why.node_failure());
            assert_eq!(told, ("acl", v1::Kind::Invalid, NodeFailure::InvalidAcl));
            let node = NewNode { acl: list(permissions), ..NewNode::default() };
            assert_eq!(create(Some(node), "node").expect_err("it is wrong").field, "acl");
        }
    }

    #[test]
    fn a_multi_has_items_that_say_what_to_do() {
        let check = |path: &str| {
            let path = String::from(path);
            NodeItem { action: Some(Action::Check(NodeVersion { path, version: Some(3) })) }
        };
        let asked = items(vec![check("/a")]).expect("it is right");
        assert_eq!(asked, [Item::Check { path: String::from("/a"), version: Some(3) }]);
        let many = vec![check("/a"); TRANSACTION_ITEMS_MAX + 1];
        for (asked, field) in [(vec![], "items"), (many, "items")] {
            assert_eq!(items(asked).expect_err("it is wrong").field, field);
        }
        let nothing = vec![check("/a"), NodeItem::default()];
        assert_eq!(items(nothing).expect_err("it is wrong").field, "items[1]");
        let container = Action::Create(node(NodeKind::Container, 0, true).expect("a node"));
        let nested = vec![NodeItem { action: Some(container) }];
        assert_eq!(items(nested).expect_err("it is wrong").field, "items[0]");
    }

    #[test]
    fn the_item_that_failed_is_told_and_not_those_that_failed_with_it() {
        let told = vec![Err(Failure::NotDone), Err(Failure::BadVersion), Err(Failure::NotTried)];
        let why = answers(told).expect_err("it failed");
        assert_eq!((why.field.as_str(), why.node_failure()), ("items[1]", NodeFailure::BadVersion));
        let done = answers(vec![Ok(Told::Done), Ok(Told::Stat(Stat::default()))]).expect("done");
        assert_eq!((done.len(), done[0].stat.is_some(), done[1].stat.is_some()), (2, false, true));
    }

    #[test]
    fn requests_that_differ_have_pieces_that_do() {
        let set = |session: u64, path: &str, data: &'static str, version| {
            let session = Some(SessionId(session));
            let data = Some(Bytes::from_static(data.as_bytes()));
            pieces(&Ask {
                session,
                opening: None,
                act: Act::One(Item::Set { path: path.into(), data, version }),
            })
        };
        let one = set(1, "/a", "x", None);
        assert_eq!(one, set(1, "/a", "x", None));
        for other in [
            set(2, "/a", "x", None),
            set(1, "/b", "x", None),
            set(1, "/a", "y", None),
            set(1, "/a", "x", Some(0)),
        ] {
            assert_ne!(one, other);
        }
        let check = Item::Check { path: "/a".into(), version: Some(3) };
        assert_ne!(
            pieces(&Ask { session: None, opening: None, act: Act::One(check.clone()) }),
            pieces(&Ask { session: None, opening: None, act: Act::All(vec![check]) }),
            "they are told other things"
        );
        assert_ne!(
            pieces(&Ask { session: None, opening: None, act: Act::Close }),
            pieces(&Ask { session: None, opening: None, act: Act::Ping })
        );
    }
}
