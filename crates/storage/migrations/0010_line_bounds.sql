-- oldest-program: 0.1.0

-- From where on a line's deliveries and leases are to be looked for: no delivery that waits is due before `due_from_ms`,
-- and none with a smaller id than `leased_from` is leased (null: none is). PostgreSQL keeps what was deleted for as long as
-- a transaction that somebody has left open might see it, and all of that would be read again at each look.
ALTER TABLE webhook_queues ADD COLUMN due_from_ms BIGINT NOT NULL DEFAULT 0;
ALTER TABLE webhook_queues ADD COLUMN leased_from TEXT DEFAULT 'dlv_00000000000000000000000000';
