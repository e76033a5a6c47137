//! Requests of ZooKeeper's clients as bytes: templates in which number, path and data change.

use core::ops::Range;

use quorate_doors::zookeeper::client;
use quorate_doors::zookeeper::wire::codes::opcode;
use quorate_doors::zookeeper::wire::jute::Frame;
use quorate_kernel::rope::Rope;

use crate::load::command::{KEY_BYTES, Values, put_key};

/// What a client asks for as the time-out of its session, in milliseconds.
const TIMEOUT_MS: u32 = 30_000;
/// All that can be done with a node.
const ALL_PERMISSIONS: i32 = 31;
/// The number of all pings.
const PING_XID: i32 = -2;
/// Any version of a node.
const ANY_VERSION: i32 = -1;
/// Where a frame has the number of its request.
const XID: Range<usize> = 4..8;
/// Where a frame has the key: behind number, opcode, the length of the path and its slash.
const KEY: Range<usize> = 17..17 + KEY_BYTES;
/// Where it has the data: behind the key and a length.
const DATA_BEGIN: usize = KEY.end + 4;

/// Asks for a new session; with this each connection begins.
#[must_use]
pub fn connect() -> Vec<u8> {
    client::connect(TIMEOUT_MS).to_vec()
}

fn bytes(frame: Frame) -> Vec<u8> {
    let mut out = Rope::default();
    frame.send(&mut out);
    out.to_bytes().to_vec()
}

/// Says that the client is there.
#[must_use]
pub fn ping() -> Vec<u8> {
    let mut frame = Frame::new();
    frame.int(PING_XID);
    frame.int(opcode::PING);
    bytes(frame)
}

/// A request for one node: it is made or set, without data, or else asked for and watched.
#[must_use]
pub fn request(xid: i32, kind: i32, path: &str) -> Vec<u8> {
    let mut frame = Frame::new();
    frame.int(xid);
    frame.int(kind);
    frame.string(path);
    match kind {
        opcode::CREATE => put_created(&[], &mut frame),
        opcode::SET_DATA => put_set(&[], &mut frame),
        _ => frame.boolean(true),
    }
    bytes(frame)
}

/// What is behind the path where a node is set.
fn put_set(data: &[u8], frame: &mut Frame) {
    frame.buffer(data);
    frame.int(ANY_VERSION);
}

/// The same where one is made: everybody may do everything with it.
fn put_created(data: &[u8], frame: &mut Frame) {
    frame.buffer(data);
    frame.count(1);
    frame.int(ALL_PERMISSIONS);
    frame.string("world");
    frame.string("anyone");
    frame.int(0);
}

/// Writes requests for nodes that are named by a key's number.
#[derive(Debug)]
pub struct NodeCommands {
    read: Vec<u8>,
    write: Vec<u8>,
    create: Vec<u8>,
    values: Values,
    /// The number of the last request.
    xid: i32,
}

impl NodeCommands {
    /// Templates for these values.
    #[must_use]
    pub fn new(values: Values) -> NodeCommands {
        let path = format!("/{}", "0".repeat(KEY_BYTES));
        let data = vec![0; values.bytes];
        let begin = |kind: i32| {
            let mut frame = Frame::new();
            frame.int(0);
            frame.int(kind);
            frame.string(&path);
            frame
        };
        let mut read = begin(opcode::GET_DATA);
        read.boolean(false);
        let mut write = begin(opcode::SET_DATA);
        put_set(&data, &mut write);
        let mut create = begin(opcode::CREATE);
        put_created(&data, &mut create);
        let [read, write, create] = [read, write, create].map(bytes);
        NodeCommands { read, write, create, values, xid: 0 }
    }

    /// Appends a `getData` of this key's node.
    pub fn read(&mut self, key: u64, out: &mut Vec<u8>) {
        self.xid = next(self.xid);
        put(&self.read, self.xid, key, out);
    }

    /// Appends a `setData` of this key's node, with a value chosen by `draw`.
    pub fn write(&mut self, key: u64, draw: u64, out: &mut Vec<u8>) {
        self.xid = next(self.xid);
        let place = put(&self.write, self.xid, key, out);
        place[DATA_BEGIN..][..self.values.bytes].copy_from_slice(self.values.value(draw));
    }

    /// Appends a `create` of this key's node, with a value chosen by `draw`.
    pub fn create(&mut self, key: u64, draw: u64, out: &mut Vec<u8>) {
        self.xid = next(self.xid);
        let place = put(&self.create, self.xid, key, out);
        place[DATA_BEGIN..][..self.values.bytes].copy_from_slice(self.values.value(draw));
    }
}

/// The number after this one; numbers of requests are above zero.
fn next(xid: i32) -> i32 {
    xid.checked_add(1).unwrap_or(1)
}

/// Appends a template with this number and key; what was appended.
fn put<'a>(template: &[u8], xid: i32, key: u64, out: &'a mut Vec<u8>) -> &'a mut [u8] {
    let begin = out.len();
    out.extend_from_slice(template);
    let place = &mut out[begin..];
    place[XID].copy_from_slice(&xid.to_be_bytes());
    put_key(key, &mut place[KEY]);
    place
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::distribution::fnv64;
    use quorate_doors::zookeeper::wire::jute::Reader;

    /// The number, opcode and path of a frame, and a reader of the rest.
    fn opened(bytes: &[u8]) -> (i32, i32, String, Reader<'_>) {
        let mut reader = Reader::new(bytes);
        assert_eq!(reader.int().unwrap() as usize, bytes.len() - 4, "its length is in front");
        let (xid, kind) = (reader.int().unwrap(), reader.int().unwrap());
        (xid, kind, reader.string().unwrap().unwrap(), reader)
    }

    #[test]
    fn requests_are_what_the_door_reads() {
        let mut commands = NodeCommands::new(Values::new(9, 1));
        let value = commands.values.value(77).to_vec();
        let path = format!("/user{:016x}", fnv64(5));
        let mut out = Vec::new();
        commands.read(5, &mut out);
        let (xid, kind, read, mut rest) = opened(&out);
        assert_eq!((xid, kind, read), (1, opcode::GET_DATA, path.clone()));
        assert_eq!((rest.boolean(), rest.boolean().is_err()), (Ok(false), true));

        out.clear();
        commands.write(5, 77, &mut out);
        let (xid, kind, written, mut rest) = opened(&out);
        assert_eq!((xid, kind, written), (2, opcode::SET_DATA, path.clone()));
        assert_eq!(rest.buffer(), Ok(Some(&value[..])));
        assert_eq!((rest.int(), rest.int().is_err()), (Ok(-1), true));

        out.clear();
        commands.create(5, 77, &mut out);
        let (xid, kind, made, mut rest) = opened(&out);
        assert_eq!((xid, kind, made), (3, opcode::CREATE, path));
        assert_eq!(rest.buffer(), Ok(Some(&value[..])));
        assert_eq!((rest.int(), rest.int()), (Ok(1), Ok(31)));
        assert_eq!(rest.string(), Ok(Some("world".to_owned())));
        assert_eq!(rest.string(), Ok(Some("anyone".to_owned())));
        assert_eq!((rest.int(), rest.int().is_err()), (Ok(0), true));
    }

    #[test]
    fn numbers_stay_above_zero() {
        assert_eq!((next(0), next(i32::MAX)), (1, 1));
    }
}
