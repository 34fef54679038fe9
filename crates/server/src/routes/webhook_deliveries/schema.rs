//! What requests for deliveries hold.

#![expect(dead_code, reason = "they are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::{IntoParams, ToSchema};

/// The parameters of the list, beside the page's.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct ListParameters {
    /// How many items at the most.
    #[param(minimum = 1, maximum = 100, default = 20, example = 50)]
    per_page: Option<i64>,
    /// Only those of this webhook.
    webhook_id: Option<String>,
    /// Only those that have come so far.
    #[param(value_type = Option<schemas::DeliveryStatus>)]
    status: Option<String>,
    /// Only those of this event.
    event_id: Option<String>,
}

/// The delivery to send again.
#[derive(ToSchema)]
pub(super) struct DeliveryToRetry {
    #[schema(value_type = schemas::DeliveryId)]
    id: String,
}
