//! The OpenAPI 3.1 document of the API, built from the routes.
//!
//! A handler's `#[utoipa::path]` and doc comment describe its particular parts. `rules` adds the
//! parts that follow from its arguments and its method.

mod conditions;
mod examples;
mod headers;
mod links;
mod operation;
mod problems;
mod responses;
mod rules;
mod samples;
mod shape;
mod tags;
mod webhooks;

pub(crate) use rules::complete;
