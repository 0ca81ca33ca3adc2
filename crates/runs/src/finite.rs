//! Numbers in JSON, which has neither NaN nor infinity: both are written as `null`, and `null` is read as NaN.

use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if value.is_finite() { serializer.serialize_f64(*value) } else { serializer.serialize_none() }
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

/// The same for numbers that may be absent: a `null` that is there is NaN. Use with `default` and
/// `skip_serializing_if = "Option::is_none"`.
pub(crate) mod optional {
    use super::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(value: &Option<f64>, serializer: S) -> Result<S::Ok, S::Error> {
        super::serialize(&value.unwrap_or(f64::NAN), serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
        super::deserialize(deserializer).map(Some)
    }
}
