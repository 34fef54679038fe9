//! The delivery queue: deliveries of events to webhooks, from the event to the recorded result.
//!
//! [`fan_out`] creates deliveries for events that matched webhooks, [`claim()`] leases deliveries
//! that are due to a worker, and [`record_results`] stores the results of attempts. Each webhook
//! has a queue of its own, with a row in `webhook_queues` that has the time of its next scan. A
//! transaction locks that row while it works on the queue, so that several nodes can share the
//! work. A lease outlasts an attempt, and only its holder records the result.
//!
//! No scan reads rows again that were deleted or are done. PostgreSQL keeps their index entries
//! while any transaction is open. So each queue has lower bounds for its scans, and
//! [`ScanPosition`] has one for events to fan out.

mod claim;
mod enqueue;
mod history;
mod locking;
mod pending;
mod record;
mod recovery;
mod retention;
mod scan_position;
mod sessions;
mod slice;
mod webhook_queues;

pub use crate::engine::heartbeat::{DeadSession, Heartbeat};
pub use claim::{ClaimRequest, ClaimedDelivery, claim, has_work, release};
pub use enqueue::{enqueue_test, fan_out};
pub use history::{
    Delivery, DeliveryListQuery, DeliverySelection, find_webhook, list, list_visible_occurrences,
};
pub use locking::{lock_queue_of_webhook, lock_queues_ahead, webhook_changed};
pub use record::{AttemptResult, ReceiverState, RecordedResults, record_results};
pub use recovery::{continue_recoveries, redeliver, start_recovery};
pub use retention::{QueueMetrics, delete_expired, delete_orphans, queue_metrics};
pub use scan_position::ScanPosition;
pub use sessions::{close_session, delete_dead_session, open_session, release_unknown};
pub use webhook_queues::LockedQueues;
