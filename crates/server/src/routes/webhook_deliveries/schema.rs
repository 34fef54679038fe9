//! Schemas of the requests to `/webhooks/deliveries`.

#![expect(dead_code, reason = "they are read field by field; only the schemas are used")]

use galley_api_types::schemas;
use utoipa::{IntoParams, ToSchema};

/// The query parameters of the list, besides those of paging.
#[derive(IntoParams)]
#[into_params(parameter_in = Query, rename_all = "camelCase")]
pub(super) struct DeliveryListParameters {
    /// The limit on items in a page.
    #[param(minimum = 1, maximum = 100, default = 20, example = 50)]
    per_page: Option<i64>,
    /// List only the deliveries to this webhook.
    webhook_id: Option<String>,
    /// List only the deliveries with this status.
    #[param(value_type = Option<schemas::DeliveryStatus>)]
    status: Option<String>,
    /// List only the deliveries of this event.
    event_id: Option<String>,
}

/// The delivery to retry.
#[derive(ToSchema)]
pub(super) struct DeliveryToRetry {
    #[schema(value_type = schemas::DeliveryId)]
    id: String,
}
