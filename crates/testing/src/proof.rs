//! How thorough the tests are, and what they measured: `cargo xtask prove` has them do more, and shows it.

use std::fmt::Display;
use std::io::Write;

/// What asks for more than `cargo xtask test` does.
const VARIABLE: &str = "GALLEY_PROVE";

/// How much a test does: as one of many, in a short proof, and in a long one.
pub fn size<T>(test: T, short: T, long: T) -> T {
    match std::env::var(VARIABLE).as_deref() {
        Err(_) => test,
        Ok("short") => short,
        Ok("long") => long,
        Ok(other) => panic!("{VARIABLE} is \"short\" or \"long\", not {other:?}"),
    }
}

/// Says what a proof found, and what it had to find.
pub fn figure(what: &str, found: impl Display, required: &str) {
    if std::env::var_os(VARIABLE).is_some() {
        // Nobody may be listening; the test goes on all the same.
        let _ = writeln!(std::io::stderr(), "\nFIGURE\t{what}\t{found}\t{required}");
    }
}
