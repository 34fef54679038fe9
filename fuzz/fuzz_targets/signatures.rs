//! Webhook signatures: only the right one is accepted, regardless of others beside it.

#![no_main]

use galley_server::signature::{is_signed, sign};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (id, given) = text.split_once('\n').unwrap_or(("msg", &text));
    let right = sign(b"key", id, 1_700_000_000, bytes);
    let has_right = given.split(' ').any(|one| one == right);
    assert_eq!(is_signed(b"key", id, 1_700_000_000, bytes, given), has_right, "{given}");
    assert!(is_signed(b"key", id, 1_700_000_000, bytes, &format!("{given} {right}")));
    assert!(!is_signed(b"yek", id, 1_700_000_000, bytes, &right));
});
