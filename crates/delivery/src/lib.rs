//! Calling webhooks.
//!
//! [`Sender`] makes one attempt: it finds out where a name leads, refuses what is inside of
//! somebody's network, connects to the address that it has looked at and to no other, signs what it
//! sends after [Standard Webhooks](https://www.standardwebhooks.com), and reads a little of the
//! answer, all within one deadline. [`Dispatcher`] says which delivery is attempted next, so that no
//! receiver waits for another; it is a plain state machine without a clock, a network or a store.
//! Deliveries are kept by `galley-storage`, and `galley-server` brings the three together.

mod answer;
mod attempt;
mod connect;
mod dispatcher;
mod pool;
mod resolve;
mod sender;
pub mod signature;

pub use attempt::{Attempt, AttemptError, Request};
pub use dispatcher::{Action, Ask, Dispatcher, Job, Limits};
pub use resolve::{Resolve, Resolving, SystemResolver};
pub use sender::{Sender, SenderLimits};
