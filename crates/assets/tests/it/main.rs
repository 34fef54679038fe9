//! Tests of stores, in a folder and in a bucket of a real server, and of images.

#![allow(
    clippy::unwrap_used,
    clippy::format_collect,
    reason = "a test ends where something is not as it expects"
)]

mod images;
mod stores;
