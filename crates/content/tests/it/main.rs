//! What the content tree promises, as tests of the public interface.

mod bounds;
mod corpus;
mod fixtures;
mod generated;
mod json;
mod losses;
mod markdown;
mod safety;
mod support;
mod text;
