//! The operations of Galley, and its workers, without HTTP.
//!
//! [`operations`] change and read resources in transactions, with their events. Endpoints and the
//! program's commands call the same operations. The workers run besides the requests:
//! [`webhook_worker`] sends deliveries, [`mail_worker`] sends mails, and [`housekeeping`] deletes
//! expired rows.

mod asset_resources;
mod audit;
mod caller;
pub mod content_input;
mod credential_use;
pub mod custom_data_schema;
pub mod default_limits;
pub mod dry_run;
mod environment;
mod error;
pub mod housekeeping;
mod idempotency;
mod log_limit;
pub mod mail_worker;
pub mod operations;
mod order_spreader;
mod precondition;
pub mod references;
mod rejected_credentials;
mod rejection;
mod running_appends;
pub mod sanitize;
mod scope;
pub mod search;
pub mod secrets;
mod service;
mod staleness;
pub mod webhook_worker;

pub use asset_resources::{AssetSettings, ServedAsset};
pub use caller::Caller;
pub use credential_use::CredentialUse;
pub use environment::{Clock, DatabaseClock, Environment, SystemClock};
pub use error::Error;
pub use galley_storage::IdPage;
pub use idempotency::{CreatedResponse, CreatedStatus, IdempotentRequest, Respond};
pub use log_limit::LogLimit;
pub use precondition::VersionPrecondition;
pub use rejected_credentials::RejectedCredentialsCounter;
pub use rejection::{Reason, Rejection};
pub use scope::Scope;
pub use service::{Service, ServiceSettings};
pub use staleness::StalenessBound;
