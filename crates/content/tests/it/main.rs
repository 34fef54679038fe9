//! The guarantees of the content tree, as tests of the public interface.

mod bounds;
mod checks;
mod corpus;
mod diff;
mod diff_exactness;
mod fixtures;
mod generated;
mod json;
mod losses;
mod markdown;
mod node;
mod replay;
mod safety;
mod support;
mod text;
mod white_space;
mod xss;
