//! What a move is measured against: the same records copied from one store to another of the same
//! kind over one loopback connection, without clients and without any protocol; and the connection
//! alone.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorate_cli::exit::Failure;
use quorate_cli::provision::{self, Doors, Plan};
use quorate_kernel::error::Fatal;
use quorate_kernel::ids::{LaneId, Lsn};
use quorate_kernel::process::Table;
use quorate_kernel::rng::mix;
use quorate_kernel::storage::{Batch, Class, Durability, Log, Nothing, Reader, Write, store_key};
use quorate_node::records::Records;
use quorate_node::table::{LaneReader, LaneTable};
use quorate_store::{Directory, Opened, Options};
use std::cell::RefCell;
use std::io::{BufReader, Read, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// How much one call of the copies moves.
const PIECE_BYTES: usize = 1 << 20;
/// The lane that the records are said to be of.
const LANE: LaneId = LaneId(1);
/// How long the stores are left alone before they are read: they merge what was written.
const REST: Duration = Duration::from_secs(2);

/// A pair of connected sockets.
fn connected() -> Result<(TcpStream, TcpStream), Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let sender = TcpStream::connect(listener.local_addr()?)?;
    Ok((sender, listener.accept()?.0))
}

/// How many seconds it takes to move this many bytes over one loopback connection, from memory to
/// nowhere.
///
/// # Errors
/// The operating system refused.
pub fn loopback_seconds(bytes: u64) -> Result<f64, Failure> {
    let (mut sender, mut receiver) = connected()?;
    let begun = Instant::now();
    let writer = std::thread::spawn(move || -> std::io::Result<()> {
        let piece = vec![7_u8; PIECE_BYTES];
        let mut left = bytes;
        while left > 0 {
            let size = left.min(PIECE_BYTES as u64);
            sender.write_all(&piece[..size as usize])?;
            left -= size;
        }
        Ok(())
    });
    let mut piece = vec![0_u8; PIECE_BYTES];
    while receiver.read(&mut piece)? > 0 {}
    writer.join().map_err(|_| Failure::failed("the copy panicked"))??;
    Ok(begun.elapsed().as_secs_f64())
}

/// A store as hosts have it: a lane's table, over the log and its database if anything is logged.
struct Store {
    table: LaneTable,
    records: RefCell<Records>,
    disk: Option<Opened>,
    lsn: Lsn,
}

impl Store {
    fn open(durability: Durability, directory: &Path) -> Result<Store, Failure> {
        let failed = |error: &dyn std::fmt::Display| Failure::failed(error.to_string());
        let disk = match durability {
            Durability::Memory => None,
            _ => {
                let directory = Directory::open(directory, None).map_err(|e| failed(&e))?;
                let clock = quorate_store::machine_clock();
                let opened = quorate_store::open(&directory, &Options::default(), clock);
                Some(opened.map_err(|error| failed(&error))?)
            }
        };
        let lsn = disk.as_ref().map_or(Lsn(0), |disk| disk.recovered);
        let (table, records) = (LaneTable::new(LANE, durability), RefCell::new(Records::new(0)));
        Ok(Store { table, records, disk, lsn })
    }

    /// Writes a piece; what is logged is handed to the operating system.
    fn write(&mut self, records: Vec<(Bytes, Bytes)>) -> Result<(), Fatal> {
        self.lsn = Lsn(self.lsn.0 + 1);
        let Some(disk) = &mut self.disk else {
            for (key, value) in records {
                let write = (Class::Data, key, Some(value));
                self.table.write(write, self.lsn, self.records.get_mut());
            }
            return Ok(());
        };
        let write = |(key, value): (Bytes, Bytes)| Write {
            key: store_key(LANE, Class::Data, &key),
            value: Some(value),
        };
        let writes = records.into_iter().map(write).collect();
        disk.log.apply(&[Batch { lsn: self.lsn, must_sync: true, writes }])
    }

    fn sync(&mut self) -> Result<(), Fatal> {
        self.disk.as_mut().map_or(Ok(()), |disk| disk.log.sync())
    }

    /// Shows every record, in order.
    fn each(&self, each: &mut dyn FnMut(&[u8], &Bytes) -> bool) {
        let fatal = RefCell::new(None);
        let store: &dyn Reader = self.disk.as_ref().map_or(&Nothing, |disk| &disk.reader);
        let reader =
            LaneReader { table: &self.table, records: &self.records, store, fatal: &fatal };
        reader.scan(Class::Data, &[], each);
    }
}

