//! A tiny RESP server for tests, one thread a connection, that misbehaves on request.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

/// What a toy does with a command, given its running number among those of GET and SET.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Answers it as it should.
    Serve,
    /// Answers with these bytes.
    Say(&'static str),
    /// Closes the connection without an answer.
    Close,
    /// Never answers it, nor anything after it.
    Hang,
}

/// What all connections of a toy share.
pub struct Toy {
    /// Where it listens.
    pub address: SocketAddr,
    /// Every key with its value.
    pub values: Mutex<HashMap<Vec<u8>, Vec<u8>>>,
    /// Every SET and GET in the order of arrival, by key.
    pub log: Mutex<Vec<(&'static str, Vec<u8>)>>,
    /// Connections taken so far.
    pub connection_count: AtomicU64,
    number: AtomicU64,
    act: Box<dyn Fn(u64) -> Act + Send + Sync>,
}

impl Toy {
    /// A toy on a free port that decides by this function what to do. The function may also wait:
    /// its connection then waits with it.
    pub fn start(act: impl Fn(u64) -> Act + Send + Sync + 'static) -> Arc<Toy> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let toy = Arc::new(Toy {
            address: listener.local_addr().unwrap(),
            values: Mutex::default(),
            log: Mutex::default(),
            connection_count: AtomicU64::new(0),
            number: AtomicU64::new(0),
            act: Box::new(act),
        });
        let shared = Arc::clone(&toy);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (stream, toy) = (stream.unwrap(), Arc::clone(&shared));
                toy.connection_count.fetch_add(1, Ordering::Relaxed);
                // A client that goes away in the middle ends its thread, which is as it should be.
                thread::spawn(move || serve(&toy, stream));
            }
        });
        toy
    }
}

fn serve(toy: &Toy, stream: TcpStream) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut output = stream.try_clone().ok()?;
    let mut input = BufReader::new(stream);
    loop {
        let command = read_command(&mut input)?;
        let name = command[0].to_ascii_uppercase();
        let is_counted = name == b"GET" || name == b"SET";
        let act = match is_counted {
            true => (toy.act)(toy.number.fetch_add(1, Ordering::Relaxed)),
            false => Act::Serve,
        };
        match act {
            Act::Serve => {}
            Act::Close => return None,
            Act::Hang => loop {
                thread::park();
            },
            Act::Say(text) => {
                output.write_all(text.as_bytes()).ok()?;
                continue;
            }
        }
        output.write_all(&answer(toy, &name, &command)).ok()?;
    }
}

fn answer(toy: &Toy, name: &[u8], command: &[Vec<u8>]) -> Vec<u8> {
    let mut values = toy.values.lock().unwrap();
    match name {
        b"GET" => {
            toy.log.lock().unwrap().push(("GET", command[1].clone()));
            match values.get(&command[1]) {
                Some(value) => {
                    let head = format!("${}\r\n", value.len());
                    [head.as_bytes(), value, b"\r\n"].concat()
                }
                None => b"$-1\r\n".to_vec(),
            }
        }
        b"SET" => {
            toy.log.lock().unwrap().push(("SET", command[1].clone()));
            values.insert(command[1].clone(), command[2].clone());
            b"+OK\r\n".to_vec()
        }
        b"MSET" => {
            for pair in command[1..].chunks(2) {
                values.insert(pair[0].clone(), pair[1].clone());
            }
            b"+OK\r\n".to_vec()
        }
        b"SELECT" if command[1] == b"known" => b"+OK\r\n".to_vec(),
        _ => b"-ERR unknown\r\n".to_vec(),
    }
}

fn read_command(input: &mut BufReader<TcpStream>) -> Option<Vec<Vec<u8>>> {
    let count = read_number(input, '*')?;
    (0..count)
        .map(|_| {
            let length = read_number(input, '$')?;
            let mut argument = vec![0; length + 2];
            input.read_exact(&mut argument).ok()?;
            assert!(argument.ends_with(b"\r\n"), "the client frames its arguments");
            argument.truncate(length);
            Some(argument)
        })
        .collect()
}

fn read_number(input: &mut BufReader<TcpStream>, kind: char) -> Option<usize> {
    let mut line = String::new();
    input.read_line(&mut line).ok()?;
    line.strip_prefix(kind)?.trim_end().parse().ok()
}
