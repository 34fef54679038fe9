//! Front matter: any text is parsed, or rejected with the number of a line that it has.

#![no_main]

#[path = "../../crates/import/src/front_matter.rs"]
#[allow(dead_code, unreachable_pub)]
mod front_matter;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    match front_matter::split(&text) {
        Ok(parts) => {
            assert!(text.ends_with(parts.body), "the body is the file's end");
            serde_json::to_string(&parts.fields).expect("fields are JSON");
        }
        Err(malformed) => {
            let lines = text.split('\n').count();
            assert!((1..=lines).contains(&malformed.line), "{malformed:?} of {lines}");
            assert!(!malformed.message.is_empty());
        }
    }
});
