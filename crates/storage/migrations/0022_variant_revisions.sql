-- oldest-program: 0.2.0

-- Finds the revisions of a variant, whose values are removed with it.
CREATE INDEX content_piece_revisions_variant
    ON content_piece_revisions (workspace_id, variant_id, content_piece_id)
    WHERE variant_id IS NOT NULL;

/*sqlite:
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('content_piece_revisions', 'content_piece_revisions', '5000000 5000000 5 1'),
    ('content_piece_revisions', 'content_piece_revisions_due', '1000 1 1'),
    ('content_piece_revisions', 'content_piece_revisions_variant', '1000000 1000000 10000 5');
ANALYZE sqlite_schema;
*/
