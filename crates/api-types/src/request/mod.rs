//! Request bodies. One declaration gives the struct that operations take, its parser and its
//! schema.
//!
//! A parser reads every field and records an issue for each invalid one, so that one response lists
//! all issues.

mod body;
mod fields;
mod lists;
mod values;

pub(crate) use body::{add_field, bodies, body, camel_case, mode, text_of};
pub use fields::{
    FieldContext, FieldValue, Fields, IssueRecorded, Parsed, Reference, ReferencesWithPaths,
    RequestBody, ResourceId,
};
pub use lists::{GroupLimit, Objects, References, Texts};
pub(crate) use values::schema_of;
pub use values::{ContentField, DescriptionHtml, RequestedTime, WebhookMetadata};
