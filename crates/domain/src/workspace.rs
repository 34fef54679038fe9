//! A workspace, and what the operator says about its billing.

use crate::id::WorkspaceId;
use crate::text::{ShortText, WebReference, line_of_text};
use crate::time::Timestamp;

line_of_text! {
    /// A workspace's name: 1 to 255 characters without control characters.
    WorkspaceName(1..=255)
}

/// A workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// Which one.
    pub id: WorkspaceId,
    /// What people call it.
    pub name: WorkspaceName,
    /// One sentence for people.
    pub description: Option<ShortText>,
    /// Where its logo is.
    pub logo: Option<WebReference>,
    /// What the operator says about its billing.
    pub billing: Billing,
    /// Raised by every change.
    pub version: i64,
}

/// A workspace's subscription, as the operator keeps it here for clients to show.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Billing {
    /// The payment provider's identifier of the customer.
    pub customer_id: Option<String>,
    /// The subscription's status.
    pub subscription_status: Option<String>,
    /// The subscription's plan.
    pub subscription_plan: Option<String>,
    /// The payment provider's own data, a JSON text.
    pub subscription_data: Option<String>,
    /// When the billing cycle ends.
    pub subscription_expires_at: Option<Timestamp>,
}
