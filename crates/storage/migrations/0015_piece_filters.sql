-- oldest-program: 0.2.0

-- Like `content_piece_tags`, with the position of the piece, so that a page of a member's pieces
-- needs no sorting.
CREATE TABLE copied_members AS
    SELECT m.workspace_id, m.member_id, p.order_key, m.content_piece_id
    FROM content_piece_members m
    JOIN content_pieces p ON p.workspace_id = m.workspace_id AND p.id = m.content_piece_id;
DROP TABLE content_piece_members;
CREATE TABLE content_piece_members (
    workspace_id TEXT NOT NULL,
    member_id TEXT NOT NULL,
    order_key TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, member_id, order_key, content_piece_id),
    FOREIGN KEY (workspace_id, member_id) REFERENCES workspace_members (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
INSERT INTO content_piece_members (workspace_id, member_id, order_key, content_piece_id)
    SELECT workspace_id, member_id, order_key, content_piece_id FROM copied_members;
DROP TABLE copied_members;

-- The variants in which a piece overrides fields or its content. `variant_ids` of the piece names
-- the same ones, in the order of their ids, separated by commas.
CREATE TABLE content_piece_overridden_variants (
    workspace_id TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    order_key TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, variant_id, order_key, content_piece_id),
    FOREIGN KEY (workspace_id, variant_id) REFERENCES variants (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
INSERT INTO content_piece_overridden_variants
        (workspace_id, variant_id, order_key, content_piece_id)
    SELECT v.workspace_id, v.variant_id, p.order_key, v.content_piece_id FROM (
        SELECT workspace_id, variant_id, content_piece_id FROM content_piece_variants
        UNION SELECT workspace_id, variant_id, content_piece_id
            FROM content_piece_variant_contents) v
    JOIN content_pieces p ON p.workspace_id = v.workspace_id AND p.id = v.content_piece_id;
ALTER TABLE content_pieces ADD COLUMN variant_ids TEXT NOT NULL DEFAULT '';
UPDATE content_pieces SET variant_ids = (
    SELECT string_agg(v.variant_id, ',' ORDER BY v.variant_id) FROM (
        SELECT f.variant_id FROM content_piece_variants f
        WHERE f.workspace_id = content_pieces.workspace_id
            AND f.content_piece_id = content_pieces.id
        UNION SELECT c.variant_id FROM content_piece_variant_contents c
        WHERE c.workspace_id = content_pieces.workspace_id
            AND c.content_piece_id = content_pieces.id) v)
    WHERE (workspace_id, id) IN (
        SELECT workspace_id, content_piece_id FROM content_piece_overridden_variants);

-- Keys are compared without regard to case.
DROP INDEX variants_key;
CREATE UNIQUE INDEX variants_key ON variants (workspace_id, lower(key));

-- The URL of the webhook was set by a client that may not see the e-mail addresses of members.
ALTER TABLE webhooks ADD COLUMN hides_emails BOOLEAN NOT NULL DEFAULT FALSE;

/*sqlite:
DELETE FROM sqlite_stat1 WHERE tbl = 'content_piece_members';
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('content_piece_members', 'content_piece_members', '1000000 1000000 10000 1 1'),
    ('content_piece_overridden_variants', 'content_piece_overridden_variants',
        '1000000 1000000 100000 1 1');
ANALYZE sqlite_schema;
*/