/// How many seconds it takes to read so many records from a store, move them over one loopback
/// connection and write them to another store of that durability; what must be synced is synced
/// once, at the end. No more than `rate` bytes are sent each second; 0 is no limit.
///
/// # Errors
/// The operating system refused, or a store failed.
pub fn store_seconds(
    durability: Durability,
    records: u64,
    value_bytes: usize,
    rate: u64,
) -> Result<f64, Failure> {
    let place = tempfile::tempdir()?;
    let doors = [1, 2].map(|number| Doors::on_this_machine(7000, number));
    let plan = Plan {
        hosts: doors.into_iter().collect::<Result<_, _>>()?,
        zones: Vec::new(),
        tokens: 1,
        keyspaces: Vec::new(),
        durability,
    };
    provision::write(&plan, place.path())?;
    let open = |number| Store::open(durability, &provision::host_directory(place.path(), number));
    let (mut source, mut target) = (open(1)?, open(2)?);
    fill(&mut source, records, value_bytes)?;
    std::thread::sleep(REST);
    let (sender, receiver) = connected()?;
    let begun = Instant::now();
    let reader = std::thread::spawn(move || send(&source, sender, rate));
    receive(&mut target, receiver)?;
    let took = begun.elapsed().as_secs_f64();
    reader.join().map_err(|_| Failure::failed("the copy panicked"))??;
    let mut copied = 0;
    target.each(&mut |_, _| {
        copied += 1;
        true
    });
    if copied != records {
        return Err(Failure::failed(format!("{copied} of {records} records were copied")));
    }
    Ok(took)
}

/// Keys are as evenly spread as hashes are.
fn fill(store: &mut Store, records: u64, value_bytes: usize) -> Result<(), Failure> {
    let value = Bytes::from(vec![7_u8; value_bytes]);
    let failed = |fatal: Fatal| Failure::failed(fatal.to_string());
    let mut number = 0;
    while number < records {
        let end = records.min(number + (PIECE_BYTES / value_bytes.max(1)) as u64 + 1);
        let key = |number: u64| {
            let name = format!("{:016x}key:{number:012}", mix(number));
            (Bytes::from(name), value.clone())
        };
        store.write((number..end).map(key).collect()).map_err(failed)?;
        number = end;
    }
    store.sync().map_err(failed)
}

fn send(source: &Store, mut to: TcpStream, rate: u64) -> std::io::Result<()> {
    let (mut piece, mut result) = (BytesMut::with_capacity(2 * PIECE_BYTES), Ok(()));
    let (begun, mut sent) = (Instant::now(), 0_usize);
    source.each(&mut |key, value| {
        piece.put_u32_le(key.len() as u32);
        piece.put_u32_le(value.len() as u32);
        piece.put_slice(key);
        piece.put_slice(value);
        if piece.len() >= PIECE_BYTES {
            sent += piece.len();
            result = send_piece(&mut to, &mut piece);
            if rate > 0 {
                let due = Duration::from_secs_f64(sent as f64 / rate as f64);
                std::thread::sleep(due.saturating_sub(begun.elapsed()));
            }
        }
        result.is_ok()
    });
    result?;
    send_piece(&mut to, &mut piece)
}

fn send_piece(to: &mut TcpStream, piece: &mut BytesMut) -> std::io::Result<()> {
    to.write_all(&(piece.len() as u32).to_le_bytes())?;
    to.write_all(piece)?;
    piece.clear();
    Ok(())
}

fn receive(target: &mut Store, from: TcpStream) -> Result<(), Failure> {
    let mut from = BufReader::new(from);
    let failed = |fatal: Fatal| Failure::failed(fatal.to_string());
    let mut length = [0; 4];
    while from.read_exact(&mut length).is_ok() {
        let mut piece = vec![0; u32::from_le_bytes(length) as usize];
        from.read_exact(&mut piece)?;
        let (mut piece, mut records) = (Bytes::from(piece), Vec::new());
        while piece.has_remaining() {
            let (key, value) = (piece.get_u32_le() as usize, piece.get_u32_le() as usize);
            let key = piece.split_to(key);
            records.push((key, piece.split_to(value)));
        }
        target.write(records).map_err(failed)?;
    }
    target.sync().map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_moves_what_it_says() {
        assert!(loopback_seconds(3 * PIECE_BYTES as u64 + 5).expect("loopback works") > 0.0);
        assert!(loopback_seconds(0).is_ok());
    }

    #[test]
    fn every_record_arrives_in_stores_of_each_kind() {
        for durability in [Durability::Memory, Durability::Sync] {
            // It fails unless all of them are there.
            assert!(store_seconds(durability, 2500, 1000, 0).expect("a copy") > 0.0);
        }
    }
}
