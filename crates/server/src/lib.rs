//! Galley over HTTP, and the operations behind it.
//!
//! [`http`] is what every request goes through, with every route in `http/router.rs`; `routes` has
//! a file for each endpoint, which reads in the order of a request; [`operations`] are the changes
//! themselves, each in one transaction with its events, used by the endpoints and by the program's
//! commands alike; `representation` is how resources look in JSON; [`openapi`] describes all of it.

pub mod callbacks;
mod delivery;
mod environment;
mod housekeeping;
pub mod http;
mod log_limit;
mod mailing;
pub mod openapi;
pub mod operations;
mod order_spreader;
mod pages;
mod representation;
mod routes;
pub mod sanitize;
pub mod secrets;

pub use axum::http::HeaderValue;
pub use environment::{Clock, DatabaseClock, Environment, SystemClock};
pub use galley_delivery::{Resolve, Resolving, SystemResolver, signature};
pub use galley_mail::{InvalidSetting, Mailer, NotSent, Outbox, Sender as MailSender, Smtp};
pub use galley_runtime::lower_priority;
pub use http::app::{App, Limits};
pub use http::cors::parse_origin;
pub use http::error::Error;
pub use http::serve::{Server, serve_metrics};
