-- oldest-program: 0.2.0

-- `hash` is the SHA-256 of the ticket's text, and `origin_hash` that of the `Origin` that it is
-- bound to, or null for none. An unused ticket may still be bound to no origin.
CREATE TABLE event_tickets (
    hash BYTEA NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    token_id TEXT NOT NULL,
    origin_hash BYTEA,
    is_used BOOLEAN NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    FOREIGN KEY (workspace_id, token_id) REFERENCES tokens (workspace_id, id) ON DELETE CASCADE
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX event_tickets_token ON event_tickets (workspace_id, token_id);
CREATE INDEX event_tickets_expiry ON event_tickets (expires_at_ms);
