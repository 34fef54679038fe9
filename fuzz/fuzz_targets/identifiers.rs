//! Identifiers, order keys, tokens and secrets: any text is rejected, or parsed and written back
//! unchanged.

#![no_main]

use galley_domain::access_token::AccessToken;
use galley_domain::order_key::MovingNeighbour;
use galley_domain::webhook::{WebhookSecret, WebhookUrl};
use galley_domain::{ContentPieceId, OrderKey, WorkspaceId};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(id) = text.parse::<ContentPieceId>() {
        assert_eq!(id.to_string(), text);
    }
    if let Ok(id) = text.parse::<WorkspaceId>() {
        assert_eq!(id.to_string(), text);
    }
    if let Ok(token) = AccessToken::parse(&text) {
        assert_eq!(token.reveal(), text);
    }
    let _ = (WebhookSecret::parse(text.to_string()), WebhookUrl::parse(text.to_string()));
    // There is always another order key between two different ones.
    let (first, second) = text.split_once(' ').unwrap_or((&text, ""));
    let (Ok(first), Ok(second)) = (OrderKey::parse(first), OrderKey::parse(second)) else { return };
    if first == second {
        return;
    }
    let (low, high) = if first < second { (first, second) } else { (second, first) };
    for moving in [MovingNeighbour::Before, MovingNeighbour::After] {
        let between = OrderKey::between(Some(&low), Some(&high), moving, 7);
        assert!(low < between && between < high, "{between:?}");
        // A key over the maximum length is not used.
        let is_short = between.as_str().len() <= OrderKey::LENGTH_MAX;
        assert_eq!(OrderKey::parse(between.as_str()).ok(), is_short.then_some(between));
        assert!(OrderKey::between(None, Some(&low), moving, 7) < low);
        assert!(OrderKey::between(Some(&high), None, moving, 7) > high);
    }
    for keys in OrderKey::spread_part(Some(&low), Some(&high), 1..=5, 5).windows(2) {
        assert!(low < keys[0] && keys[0] < keys[1] && keys[1] < high);
    }
});
