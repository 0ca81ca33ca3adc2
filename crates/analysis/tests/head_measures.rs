//! Measures of maps: by hand, against numpy, and whatever the map.

use std::f64::consts::LN_2;

use headcount_analysis::{
    maps::{Maps, Readable},
    measures::{self, OfHeads},
    needs::{Answer, Needs},
    similarity::{divergence, jensen_shannon, nearest},
};
use proptest::prelude::*;

fn causal(batch: usize, length: usize) -> Readable {
    let padding = vec![false; batch * length];
    Readable::new(batch, &padding, &padding, true)
}

#[track_caller]
fn near(got: &[Option<f64>], expected: &[f64]) {
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(expected) {
        assert!(got.is_some_and(|got| (got - expected).abs() < 1e-6), "{got:?} {expected}");
    }
}

/// The weights on what is needed, head by head.
fn needed(maps: Maps, needs: &Needs) -> Vec<Option<f64>> {
    let of_heads: OfHeads = measures::weight_on_needed(maps, needs, |answer| &answer.own);
    of_heads.iter().flat_map(|value| value.as_ref().unwrap().numbers()).copied().map(Some).collect()
}

/// What the answers at positions `(sample, position)` need in two groups of one position each.
fn needs(answers: &[((usize, usize), [usize; 2])]) -> Needs {
    let answer = |needed: &[usize; 2]| Answer { own: needed.map(|position| vec![position]).to_vec(), source: vec![] };
    Needs {
        groups: vec!["one".into(), "other".into()],
        answers: answers.iter().map(|(at, needed)| (*at, answer(needed))).collect(),
    }
}

/// One sample of four tokens, three heads: the previous token, everything alike, the first token. Row 0 has one key.
const BY_HAND: [f32; 48] = [
    1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, // head 0
    1.0, 0.0, 0.0, 0.0, 0.5, 0.5, 0.0, 0.0, 0.25, 0.25, 0.5, 0.0, 0.25, 0.25, 0.25, 0.25, // head 1
    1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, // head 2
];

#[test]
fn by_hand() {
    let readable = causal(1, 4);
    let maps = Maps::new(3, &BY_HAND, &readable);
    // 0.5 ln 2 + 2 · 0.25 ln 4 = 1.5 ln 2 over ln 3 for row 2 of head 1; rows 1 and 3 are uniform.
    near(&measures::entropy(maps), &[0.0, (2.0 + 1.5 * LN_2 / 3f64.ln()) / 3.0, 0.0]);
    near(&measures::top_weight(maps), &[1.0, (0.5 + 0.5 + 0.25) / 3.0, 1.0]);
    near(&measures::distance(maps), &[1.0, (0.5 + 0.75 + 1.5) / 3.0, 2.0]);
    near(&measures::previous_token(maps), &[1.0, (0.5 + 0.25 + 0.25) / 3.0, 1.0 / 3.0]);
    near(&measures::first_position(maps), &[1.0 / 3.0, (0.5 + 0.25 + 0.25) / 3.0, 1.0]);
    // 7 5 7 7: token 7 is there again at row 2 (earlier: 0) and row 3 (earlier: 0 and 2).
    near(&measures::same_token(maps, &[7, 5, 7, 7]), &[0.5, (0.25 + 0.5) / 2.0, 1.0]);
    // After an earlier 7: position 1 for row 2; position 1 for row 3, whose own position does not count.
    near(&measures::induction(maps, &[7, 5, 7, 7]), &[0.5, 0.25, 0.0]);
    assert_eq!(measures::induction(maps, &[1, 2, 3, 4]), [None; 3]);
    assert_eq!(measures::same_token(maps, &[1, 2, 3, 4]), [None; 3]);

    // Rows 1 to 3 are scored; what they need lies at 0, 2 and 3, and at 1.
    let needs = needs(&[((0, 1), [0, 1]), ((0, 2), [2, 1]), ((0, 3), [3, 1])]);
    let third = 1.0 / 3.0;
    near(&needed(maps, &needs), &[third, third, (0.5 + 0.5 + 0.25) / 3.0, (0.5 + 0.25 + 0.25) / 3.0, third, 0.0]);
}

#[test]
fn divergence_by_hand() {
    let readable = causal(1, 4);
    let maps = Maps::new(3, &BY_HAND, &readable);
    let matrix = divergence(maps);
    // Heads 0 and 2 agree in row 1 and share nothing in rows 2 and 3.
    assert!((matrix[0][2] - 2.0 / 3.0 * LN_2).abs() < 1e-7, "{matrix:?}");
    for (h, row) in matrix.iter().enumerate() {
        assert_eq!(row[h], 0.0);
        row.iter().zip(&matrix).for_each(|(one, other)| assert_eq!(*one, other[h]));
    }
    let nearest = nearest(&matrix);
    assert_eq!(nearest[0].unwrap().divergence, matrix[0].iter().copied().filter(|&d| d > 0.0).fold(1.0, f64::min));
    // Head 1 is as far from head 0 as from head 2.
    assert_eq!((matrix[1][0], nearest[1].unwrap().head), (matrix[1][2], 0));
    assert_eq!(headcount_analysis::similarity::nearest(&[vec![0.0]]), [None]);
}

