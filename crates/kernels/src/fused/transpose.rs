//! Rows turned into columns, four numbers at a time. As arrays they would be moved one by one.

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::Four;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use portable::Four;

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use std::arch::x86_64::{
        __m128, _mm_loadu_ps, _mm_movehl_ps, _mm_movelh_ps, _mm_mul_ps, _mm_set1_ps, _mm_storeu_ps, _mm_unpackhi_ps,
        _mm_unpacklo_ps,
    };

    /// Four numbers, in a register that every x86-64 has.
    #[derive(Clone, Copy)]
    pub(crate) struct Four(__m128);

    impl Four {
        #[inline(always)]
        pub fn read(from: &[f32; 4]) -> Self {
            // SAFETY: four numbers are there.
            Self(unsafe { _mm_loadu_ps(from.as_ptr()) })
        }

        #[inline(always)]
        pub fn write(self, to: &mut [f32; 4]) {
            // SAFETY: there is room for four numbers.
            unsafe { _mm_storeu_ps(to.as_mut_ptr(), self.0) }
        }

        #[inline(always)]
        pub fn splat(number: f32) -> Self {
            // SAFETY: every x86-64 has SSE.
            Self(unsafe { _mm_set1_ps(number) })
        }

        #[inline(always)]
        pub fn times(self, other: Self) -> Self {
            // SAFETY: as above.
            Self(unsafe { _mm_mul_ps(self.0, other.0) })
        }

        /// Four rows as four columns.
        #[inline(always)]
        pub fn transposed([a, b, c, d]: [Self; 4]) -> [Self; 4] {
            // SAFETY: as above.
            unsafe {
                let (ab, cd) = (_mm_unpacklo_ps(a.0, b.0), _mm_unpacklo_ps(c.0, d.0));
                let (ab_high, cd_high) = (_mm_unpackhi_ps(a.0, b.0), _mm_unpackhi_ps(c.0, d.0));
                [
                    Self(_mm_movelh_ps(ab, cd)),
                    Self(_mm_movehl_ps(cd, ab)),
                    Self(_mm_movelh_ps(ab_high, cd_high)),
                    Self(_mm_movehl_ps(cd_high, ab_high)),
                ]
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod portable {
    /// Four numbers.
    #[derive(Clone, Copy)]
    pub(crate) struct Four([f32; 4]);

    impl Four {
        #[inline(always)]
        pub fn read(from: &[f32; 4]) -> Self {
            Self(*from)
        }

        #[inline(always)]
        pub fn write(self, to: &mut [f32; 4]) {
            *to = self.0;
        }

        #[inline(always)]
        pub fn splat(number: f32) -> Self {
            Self([number; 4])
        }

        #[inline(always)]
        pub fn times(self, other: Self) -> Self {
            Self(std::array::from_fn(|i| self.0[i] * other.0[i]))
        }

        /// Four rows as four columns.
        #[inline(always)]
        pub fn transposed(rows: [Self; 4]) -> [Self; 4] {
            std::array::from_fn(|column| Self(rows.map(|row| row.0[column])))
        }
    }
}
