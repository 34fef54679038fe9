//! The result of a heartbeat of the session that sends deliveries.

use galley_domain::Timestamp;

/// A session that is dead or may be, as found by another session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadSession {
    /// The session.
    pub session: String,
    /// The time of its last heartbeat.
    pub seen_at: Timestamp,
    /// True if its process ended; false if its heartbeat expired by the database's clock.
    pub is_gone: bool,
}

/// The result of a heartbeat.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Heartbeat {
    /// True if another node declared the session dead and released its leases.
    pub is_superseded: bool,
    /// Other sessions that are dead, or may be.
    pub dead: Vec<DeadSession>,
}
