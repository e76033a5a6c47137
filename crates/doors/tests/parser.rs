//! The request parser against every split, any bytes, and its limits.

use bytes::BytesMut;
use proptest::prelude::*;
use quorate_doors::resp::client::write_command;
use quorate_doors::resp::{Parser, ProtocolError};

const VALUE_MAX: usize = 1000;

/// All commands in pieces of the input, and the error that ended it.
fn parse<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Vec<Vec<u8>>>, Option<ProtocolError>) {
    let (mut parser, mut input, mut commands) =
        (Parser::new(VALUE_MAX), BytesMut::new(), Vec::new());
    for piece in pieces {
        input.extend_from_slice(piece);
        loop {
            match parser.next(&mut input) {
                Ok(Some(command)) => commands.push(command.args().map(<[u8]>::to_vec).collect()),
                Ok(None) => break,
                Err(error) => return (commands, Some(error)),
            }
        }
    }
    (commands, None)
}

fn args() -> impl Strategy<Value = Vec<Vec<u8>>> {
    prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 1..12)
}

/// Bytes that look like requests, so that a random string gets far.
fn nearly() -> impl Strategy<Value = Vec<u8>> {
    const TOKENS: &[&[u8]] = &[
        b"*",
        b"$",
        b"\r\n",
        b"\n",
        b"\r",
        b"0",
        b"1",
        b"2",
        b"-",
        b"9999999999",
        b"*1\r\n$4\r\nPING\r\n",
        b"*2\r\n$3\r\nGET\r\n",
        b"$1\r\na\r\n",
        b"ab",
        b" ",
        b"\"",
        b"'",
        b"\\x4",
        b"\xff",
    ];
    let token = prop::sample::select(TOKENS);
    prop::collection::vec(token, 0..30).prop_map(|tokens| tokens.concat())
}

proptest! {
    #[test]
    fn what_is_written_is_read(commands in prop::collection::vec(args(), 0..6), step in 1usize..50) {
        let mut bytes = BytesMut::new();
        for command in &commands {
            let args: Vec<&[u8]> = command.iter().map(|arg| &arg[..]).collect();
            write_command(&mut bytes, &args);
        }
        prop_assert_eq!(parse(bytes.chunks(step)), (commands, None));
    }

    #[test]
    fn a_split_changes_nothing(bytes in nearly(), at: prop::sample::Index) {
        let whole = parse([&bytes[..]]);
        let (first, second) = bytes.split_at(at.index(bytes.len() + 1));
        prop_assert_eq!(parse([first, second]), whole.clone());
        prop_assert_eq!(parse(bytes.chunks(1)), whole);
    }

    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>) {
        parse([&bytes[..]]);
    }
}

#[test]
fn errors_say_what_redis_says() {
    let long_line = vec![b'x'; 64 * 1024];
    let huge = format!("*2\r\n$3\r\nGET\r\n${}\r\n", VALUE_MAX + 1);
    let table: &[(&[u8], &str)] = &[
        (b"*x\r\n", "invalid multibulk length"),
        (b"*03\r\n", "invalid multibulk length"),
        (b"*1048577\r\n", "invalid multibulk length"),
        (b"*99999999999999999999\r\n", "invalid multibulk length"),
        (b"*1\r\nx\r\n", "expected '$', got 'x'"),
        (b"*1\r\n\r\n", "expected '$', got ' '"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (
            b"*1\r\n$1073741824\r\n",
            "invalid bulk length: 1073741824 bytes are over the limit of 1000",
        ),
        (huge.as_bytes(), "invalid bulk length: 1001 bytes are over the limit of 1000"),
        (b"*1\r\n$abc\r\n", "invalid bulk length"),
        (b"*1\r\n$4\r\nPINGxx", "expected CRLF after a bulk string"),
        (b"PING 'a\r\n", "unbalanced quotes in request"),
        (&long_line, "too big inline request"),
    ];
    for (bytes, text) in table {
        let (commands, error) = parse([*bytes]);
        assert!(commands.is_empty());
        assert_eq!(error.map(|e| e.to_string()), Some(format!("Protocol error: {text}")));
    }
    for fine in [&b"*-5\r\n"[..], b"*0\r\n", b"\r\n\n \r\n", b"*1\r\n$1000\r\n"] {
        assert_eq!(parse([fine]), (vec![], None));
    }
}

#[test]
fn all_arguments_together_have_a_limit() {
    let mut parser = Parser::new(48 << 20);
    let mut input = BytesMut::from(&b"*3\r\n$4\r\nMSET\r\n$41943040\r\n"[..]);
    input.resize(input.len() + 41_943_040, b'x');
    input.extend_from_slice(b"\r\n$41943040\r\n");
    let limit = 64 << 20;
    assert_eq!(parser.next(&mut input), Err(ProtocolError::Command { limit }));
}
