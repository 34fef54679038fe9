//! Delivery attempts over the network stack, against receivers of every behaviour.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it expects")]

mod sending;
mod verifiers;
