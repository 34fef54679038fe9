//! Galley over HTTP.
//!
//! [`router`] has every route. A request passes the `middleware`; `routes` has a file for each
//! endpoint, which reads the request with the types of `extract`, calls an operation, and writes
//! the response with `respond`. `resources` are shared by all requests. `problem` translates errors
//! of operations, and `openapi` completes the OpenAPI document.

mod app;
pub mod callbacks;
mod client_socket;
mod describe;
mod extract;
#[doc(hidden)]
pub mod fuzzing;
mod middleware;
mod openapi;
mod problem;
mod resources;
mod respond;
pub mod router;
mod routes;
mod serve;

pub use app::{App, ServerLimits};
pub use galley_delivery::{Resolve, Resolving, SystemResolver, signature};
pub use galley_mail::{
    FromAddress as MailSender, InvalidMailSetting, Mailer, Outbox, SendError, Smtp,
};
pub use problem::Problem;
pub use resources::console_files::ConsoleFiles;
pub use serve::{Server, serve_metrics};
