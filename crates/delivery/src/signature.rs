//! Signatures after Standard Webhooks: HMAC-SHA256 over identifier, time and body.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

/// The header with the event's identifier.
pub const ID_HEADER: &str = "webhook-id";

/// The header with the attempt's time in Unix seconds.
pub const TIMESTAMP_HEADER: &str = "webhook-timestamp";

/// The header with the signature.
pub const SIGNATURE_HEADER: &str = "webhook-signature";

/// The prefix of signatures of this version.
const VERSION: &str = "v1,";

/// Returns the signature of a message: `v1,` and the HMAC in base 64.
pub fn sign(key: &[u8], id: &str, timestamp: i64, body: &[u8]) -> String {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    context.update(signed_head(id, timestamp).as_bytes());
    context.update(body);
    format!("{VERSION}{}", STANDARD.encode(context.sign()))
}

/// Returns true if one of the signatures, which are separated by spaces, is valid for the message.
/// Each comparison takes constant time.
pub fn is_signed(key: &[u8], id: &str, timestamp: i64, body: &[u8], signatures: &str) -> bool {
    let mut message = signed_head(id, timestamp).into_bytes();
    message.extend_from_slice(body);
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    let given = signatures.split(' ').filter_map(|one| one.strip_prefix(VERSION));
    let decoded = given.filter_map(|one| STANDARD.decode(one).ok());
    decoded.fold(false, |found, tag| found | hmac::verify(&key, &message, &tag).is_ok())
}

fn signed_head(id: &str, timestamp: i64) -> String {
    format!("{id}.{timestamp}.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_match_the_example_of_the_standard() {
        // The example of the standard's reference libraries.
        let key = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let (id, time, body) =
            ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        let signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
        assert_eq!(sign(&key, id, time, body), signature);
        let several = format!("v1,AAAA v2,x {signature}");
        assert!(is_signed(&key, id, time, body, &several));
        assert!(!is_signed(&key, id, time + 1, body, signature));
        assert!(!is_signed(b"another", id, time, body, signature));
        assert!(!is_signed(&key, id, time, body, ""));
    }
}
