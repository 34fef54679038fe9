-- oldest-program: 0.2.0

-- The number of a piece's latest revision that is recorded. It is 0 after a creation, and null for
-- pieces from before this migration, until their next change.
ALTER TABLE content_pieces ADD COLUMN revision BIGINT;

-- The revisions of pieces: each has the changed values as they were before, so that the latest state
-- is stored once. A piece's first revision gets its row together with the second one.
--
-- `depth` counts the revisions of the same part (the piece itself, or one variant) since the last one
-- whose `undo` has all values. `event_due_at_ms` is the time at which the event of an autosave is raised.
CREATE TABLE content_piece_revisions (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    variant_id TEXT,
    created_at_ms BIGINT NOT NULL,
    created_by TEXT,
    origin TEXT NOT NULL,
    note TEXT,
    fields TEXT NOT NULL,
    is_autosave BOOLEAN NOT NULL,
    is_hidden BOOLEAN NOT NULL,
    event_due_at_ms BIGINT,
    depth BIGINT NOT NULL,
    undo BYTEA NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id, number)
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX content_piece_revisions_due ON content_piece_revisions (event_due_at_ms, workspace_id)
    WHERE event_due_at_ms IS NOT NULL;
