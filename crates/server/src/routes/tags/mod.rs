//! `/tags`.

pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod list;
mod schema;
pub(crate) mod update;

use galley_domain::Invalid;
use galley_domain::tag::Color;

/// The path of the resource.
pub(crate) const PATH: &str = "/tags";

fn color(text: String) -> Result<Color, Invalid> {
    text.parse()
}
