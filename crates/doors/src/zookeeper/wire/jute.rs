//! Jute, the codec: big-endian numbers, and lengths before strings, buffers and vectors.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;
use quorate_kernel::rope::Rope;

/// A shorter buffer is copied into its frame.
const SHARE_BYTES_MIN: usize = 4096;

/// The bytes are no such record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

/// Reads one record after the other from the front of a frame. What is behind the last one is not
/// looked at: later versions add fields at the end.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// At the front of these bytes.
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader(bytes)
    }

    /// A whole number of 32 bits.
    pub fn int(&mut self) -> Result<i32, Malformed> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(i32::from_be_bytes(*first))
    }

    /// A whole number of 64 bits.
    pub fn long(&mut self) -> Result<i64, Malformed> {
        let (first, rest) = self.0.split_first_chunk().ok_or(Malformed)?;
        self.0 = rest;
        Ok(i64::from_be_bytes(*first))
    }

    /// Any byte but 0 is true.
    pub fn boolean(&mut self) -> Result<bool, Malformed> {
        let (first, rest) = self.0.split_first().ok_or(Malformed)?;
        self.0 = rest;
        Ok(*first != 0)
    }

    /// Bytes behind their length; none if it is -1.
    pub fn buffer(&mut self) -> Result<Option<&'a [u8]>, Malformed> {
        let length = self.int()?;
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| Malformed)?;
        let (first, rest) = self.0.split_at_checked(length).ok_or(Malformed)?;
        self.0 = rest;
        Ok(Some(first))
    }

    /// Text. What is not UTF-8 becomes U+FFFD, as in Java, which no path may contain.
    pub fn string(&mut self) -> Result<Option<String>, Malformed> {
        Ok(self.buffer()?.map(|bytes| String::from_utf8_lossy(bytes).into_owned()))
    }

    /// Records behind their count, as long as there are bytes for them; no room is taken for what
    /// is only announced. A count below 0 is that of an absent vector.
    pub fn vector<T, E: From<Malformed>>(
        &mut self,
        mut record: impl FnMut(&mut Self) -> Result<T, E>,
    ) -> Result<Vec<T>, E> {
        let count = self.int()?;
        let mut all = Vec::new();
        for _ in 0..count {
            all.push(record(self)?);
        }
        Ok(all)
    }
}

/// A frame that is being written, with room for its length in front. Long buffers are part of it
/// without being copied.
#[derive(Debug)]
pub struct Frame {
    own: Vec<u8>,
    /// Each with how many of the own bytes are before it.
    shared: Vec<(usize, Bytes)>,
    length: usize,
}

impl Default for Frame {
    fn default() -> Frame {
        Frame::new()
    }
}

impl Frame {
    /// Nothing but the room for the length.
    pub fn new() -> Frame {
        Frame { own: vec![0; 4], shared: Vec::new(), length: 0 }
    }

    /// How many bytes follow the length.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    fn push(&mut self, bytes: &[u8]) {
        self.own.extend_from_slice(bytes);
        self.length += bytes.len();
    }

    /// A whole number of 32 bits.
    pub fn int(&mut self, value: i32) {
        self.push(&value.to_be_bytes());
    }

    /// A whole number of 64 bits.
    pub fn long(&mut self, value: i64) {
        self.push(&value.to_be_bytes());
    }

    /// One byte.
    pub fn boolean(&mut self, value: bool) {
        self.push(&[u8::from(value)]);
    }

    /// The length of what follows, or a count.
    pub fn count(&mut self, count: usize) {
        self.int(i32::try_from(count).unwrap_or(i32::MAX));
    }

    /// A buffer, copied.
    pub fn buffer(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.push(bytes);
    }

    /// A buffer, not copied if it is long; the length -1 alone if there is none.
    pub fn shared(&mut self, bytes: Option<&Bytes>) {
        let Some(bytes) = bytes else { return self.int(-1) };
        if bytes.len() < SHARE_BYTES_MIN {
            return self.buffer(bytes);
        }
        self.count(bytes.len());
        self.shared.push((self.own.len(), bytes.clone()));
        self.length += bytes.len();
    }

    /// A text.
    pub fn string(&mut self, text: &str) {
        self.buffer(text.as_bytes());
    }

    /// Several texts.
    pub fn strings(&mut self, texts: &[String]) {
        self.count(texts.len());
        texts.iter().for_each(|text| self.string(text));
    }

    /// Writes its length, then itself.
    pub fn send(mut self, out: &mut Rope) {
        let length = u32::try_from(self.length).expect("an answer is far below 4 GiB");
        self.own[..4].copy_from_slice(&length.to_be_bytes());
        let mut from = 0;
        for (until, bytes) in self.shared {
            out.push_slice(&self.own[from..until]);
            out.push(bytes);
            from = until;
        }
        out.push_slice(&self.own[from..]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn what_is_written_is_read() {
        let long = Bytes::from(vec![7; SHARE_BYTES_MIN]);
        let mut frame = Frame::new();
        frame.int(-2);
        frame.long(i64::MIN);
        frame.boolean(true);
        frame.shared(Some(&long));
        frame.string("a/ü");
        frame.shared(Some(&long));
        frame.shared(None);
        frame.strings(&["b".to_string(), String::new()]);
        let (mut out, length) = (Rope::default(), frame.len());
        frame.send(&mut out);
        let bytes = out.to_bytes();
        assert_eq!(bytes.len(), length + 4);
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.int(), Ok(length as i32));
        assert_eq!((reader.int(), reader.long()), (Ok(-2), Ok(i64::MIN)));
        assert_eq!(reader.boolean(), Ok(true));
        assert_eq!(reader.buffer(), Ok(Some(&long[..])));
        assert_eq!(reader.string(), Ok(Some("a/ü".to_string())));
        assert_eq!(reader.buffer(), Ok(Some(&long[..])));
        assert_eq!(reader.buffer(), Ok(None));
        let texts = reader.vector::<_, Malformed>(Reader::string);
        assert_eq!(texts, Ok(vec![Some("b".to_string()), Some(String::new())]));
        assert_eq!(reader.boolean(), Err(Malformed));
    }

    #[test]
    fn nothing_is_read_beyond_the_end_and_absent_is_not_empty() {
        assert_eq!(Reader::new(&[0, 0, 0]).int(), Err(Malformed));
        assert_eq!(Reader::new(&[0; 7]).long(), Err(Malformed));
        assert_eq!(Reader::new(&[0xff; 4]).buffer(), Ok(None));
        assert_eq!(Reader::new(&[0xff, 0xff, 0xff, 0xfe, 1]).buffer(), Err(Malformed));
        assert_eq!(Reader::new(&[0, 0, 0, 2, 1]).buffer(), Err(Malformed));
        assert_eq!(Reader::new(&[0, 0, 0, 1, 0xff]).string(), Ok(Some("\u{fffd}".to_string())));
        let ints = |bytes: &[u8]| Reader::new(bytes).vector::<_, Malformed>(Reader::int);
        assert_eq!(ints(&[0xff; 4]), Ok(vec![]));
        assert_eq!(ints(&[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1]), Err(Malformed));
    }
}
