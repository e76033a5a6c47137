//! Updates of real hosts: a get, then a put with its context, in an open loop.

use bytes::Bytes;
use quorate_cli::client::{Client, Target, unexpected};
use quorate_cli::config::values::Length;
use quorate_cli::exit::Failure;
use quorate_cli::output::{Format, Output};
use quorate_doors::resp::client::RespReply;
use quorate_kernel::rng::Rng;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// The size of values.
pub const VALUE_BYTES: usize = 100;
/// How long a client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection that may have to be made anew.
pub struct Asker {
    target: Target,
    client: Option<Client>,
}

impl Asker {
    /// Asks a host about a keyspace.
    #[must_use]
    pub fn new(door: SocketAddr, keyspace: &str) -> Asker {
        let target = Target {
            endpoint: door.to_string(),
            keyspace: Some(keyspace.to_owned()),
            timeout: Length(PATIENCE),
            output: Output { format: Format::Text },
        };
        Asker { target, client: None }
    }

    fn call(&mut self, args: &[&[u8]]) -> Result<RespReply, Failure> {
        let mut client = match self.client.take() {
            Some(client) => client,
            None => Client::connect(&self.target)?,
        };
        let reply = client.call(args)?;
        self.client = Some(client);
        Ok(reply)
    }

    /// The context and the values of a key.
    ///
    /// # Errors
    /// The host does not answer, or refuses.
    pub fn get(&mut self, key: &str) -> Result<(Bytes, Vec<Bytes>), Failure> {
        let reply = self.call(&[b"CGET", key.as_bytes()])?;
        let RespReply::Array(parts) = &reply else { return Err(unexpected(&reply)) };
        let [RespReply::Bulk(context), RespReply::Array(values)] = &parts[..] else {
            return Err(unexpected(&reply));
        };
        let values = values.iter().filter_map(|value| value.as_bytes().cloned());
        Ok((context.clone(), values.collect()))
    }

    /// Writes in place of what a context covers.
    ///
    /// # Errors
    /// The host does not answer, or refuses.
    pub fn put(&mut self, key: &str, context: &[u8], value: &str) -> Result<(), Failure> {
        let reply = self.call(&[b"CSET", key.as_bytes(), context, value.as_bytes()])?;
        if matches!(reply, RespReply::Bulk(_)) { Ok(()) } else { Err(unexpected(&reply)) }
    }

    /// One update.
    ///
    /// # Errors
    /// One of its halves failed.
    pub fn update(&mut self, key: &str, value: &str) -> Result<(), Failure> {
        let (context, _) = self.get(key)?;
        self.put(key, &context, value)
    }
}

/// The name of a key.
#[must_use]
pub fn key(number: u64) -> String {
    format!("key-{number:07}")
}

/// A value that no other update writes.
#[must_use]
pub fn value(writer: u64, number: u64) -> String {
    format!("{writer:08}-{number:091}")
}

/// What one client does.
#[derive(Clone, Debug)]
pub struct Load {
    /// Which client it is; decides its randomness too.
    pub number: u64,
    /// Random ones of the keys below this number are updated.
    pub keys: u64,
    /// The time between two updates, on average.
    pub gap: Duration,
    /// When it counts: from the first to the second.
    pub window: (Instant, Instant),
    /// When it ends.
    pub end: Instant,
}

/// What clients saw.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// How long updates took, in microseconds.
    pub micros: Vec<u64>,
    /// How many failed.
    pub failed: u64,
}

/// Updates by one client, at exponential gaps that do not wait for answers. An update that is due
/// while the one before it is under way has begun when it was due.
pub fn run(mut asker: Asker, load: &Load) -> Seen {
    let mut rng = Rng::new(load.number);
    let mut seen = Seen::default();
    let mut due = Instant::now() + gap(&mut rng, load.gap);
    let mut number = 0;
    while due < load.end {
        let wait = due.saturating_duration_since(Instant::now());
        let begun = match wait.is_zero() {
            true => due,
            false => {
                std::thread::sleep(wait);
                Instant::now()
            }
        };
        let updated = asker.update(&key(rng.below(load.keys)), &value(load.number, number));
        if (load.window.0..load.window.1).contains(&due) {
            match updated {
                Ok(()) => seen.micros.push(micros(begun.elapsed())),
                Err(_) => seen.failed += 1,
            }
        }
        number += 1;
        due += gap(&mut rng, load.gap);
    }
    seen
}

/// A length of time in microseconds.
#[must_use]
pub fn micros(length: Duration) -> u64 {
    u64::try_from(length.as_micros()).unwrap_or(u64::MAX)
}

fn gap(rng: &mut Rng, mean: Duration) -> Duration {
    let unit = (rng.below(1 << 53) + 1) as f64 / (1_u64 << 53) as f64;
    mean.mul_f64(-unit.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_size_and_gaps_their_mean() {
        assert_eq!(value(3, 7).len(), VALUE_BYTES);
        assert_eq!(key(12).len(), 11);
        let mut rng = Rng::new(1);
        let all: Duration = (0..10_000).map(|_| gap(&mut rng, Duration::from_millis(10))).sum();
        assert!((95.0..105.0).contains(&all.as_secs_f64()), "{all:?}");
    }
}
