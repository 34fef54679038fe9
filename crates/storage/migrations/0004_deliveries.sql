-- oldest-program: 0.1.0

-- How many deliveries were lost while the webhook was disabled.
ALTER TABLE webhooks ADD COLUMN dropped BIGINT NOT NULL DEFAULT 0;
-- Every change looks here for who watches for it.
CREATE INDEX webhooks_event ON webhooks (workspace_id, event, content_group_id, id);

-- Which webhooks a run of events matched, written with the events and deleted when there is a
-- delivery for each. `event_type` is the event as they see it; `webhook_ids` are separated by commas,
-- few enough for a row to be seen to in one go: `part` counts the rows. `id` is that of the run's
-- first event: these sort in the order in which they were made.
CREATE TABLE event_matches (
    id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    part BIGINT NOT NULL,
    workspace_id TEXT NOT NULL,
    first_sequence BIGINT NOT NULL,
    last_sequence BIGINT NOT NULL,
    webhook_ids TEXT NOT NULL,
    PRIMARY KEY (id, event_type, part)
);

-- The line of a webhook's deliveries: how its receiver is doing, and when to look at it next (null:
-- not before something changes). It outlives its webhook until its deliveries are gone.
CREATE TABLE webhook_queues (
    workspace_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    next_at_ms BIGINT,
    failures BIGINT NOT NULL,
    slots BIGINT NOT NULL,
    open_until_ms BIGINT,
    pending BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, webhook_id)
);
CREATE INDEX webhook_queues_next ON webhook_queues (next_at_ms) WHERE next_at_ms IS NOT NULL;
INSERT INTO webhook_queues (workspace_id, webhook_id, failures, slots, pending)
    SELECT workspace_id, id, 0, 2, 0 FROM webhooks;

-- An event for a webhook. `status` is `pending`, `delivered` or `failed`; `lane` is 0 for samples
-- that were asked for, 1 for what has not been attempted, 2 for what is attempted again. `attempts`
-- counts for the schedule; `log` has them all as JSON, with what came of each. A sample's event is
-- not among the workspace's, so that its `data` stands here.
CREATE TABLE deliveries (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    sequence BIGINT,
    data TEXT,
    status TEXT NOT NULL,
    lane BIGINT NOT NULL,
    due_at_ms BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    log TEXT,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE UNIQUE INDEX deliveries_event ON deliveries (workspace_id, webhook_id, event_id);
CREATE INDEX deliveries_due ON deliveries (workspace_id, webhook_id, lane, due_at_ms)
    WHERE status = 'pending';
CREATE INDEX deliveries_failed ON deliveries (workspace_id, webhook_id, id)
    WHERE status = 'failed';

-- Deliveries that somebody is about to send. Who settles one names the lease, so that after its end
-- nothing of another's is overwritten; `owner` is the program that holds it.
CREATE TABLE delivery_leases (
    workspace_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    delivery_id TEXT NOT NULL,
    lease TEXT NOT NULL,
    owner TEXT NOT NULL,
    until_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, webhook_id, delivery_id)
);

-- Failed deliveries that are to be sent again, a few at a time: those made at `since_ms` or later,
-- up to the one that was the last when it was asked for. `done_id` is the last one that was seen to.
CREATE TABLE webhook_recoveries (
    workspace_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    since_ms BIGINT NOT NULL,
    done_id TEXT NOT NULL,
    last_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, webhook_id)
);

/*sqlite:
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('webhooks', 'webhooks_event', '100 100 10 2 1'),
    ('event_matches', 'sqlite_autoindex_event_matches_1', '1000 10 10 1'),
    ('webhook_queues', 'sqlite_autoindex_webhook_queues_1', '100 100 1'),
    ('webhook_queues', 'webhook_queues_next', '100 2'),
    ('deliveries', 'sqlite_autoindex_deliveries_1', '1000000 1000000 1'),
    ('deliveries', 'deliveries_event', '1000000 1000000 10000 1'),
    ('deliveries', 'deliveries_due', '100000 100000 1000 500 1'),
    ('deliveries', 'deliveries_failed', '100000 100000 1000 1'),
    ('delivery_leases', 'sqlite_autoindex_delivery_leases_1', '500 500 8 1');
ANALYZE sqlite_schema;
*/
