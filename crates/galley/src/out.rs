//! What commands print for people and scripts to read.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints a line on standard output, as `println!` does, but for a reader that goes away early.
macro_rules! say {
    ($($text:tt)*) => {
        $crate::out::line(format_args!($($text)*))
    };
}

pub(crate) use say;

/// What came from files, so that it is shown as it is: without what would move the cursor or colour the terminal.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push(' '),
            c if c.is_control() || misleads(c) => {
                out.extend(c.escape_default());
            }
            c => out.push(c),
        }
    }
    out
}

/// `1 piece`, `2 pieces`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Whether a character beyond ASCII steers a terminal, hides, or turns the direction in which the rest is shown.
pub(crate) fn misleads(c: char) -> bool {
    matches!(
        c,
        '\u{7f}'..='\u{9f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    )
}

/// A line on standard output. When whoever reads it has seen enough, such as `head`, the program
/// ends quietly; when it can't be written, with an error.
pub(crate) fn line(text: Arguments<'_>) {
    let Err(error) = writeln!(std::io::stdout(), "{text}") else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    eprintln!("galley: standard output can't be written to: {error}");
    std::process::exit(1);
}
