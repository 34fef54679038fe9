//! Checks of the source code: imports without cycles, the style of comments, and the links of the
//! documentation.

mod imports;
mod links;
mod style;
