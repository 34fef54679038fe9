//! Attempts over the real network, against receivers of every kind.

mod sending;
mod verifiers;
