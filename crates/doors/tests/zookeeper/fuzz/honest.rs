//! Well-formed requests of each opcode, with any fields, and what they ask of the engine.

use crate::wire::framed;
use bytes::Bytes;
use quorate_kernel::rng::Rng;
use quorate_kernel::tree::{Acl, Act, Followed, Id, Item, Kind, Refollow, Zxid};

/// All that clients may ask.
pub const OPCODES: [i32; 26] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 14, 15, 17, 18, 19, 21, 22, 100, 101, 103, 104, 105, 106,
    107, -11,
];

/// A request.
#[derive(Debug)]
pub struct Request {
    pub xid: i32,
    /// It, in its frame.
    pub bytes: Vec<u8>,
    /// What it asks of the engine; none if the door answers it.
    pub act: Option<Act>,
}

/// The fields of a record.
#[derive(Default)]
struct Record(Vec<u8>);

impl Record {
    fn int(&mut self, number: i32) {
        self.0.extend(number.to_be_bytes());
    }

    fn long(&mut self, number: i64) {
        self.0.extend(number.to_be_bytes());
    }

    fn flag(&mut self, is_set: bool) {
        self.0.push(u8::from(is_set));
    }

    fn buffer(&mut self, bytes: &[u8]) {
        self.int(i32::try_from(bytes.len()).expect("it is short"));
        self.0.extend(bytes);
    }

    fn text(&mut self, text: &str) {
        self.buffer(text.as_bytes());
    }

    fn texts(&mut self, texts: &[String]) {
        self.int(i32::try_from(texts.len()).expect("they are few"));
        texts.iter().for_each(|text| self.text(text));
    }
}

/// A request of this opcode.
pub fn request(opcode: i32, rng: &mut Rng) -> Request {
    let (mut record, xid) = (Record::default(), rng.next() as i32);
    record.int(xid);
    record.int(opcode);
    let act = fields(opcode, &mut record, rng);
    Request { xid, bytes: framed(&record.0), act }
}

fn fields(opcode: i32, record: &mut Record, rng: &mut Rng) -> Option<Act> {
    Some(match opcode {
        14 | 22 => return several(opcode, record, rng),
        9 => Act::Sync { path: put_path(record, rng) },
        11 => Act::Ping,
        17 | 18 => {
            let (path, kind) = (put_path(record, rng), rng.below(5));
            record.int(kind as i32 + 1);
            use Followed::{Any, Children, Data, Persistent, Recursive};
            let kind = [Children, Data, Any, Persistent, Recursive][kind as usize];
            Act::Unfollow { path, kind, only_check: opcode == 17 }
        }
        100 => {
            let (scheme, credential) = (text(rng), any(rng, 40));
            record.int(0);
            record.text(&scheme);
            record.buffer(&credential);
            Act::Authenticate { scheme, credential: Bytes::from(credential) }
        }
        101 | 105 => {
            let seen = rng.next() >> 1;
            record.long(seen as i64);
            let mut refollow = Refollow { seen: Zxid(seen), ..Refollow::default() };
            let Refollow { data, absent, children, persistent, recursive, .. } = &mut refollow;
            let lists = [data, absent, children, persistent, recursive];
            for list in lists.into_iter().take(if opcode == 101 { 3 } else { 5 }) {
                *list = (0..rng.below(4)).map(|_| path(rng)).collect();
                record.texts(list);
            }
            Act::Refollow(refollow)
        }
        106 => {
            let (path, recursive) = (put_path(record, rng), rng.below(2) == 1);
            record.int(i32::from(recursive));
            Act::Follow { path, recursive }
        }
        107 => Act::WhoAmI,
        -11 => Act::Close,
        _ => Act::One(item(opcode, record, rng)),
    })
}

/// One thing, also in a multi.
fn item(opcode: i32, record: &mut Record, rng: &mut Rng) -> Item {
    match opcode {
        1 | 15 | 19 | 21 => create(opcode, record, rng),
        2 => Item::Delete { path: put_path(record, rng), version: put_version(record, rng) },
        3 => Item::Exists { path: put_path(record, rng), watch: put_flag(record, rng) },
        4 => Item::Get { path: put_path(record, rng), watch: put_flag(record, rng) },
        5 => {
            let (path, data) = (put_path(record, rng), put_data(record, rng));
            Item::Set { path, data, version: put_version(record, rng) }
        }
        6 => Item::GetAcl { path: put_path(record, rng) },
        7 => {
            let (path, acl) = (put_path(record, rng), put_acl(record, rng));
            Item::SetAcl { path, acl, version: put_version(record, rng) }
        }
        8 | 12 => Item::Children { path: put_path(record, rng), watch: put_flag(record, rng) },
        13 => Item::Check { path: put_path(record, rng), version: put_version(record, rng) },
        103 => Item::Ephemerals { prefix: put_path(record, rng) },
        104 => Item::CountBelow { path: put_path(record, rng) },
        _ => unreachable!("{opcode} is about no node"),
    }
}

