#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| galley_search::fuzzing::search(bytes));
