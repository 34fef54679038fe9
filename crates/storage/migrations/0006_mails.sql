-- oldest-program: 0.1.0

-- Who invites, for the page where the invite is accepted.
ALTER TABLE invites ADD COLUMN inviter_id TEXT;

-- When a mail was given up: its address was refused, or it could not be sent for too long.
ALTER TABLE mails ADD COLUMN failed_at_ms BIGINT;
DROP INDEX mails_due;
CREATE INDEX mails_due ON mails (due_at_ms) WHERE failed_at_ms IS NULL;
CREATE INDEX mails_failed ON mails (failed_at_ms) WHERE failed_at_ms IS NOT NULL;
CREATE INDEX mails_troubled ON mails (workspace_id, id) WHERE last_error IS NOT NULL;

/*sqlite:
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('mails', 'mails_due', '1000 1'),
    ('mails', 'mails_failed', '100 1'),
    ('mails', 'mails_troubled', '100 100 1');
ANALYZE sqlite_schema;
*/
