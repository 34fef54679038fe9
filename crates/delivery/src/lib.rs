//! The client that calls webhooks, and the schedule of its attempts.
//!
//! [`WebhookSender`] makes one attempt within one deadline. It resolves the host name, rejects
//! addresses of internal networks, and connects only to an address that it has checked. It signs
//! the request after [Standard Webhooks](https://www.standardwebhooks.com), and reads a bounded
//! part of the response.
//!
//! [`Dispatcher`] selects the delivery that is attempted next, so that a slow receiver doesn't
//! delay others. It is a plain state machine without a clock, a network or a store.
//! `galley-storage` stores deliveries, and `galley-server` connects the three.

mod attempt;
mod connect;
mod dispatcher;
mod pool;
mod resolve;
mod response_body;
mod sender;
pub mod signature;

pub use attempt::{AttemptError, AttemptReport, DeliveryRequest};
pub use dispatcher::{Action, DeliveryJob, Dispatcher, DispatcherLimits, StoreRequest};
pub use resolve::{Resolve, Resolving, SystemResolver};
pub use sender::{SenderTimeouts, WebhookSender};
