-- oldest-program: 0.2.0

-- Stored files of assets. Equal files of a workspace are stored once. `id` is the name in the store, and
-- the size of an image is that after its orientation is applied.
CREATE TABLE asset_files (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    sha256 BYTEA NOT NULL,
    size BIGINT NOT NULL,
    media_type TEXT NOT NULL,
    width BIGINT,
    height BIGINT,
    placeholder BYTEA,
    PRIMARY KEY (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE UNIQUE INDEX asset_files_sha256 ON asset_files (workspace_id, sha256);

-- Assets. `key` is the unguessable part of the address. The group may be deleted, and restored.
CREATE TABLE assets (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    key TEXT NOT NULL,
    filename TEXT NOT NULL,
    alt TEXT,
    content_group_id TEXT,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    file_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, file_id) REFERENCES asset_files (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE UNIQUE INDEX assets_key ON assets (key);
CREATE INDEX assets_file ON assets (workspace_id, file_id);

-- Files that are removed from the store, unless they get their row before: those of uploads that have
-- begun, and of deleted assets. A claimed one no longer gets a row.
CREATE TABLE asset_leftovers (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    file_id TEXT NOT NULL,
    remove_at_ms BIGINT NOT NULL,
    is_claimed BOOLEAN NOT NULL,
    PRIMARY KEY (workspace_id, file_id)
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX asset_leftovers_due ON asset_leftovers (remove_at_ms, workspace_id, file_id);

-- The addresses of assets in pieces, by the part of the piece: its fields or its content, in itself
-- (with an empty variant) or in a variant. An address may name an asset that does not exist yet.
CREATE TABLE content_piece_assets (
    workspace_id TEXT NOT NULL,
    asset_key TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    is_content BOOLEAN NOT NULL,
    PRIMARY KEY (workspace_id, asset_key, content_piece_id, variant_id, is_content),
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES content_pieces (workspace_id, id)
        ON DELETE CASCADE
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX content_piece_assets_piece ON content_piece_assets (workspace_id, content_piece_id);
CREATE INDEX content_piece_assets_variant ON content_piece_assets (workspace_id, variant_id)
    WHERE variant_id <> '';

CREATE TABLE published_piece_assets (
    workspace_id TEXT NOT NULL,
    asset_key TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    is_content BOOLEAN NOT NULL,
    PRIMARY KEY (workspace_id, asset_key, content_piece_id, variant_id, is_content),
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES published_pieces (workspace_id, id)
        ON DELETE CASCADE
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX published_piece_assets_piece ON published_piece_assets (workspace_id, content_piece_id);
CREATE INDEX published_piece_assets_variant ON published_piece_assets (workspace_id, variant_id)
    WHERE variant_id <> '';

CREATE TABLE trashed_piece_assets (
    workspace_id TEXT NOT NULL,
    asset_key TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, asset_key, content_piece_id),
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES trashed_pieces (workspace_id, id)
        ON DELETE CASCADE
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX trashed_piece_assets_piece ON trashed_piece_assets (workspace_id, content_piece_id);

-- The size of all stored files of the workspace.
ALTER TABLE workspace_sequences ADD COLUMN asset_bytes BIGINT NOT NULL DEFAULT 0;

-- Roles that write pieces upload images for them, and those that read pieces see them.
UPDATE roles SET permissions = permissions || ' assets:write'
    WHERE ' ' || permissions || ' ' LIKE '% contentPieces:write %';
UPDATE roles SET permissions = permissions || ' assets:read'
    WHERE ' ' || permissions || ' ' LIKE '% contentPieces:read %';

/*sqlite:
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('asset_files', 'asset_files', '1000000 100000 1'),
    ('asset_files', 'asset_files_sha256', '1000000 100000 1'),
    ('assets', 'assets', '1000000 100000 1'),
    ('asset_leftovers', 'asset_leftovers', '1000000 100000 1'),
    ('asset_leftovers', 'asset_leftovers_due', '1000000 1000 1 1'),
    ('assets', 'assets_key', '1000000 1'),
    ('assets', 'assets_file', '1000000 100000 1'),
    ('content_piece_assets', 'content_piece_assets', '1000000 100000 4 1 1 1'),
    ('content_piece_assets', 'content_piece_assets_piece', '1000000 100000 4'),
    ('published_piece_assets', 'published_piece_assets', '1000000 100000 4 1 1 1'),
    ('published_piece_assets', 'published_piece_assets_piece', '1000000 100000 4'),
    ('trashed_piece_assets', 'trashed_piece_assets', '1000000 100000 4 1'),
    ('trashed_piece_assets', 'trashed_piece_assets_piece', '1000000 100000 4');
ANALYZE sqlite_schema;
*/
