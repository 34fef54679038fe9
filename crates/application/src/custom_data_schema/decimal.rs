//! Numbers as exact decimals, for `multipleOf`.

use serde_json::Number;

/// A number: `digits · 10^exponent`, without its sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Decimal {
    digits: u128,
    exponent: i32,
}

/// The digits that a product of two numbers of 64 bits may have in 128 bits.
const SHIFT_MAX: u32 = 18;

impl Decimal {
    /// Returns a number as its shortest text has it, so 0.3 is a multiple of 0.1.
    pub(super) fn of(number: &Number) -> Option<Self> {
        if let Some(integer) = number.as_i128() {
            return Some(Self { digits: integer.unsigned_abs(), exponent: 0 }.reduced());
        }
        let text = format!("{:e}", number.as_f64()?.abs());
        let (digits, exponent) = text.split_once('e')?;
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let places = i32::try_from(fraction.len()).ok()?;
        let digits = format!("{whole}{fraction}").parse().ok()?;
        let exponent: i32 = exponent.parse().ok()?;
        Some(Self { digits, exponent: exponent - places }.reduced())
    }

    /// Removes zeros at the end.
    fn reduced(mut self) -> Self {
        while self.digits != 0 && self.digits.is_multiple_of(10) {
            self.digits /= 10;
            self.exponent += 1;
        }
        self
    }

    pub(super) fn is_zero(self) -> bool {
        self.digits == 0
    }

    /// Returns true if it is a multiple of another one, which isn't zero.
    pub(super) fn is_multiple_of(self, other: Self) -> bool {
        if self.is_zero() {
            return true;
        }
        let shift = self.exponent - other.exponent;
        if shift < 0 {
            // The digits do not end in zeros, so they are no multiple of a higher power of ten.
            return match shift.unsigned_abs() {
                shift @ ..=SHIFT_MAX => other
                    .digits
                    .checked_mul(10_u128.pow(shift))
                    .is_some_and(|divisor| self.digits.is_multiple_of(divisor)),
                _ => false,
            };
        }
        let Ok(divisor) = u64::try_from(other.digits) else {
            return shift == 0 && self.digits.is_multiple_of(other.digits);
        };
        let divisor = u128::from(divisor);
        let mut rest = self.digits % divisor;
        let (mut power, mut shift) = (10 % divisor, shift.unsigned_abs());
        while shift > 0 {
            if shift & 1 == 1 {
                rest = rest * power % divisor;
            }
            power = power * power % divisor;
            shift >>= 1;
        }
        rest == 0
    }
}
