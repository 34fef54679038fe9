//! The output of commands, for people and scripts.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write};

/// Prints a line on standard output as `println!` does, but doesn't panic if the reader closes the
/// pipe.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::out::line(format_args!($($text)*))
    };
}

pub use say;

/// Makes text from files safe to print. Escapes characters that would move the cursor or colour the
/// terminal, and replaces line ends by spaces.
pub fn escape_for_terminal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push(' '),
            c if c.is_control() || is_misleading(c) => {
                out.extend(c.escape_default());
            }
            c => out.push(c),
        }
    }
    out
}

/// Formats a count, such as `1 piece` or `2 pieces`.
pub fn counted(count: u64, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// Returns true if a character from U+007F up controls a terminal, is invisible, or changes the
/// direction of the following text.
pub fn is_misleading(c: char) -> bool {
    matches!(
        c,
        '\u{7f}'..='\u{9f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
    )
}

/// Writes a line to standard output. If the reader has closed the pipe, as `head` does, the program
/// exits without a message. Any other error ends it with a message.
pub fn line(text: Arguments<'_>) {
    let Err(error) = writeln!(std::io::stdout(), "{text}") else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    eprintln!("galley: standard output can't be written to: {error}");
    std::process::exit(1);
}
