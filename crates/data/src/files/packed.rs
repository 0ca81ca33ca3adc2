//! Whole numbers in as few bytes each as the largest needs.

use std::ops::Range;

/// A list that grows wider when a number does not fit.
#[derive(Clone, Debug)]
pub(super) enum Packed {
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
}

impl Packed {
    pub fn new() -> Self {
        Self::One(vec![])
    }

    pub fn len(&self) -> usize {
        match self {
            Self::One(numbers) => numbers.len(),
            Self::Two(numbers) => numbers.len(),
            Self::Four(numbers) => numbers.len(),
        }
    }

    pub fn push(&mut self, number: u32) {
        match self {
            Self::One(numbers) => match u8::try_from(number) {
                Ok(number) => return numbers.push(number),
                Err(_) => *self = Self::Two(numbers.iter().map(|&small| small.into()).collect()),
            },
            Self::Two(numbers) => match u16::try_from(number) {
                Ok(number) => return numbers.push(number),
                Err(_) => *self = Self::Four(numbers.iter().map(|&small| small.into()).collect()),
            },
            Self::Four(numbers) => return numbers.push(number),
        }
        self.push(number); // there is room now
    }

    /// # Panics
    /// Where the list is shorter.
    pub fn get(&self, range: Range<usize>) -> Vec<u32> {
        match self {
            Self::One(numbers) => numbers[range].iter().map(|&number| number.into()).collect(),
            Self::Two(numbers) => numbers[range].iter().map(|&number| number.into()).collect(),
            Self::Four(numbers) => numbers[range].to_vec(),
        }
    }
}

/// Lists of whole numbers, one behind the other.
#[derive(Clone, Debug)]
pub(super) struct PackedLists {
    numbers: Packed,
    /// Where each ends.
    ends: Vec<usize>,
}

impl PackedLists {
    pub fn new() -> Self {
        Self { numbers: Packed::new(), ends: vec![] }
    }

    pub fn push(&mut self, list: impl IntoIterator<Item = u32>) {
        list.into_iter().for_each(|number| self.numbers.push(number));
        self.ends.push(self.numbers.len());
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// # Panics
    /// Where there are fewer lists.
    pub fn get(&self, list: usize) -> Vec<u32> {
        let start = list.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.numbers.get(start..self.ends[list])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn lists_come_back_as_they_went_in(lists in prop::collection::vec(prop::collection::vec(
            prop_oneof![0..4u32, 250..260u32, 65_530..65_540u32, any::<u32>()], 0..6), 0..8)) {
            let mut packed = PackedLists::new();
            lists.iter().for_each(|list| packed.push(list.iter().copied()));
            prop_assert_eq!(packed.len(), lists.len());
            for (number, list) in lists.iter().enumerate() {
                prop_assert_eq!(&packed.get(number), list);
            }
            let largest = lists.iter().flatten().max().copied().unwrap_or(0);
            let width = match packed.numbers { Packed::One(_) => 0xff, Packed::Two(_) => 0xffff, Packed::Four(_) => u32::MAX };
            prop_assert!(largest <= width && (width == 0xff || largest > width >> 16 && largest > 0xff));
        }
    }
}
