use rand_mt::Mt;

use crate::draws::Draws;
use crate::model::{HOP_DEVIATION_MS, HOP_MEAN_MS};

/// 4·exp(-1/2)/√2, as `random.NV_MAGICCONST` has it.
const NV_MAGICCONST: f64 = 1.715_527_769_921_413_5;

/// CPython's `random.Random`: MT19937 with CPython's seeding and its ways to turn bits into numbers
/// (Lib/random.py and Modules/_randommodule.c).
#[derive(Debug)]
pub(crate) struct CPython(Mt);

impl CPython {
    /// `random.seed(seed)`: the key is the number's 32-bit words, the least significant first.
    pub(crate) fn new(seed: u64) -> Self {
        let (low, high) = (seed as u32, (seed >> 32) as u32);
        Self(if high == 0 { Mt::new_with_key([low]) } else { Mt::new_with_key([low, high]) })
    }

    /// `random.random()`: 53 bits, from two draws.
    fn random(&mut self) -> f64 {
        let (high, low) = (self.0.next_u32() >> 5, self.0.next_u32() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) * (1.0 / 9_007_199_254_740_992.0)
    }

    /// `random.uniform(low, high)`
    fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.random()
    }

    /// `random.normalvariate(mean, deviation)`: Kinderman and Monahan's ratio of uniform deviates.
    fn normalvariate(&mut self, mean: f64, deviation: f64) -> f64 {
        loop {
            let u1 = self.random();
            let u2 = 1.0 - self.random();
            let z = NV_MAGICCONST * (u1 - 0.5) / u2;
            if z * z / 4.0 <= -u2.ln() {
                return mean + z * deviation;
            }
        }
    }
}

impl Draws for CPython {
    fn hop(&mut self, _client: u32) -> f64 {
        self.normalvariate(HOP_MEAN_MS, HOP_DEVIATION_MS).abs()
    }

    fn uniform(&mut self, _client: u32, low: f64, high: f64) -> f64 {
        CPython::uniform(self, low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `random.seed(seed); [random.random() for _ in range(3)]`; the first line is the one
    /// everybody has seen. (CPython 3.11.7)
    #[test]
    fn random_is_cpythons() {
        for (seed, expected) in [
            (42, RANDOM_42),
            (0, RANDOM_0),
            (0xffff_ffff, RANDOM_32),
            (0x1_0000_0000, RANDOM_33),
            (u64::MAX, RANDOM_64),
        ] {
            let mut random = CPython::new(seed);
            assert_eq!([(); 3].map(|()| random.random()), expected, "seed {seed}");
        }
    }

    /// `random.seed(42); [random.uniform(5, 15) for _ in range(3)]` (CPython 3.11.7)
    #[test]
    fn uniform_is_cpythons() {
        let mut random = CPython::new(42);
        assert_eq!([(); 3].map(|()| random.uniform(5.0, 15.0)), UNIFORM_42);
    }

    /// `random.seed(42); [random.normalvariate(10, 2) for _ in range(5)]` (CPython 3.11.7)
    #[test]
    fn normalvariate_is_cpythons() {
        let mut random = CPython::new(42);
        assert_eq!([(); 5].map(|()| random.normalvariate(10.0, 2.0)), NORMAL_42);
    }

    const RANDOM_42: [f64; 3] =
        [0.639_426_798_457_883_7, 0.025_010_755_222_666_936, 0.275_029_318_369_119_26];
    const RANDOM_0: [f64; 3] = [0.844_421_851_525_048_1, 0.757_954_402_940_302_5, 0.420_571_580_830_845];
    const RANDOM_32: [f64; 3] = [0.635_357_444_134_117_3, 0.203_199_939_544_077_56, 0.607_366_603_034_718_8];
    const RANDOM_33: [f64; 3] = [0.112_994_300_956_364_09, 0.417_828_864_862_928_36, 0.016_676_366_499_229_1];
    const RANDOM_64: [f64; 3] =
        [0.021_825_695_401_270_107, 0.338_095_326_861_375_8, 0.211_967_486_560_820_65];
    const UNIFORM_42: [f64; 3] = [11.394_267_984_578_837, 5.250_107_552_226_67, 7.750_293_183_691_193];
    const NORMAL_42: [f64; 5] = [
        10.490_652_683_415_727,
        9.006_311_053_177_594,
        12.509_571_862_114_925,
        9.723_881_874_514_376,
        8.048_359_333_409_35,
    ];
}
