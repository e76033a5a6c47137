//! A shopping cart that loses no item, whatever happens to the network.
//!
//! ```sh
//! quorate dev                                                            # in one terminal
//! cargo run -p quorate-client --example cart -- quorate dev ctl          # in another
//! ```
//!
//! Ann shops through host 1, Bob through host 2, and both fill the same cart, a key of a causal
//! keyspace. The network between them is cut, by the command that is given, and both go on. When it
//! is healed the cart has two values, one of each side, and the next who touches it merges them.
//!
//! The cart only grows here. Who takes something out says so in the value, for instance with a list
//! of what was taken: from a union alone an item that is missing on one side comes back.

use bytes::Bytes;
use quorate_client::{Causal, Client, ClientError};
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const CART: &str = "cart/ann-and-bob";
/// How long what one side has written may take to the other.
const HEALED_WITHIN: Duration = Duration::from_secs(60);
const AGAIN: Duration = Duration::from_millis(50);

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ClientError> {
    let command: Vec<String> = std::env::args().skip(1).collect();
    let network = |order: &str| {
        if let Some((program, first)) = command.split_first() {
            let mut all = Command::new(program);
            all.args(first).args(order.split(' ')).stdout(Stdio::null());
            assert!(all.status().is_ok_and(|status| status.success()), "{order}: not done");
        }
    };
    shop("127.0.0.1:7414", "127.0.0.1:7424", network).await.map(drop)
}

/// Ann and Bob shop through two hosts; what was in the cart in the end.
pub async fn shop(
    ann: &str,
    bob: &str,
    network: impl Fn(&str),
) -> Result<BTreeSet<String>, ClientError> {
    let (ann, bob) = (Shopper::new("Ann", ann)?, Shopper::new("Bob", bob)?);
    ann.add("ale").await?;
    bob.sees(1).await?;
    bob.add("bread").await?;
    ann.sees(2).await?;
    network("partition 1 2,3");
    ann.add("cheese").await?;
    bob.add("dates").await?;
    bob.add("eggs").await?;
    network("heal");
    ann.sees(5).await?;
    bob.sees(5).await?;
    println!("the cart has {} values", ann.carts.get(CART).await?.values.len());
    ann.add("figs").await?;
    bob.sees(6).await?;
    println!("the cart has {} value", bob.carts.get(CART).await?.values.len());
    bob.look().await
}

/// Somebody with a cart, who knows one host only.
struct Shopper {
    name: &'static str,
    carts: Causal,
}

impl Shopper {
    fn new(name: &'static str, host: &str) -> Result<Shopper, ClientError> {
        Ok(Shopper { name, carts: Client::new(&[host])?.causal("causal") })
    }

    /// Puts an item into the cart, and merges what others have put in beside it.
    async fn add(&self, item: &str) -> Result<(), ClientError> {
        let merge = |values: &[Bytes]| {
            let mut items = union(values);
            items.insert(item.to_owned());
            Some(Bytes::from(items.into_iter().collect::<Vec<_>>().join(",")))
        };
        let cart = self.carts.update(CART, merge).await?.unwrap_or_default();
        println!("{} adds {item}: {}", self.name, String::from_utf8_lossy(&cart));
        Ok(())
    }

    /// What is in the cart, as far as this shopper's host knows.
    async fn look(&self) -> Result<BTreeSet<String>, ClientError> {
        Ok(union(&self.carts.get(CART).await?.values))
    }

    /// Waits until so many items are in the cart.
    async fn sees(&self, count: usize) -> Result<(), ClientError> {
        let deadline = Instant::now() + HEALED_WITHIN;
        while self.look().await?.len() < count {
            assert!(Instant::now() < deadline, "the sides have not become equal in time");
            tokio::time::sleep(AGAIN).await;
        }
        Ok(())
    }
}

/// All items that any of the values has.
fn union(values: &[Bytes]) -> BTreeSet<String> {
    let items = |value: &Bytes| {
        let text = String::from_utf8_lossy(value);
        text.split(',').map(str::to_owned).collect::<Vec<_>>()
    };
    values.iter().flat_map(items).collect()
}
