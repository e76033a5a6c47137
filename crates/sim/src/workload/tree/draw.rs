//! What a client asks next.

use super::{Tree, without};
use crate::workload::fleet::Fleet;
use bytes::Bytes;
use quorate_kernel::operation::Operation;
use quorate_kernel::rng::Rng;
use quorate_kernel::tree::{Acl, Act, Ask, Followed, Item, Kind};

/// How many of a million reads begin a watch, if they can.
const WATCH_PPM: u32 = 400_000;
/// How many of a million changes name the version that must be there.
const VERSION_PPM: u32 = 300_000;
/// How many of a million nodes that a session makes end with it, and have a number.
const EPHEMERAL_PPM: u32 = 350_000;
const SEQUENTIAL_PPM: u32 = 250_000;
/// How many of a million operations of a session end it.
const CLOSE_PPM: u32 = 15_000;
/// How many children each node has that clients name.
const CHILDREN: u64 = 2;

impl Tree {
    /// All paths that clients name, but for numbered ones.
    fn paths(&self) -> Vec<String> {
        let of = |key: u64| {
            let children = (0..CHILDREN).map(move |child| format!("/k{key}/c{child}"));
            [format!("/k{key}")].into_iter().chain(children)
        };
        (0..self.keys).flat_map(of).collect()
    }

    /// Reads all that clients name, in the end.
    pub(super) fn last_read(&mut self, index: usize) -> Operation {
        let reads = |path: String| {
            let get = Item::Get { path: path.clone(), watch: false };
            [get, Item::Children { path, watch: false }]
        };
        let root = Item::Children { path: "/".to_owned(), watch: false };
        let items = self.paths().into_iter().flat_map(reads).chain([root]).collect();
        let client = &mut self.clients[index];
        client.has_read_all = true;
        let session = client.session();
        Operation::Tree(Ask { session, opening: None, act: Act::Each(items) }.into())
    }

    /// Draws what a client asks of its host, perhaps several things at once.
    pub(super) fn draw(&mut self, index: usize, fleet: &mut Fleet) -> Vec<Operation> {
        let seat = &mut fleet.seats[index];
        let has_sessions = self.clients[index].has_sessions;
        let most = if has_sessions { self.section.pipeline.min(u64::from(seat.left)) } else { 1 };
        let count = seat.rng.between(1, most.max(1));
        seat.left -= count as u32;
        let mut operations = Vec::new();
        for _ in 0..count {
            let operation = match self.clients[index].session() {
                Some(session) => {
                    let act = self.draw_act(index, true, &mut seat.rng);
                    Operation::Tree(Ask { session: Some(session), opening: None, act }.into())
                }
                None => self.draw_without(index, &mut seat.rng),
            };
            let is_close = matches!(&operation, Operation::Tree(ask) if ask.act == Act::Close);
            operations.push(operation);
            if is_close {
                break;
            }
        }
        // What is not begun is asked later.
        seat.left += count as u32 - operations.len() as u32;
        operations
    }

    fn value(&mut self) -> Bytes {
        self.written += 1;
        Bytes::from(self.written.to_string())
    }

    fn draw_path(&self, rng: &mut Rng) -> String {
        let mut paths = self.paths();
        let is_hot = rng.chance_ppm(self.section.hot_ppm);
        let among = if is_hot { 1 + CHILDREN } else { paths.len() as u64 };
        paths.swap_remove(rng.below(among) as usize)
    }

    /// What a client without a session asks: half of it in words of keys and values.
    fn draw_without(&mut self, index: usize, rng: &mut Rng) -> Operation {
        if rng.chance_ppm(500_000) {
            return without(self.draw_act(index, false, rng));
        }
        let key = Bytes::from(self.draw_path(rng));
        let section = &self.section;
        let (get, put, delete) = (section.get, section.put, section.delete);
        let drawn = rng.below(u64::from(get + put + delete)) as u32;
        if drawn < get {
            Operation::get(key)
        } else if drawn < get + put {
            Operation::put(key, self.value())
        } else {
            Operation::delete(key)
        }
    }

