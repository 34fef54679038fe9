//! Every route of the OpenAPI document with every kind of client. A route without a row here fails.

mod audited;
mod foreign;
mod permissions;
mod target;
mod undocumented_fields;
