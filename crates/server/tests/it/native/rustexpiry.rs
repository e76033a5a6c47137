//! Keys that expire, by the Rust client against real hosts.

use super::rustclient::{block_on, client};
use crate::support::cluster::{Cluster, until};
use bytes::Bytes;
use quorate_client::v1::{ExpireWhen, Kind, Unchanged};
use quorate_client::{ClientError, Expiry, ItemOutcome, Lifetime, Transaction};
use std::time::{Duration, SystemTime};

const SOON: Duration = Duration::from_millis(200);
const LATE: Duration = Duration::from_secs(3600);

/// The hosts of a cluster; each call has a client of its own.
struct Hosts(Vec<String>);

impl Hosts {
    fn get(&self, name: &str) -> Result<Option<Bytes>, ClientError> {
        block_on(async { client(&self.0).keyspace(name).get("a").await })
    }

    fn put(&self, name: &str, expiry: Option<Expiry>) -> Result<(), ClientError> {
        block_on(async {
            let keyspace = client(&self.0).keyspace(name);
            match expiry {
                Some(expiry) => keyspace.put_expiring("a", "v", expiry).await,
                None => keyspace.put("a", "v").await,
            }
        })
    }

    fn transact(&self, transaction: Transaction) -> Vec<ItemOutcome> {
        let told = block_on(async { client(&self.0).keyspace("bank").transact(transaction).await });
        told.expect("it is done")
    }
}

#[test]
fn keys_expire_where_the_engine_has_it_and_a_put_says_so_anew() {
    let keyspaces = ["--keyspace", "default=linearizable", "--keyspace", "bank=serializable"];
    let mut cluster = Cluster::create_with("memory", &keyspaces);
    cluster.start_all();
    let hosts = Hosts((1..=3).map(|host| cluster.grpc(host)).collect());
    let put = |expiry| hosts.put("bank", Some(expiry));

    assert_eq!(put(Expiry::After(SOON)), Ok(()));
    until("the key is gone", || hosts.get("bank") == Ok(None));
    let lock = || Transaction::new().put_if_expiring("lock", false, "me", Expiry::After(SOON));
    assert_eq!(hosts.transact(lock()), [ItemOutcome::Done]);
    let taken = ItemOutcome::Unchanged(Unchanged::Condition);
    until("the lock is free", || hosts.transact(lock()) != [taken.clone()]);

    assert_eq!(put(Expiry::At(SystemTime::now() + LATE)), Ok(()));
    assert_eq!(put(Expiry::Keep), Ok(()));
    let lifetime = || Transaction::new().lifetime("a");
    let told = hosts.transact(lifetime());
    let [ItemOutcome::Lifetime(Lifetime::Remaining(left))] = told[..] else {
        panic!("it expires: {told:?}")
    };
    assert!(left > Duration::ZERO && left <= LATE, "{left:?}");
    assert_eq!(hosts.put("bank", None), Ok(()));
    let asked = lifetime()
        .expire_after("a", SOON, ExpireWhen::IfSome)
        .expire_after("a", LATE, ExpireWhen::IfNone)
        .persist("a")
        .lifetime("a")
        .expire_at("a", SystemTime::UNIX_EPOCH + SOON, ExpireWhen::Always)
        .get("a");
    let endless = ItemOutcome::Lifetime(Lifetime::Endless);
    let [no, yes] = [false, true].map(ItemOutcome::Expiry);
    let gone = ItemOutcome::Value(None);
    let expected = [endless.clone(), no, yes.clone(), yes.clone(), endless, yes, gone];
    assert_eq!(hosts.transact(asked), expected);

    let never = put(Expiry::After(Duration::ZERO)).expect_err("it would never be there");
    assert_eq!(never.kind(), Some(Kind::Invalid), "{never}");
    let refused = hosts.put("default", Some(Expiry::After(LATE))).expect_err("it cannot");
    assert_eq!(refused.kind(), Some(Kind::Unsupported), "{refused}");
    assert_eq!(hosts.get("default"), Ok(None), "nothing was changed");
}
