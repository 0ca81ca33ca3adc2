//! NumPy's array files: format 1 to 3 of `numpy.lib.format`, in C order, of real numbers.

use std::io::{self, Read};

use crate::file_error::FileProblem;
use crate::limits;

/// An array, row-major.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Array {
    pub shape: Vec<usize>,
    pub numbers: Vec<f32>,
    /// Whether its type is one of whole numbers.
    pub is_whole: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Type {
    Float,
    Signed,
    Unsigned,
}

struct Header {
    kind: Type,
    width: usize,
    is_little: bool,
    shape: Vec<usize>,
}

/// The longest header that is read: NumPy writes a hundred bytes.
const HEADER: usize = 1 << 16;

/// Reads an array that takes `size` bytes, header included. No memory is taken for numbers that are not there.
pub(super) fn read(mut from: impl Read, size: u64) -> Result<Array, FileProblem> {
    let mut start = [0; 8];
    fill(&mut from, &mut start)?;
    if &start[..6] != b"\x93NUMPY" {
        return Err(FileProblem::Malformed("is no NumPy array: it does not begin with \\x93NUMPY".into()));
    }
    let length = match start[6] {
        1 => {
            let mut length = [0; 2];
            fill(&mut from, &mut length)?;
            u16::from_le_bytes(length).into()
        }
        2 | 3 => {
            let mut length = [0; 4];
            fill(&mut from, &mut length)?;
            u32::from_le_bytes(length) as usize
        }
        other => {
            return Err(FileProblem::Malformed(format!(
                "is of version {other} of NumPy's format, and 1 to 3 are read"
            )));
        }
    };
    if length > HEADER {
        return Err(FileProblem::Malformed(format!("has a header of {length} bytes")));
    }
    let mut text = vec![0; length];
    fill(&mut from, &mut text)?;
    let header = header(&String::from_utf8_lossy(&text))?;
    let count = header.shape.iter().try_fold(1u64, |count, &side| count.checked_mul(side as u64));
    let needed = count.and_then(|count| count.checked_mul(header.width as u64));
    let there = size.saturating_sub(start.len() as u64 + length as u64 + if start[6] == 1 { 2 } else { 4 });
    let Some(needed) = needed.filter(|&needed| needed <= limits::SAMPLES && needed == there) else {
        let message = format!("has {there} bytes of numbers, which are not what the shape {:?} takes", header.shape);
        return Err(FileProblem::Malformed(message));
    };
    let mut numbers = vec![];
    let mut chunk = vec![0; (1 << 16) * header.width];
    let mut left = needed as usize;
    while left > 0 {
        let part = left.min(chunk.len());
        fill(&mut from, &mut chunk[..part])?;
        numbers.extend(chunk[..part].chunks(header.width).map(|bytes| header.number(bytes)));
        left -= part;
    }
    Ok(Array { shape: header.shape, numbers, is_whole: header.kind != Type::Float })
}

fn fill(from: &mut impl Read, into: &mut [u8]) -> Result<(), FileProblem> {
    from.read_exact(into).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => FileProblem::Malformed("ends too early".into()),
        _ => FileProblem::Unreadable(error.to_string()),
    })
}

/// The header is a Python dictionary, such as `{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3), }`.
fn header(text: &str) -> Result<Header, FileProblem> {
    let malformed =
        |what: &str| FileProblem::Malformed(format!("has a header without {what}: {}", crate::file_error::short(text)));
    let after = |key: &str| text.split_once(&format!("'{key}':")).map(|(_, rest)| rest.trim_start());
    let descr = after("descr").and_then(|rest| rest.strip_prefix('\'')).and_then(|rest| rest.split_once('\''));
    let (descr, _) = descr.ok_or_else(|| malformed("a type of numbers"))?;
    if after("fortran_order").ok_or_else(|| malformed("an order"))?.starts_with("True") {
        return Err(FileProblem::Malformed("is in Fortran's order; save numpy.ascontiguousarray of it".into()));
    }
    let sides = after("shape").and_then(|rest| rest.strip_prefix('(')).and_then(|rest| rest.split_once(')'));
    let (sides, _) = sides.ok_or_else(|| malformed("a shape"))?;
    let sides = sides.split(',').map(str::trim).filter(|side| !side.is_empty());
    let shape: Vec<usize> =
        sides.map(|side| side.parse().map_err(|_| malformed("a shape of whole numbers"))).collect::<Result<_, _>>()?;
    let mut letters = descr.chars();
    let (order, kind, width) = (letters.next(), letters.next(), letters.as_str().parse::<usize>());
    let kind = match (kind, &width) {
        (Some('f'), Ok(4 | 8)) => Type::Float,
        (Some('i'), Ok(1 | 2 | 4 | 8)) => Type::Signed,
        (Some('u'), Ok(1 | 2 | 4 | 8)) | (Some('b'), Ok(1)) => Type::Unsigned,
        _ => {
            let expected = "f4, f8, whole numbers or bool: use .astype(numpy.float32)";
            return Err(FileProblem::wrong(format!("of type `{descr}`"), expected));
        }
    };
    Ok(Header { kind, width: width.unwrap_or(1), is_little: order != Some('>'), shape })
}

