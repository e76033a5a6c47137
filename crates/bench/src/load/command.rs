//! Commands as bytes: precomputed templates in which only the key and the value change.

use core::ops::Range;

use quorate_kernel::rng::Rng;

use crate::config::Wire;
use crate::load::distribution::fnv64;
use crate::zookeeper::nodes::NodeCommands;

/// The bytes of a key: `user` and sixteen hexadecimal digits of the hashed key number.
pub const KEY_BYTES: usize = 20;
/// Values are slices of this many random bytes (and one value more), so that blocks of values do
/// not compress, yet the source stays in the processor's cache.
const VALUE_SOURCE_BYTES: usize = 256 * 1024;

const KEY_PREFIX: &[u8] = b"user";
const HEX: &[u8; 16] = b"0123456789abcdef";

/// Writes commands for keys given by number, in the words of a wire.
#[derive(Debug)]
pub enum Commands {
    /// Redis's.
    Resp(RespCommands),
    /// ZooKeeper's.
    ZooKeeper(NodeCommands),
}

impl Commands {
    /// Templates for values of this size.
    #[must_use]
    pub fn new(wire: Wire, value_bytes: usize, seed: u64) -> Commands {
        let values = Values::new(value_bytes, seed);
        match wire {
            Wire::Resp => Commands::Resp(RespCommands::new(values)),
            Wire::ZooKeeper => Commands::ZooKeeper(NodeCommands::new(values)),
        }
    }

    /// The most keys that one command of the load phase can write.
    pub fn keys_per_command_max(&self) -> u64 {
        match self {
            Commands::Resp(_) => u64::MAX,
            Commands::ZooKeeper(_) => 1,
        }
    }

    /// Appends a read of this key.
    pub fn read(&mut self, key: u64, out: &mut Vec<u8>) {
        match self {
            Commands::Resp(commands) => commands.read(key, out),
            Commands::ZooKeeper(commands) => commands.read(key, out),
        }
    }

    /// Appends a write of this key with a value chosen by `draw`, any random number.
    pub fn write(&mut self, key: u64, draw: u64, out: &mut Vec<u8>) {
        match self {
            Commands::Resp(commands) => commands.write(key, draw, out),
            Commands::ZooKeeper(commands) => commands.write(key, draw, out),
        }
    }

    /// Appends the first write of these keys, in one command.
    pub fn write_many(&mut self, keys: Range<u64>, rng: &mut Rng, out: &mut Vec<u8>) {
        match self {
            Commands::Resp(commands) => commands.write_many(keys, rng, out),
            Commands::ZooKeeper(commands) => {
                keys.for_each(|key| commands.create(key, rng.next(), out));
            }
        }
    }
}

/// Random bytes of which values are slices.
#[derive(Debug)]
pub struct Values {
    source: Vec<u8>,
    /// The size of every value.
    pub bytes: usize,
}

impl Values {
    /// Values of this size.
    #[must_use]
    pub fn new(bytes: usize, seed: u64) -> Values {
        let mut rng = Rng::new(seed);
        let words = (VALUE_SOURCE_BYTES + bytes).div_ceil(8);
        Values { source: (0..words).flat_map(|_| rng.next().to_le_bytes()).collect(), bytes }
    }

    /// The value that a random number chooses.
    #[must_use]
    pub fn value(&self, draw: u64) -> &[u8] {
        let begin = draw as usize % VALUE_SOURCE_BYTES;
        &self.source[begin..begin + self.bytes]
    }
}

/// Writes Redis's commands.
#[derive(Debug)]
pub struct RespCommands {
    /// A whole GET; its key is written over.
    read: Vec<u8>,
    /// A SET up to the value's bytes; its key is written over.
    write_head: Vec<u8>,
    /// The length line of a value in a command of several keys.
    value_head: Vec<u8>,
    values: Values,
}

impl RespCommands {
    fn new(values: Values) -> RespCommands {
        let (blank, value_bytes) = ("0".repeat(KEY_BYTES), values.bytes);
        RespCommands {
            read: format!("*2\r\n$3\r\nGET\r\n${KEY_BYTES}\r\n{blank}\r\n").into_bytes(),
            write_head: format!("*3\r\n$3\r\nSET\r\n${KEY_BYTES}\r\n{blank}\r\n${value_bytes}\r\n")
                .into_bytes(),
            value_head: format!("\r\n${value_bytes}\r\n").into_bytes(),
            values,
        }
    }

    /// Appends a GET of this key.
    fn read(&self, key: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.read);
        let end = out.len() - 2;
        put_key(key, &mut out[end - KEY_BYTES..end]);
    }

    /// Appends a SET of this key to a value chosen by `draw`, any random number.
    fn write(&self, key: u64, draw: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.write_head);
        let end = out.len() - self.value_head.len();
        put_key(key, &mut out[end - KEY_BYTES..end]);
        out.extend_from_slice(self.values.value(draw));
        out.extend_from_slice(b"\r\n");
    }

    /// Appends one MSET of these keys.
    fn write_many(&self, keys: Range<u64>, rng: &mut Rng, out: &mut Vec<u8>) {
        let arguments = 1 + 2 * (keys.end - keys.start);
        out.extend_from_slice(format!("*{arguments}\r\n$4\r\nMSET\r\n").as_bytes());
        for key in keys {
            out.extend_from_slice(format!("${KEY_BYTES}\r\n").as_bytes());
            let begin = out.len();
            out.resize(begin + KEY_BYTES, 0);
            put_key(key, &mut out[begin..]);
            out.extend_from_slice(&self.value_head);
            out.extend_from_slice(self.values.value(rng.next()));
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Writes the key of this number into its place.
pub(crate) fn put_key(number: u64, place: &mut [u8]) {
    let (prefix, digits) = place.split_at_mut(KEY_PREFIX.len());
    prefix.copy_from_slice(KEY_PREFIX);
    for (pair, byte) in digits.chunks_exact_mut(2).zip(fnv64(number).to_be_bytes()) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 15)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(write: impl FnOnce(&RespCommands, &mut Vec<u8>), value_bytes: usize) -> String {
        let mut out = b"before".to_vec();
        write(&RespCommands::new(Values::new(value_bytes, 1)), &mut out);
        let printable = |byte: &u8| if *byte >= 128 { '?' } else { char::from(*byte) };
        out.iter().map(printable).collect()
    }

    #[test]
    fn commands_are_exact() {
        let key = format!("user{:016x}", fnv64(5));
        assert_eq!(
            text(|commands, out| commands.read(5, out), 3),
            format!("before*2\r\n$3\r\nGET\r\n$20\r\n{key}\r\n")
        );
        let write = text(|commands, out| commands.write(5, 0, out), 0);
        assert_eq!(write, format!("before*3\r\n$3\r\nSET\r\n$20\r\n{key}\r\n$0\r\n\r\n"));
        let many = text(|commands, out| commands.write_many(5..6, &mut Rng::new(1), out), 0);
        assert_eq!(many, format!("before*3\r\n$4\r\nMSET\r\n$20\r\n{key}\r\n$0\r\n\r\n"));
    }

    #[test]
    fn values_have_their_size_and_differ() {
        let commands = RespCommands::new(Values::new(1000, 1));
        let (mut first, mut second) = (Vec::new(), Vec::new());
        commands.write(1, 7, &mut first);
        commands.write(1, u64::MAX, &mut second);
        assert_eq!(first.len(), commands.write_head.len() + 1000 + 2);
        assert_ne!(first, second);
        let distinct: std::collections::BTreeSet<u8> = first.iter().copied().collect();
        assert!(distinct.len() > 200, "random bytes use most byte values");
    }
}
