//! What the tests of a node share.

use bytes::Bytes;
use quorate_kernel::error::Fatal;
use quorate_kernel::storage::Reader;

/// A store that has nothing.
pub struct Empty;

impl Reader for Empty {
    fn get(&self, _key: &[u8]) -> Result<Option<Bytes>, Fatal> {
        Ok(None)
    }

    fn scan(
        &self,
        _from: &[u8],
        _to: &[u8],
        _each: &mut dyn FnMut(&Bytes, &Bytes) -> bool,
    ) -> Result<(), Fatal> {
        Ok(())
    }
}
