//! Attempts over the real network, against receivers of every kind.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it expects")]

mod sending;
mod verifiers;
