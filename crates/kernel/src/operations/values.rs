//! The values of one key.

use alloc::vec;
use alloc::vec::Vec;
use bytes::Bytes;

/// What a key has: no value, one, or several side by side. One, by far the usual case, takes no
/// allocation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Values {
    /// The key is absent.
    #[default]
    None,
    /// One value.
    One(Bytes),
    /// At least two values, none of which has replaced another.
    Several(Vec<Bytes>),
}

impl Values {
    /// All of them.
    pub fn iter(&self) -> core::slice::Iter<'_, Bytes> {
        match self {
            Values::None => [].iter(),
            Values::One(value) => core::slice::from_ref(value).iter(),
            Values::Several(values) => values.iter(),
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.iter().len()
    }

    /// Whether the key is absent.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        matches!(self, Values::None)
    }

    /// How many bytes they have together.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.iter().map(Bytes::len).sum()
    }

    /// The one value, if there is any.
    ///
    /// # Errors
    /// There are several.
    pub fn into_one(self) -> Result<Option<Bytes>, Vec<Bytes>> {
        match self {
            Values::None => Ok(None),
            Values::One(value) => Ok(Some(value)),
            Values::Several(values) => Err(values),
        }
    }

    /// All of them in a list.
    #[must_use]
    pub fn into_vec(self) -> Vec<Bytes> {
        match self {
            Values::None => Vec::new(),
            Values::One(value) => vec![value],
            Values::Several(values) => values,
        }
    }
}

impl From<Option<Bytes>> for Values {
    fn from(value: Option<Bytes>) -> Values {
        value.map_or(Values::None, Values::One)
    }
}

impl From<Vec<Bytes>> for Values {
    fn from(mut values: Vec<Bytes>) -> Values {
        match values.len() {
            0 | 1 => values.pop().into(),
            _ => Values::Several(values),
        }
    }
}

impl<'a> IntoIterator for &'a Values {
    type Item = &'a Bytes;
    type IntoIter = core::slice::Iter<'a, Bytes>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_and_taken_apart() {
        let of = |texts: &[&'static str]| {
            let values: Vec<Bytes> =
                texts.iter().map(|text| Bytes::from_static(text.as_bytes())).collect();
            let found = Values::from(values.clone());
            assert_eq!((found.len(), found.is_empty()), (values.len(), values.is_empty()));
            assert!(found.iter().eq(&values));
            assert_eq!(found.clone().into_vec(), values);
            found
        };
        assert_eq!(of(&[]), Values::None);
        assert_eq!(of(&["a"]), Values::One(Bytes::from_static(b"a")));
        assert_eq!(of(&["a"]), Some(Bytes::from_static(b"a")).into());
        let both = of(&["ab", "c"]);
        assert_eq!(both.bytes(), 3);
        assert_eq!(both.clone().into_one(), Err(both.into_vec()));
        assert_eq!(Values::from(None).into_one(), Ok(None));
    }
}