    fn draw_act(&mut self, index: usize, has_session: bool, rng: &mut Rng) -> Act {
        if has_session && rng.chance_ppm(CLOSE_PPM) {
            return Act::Close;
        }
        let section = &self.section;
        let (get, put, delete, check) = (section.get, section.put, section.delete, section.check);
        let scan = if has_session { section.scan } else { 0 };
        let drawn = rng.below(u64::from(get + put + delete + check + scan)) as u32;
        if drawn < get {
            self.draw_read(has_session, rng)
        } else if drawn < get + put {
            Act::One(self.draw_write(index, has_session, rng))
        } else if drawn < get + put + delete {
            Act::One(self.draw_delete(index, rng))
        } else if drawn < get + put + delete + check {
            let count = rng.between(1, self.section.items);
            Act::All((0..count).map(|_| self.draw_item(index, has_session, rng)).collect())
        } else {
            self.draw_follow(rng)
        }
    }

    fn draw_read(&self, has_session: bool, rng: &mut Rng) -> Act {
        let watch = has_session && rng.chance_ppm(WATCH_PPM);
        let path = self.draw_path(rng);
        match rng.below(20) {
            0..7 => Act::One(Item::Get { path, watch }),
            7..12 => Act::One(Item::Exists { path, watch }),
            12..15 => Act::One(Item::Children { path, watch }),
            15 => Act::One(Item::Children { path: "/".to_owned(), watch }),
            16 => {
                let other = self.draw_path(rng);
                let children = Item::Children { path: other, watch: false };
                Act::Each(vec![Item::Get { path, watch: false }, children])
            }
            17 => Act::Sync { path },
            18 => Act::One(Item::CountBelow { path: "/".to_owned() }),
            _ if has_session => Act::Ping,
            _ => Act::WhoAmI,
        }
    }

    fn draw_version(&self, index: usize, path: &str, rng: &mut Rng) -> Option<i32> {
        let known = self.clients[index].versions.get(path).copied();
        known.filter(|_| rng.chance_ppm(VERSION_PPM))
    }

    /// Sets a node to a value that nobody else writes, or makes one.
    fn draw_write(&mut self, index: usize, has_session: bool, rng: &mut Rng) -> Item {
        let (mut path, data) = (self.draw_path(rng), self.value());
        if rng.chance_ppm(400_000) {
            let version = self.draw_version(index, &path, rng);
            return Item::Set { path, data: Some(data), version };
        }
        let is_ephemeral = has_session && rng.chance_ppm(EPHEMERAL_PPM);
        let sequential = rng.chance_ppm(SEQUENTIAL_PPM);
        if sequential {
            let above = path.rfind('/').filter(|at| *at > 0).unwrap_or(path.len());
            path.truncate(above);
            path += "/s-";
        }
        let kind = if is_ephemeral { Kind::Ephemeral } else { Kind::Persistent };
        Item::Create { path, data: Some(data), acl: Acl::open(), kind, sequential }
    }

    fn draw_delete(&mut self, index: usize, rng: &mut Rng) -> Item {
        let numbered = &mut self.clients[index].numbered;
        if !numbered.is_empty() && rng.chance_ppm(600_000) {
            let at = rng.below(numbered.len() as u64) as usize;
            return Item::Delete { path: numbered.swap_remove(at), version: None };
        }
        let path = self.draw_path(rng);
        let version = self.draw_version(index, &path, rng);
        Item::Delete { path, version }
    }

    fn draw_item(&mut self, index: usize, has_session: bool, rng: &mut Rng) -> Item {
        match rng.below(4) {
            0 => {
                let path = self.draw_path(rng);
                let version = self.draw_version(index, &path, rng);
                Item::Check { path, version }
            }
            1 => self.draw_delete(index, rng),
            _ => self.draw_write(index, has_session, rng),
        }
    }

    fn draw_follow(&self, rng: &mut Rng) -> Act {
        let path = if rng.chance_ppm(200_000) { "/".to_owned() } else { self.draw_path(rng) };
        if rng.chance_ppm(650_000) {
            return Act::Follow { path, recursive: rng.chance_ppm(500_000) };
        }
        let kind = match rng.below(5) {
            0 => Followed::Data,
            1 => Followed::Children,
            2 => Followed::Persistent,
            3 => Followed::Recursive,
            _ => Followed::Any,
        };
        Act::Unfollow { path, kind, only_check: rng.chance_ppm(300_000) }
    }
}
