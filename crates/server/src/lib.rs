//! Galley over HTTP.
//!
//! [`http`] holds the router and the parts that every request passes through. `routes` has a file
//! for each endpoint, which reads the request, calls an operation and writes the response.
//! [`openapi`] describes the interface.

pub mod callbacks;
pub mod http;
pub mod openapi;
mod pages;
mod problem;
mod routes;

pub use axum::http::HeaderValue;
pub use galley_delivery::{Resolve, Resolving, SystemResolver, signature};
pub use galley_mail::{InvalidSetting, Mailer, NotSent, Outbox, Sender as MailSender, Smtp};
pub use http::app::{App, Limits};
pub use http::cors::parse_origin;
pub use http::serve::{Server, serve_metrics};
pub use problem::Problem;
