//! SHA-256 (FIPS 180-4), which content security policies name scripts by.

/// Base64 of the SHA-256 of some bytes.
pub(super) fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in digest(bytes).chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for digit in 0..4 {
            let present = digit <= chunk.len();
            let index = (bits >> (18 - 6 * digit) & 63) as usize;
            text.push(if present { char::from(DIGITS[index]) } else { '=' });
        }
    }
    text
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    let roots = first_primes();
    // The first 32 bits of the fractions of square and cube roots of primes.
    let fraction = |root: f64| ((root - root.floor()) * 4_294_967_296.0) as u32;
    let mut state: [u32; 8] = std::array::from_fn(|index| fraction(roots[index].sqrt()));
    let constants: [u32; 64] = std::array::from_fn(|index| fraction(roots[index].cbrt()));

    let mut message = bytes.to_vec();
    message.push(0x80);
    while message.len() % 64 != 56 {
        message.push(0);
    }
    message.extend((8 * bytes.len() as u64).to_be_bytes());
    for block in message.chunks_exact(64) {
        let mut words = [0_u32; 64];
        for (word, bytes) in words.iter_mut().zip(block.chunks_exact(4)) {
            *word = bytes.iter().fold(0, |word, byte| word << 8 | u32::from(*byte));
        }
        for t in 16..64 {
            let (a, b) = (words[t - 15], words[t - 2]);
            let small0 = a.rotate_right(7) ^ a.rotate_right(18) ^ a >> 3;
            let small1 = b.rotate_right(17) ^ b.rotate_right(19) ^ b >> 10;
            words[t] = words[t - 16].wrapping_add(small0).wrapping_add(words[t - 7]).wrapping_add(small1);
        }
        let [mut a, mut b, mut c, mut d, mut e, mut f, mut g, mut h] = state;
        for (word, constant) in words.into_iter().zip(constants) {
            let big1 = e.rotate_right(6) ^ e.rotate_right(11) ^ e.rotate_right(25);
            let choice = e & f ^ !e & g;
            let first = h.wrapping_add(big1).wrapping_add(choice).wrapping_add(constant).wrapping_add(word);
            let big0 = a.rotate_right(2) ^ a.rotate_right(13) ^ a.rotate_right(22);
            let majority = a & b ^ a & c ^ b & c;
            (h, g, f, e) = (g, f, e, d.wrapping_add(first));
            (d, c, b, a) = (c, b, a, first.wrapping_add(big0).wrapping_add(majority));
        }
        for (sum, value) in state.iter_mut().zip([a, b, c, d, e, f, g, h]) {
            *sum = sum.wrapping_add(value);
        }
    }
    let mut digest = [0; 32];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_be_bytes());
    }
    digest
}

fn first_primes() -> [f64; 64] {
    let mut primes = (2_u32..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0));
    std::array::from_fn(|_| primes.next().map_or(0.0, f64::from))
}

#[cfg(test)]
mod tests {
    /// `printf abc | openssl dgst -sha256 -binary | base64`
    #[test]
    fn known_digests() {
        assert_eq!(super::base64(b""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(super::base64(b"abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
        assert_eq!(super::base64(&[b'a'; 1000]), "Qe3s5C1j6Nm/UVqbppMuHCDLyfWl0TRkWttdsblzfqM=");
    }
}
