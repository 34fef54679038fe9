#![no_main]

#[path = "../../crates/content/tests/it/checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::markdown(bytes));