/// Rows and keys of padding change nothing, whatever stands there; a sample of padding alone counts nowhere.
#[test]
fn padding_does_not_count() {
    let mut weights = vec![];
    for h in 0..3 {
        for row in BY_HAND[h * 16..][..16].chunks(4) {
            weights.extend(row);
            weights.push(0.0);
        }
        weights.extend([0.3, 0.1, 0.2, 0.1, 0.3]);
    }
    weights.extend([0.2; 75]);
    let padding = [false, false, false, false, true, true, true, true, true, true];
    let readable = Readable::new(2, &padding, &padding, true);
    let padded = Maps::new(3, &weights, &readable);
    let plain = causal(1, 4);
    let plain = Maps::new(3, &BY_HAND, &plain);
    assert_eq!(measures::entropy(padded), measures::entropy(plain));
    assert_eq!(measures::top_weight(padded), measures::top_weight(plain));
    assert_eq!(measures::distance(padded), measures::distance(plain));
    assert_eq!(measures::first_position(padded), measures::first_position(plain));
    assert_eq!(divergence(padded), divergence(plain));
    let (tokens, more) = ([7, 5, 7, 7], [7, 5, 7, 7, 7, 7, 5, 7, 7, 7]);
    assert_eq!(measures::same_token(padded, &more), measures::same_token(plain, &tokens));
    assert_eq!(measures::induction(padded, &more), measures::induction(plain, &tokens));
    let nothing = Readable::new(1, &[true; 2], &[true; 2], true);
    let nothing = Maps::new(1, &[0.0; 4], &nothing);
    assert_eq!(measures::entropy(nothing), [None]);
    let none: OfHeads = measures::weight_on_needed(nothing, &needs(&[((0, 1), [0, 1])]), |answer| &answer.own);
    assert_eq!(none, [None]);
    assert_eq!(divergence(nothing), [[0.0]]);
}

/// Where keys after the query may be read, they count, and the previous token is still the one before.
#[test]
fn bidirectional_maps_read_ahead() {
    let padding = [false; 3];
    let readable = Readable::new(1, &padding, &padding, false);
    let weights = [0.0, 0.5, 0.5, 0.2, 0.0, 0.8, 0.0, 1.0, 0.0];
    let maps = Maps::new(1, &weights, &readable);
    near(&measures::distance(maps), &[(1.5 + 1.0 + 1.0) / 3.0]);
    near(&measures::previous_token(maps), &[(0.2 + 1.0) / 2.0]);
    near(&measures::first_position(maps), &[0.2 / 3.0]);
}