impl Header {
    fn number(&self, bytes: &[u8]) -> f32 {
        let mut padded = [0; 8];
        for (place, &byte) in bytes.iter().enumerate() {
            padded[if self.is_little { place } else { self.width - 1 - place }] = byte;
        }
        let whole = u64::from_le_bytes(padded);
        match (self.kind, self.width) {
            (Type::Float, 4) => f32::from_bits(whole as u32),
            (Type::Float, _) => f64::from_bits(whole) as f32,
            (Type::Unsigned, _) => whole as f32,
            (Type::Signed, width) => {
                let unused = 64 - 8 * width as u32;
                ((whole << unused) as i64 >> unused) as f32
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(descr: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), numbers].concat()
    }

    fn array(bytes: &[u8]) -> Result<Array, FileProblem> {
        read(bytes, bytes.len() as u64)
    }

    #[test]
    fn numbers_of_every_type_are_read() {
        let cases: [(&str, Vec<u8>, [f32; 2], bool); 9] = [
            ("<f4", [1.5f32, -2.0].map(f32::to_le_bytes).concat(), [1.5, -2.0], false),
            (">f4", [1.5f32, -2.0].map(f32::to_be_bytes).concat(), [1.5, -2.0], false),
            ("<f8", [1.5f64, -2.0].map(f64::to_le_bytes).concat(), [1.5, -2.0], false),
            (">i2", [300i16, -2].map(i16::to_be_bytes).concat(), [300.0, -2.0], true),
            ("<i8", [300i64, -2].map(i64::to_le_bytes).concat(), [300.0, -2.0], true),
            ("|i1", vec![3, 0xfe], [3.0, -2.0], true),
            ("|u1", vec![3, 0xfe], [3.0, 254.0], true),
            ("<u4", [3u32, 70_000].map(u32::to_le_bytes).concat(), [3.0, 70_000.0], true),
            ("|b1", vec![0, 1], [0.0, 1.0], true),
        ];
        for (descr, bytes, numbers, is_whole) in cases {
            let found = array(&file(descr, "(2,)", &bytes));
            assert_eq!(found, Ok(Array { shape: vec![2], numbers: numbers.to_vec(), is_whole }), "{descr}");
        }
        let scalar = array(&file("<f4", "()", &1f32.to_le_bytes())).unwrap();
        assert_eq!((scalar.shape, scalar.numbers), (vec![], vec![1.0]));
        assert_eq!(array(&file("<f4", "(2, 3, 0)", &[])).unwrap().shape, [2, 3, 0]);
    }

    #[test]
    fn what_is_no_array_is_refused_with_its_reason() {
        let f4 = |shape: &str, bytes: usize| file("<f4", shape, &vec![0; bytes]);
        let fortran = String::from_utf8_lossy(&f4("(1,)", 4)[10..]).replace("False", "True ");
        let fortran = [b"\x93NUMPY\x01\x00", &(fortran.len() as u16).to_le_bytes()[..], fortran.as_bytes()].concat();
        for (bytes, part) in [
            (b"PK\x03\x04 and more".to_vec(), "\\x93NUMPY"),
            (b"\x93NUMPY".to_vec(), "ends too early"),
            (f4("(2,)", 4), "4 bytes"),
            (f4("(2,)", 12), "12 bytes"),
            (f4("(18446744073709551615, 4)", 4), "18446744073709551615"),
            (f4("(99999999999999999999,)", 4), "whole numbers"),
            (f4("(-1,)", 4), "whole numbers"),
            (file("<c8", "(1,)", &[0; 8]), "<c8"),
            (file("|O", "(1,)", &[0; 8]), "|O"),
            (fortran, "ascontiguousarray"),
        ] {
            let error = array(&bytes).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_end_the_program(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(array(&bytes).is_err());
        }

        #[test]
        fn no_changed_byte_ends_the_program(at in 0..90usize, byte: u8, width in 1..9usize) {
            let mut bytes = file("<f4", "(2, 3)", &[0; 24]);
            let at = at.min(bytes.len() - 1);
            bytes[at] = byte;
            if let Ok(found) = array(&bytes) {
                prop_assert_eq!(found.shape.iter().product::<usize>(), found.numbers.len());
            }
            bytes.truncate(bytes.len() - width);
            prop_assert!(array(&bytes).is_err());
        }
    }
}
