-- oldest-program: 0.2.0

-- The runs of servers that send deliveries. `node` is the name that a server has again after a
-- restart.
CREATE TABLE delivery_sessions (
    session TEXT NOT NULL PRIMARY KEY,
    node TEXT NOT NULL
);

-- Written twice a second by each session. A table of its own: leases refer to sessions, and would
-- otherwise wade through the versions of a row that PostgreSQL keeps while a snapshot is open.
-- `server` is when PostgreSQL was started, and `backend_pid` the process that served the heartbeat
-- there: when it ends, so has the session. Both are 0 before the first heartbeat.
CREATE TABLE delivery_heartbeats (
    session TEXT NOT NULL PRIMARY KEY,
    seen_at_ms BIGINT NOT NULL,
    server BIGINT NOT NULL,
    backend_pid BIGINT NOT NULL
);

-- A lease belongs to a session: none is left when that is gone, and none is made by one that is.
DROP TABLE delivery_leases;
CREATE TABLE delivery_leases (
    workspace_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    delivery_id TEXT NOT NULL,
    lease TEXT NOT NULL,
    session TEXT NOT NULL REFERENCES delivery_sessions (session),
    until_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, webhook_id, delivery_id)
);
CREATE INDEX delivery_leases_session ON delivery_leases (session);
UPDATE webhook_queues SET next_at_ms = 0 WHERE leased_from IS NOT NULL;

/*sqlite:
DELETE FROM sqlite_stat1 WHERE tbl = 'delivery_leases';
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('delivery_sessions', 'sqlite_autoindex_delivery_sessions_1', '3 1'),
    ('delivery_heartbeats', 'sqlite_autoindex_delivery_heartbeats_1', '3 1'),
    ('delivery_leases', 'sqlite_autoindex_delivery_leases_1', '500 500 8 1'),
    ('delivery_leases', 'delivery_leases_session', '500 200');
ANALYZE sqlite_schema;
*/
