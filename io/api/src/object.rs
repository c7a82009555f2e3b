//! Objects in the bodies of requests.
//!
//! serde's derived code also reads an array as a struct, with the fields in their order. A mistaken body
//! would then change something that nobody wrote down.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A value that is read from an object, and from nothing else.
pub(crate) struct Object<T>(pub(crate) T);

struct Reader<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(Reader(PhantomData)).map(Self)
    }
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with named keys")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map))
    }
}

/// Reads a list whose elements are objects.
///
/// # Errors
/// If it is none.
pub(crate) fn list<'de, D: Deserializer<'de>, T: Deserialize<'de>>(from: D) -> Result<Vec<T>, D::Error> {
    let objects = Vec::<Object<T>>::deserialize(from)?;
    Ok(objects.into_iter().map(|Object(value)| value).collect())
}
