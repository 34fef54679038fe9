-- oldest-program: 0.2.0

-- Beside the piece's row: SQLite rewrites all columns of a row whenever one changes, and custom data
-- has up to 256 KiB.
CREATE TABLE content_piece_custom_data (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    custom_data TEXT NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id),
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES content_pieces (workspace_id, id)
        ON DELETE CASCADE
);
INSERT INTO content_piece_custom_data (workspace_id, content_piece_id, custom_data)
    SELECT workspace_id, id, custom_data FROM content_pieces WHERE custom_data IS NOT NULL;
ALTER TABLE content_pieces DROP COLUMN custom_data;

-- A workspace whose order keys have grown long, and how far they are spread out again: pieces below
-- `left_end` and above `right_start` are still to be moved into the gap between the two. The window
-- is from `low` to `high`, exclusive; null until it is planned. `next_around` is another place that has
-- become crowded meanwhile.
CREATE TABLE order_spreads (
    workspace_id TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    around TEXT NOT NULL,
    next_around TEXT,
    low TEXT,
    high TEXT,
    left_end TEXT,
    right_start TEXT,
    left_count BIGINT,
    right_count BIGINT
);

-- The piece whose custom data belongs into `data`, for an event that leaves it out, and its version
-- then: readers fill in the custom data for as long as the piece has this version.
ALTER TABLE events ADD COLUMN custom_data_of TEXT;
ALTER TABLE events ADD COLUMN custom_data_version BIGINT;
ALTER TABLE events DROP COLUMN order_before;

/*sqlite:
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('content_piece_custom_data', 'sqlite_autoindex_content_piece_custom_data_1', '1000000 1000000 1'),
    ('order_spreads', 'sqlite_autoindex_order_spreads_1', '100 1');
ANALYZE sqlite_schema;
*/
