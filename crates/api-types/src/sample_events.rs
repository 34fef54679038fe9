//! Samples of the data of events: in the OpenAPI document, and in test deliveries.

use std::sync::LazyLock;

use galley_domain::event::EventType;
use serde_json::Value;

/// Returns the sample data of an event.
pub fn sample_data(event: EventType) -> &'static Value {
    static SAMPLES: LazyLock<Value> = LazyLock::new(|| {
        serde_json::from_str(include_str!("sample_events.json")).expect("the samples are JSON")
    });
    &SAMPLES[event.as_str()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_a_sample() {
        for event in EventType::ALL {
            assert!(sample_data(*event).is_object(), "{}", event.as_str());
        }
    }
}
