//! Checks of the source code: imports without cycles, the style of comments, the names of types,
//! and the links and lists of the documentation.

mod imports;
mod links;
mod reference;
mod style;
