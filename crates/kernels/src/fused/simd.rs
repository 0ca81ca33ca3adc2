//! Vectors of whatever width the processor has, chosen when the program runs, and the functions that the kernels need of
//! them. The default target knows only SSE2, so loops left to the compiler would use a quarter of the machine at best.

#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

use pulp::{Simd, WithSimd};

#[cfg(target_arch = "x86_64")]
use crate::level::Level;

/// The level in use, the same for the whole process; the program refuses one that is none before anything is computed.
#[cfg(target_arch = "x86_64")]
pub(crate) fn level() -> Level {
    static LEVEL: OnceLock<Level> = OnceLock::new();
    *LEVEL.get_or_init(|| crate::level().unwrap_or_else(|error| panic!("{error}")))
}

/// Runs `op` with the widest vectors of the machine.
#[cfg(target_arch = "x86_64")]
pub(crate) fn vectorized<Op: WithSimd>(op: Op) -> Op::Output {
    use pulp::x86::{V3, V4};
    match level() {
        Level::Avx512 => match V4::try_new() {
            Some(simd) => Simd::vectorize(simd, op),
            None => Simd::vectorize(pulp::Scalar128b, op),
        },
        Level::Avx2 => match V3::try_new() {
            Some(simd) => Simd::vectorize(simd, op),
            None => Simd::vectorize(pulp::Scalar128b, op),
        },
        Level::Portable => Simd::vectorize(pulp::Scalar128b, op),
    }
}

/// Runs `op` with vectors that every machine of this kind has.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn vectorized<Op: WithSimd>(op: Op) -> Op::Output {
    Simd::vectorize(pulp::Scalar128b, op)
}

/// Asks for the line of memory that holds `at`, which is read soon. Any address will do.
#[inline(always)]
pub(crate) fn prefetch(at: *const f32) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint, which every x86-64 has and which never faults.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(at.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
}

/// `a·b + c`, fused where the machine fuses.
#[inline(always)]
pub(crate) fn mul_add<S: Simd>(simd: S, a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
    if S::F32_LANES > 4 || cfg!(target_arch = "aarch64") {
        simd.mul_add_e_f32s(a, b, c)
    } else {
        // Without the instruction a fused one would be a call of the mathematical library.
        simd.add_f32s(simd.mul_f32s(a, b), c)
    }
}

/// e^x for x ≤ 88, with a relative error below 2⁻²² (checked against f64 in the tests); below −87.33 it is 0. NaN stays NaN.
///
/// Range reduction to |r| ≤ ln 2 / 2 and a polynomial of degree 6 (Moshier, Cephes, `expf`).
#[inline(always)]
pub(crate) fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let underflows = simd.less_than_f32s(x, simd.splat_f32s(-87.33));
    let clamped = simd.select_f32s(underflows, simd.splat_f32s(0.0), x);
    // Adding 1.5·2²³ rounds to an integer, which stands in the low bits of the sum.
    let magic = simd.splat_f32s(12_582_912.0);
    let shifted = mul_add(simd, clamped, simd.splat_f32s(std::f32::consts::LOG2_E), magic);
    let n = simd.sub_f32s(shifted, magic);
    let r = mul_add(simd, n, simd.splat_f32s(-0.693_359_4), clamped);
    let r = mul_add(simd, n, simd.splat_f32s(2.121_944_4e-4), r);
    let mut p = simd.splat_f32s(1.987_569_1e-4);
    for c in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = mul_add(simd, p, r, simd.splat_f32s(c));
    }
    let p = mul_add(simd, p, simd.mul_f32s(r, r), simd.add_f32s(r, simd.splat_f32s(1.0)));
    let exponent = simd.wrapping_dyn_shl_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(23));
    let scale = simd.transmute_f32s_u32s(simd.add_u32s(exponent, simd.splat_u32s(0x3f80_0000)));
    simd.select_f32s(underflows, simd.splat_f32s(0.0), simd.mul_f32s(p, scale))
}

/// Φ(x) and φ(x), the normal distribution function and its density, both with a relative error below 3e-6 for |x| ≤ 8
/// (checked against f64 in the tests). NaN stays NaN.
///
/// `erfc(z) = exp(−z²)·t·P(t)` with `t = 1/(1 + 0.37z)` (the form of Abramowitz 1964, 7.1.26); P is a minimax fit of degree
/// 8 to `erfcx` on 0..12, relative error 4e-8. One exponential serves both.
#[inline(always)]
pub(crate) fn normal<S: Simd>(simd: S, x: S::f32s) -> (S::f32s, S::f32s) {
    let gauss = exp(simd, simd.mul_f32s(simd.mul_f32s(x, x), simd.splat_f32s(-0.5)));
    let t = simd.div_f32s(
        simd.splat_f32s(1.0),
        mul_add(simd, simd.abs_f32s(x), simd.splat_f32s(0.37 * std::f32::consts::FRAC_1_SQRT_2), simd.splat_f32s(1.0)),
    );
    let mut p = simd.splat_f32s(0.058_688_555);
    for c in
        [-0.287_722_3, 0.455_086_1, -0.249_425_46, 0.286_317_4, 0.116_822_734, 0.203_649_13, 0.207_791_03, 0.208_792_75]
    {
        p = mul_add(simd, p, t, simd.splat_f32s(c));
    }
    let half_erfc = simd.mul_f32s(simd.mul_f32s(gauss, simd.splat_f32s(0.5)), simd.mul_f32s(t, p));
    let upper = simd.sub_f32s(simd.splat_f32s(1.0), half_erfc);
    let distribution = simd.select_f32s(simd.less_than_f32s(x, simd.splat_f32s(0.0)), half_erfc, upper);
    (distribution, simd.mul_f32s(gauss, simd.splat_f32s(0.398_942_3)))
}
