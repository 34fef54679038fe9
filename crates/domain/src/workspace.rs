//! A workspace, and its billing data from the operator.

use crate::id::WorkspaceId;
use crate::language::LanguageTag;
use crate::text::{ShortText, WebReference, line_of_text};
use crate::time::Timestamp;

line_of_text! {
    /// A workspace's name: 1 to 255 characters without control characters.
    WorkspaceName(1..=255)
}

/// A workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// The identifier.
    pub id: WorkspaceId,
    /// The name for people.
    pub name: WorkspaceName,
    /// A description for people.
    pub description: Option<ShortText>,
    /// The URL of the logo.
    pub logo: Option<WebReference>,
    /// The language of its pieces, without a variant.
    pub language: Option<LanguageTag>,
    /// The billing data.
    pub billing: Billing,
    /// The version, incremented by every change.
    pub version: i64,
}

/// A workspace's subscription. The operator stores it here for clients to show.
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
    /// The end of the billing cycle.
    pub subscription_expires_at: Option<Timestamp>,
}
