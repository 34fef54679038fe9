//! The extent of tests, and the figures that they measured. `cargo xtask reliability` raises the
//! extent and prints the figures.

use std::fmt::Display;
use std::io::Write;

/// The variable that requests more than `cargo xtask test` does.
const VARIABLE: &str = "GALLEY_RELIABILITY";

/// Returns the extent of a test: `test` in an ordinary run, `short` or `long` in the reliability
/// suite.
pub fn size<T>(test: T, short: T, long: T) -> T {
    match std::env::var(VARIABLE).as_deref() {
        Err(_) => test,
        Ok("short") => short,
        Ok("long") => long,
        Ok(other) => panic!("{VARIABLE} is \"short\" or \"long\", not {other:?}"),
    }
}

/// Reports a measured figure and its required value to the reliability suite.
pub fn report_figure(what: &str, found: impl Display, required: &str) {
    if std::env::var_os(VARIABLE).is_some() {
        // The test continues even if standard error is closed.
        let _ = writeln!(std::io::stderr(), "\nFIGURE\t{what}\t{found}\t{required}");
    }
}
