-- oldest-program: 0.2.0

-- The changes of a workspace's resources. `id` has the time. `target` is the id of the resource, and
-- `changes` a JSON array of its changed fields. The address is removed earlier than the entry.
CREATE TABLE audit_entries (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    revision BIGINT,
    request_id TEXT,
    remote_address TEXT,
    changes TEXT,
    PRIMARY KEY (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;

-- The requests with rejected credentials, by minute and address. The address is empty for those
-- beyond the limit of rows.
CREATE TABLE rejected_credentials (
    minute_ms BIGINT NOT NULL,
    remote_address TEXT NOT NULL,
    requests BIGINT NOT NULL,
    PRIMARY KEY (minute_ms, remote_address)
) /*sqlite: WITHOUT ROWID*/;

UPDATE roles SET permissions = permissions || ' audit:write' WHERE base_type = 'admin';

/*sqlite:
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('audit_entries', 'audit_entries', '5000000 5000000 1'),
    ('rejected_credentials', 'rejected_credentials', '1000000 1000 1');
ANALYZE sqlite_schema;
*/
