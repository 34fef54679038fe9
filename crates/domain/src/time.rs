//! Points in time, to the millisecond, in UTC.

use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;
use jiff::civil::{DateTime, datetime};
use jiff::fmt::temporal::Pieces;
use jiff::tz::Offset;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::text::Invalid;

const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);

/// The length of a day. Every offset is shorter.
const DAY_SECONDS: u32 = 24 * 60 * 60;

/// A point in time as milliseconds since the Unix epoch, written as RFC 3339 in UTC with
/// milliseconds (`2026-11-20T09:30:00.000Z`). The years 0000 to 9999 can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

/// The error for a text that is no date or date-time in the common ISO 8601 forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an ISO 8601 date or date-time")]
pub struct MalformedTime;

impl From<MalformedTime> for Invalid {
    fn from(_: MalformedTime) -> Self {
        let message = "must be an ISO 8601 date or date-time, such as 2026-11-20T09:30:00Z";
        Self::new("invalid_date", message)
    }
}

impl Timestamp {
    /// Returns the point `ms` milliseconds after the Unix epoch.
    pub const fn from_ms(ms: i64) -> Self {
        Self(ms)
    }

    /// Returns the milliseconds since the Unix epoch.
    pub const fn ms(self) -> i64 {
        self.0
    }

    /// Returns the time that is later by `by`.
    pub fn later(self, by: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns the time that is earlier by `by`.
    pub fn earlier(self, by: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(by.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns the time to the minute in a form for people: `2026-11-20, 09:30 UTC`.
    pub fn to_minute_text(self) -> String {
        let text = self.to_string();
        let (date, time) = text.split_once('T').unwrap_or((&text, ""));
        format!("{date}, {} UTC", time.get(..5).unwrap_or(time))
    }

    /// Parses a date, or a date-time with or without seconds, fraction and offset (`Z`, `+01:00`,
    /// `+0100`; none means UTC). Digits beyond milliseconds are truncated.
    pub fn parse_iso8601(text: &str) -> Result<Self, MalformedTime> {
        Self::from_pieces(&Pieces::parse(text).map_err(|_| MalformedTime)?)
    }

    /// Like [`Timestamp::parse_iso8601`], as the end of a range that contains it. A date without a
    /// time is its last millisecond.
    pub fn parse_iso8601_end(text: &str) -> Result<Self, MalformedTime> {
        let pieces = Pieces::parse(text).map_err(|_| MalformedTime)?;
        let Self(ms) = Self::from_pieces(&pieces)?;
        let rest = if pieces.time().is_none() { i64::from(DAY_SECONDS) * 1_000 - 1 } else { 0 };
        Ok(Self(ms + rest))
    }

    fn from_pieces(pieces: &Pieces<'_>) -> Result<Self, MalformedTime> {
        if pieces.time_zone_annotation().is_some() || pieces.date().year() < 0 {
            return Err(MalformedTime);
        }
        let local = pieces.date().to_datetime(pieces.time().unwrap_or_default());
        let offset = pieces.to_numeric_offset().map_or(0, Offset::seconds);
        if offset.unsigned_abs() >= DAY_SECONDS {
            return Err(MalformedTime);
        }
        let utc = local.checked_sub(SignedDuration::from_secs(i64::from(offset)));
        let utc = utc.ok().filter(|utc| utc.year() >= 0).ok_or(MalformedTime)?;
        let ms = utc.duration_since(EPOCH).as_millis();
        // Rounded down, so that a fraction is also truncated before the epoch.
        let ms = ms - i128::from(utc < EPOCH && utc.subsec_nanosecond() % 1_000_000 != 0);
        i64::try_from(ms).map(Self).map_err(|_| MalformedTime)
    }
}

/// The length of `2024-05-06T07:08:09.123Z` in bytes.
const TEXT_LENGTH: usize = 24;

impl Timestamp {
    /// Writes a time in the years 0 to 9999. Formats the digits itself, for speed, as lists contain
    /// many times.
    fn write(self, text: &mut [u8; TEXT_LENGTH]) -> Option<&str> {
        // A tenth of the time of an addition to `EPOCH`.
        let utc = Offset::UTC.to_datetime(jiff::Timestamp::from_millisecond(self.0).ok()?);
        let year = u16::try_from(utc.year()).ok()?;
        text.copy_from_slice(b"0000-00-00T00:00:00.000Z");
        let mut put = |at: usize, digits: usize, number: u16| {
            let mut rest = number;
            for digit in text[at..at + digits].iter_mut().rev() {
                *digit = b'0' + u8::try_from(rest % 10).unwrap_or_default();
                rest /= 10;
            }
        };
        let small = |part: i8| u16::from(part.unsigned_abs());
        put(0, 4, year);
        put(5, 2, small(utc.month()));
        put(8, 2, small(utc.day()));
        put(11, 2, small(utc.hour()));
        put(14, 2, small(utc.minute()));
        put(17, 2, small(utc.second()));
        put(20, 3, utc.millisecond().unsigned_abs());
        std::str::from_utf8(text).ok()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = self.write(&mut [0; TEXT_LENGTH]) {
            return out.write_str(text);
        }
        let utc = EPOCH.checked_add(SignedDuration::from_millis(self.0)).unwrap_or(DateTime::MAX);
        write!(
            out,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            utc.year(),
            utc.month(),
            utc.day(),
            utc.hour(),
            utc.minute(),
            utc.second(),
            utc.millisecond()
        )
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut text = [0; TEXT_LENGTH];
        match self.write(&mut text) {
            Some(text) => serializer.serialize_str(text),
            None => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse_iso8601(&text).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_ends_with_its_last_millisecond() {
        let cases = [
            ("2026-11-20", "2026-11-20T23:59:59.999Z"),
            ("9999-12-31", "9999-12-31T23:59:59.999Z"),
            ("2026-11-20T09:30+01:00", "2026-11-20T08:30:00.000Z"),
            ("2026-11-20T00:00", "2026-11-20T00:00:00.000Z"),
        ];
        for (text, expected) in cases {
            let end = Timestamp::parse_iso8601_end(text).map(|time| time.to_string());
            assert_eq!(end.as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(Timestamp::parse_iso8601_end("2026-13-01"), Err(MalformedTime));
    }

    #[test]
    fn common_iso_8601_forms_parse() {
        let cases = [
            ("2026-11-20", "2026-11-20T00:00:00.000Z"),
            ("2026-11-20T09:30", "2026-11-20T09:30:00.000Z"),
            ("2026-11-20T09:30:15", "2026-11-20T09:30:15.000Z"),
            ("2026-11-20T09:30:15.5", "2026-11-20T09:30:15.500Z"),
            ("2026-11-20T09:30:15.123456789Z", "2026-11-20T09:30:15.123Z"),
            ("2026-11-20T09:30:15+01:00", "2026-11-20T08:30:15.000Z"),
            ("2026-11-20T09:30:15+0100", "2026-11-20T08:30:15.000Z"),
            ("2026-11-20T00:30:15.000-05:30", "2026-11-20T06:00:15.000Z"),
            ("1969-12-31T23:59:59.999Z", "1969-12-31T23:59:59.999Z"),
            ("1969-12-31T23:59:59.9999Z", "1969-12-31T23:59:59.999Z"),
            ("9999-12-31", "9999-12-31T00:00:00.000Z"),
            ("9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
            ("0000-01-01", "0000-01-01T00:00:00.000Z"),
        ];
        for (text, expected) in cases {
            let read = Timestamp::parse_iso8601(text).map(|time| time.to_string());
            assert_eq!(read.as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn malformed_times_are_rejected() {
        for text in [
            "",
            "yesterday",
            "2026-13-01",
            "2026-02-30",
            "2026-11-20T25:00",
            "20:30",
            "-000001-01-01",
            "2026-11-20T09:30[Europe/Berlin]",
            "1763631000",
            "2026-11-20T09:30:15+99:00",
            "2026-11-20T09:30:15+24:00",
            "2026-11-20T09:30:15-25:59",
        ] {
            assert_eq!(Timestamp::parse_iso8601(text), Err(MalformedTime), "{text}");
        }
    }

    #[test]
    fn written_times_parse_back() {
        for ms in [0, -1, 1_763_631_000_123, 253_402_300_799_999, -62_167_219_200_000] {
            let time = Timestamp::from_ms(ms);
            assert_eq!(Timestamp::parse_iso8601(&time.to_string()), Ok(time));
        }
    }
}
