//! Writes, reads and lists some keys: `cargo run -p quorate-client --example hello -- HOST:PORT...`

use bytes::Bytes;
use quorate_client::{Client, ClientError, Scan};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), ClientError> {
    let mut hosts: Vec<String> = std::env::args().skip(1).collect();
    if hosts.is_empty() {
        hosts = ["7414", "7424", "7434"].map(|port| format!("127.0.0.1:{port}")).to_vec();
    }
    let keyspace = Client::new(&hosts)?.keyspace("default");
    for (name, greeting) in [("hello/en", "hello"), ("hello/de", "hallo"), ("hello/fr", "salut")] {
        match keyspace.put(name, greeting).await {
            Ok(()) => println!("wrote {name}"),
            // It may have been written, or be written later: look before doing it again.
            Err(ClientError::OutcomeUnknown { why, .. }) => println!("{name}: who knows? {why}"),
            Err(error) => return Err(error),
        }
    }
    let german = keyspace.get("hello/de").await?.unwrap_or_default();
    println!("read {}", String::from_utf8_lossy(&german));
    println!("removed French: {}", keyspace.delete("hello/fr").await?);
    let scan = Scan { with_values: true, ..Scan::default() };
    let show = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    for entry in keyspace.scan(scan).all().await? {
        println!("{} = {}", show(&entry.key), entry.value.as_ref().map(show).unwrap_or_default());
    }
    Ok(())
}
