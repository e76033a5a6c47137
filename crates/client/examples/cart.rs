//! A shopping cart that loses no item, on whichever side of a partition it is filled.
//!
//! `quorate dev`, then `cargo run -p quorate-client --example cart -- milk bread`. Cut the hosts
//! apart with `quorate dev ctl partition 1 2,3`, fill the cart through two hosts by giving one
//! address each in `QUORATE_GRPC`, heal, and read it again.

use bytes::Bytes;
use quorate_client::Client;
use std::collections::BTreeSet;

/// The items of a cart, one a line.
fn items(cart: &[u8]) -> BTreeSet<String> {
    String::from_utf8_lossy(cart).lines().map(str::to_owned).collect()
}

fn cart(items: &BTreeSet<String>) -> Bytes {
    items.iter().cloned().collect::<Vec<_>>().join("\n").into()
}

/// What several carts come to: the items of all. An item that was removed from one and not from
/// another comes back; to remember removals, write them down as items of their own.
fn merge(carts: &[Bytes]) -> Bytes {
    cart(&carts.iter().flat_map(|one| items(one)).collect())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), quorate_client::ClientError> {
    let hosts = std::env::var("QUORATE_GRPC")
        .unwrap_or_else(|_| String::from("127.0.0.1:7414,127.0.0.1:7424,127.0.0.1:7434"));
    let hosts: Vec<&str> = hosts.split(',').collect();
    let carts = Client::new(&hosts)?.keyspace("causal").merging(merge);
    for item in std::env::args().skip(1) {
        let add = |now: Option<Bytes>| {
            let mut all = items(&now.unwrap_or_default());
            all.insert(item);
            Some(cart(&all))
        };
        carts.update("cart", add).await?;
    }
    let now = carts.get("cart").await?.unwrap_or_default();
    items(&now).iter().for_each(|item| println!("{item}"));
    Ok(())
}
