-- oldest-program: 0.2.0

-- The entries of the trash. The id is that of the deleted piece or group, `content_group_id` that of
-- the group that contained it, null at the top level. `pieces` counts the pieces in the entry.
CREATE TABLE trash_entries (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    content_group_id TEXT,
    title TEXT NOT NULL,
    deleted_at_ms BIGINT NOT NULL,
    deleted_by TEXT NOT NULL,
    pieces BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX trash_entries_deleted ON trash_entries (workspace_id, deleted_at_ms, id);

-- The groups of an entry. Each follows its parent.
CREATE TABLE trashed_groups (
    workspace_id TEXT NOT NULL,
    entry_id TEXT NOT NULL,
    position BIGINT NOT NULL,
    id TEXT NOT NULL,
    parent_id TEXT,
    name TEXT NOT NULL,
    unique_slugs BOOLEAN NOT NULL,
    custom_data_schema TEXT,
    PRIMARY KEY (workspace_id, entry_id, position),
    FOREIGN KEY (workspace_id, entry_id) REFERENCES trash_entries (workspace_id, id)
        ON DELETE CASCADE
) /*sqlite: WITHOUT ROWID*/;
CREATE UNIQUE INDEX trashed_groups_id ON trashed_groups (workspace_id, id);

-- The pieces of an entry. Their revisions stay where they are.
CREATE TABLE trashed_pieces (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    entry_id TEXT NOT NULL,
    content_group_id TEXT NOT NULL,
    order_key TEXT NOT NULL,
    placed_at_ms BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    created_by TEXT,
    revision BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, entry_id) REFERENCES trash_entries (workspace_id, id)
        ON DELETE CASCADE
);
CREATE INDEX trashed_pieces_entry ON trashed_pieces (workspace_id, entry_id, order_key, id);

-- The values of a trashed piece, and of its overrides in each variant, in the form of a revision's
-- `undo` with all values. The variant is empty for the piece itself. The hashes are those of its
-- import source.
CREATE TABLE trashed_parts (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    state BYTEA NOT NULL,
    source_hash TEXT,
    imported_hash TEXT,
    PRIMARY KEY (workspace_id, content_piece_id, variant_id),
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES trashed_pieces (workspace_id, id)
        ON DELETE CASCADE
);

-- The permission to remove pieces and groups for good.
UPDATE roles SET permissions = permissions || ' trash:write' WHERE base_type = 'admin';