fn create(opcode: i32, record: &mut Record, rng: &mut Rng) -> Item {
    let ttl_ms = 1 + rng.below((1 << 40) - 1);
    let (kind, flags) = match (opcode, rng.below(4)) {
        (19, _) => (Kind::Container, 4),
        (21, 0) => (Kind::Ttl(ttl_ms), 5),
        (21, _) => (Kind::Ttl(ttl_ms), 6),
        (_, 0) => (Kind::Persistent, 0),
        (_, 1) => (Kind::Ephemeral, 1),
        (_, 2) => (Kind::Persistent, 2),
        _ => (Kind::Ephemeral, 3),
    };
    let (path, data, acl) = (put_path(record, rng), put_data(record, rng), put_acl(record, rng));
    record.int(flags);
    if opcode == 21 {
        record.long(ttl_ms as i64);
    }
    Item::Create { path, data, acl, kind, sequential: matches!(flags, 2 | 3 | 6) }
}

/// Several things, and the header that ends them.
fn several(opcode: i32, record: &mut Record, rng: &mut Rng) -> Option<Act> {
    let kinds: &[i32] = if opcode == 14 { &[1, 2, 5, 13, 15, 19, 21] } else { &[4, 8] };
    let mut items = Vec::new();
    for _ in 0..rng.below(6) {
        let kind = *rng.pick(kinds).expect("there are some");
        element(record, kind, false);
        let mut one = item(kind, record, rng);
        if let Item::Get { watch, .. } | Item::Children { watch, .. } = &mut one {
            *watch = false;
        }
        items.push(one);
    }
    element(record, -1, true);
    match items.is_empty() {
        true => None,
        false if opcode == 14 => Some(Act::All(items)),
        false => Some(Act::Each(items)),
    }
}

fn element(record: &mut Record, kind: i32, is_end: bool) {
    record.int(kind);
    record.flag(is_end);
    record.int(-1);
}

fn put_path(record: &mut Record, rng: &mut Rng) -> String {
    let path = path(rng);
    record.text(&path);
    path
}

fn put_flag(record: &mut Record, rng: &mut Rng) -> bool {
    let is_set = rng.below(2) == 1;
    record.flag(is_set);
    is_set
}

fn put_version(record: &mut Record, rng: &mut Rng) -> Option<i32> {
    let version = if rng.below(2) == 0 { -1 } else { rng.next() as i32 };
    record.int(version);
    Some(version).filter(|version| *version != -1)
}

fn put_data(record: &mut Record, rng: &mut Rng) -> Option<Bytes> {
    if rng.below(5) == 0 {
        record.int(-1);
        return None;
    }
    let most = if rng.below(20) == 0 { 20_000 } else { 50 };
    let data = any(rng, most);
    record.buffer(&data);
    Some(Bytes::from(data))
}

fn put_acl(record: &mut Record, rng: &mut Rng) -> Vec<Acl> {
    let acl: Vec<Acl> = (0..rng.below(4))
        .map(|_| Acl {
            permissions: rng.next() as u32,
            id: Id { scheme: text(rng), id: text(rng) },
        })
        .collect();
    record.int(acl.len() as i32);
    for Acl { permissions, id } in &acl {
        record.int(permissions.cast_signed());
        record.text(&id.scheme);
        record.text(&id.id);
    }
    acl
}

/// The path of a node. Few names, so that several requests are about one.
fn path(rng: &mut Rng) -> String {
    const NAMES: [&str; 8] = ["a", "b", "ü", ".a", "a.", "...", "a b", "\u{ffef}"];
    let count = rng.below(4);
    let name = |_| *rng.pick(&NAMES).expect("there are some");
    format!("/{}", (0..count).map(name).collect::<Vec<_>>().join("/"))
}

fn text(rng: &mut Rng) -> String {
    const TEXTS: [&str; 6] = ["", "world", "anyone", "digest", "u:x", "ü\0"];
    String::from(*rng.pick(&TEXTS).expect("there are some"))
}

fn any(rng: &mut Rng, most: u64) -> Vec<u8> {
    (0..rng.below(most)).map(|_| rng.next() as u8).collect()
}
