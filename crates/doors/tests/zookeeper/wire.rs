//! Frames as they are on the wire, field by field in hexadecimal.

/// A field: its name, for the reader, and its bytes in hexadecimal with blanks between.
pub type Field<'a> = (&'a str, &'a str);

/// The bytes of some fields.
pub fn bytes(fields: &[Field<'_>]) -> Vec<u8> {
    let digits: String = fields.iter().flat_map(|(_, hex)| hex.split(' ')).collect();
    assert_eq!(digits.len() % 2, 0, "whole bytes: {fields:?}");
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect("hexadecimal");
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// A frame of some bytes, behind its length.
pub fn framed(body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len()).expect("a frame is short");
    [&length.to_be_bytes()[..], body].concat()
}

/// A frame of some fields.
pub fn frame(fields: &[Field<'_>]) -> Vec<u8> {
    framed(&bytes(fields))
}

/// A request with a header and these fields.
pub fn request(xid: i32, opcode: i32, fields: &[Field<'_>]) -> Vec<u8> {
    framed(&[&xid.to_be_bytes()[..], &opcode.to_be_bytes(), &bytes(fields)].concat())
}

/// An answer with a header and these fields.
pub fn answer(xid: i32, zxid: i64, code: i32, fields: &[Field<'_>]) -> Vec<u8> {
    let header = [&xid.to_be_bytes()[..], &zxid.to_be_bytes(), &code.to_be_bytes()].concat();
    framed(&[&header[..], &bytes(fields)].concat())
}

/// A short text behind its length, in hexadecimal.
pub fn text(text: &str) -> String {
    let mut hex = format!("{:08x}", text.len());
    text.bytes().for_each(|byte| hex += &format!("{byte:02x}"));
    hex
}

/// A request about a path, which further fields may follow.
pub fn about(xid: i32, opcode: i32, path: &str, rest: &[Field<'_>]) -> Vec<u8> {
    let path = text(path);
    request(xid, opcode, &[&[("path", &path[..])], rest].concat())
}

/// Reads a path, with or without a watch.
pub fn get(xid: i32, path: &str, watch: bool) -> Vec<u8> {
    about(xid, 4, path, &[("watch", if watch { "01" } else { "00" })])
}

/// A ping.
pub fn ping() -> Vec<u8> {
    request(-2, 11, &[])
}

/// The end of the session.
pub fn close(xid: i32) -> Vec<u8> {
    request(xid, -11, &[])
}

/// An event about a path.
pub fn event(kind: i32, path: &str) -> Vec<u8> {
    let (kind, path) = (format!("{kind:08x}"), text(path));
    answer(-1, -1, 0, &[("type", &kind), ("connected", "00000003"), ("path", &path)])
}

/// The frames in some bytes, each without its length, and what is left.
pub fn split(mut bytes: &[u8]) -> (Vec<Vec<u8>>, &[u8]) {
    let mut frames = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk() {
        let length = u32::from_be_bytes(*length) as usize;
        let Some((frame, rest)) = rest.split_at_checked(length) else { break };
        frames.push(frame.to_vec());
        bytes = rest;
    }
    (frames, bytes)
}
