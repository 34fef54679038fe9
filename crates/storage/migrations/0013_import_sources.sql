-- oldest-program: 0.2.0

-- The hash of the source that a piece was imported from, and that of the piece as the import left it.
-- The next import compares both, and so tells which of the two was changed since.
CREATE TABLE content_piece_sources (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    source_hash TEXT NOT NULL,
    imported_hash TEXT NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id),
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES content_pieces (workspace_id, id)
        ON DELETE CASCADE
);

-- The same for a piece in a variant.
CREATE TABLE content_piece_variant_sources (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    source_hash TEXT NOT NULL,
    imported_hash TEXT NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id, variant_id),
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES content_pieces (workspace_id, id)
        ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, variant_id) REFERENCES variants (workspace_id, id)
        ON DELETE CASCADE
);
CREATE INDEX content_piece_variant_sources_variant
    ON content_piece_variant_sources (workspace_id, variant_id);

/*sqlite:
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('content_piece_sources', 'sqlite_autoindex_content_piece_sources_1', '1000000 1000000 1'),
    ('content_piece_variant_sources', 'sqlite_autoindex_content_piece_variant_sources_1', '1000000 1000000 2 1'),
    ('content_piece_variant_sources', 'content_piece_variant_sources_variant', '1000000 1000000 10000');
ANALYZE sqlite_schema;
*/
