//! Named tensors of f32 in safetensors files.

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use architecture::HostTensor;
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use crate::{error::RunError, files, limits};

/// Tensors by parameter path, sorted.
pub type Tensors = BTreeMap<String, HostTensor>;

/// A safetensors file's bytes; the same for the same tensors.
///
/// # Errors
/// [`RunError::Tensors`] for a tensor with another number of values than its shape says; `path` names the file.
pub fn to_bytes(tensors: &Tensors, path: &Path) -> Result<Vec<u8>, RunError> {
    to_bytes_with(tensors, None, path)
}

/// [`to_bytes`] with text in the file's metadata. With more than one key their order, and so the bytes, may vary.
///
/// # Errors
/// As [`to_bytes`].
pub fn to_bytes_with(
    tensors: &Tensors,
    metadata: Option<HashMap<String, String>>,
    path: &Path,
) -> Result<Vec<u8>, RunError> {
    let refuse = |message: String| RunError::Tensors { path: path.into(), message };
    let encoded: Vec<(&str, &[usize], Vec<u8>)> = tensors
        .iter()
        .map(|(name, tensor)| {
            let bytes = tensor.values.iter().flat_map(|value| value.to_le_bytes()).collect();
            (name.as_str(), tensor.shape.as_slice(), bytes)
        })
        .collect();
    let mut views = Vec::with_capacity(encoded.len());
    for (name, shape, bytes) in &encoded {
        let view = TensorView::new(Dtype::F32, shape.to_vec(), bytes);
        views.push((*name, view.map_err(|error| refuse(format!("tensor `{name}`: {error}")))?));
    }
    safetensors::serialize(views, metadata).map_err(|error| refuse(error.to_string()))
}

/// Tensors from a safetensors file's bytes. Never takes more memory than a few times the bytes.
///
/// # Errors
/// [`RunError::Tensors`] for anything but a complete and valid file of f32 tensors; `path` names the file.
pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Tensors, RunError> {
    let refuse = |message: String| RunError::Tensors { path: path.into(), message };
    let header = bytes.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
    if header > limits::TENSOR_HEADER {
        return Err(refuse(format!("a header of {header} bytes; at most {}", limits::TENSOR_HEADER)));
    }
    let file = SafeTensors::deserialize(bytes).map_err(|error| refuse(error.to_string()))?;
    let mut tensors = Tensors::new();
    for (name, view) in file.iter() {
        if view.dtype() != Dtype::F32 {
            return Err(refuse(format!("tensor `{name}` has type {:?}, not F32", view.dtype())));
        }
        let (chunks, _) = view.data().as_chunks::<4>();
        let values = chunks.iter().map(|chunk| f32::from_le_bytes(*chunk)).collect();
        tensors.insert(name.into(), HostTensor { shape: view.shape().to_vec(), values });
    }
    Ok(tensors)
}

/// Reads a safetensors file of f32 tensors, and the text of its metadata.
///
/// # Errors
/// As [`from_bytes`], and where the file can't be read.
pub(crate) fn read(path: &Path) -> Result<(Tensors, HashMap<String, String>), RunError> {
    let bytes = files::read_at_most(path, limits::TENSORS)?;
    let tensors = from_bytes(&bytes, path)?;
    let metadata = SafeTensors::read_metadata(&bytes).ok().and_then(|(_, header)| header.metadata().clone());
    Ok((tensors, metadata.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn some() -> Tensors {
        let tensor = |shape: &[usize]| HostTensor {
            shape: shape.to_vec(),
            values: (0..shape.iter().product()).map(|i| (i as f32).sin()).collect(),
        };
        [("b.weight", &[3, 4][..]), ("a", &[]), ("empty", &[0, 7]), ("c.bias", &[5])]
            .map(|(name, shape)| (name.to_string(), tensor(shape)))
            .into()
    }

    #[test]
    fn tensors_go_both_ways_bit_for_bit() {
        let mut tensors = some();
        let odd = HostTensor { shape: vec![3], values: vec![f32::NEG_INFINITY, -0.0, f32::from_bits(1)] };
        tensors.insert("odd".into(), odd);
        let bytes = to_bytes(&tensors, Path::new("t")).unwrap();
        assert_eq!(from_bytes(&bytes, Path::new("t")).unwrap(), tensors);
        assert_eq!(to_bytes(&tensors, Path::new("t")).unwrap(), bytes);
    }

    #[test]
    fn a_shape_that_does_not_fit_is_refused() {
        let tensors = Tensors::from([("x".to_string(), HostTensor { shape: vec![2], values: vec![1.0] })]);
        let error = to_bytes(&tensors, Path::new("model.safetensors")).unwrap_err().to_string();
        assert!(error.contains("model.safetensors") && error.contains("`x`"), "{error}");
    }

    #[test]
    fn other_types_are_refused() {
        let view = TensorView::new(Dtype::F64, vec![1], &[0; 8]).unwrap();
        let bytes = safetensors::serialize([("x", view)], None).unwrap();
        assert!(from_bytes(&bytes, Path::new("t")).unwrap_err().to_string().contains("F64"));
    }

    #[test]
    fn a_header_that_promises_too_much_is_refused_unread() {
        for length in [u64::MAX, 1 << 40, 99_999_999, 1 << 20] {
            let mut bytes = length.to_le_bytes().to_vec();
            bytes.extend(b"{\"x\":{\"dtype\":\"F32\",\"shape\":[1099511627776],\"data_offsets\":[0,4398046511104]}}");
            assert!(from_bytes(&bytes, Path::new("t")).is_err());
        }
    }

    proptest! {
        #[test]
        fn damaged_bytes_are_read_or_refused(at in 0usize..1000, byte: u8, cut in 0usize..1000) {
            let mut bytes = to_bytes(&some(), Path::new("t")).unwrap();
            let at = at % bytes.len();
            bytes[at] = byte;
            let _ = from_bytes(&bytes, Path::new("t"));
            bytes.truncate(cut % bytes.len());
            prop_assert!(from_bytes(&bytes, Path::new("t")).is_err());
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes: Vec<u8>) {
            let _ = from_bytes(&bytes, Path::new("t"));
        }
    }
}
