//! Checks of the source code: imports without cycles, and the style of comments.

mod imports;
mod style;