/// A map without structure, two samples, the last position of the second being padding.
///
/// ```python
/// import numpy as np
/// B, H, L = 2, 2, 6
/// n = np.arange(B * H * L * L).reshape(B, H, L, L)
/// scores = 3 * np.sin(1.7 * n)
/// padding = np.zeros((B, L), bool); padding[1, 5] = True
/// readable = np.tril(np.ones((L, L), bool)) & ~padding[:, None, :] & ~padding[:, :, None]       # [B, L, L]
/// e = np.where(readable[:, None], np.exp(scores), 0)
/// total = e.sum(-1, keepdims=True)
/// a = np.divide(e, total, out=np.zeros_like(e), where=total > 0).astype(np.float32).astype(float)
/// tokens = np.array([[4, 1, 4, 0, 1, 4], [5, 2, 2, 5, 3, 0]])
/// rows = readable.sum(-1) >= 2                                                                   # [B, L]
/// mean = lambda x: [x[:, h][rows].mean() for h in range(H)]                                      # x [B, H, L]
/// ln = np.log(np.where(a > 0, a, 1))
/// print("entropy", mean(-(a * ln).sum(-1) / np.log(np.maximum(readable.sum(-1), 2))[:, None]))
/// print("top_weight", mean(a.max(-1)))
/// i, j = np.indices((L, L))
/// print("distance", mean((a * abs(i - j)).sum(-1)))
/// def share(meant):                                                                              # [B, L, L]
///     meant = meant & readable
///     some = rows & meant.any(-1)
///     return [(a[:, h] * meant).sum(-1)[some].mean() for h in range(H)]
/// same = tokens[:, :, None] == tokens[:, None, :]
/// after = np.zeros_like(same); after[:, :, 1:] = same[:, :, :-1]
/// print("first", share(np.broadcast_to(j == 0, (B, L, L))))
/// print("previous", share(np.broadcast_to(j == i - 1, (B, L, L))))
/// print("duplicate", share(same & (j < i)))
/// print("induction", share(after & (j < i) & (j > 0)))
/// m = (a[:, 0] + a[:, 1]) / 2
/// xlogx = lambda x: x * np.log(np.where(x > 0, x, 1))
/// print("divergence", ((xlogx(a[:, 0]) + xlogx(a[:, 1])).sum(-1) / 2 - xlogx(m).sum(-1))[rows].mean())
/// scored = np.array([[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]], bool)
/// out, count = np.zeros((H, 2)), 0
/// for b, t in zip(*np.where(rows & scored)):
///     count += 1
///     for r in range(2):
///         out[:, r] += a[b, :, t, max(s for s in range(t + 1) if tokens[b, s] // 3 == r)]
/// print("registers", (out / count).tolist())
/// ```
#[test]
fn measures_agree_with_numpy() {
    let (b, h, l) = (2, 2, 6);
    let mut padding = [false; 12];
    padding[11] = true;
    let readable = Readable::new(b, &padding, &padding, true);
    let mut weights = vec![];
    for row in 0..b * h * l {
        let (sample, i) = (row / (h * l), row % l);
        let e =
            |j: usize| if readable.row(sample, i)[j] { (3.0 * (1.7 * (row * l + j) as f64).sin()).exp() } else { 0.0 };
        let total: f64 = (0..l).map(e).sum();
        weights.extend((0..l).map(|j| if total > 0.0 { (e(j) / total) as f32 } else { 0.0 }));
    }
    let maps = Maps::new(h, &weights, &readable);
    let tokens = [4, 1, 4, 0, 1, 4, 5, 2, 2, 5, 3, 0];
    near(&measures::entropy(maps), &[0.5328741535037024, 0.39044459385894753]);
    near(&measures::top_weight(maps), &[0.7127828134430779, 0.7640297479099698]);
    near(&measures::distance(maps), &[1.3679702571955406, 1.3425310857387052]);
    near(&measures::first_position(maps), &[0.28869763045157826, 0.27713864638159674]);
    near(&measures::previous_token(maps), &[0.2908026862423867, 0.30924276500526404]);
    near(&measures::same_token(maps, &tokens), &[0.3389968054369092, 0.11820222889073193]);
    near(&measures::induction(maps, &tokens), &[0.08751291094813496, 0.46179395748185925]);
    near(&[Some(divergence(maps)[0][1])], &[0.3648109350788402]);
    // The latest token of each half of the vocabulary (0 to 2, 3 to 5).
    let latest =
        |b: usize, i: usize| [0, 1].map(|half| (0..=i).rev().find(|&j| tokens[b * l + j] / 3 == half).unwrap());
    let scored = [(0, 4), (0, 5), (1, 3), (1, 4)].map(|(b, i)| ((b, i), latest(b, i)));
    near(
        &needed(maps, &needs(&scored)),
        &[0.1398222092539072, 0.1979234153404832, 0.3378080332186073, 0.14069623887189664],
    );
}

/// A distribution over `keys` keys, perhaps with zeros.
fn distribution(keys: usize) -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(prop_oneof![1 => Just(0.0), 3 => 1e-6f64..1.0], keys).prop_map(|mut weights| {
        weights[0] += 1e-3;
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| (weight / sum) as f32).collect()
    })
}

proptest! {
    #[test]
    fn divergence_is_a_bounded_distance((p, q) in (2usize..20).prop_flat_map(|n| (distribution(n), distribution(n)))) {
        let both = jensen_shannon(&p, &q);
        prop_assert!((0.0..=LN_2).contains(&both));
        prop_assert_eq!(both, jensen_shannon(&q, &p));
        prop_assert!(jensen_shannon(&p, &p) < 1e-12);
        let apart: Vec<f32> = p.iter().copied().chain(p.iter().map(|_| 0.0)).collect();
        let other: Vec<f32> = p.iter().map(|_| 0.0).chain(p.iter().copied()).collect();
        prop_assert!((jensen_shannon(&apart, &other) - LN_2).abs() < 1e-6);
    }

    /// All measures but the distance are shares.
    #[test]
    fn measures_are_shares(rows in prop::collection::vec(distribution(5), 10), tokens in prop::collection::vec(0i32..3, 5)) {
        let padding = [false; 5];
        let readable = Readable::new(1, &padding, &padding, false);
        let weights: Vec<f32> = rows.concat();
        let maps = Maps::new(2, &weights, &readable);
        let (duplicate, induction) = (measures::same_token(maps, &tokens), measures::induction(maps, &tokens));
        let all = [measures::entropy(maps), measures::top_weight(maps), measures::first_position(maps),
            measures::previous_token(maps), duplicate, induction];
        for value in all.into_iter().flatten().flatten() {
            prop_assert!((0.0..=1.0 + 1e-6).contains(&value), "{value}");
        }
        prop_assert!(measures::distance(maps).into_iter().flatten().all(|distance| (0.0..4.0 + 1e-6).contains(&distance)));
    }
}
