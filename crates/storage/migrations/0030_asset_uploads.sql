-- oldest-program: 0.2.0

-- Resumable uploads of assets that have not ended. `id` is that of the asset, and `metadata` is the text of
-- the client. `received` is the size of the stored parts together.
CREATE TABLE asset_uploads (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    filename TEXT NOT NULL,
    alt TEXT,
    content_group_id TEXT,
    metadata TEXT NOT NULL,
    size BIGINT NOT NULL,
    received BIGINT NOT NULL,
    part_count BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX asset_uploads_expiry ON asset_uploads (expires_at_ms, workspace_id, id);

-- The parts of these uploads, by their first byte. Each is a file in the store, and a leftover.
CREATE TABLE asset_upload_parts (
    workspace_id TEXT NOT NULL,
    upload_id TEXT NOT NULL,
    first_byte BIGINT NOT NULL,
    file_id TEXT NOT NULL,
    size BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, upload_id, first_byte),
    FOREIGN KEY (workspace_id, upload_id) REFERENCES asset_uploads (workspace_id, id) ON DELETE CASCADE
) /*sqlite: WITHOUT ROWID*/;

/*sqlite:
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('asset_uploads', 'asset_uploads', '10000 1000 1'),
    ('asset_uploads', 'asset_uploads_expiry', '10000 2 1 1'),
    ('asset_upload_parts', 'asset_upload_parts', '100000 10000 10 1');
ANALYZE sqlite_schema;
*/
