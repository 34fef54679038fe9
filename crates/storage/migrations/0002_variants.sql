-- oldest-program: 0.1.0

CREATE TABLE variants (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    key TEXT NOT NULL,
    label TEXT NOT NULL,
    description TEXT,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE UNIQUE INDEX variants_key ON variants (workspace_id, key);

-- What a piece says otherwise in a variant; null falls back to the piece. A row has at least one
-- override. Overrides go with their piece and with their variant by themselves, so that deleting
-- many pieces takes no more statements, and an older program can delete them, too.
CREATE TABLE content_piece_variants (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    date_ms BIGINT,
    title TEXT,
    description TEXT,
    slug TEXT,
    cover_url TEXT,
    cover_alt TEXT,
    cover_width TEXT,
    canonical_link TEXT,
    filename TEXT,
    custom_data TEXT,
    tag_ids TEXT,
    member_ids TEXT,
    PRIMARY KEY (workspace_id, content_piece_id, variant_id),
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES content_pieces (workspace_id, id)
        ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, variant_id) REFERENCES variants (workspace_id, id)
        ON DELETE CASCADE
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX content_piece_variants_slug
    ON content_piece_variants (workspace_id, variant_id, slug, content_piece_id);

-- A variant's own content. It stands by itself: a piece may have this override and no other.
CREATE TABLE content_piece_variant_contents (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    tree TEXT NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id, variant_id),
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES content_pieces (workspace_id, id)
        ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, variant_id) REFERENCES variants (workspace_id, id)
        ON DELETE CASCADE
);
CREATE INDEX content_piece_variant_contents_variant
    ON content_piece_variant_contents (workspace_id, variant_id, content_piece_id);

-- The tags and members of `content_piece_variants`, by which its rows are found.
CREATE TABLE content_piece_variant_tags (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    tag_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id, variant_id, tag_id),
    FOREIGN KEY (workspace_id, content_piece_id, variant_id)
        REFERENCES content_piece_variants (workspace_id, content_piece_id, variant_id)
        ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, tag_id) REFERENCES tags (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX content_piece_variant_tags_tag
    ON content_piece_variant_tags (workspace_id, tag_id, variant_id, content_piece_id);

CREATE TABLE content_piece_variant_members (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    member_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id, variant_id, member_id),
    FOREIGN KEY (workspace_id, content_piece_id, variant_id)
        REFERENCES content_piece_variants (workspace_id, content_piece_id, variant_id)
        ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, member_id) REFERENCES workspace_members (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX content_piece_variant_members_member
    ON content_piece_variant_members (workspace_id, member_id, variant_id, content_piece_id);

/*sqlite:
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('variants', 'variants', '10 10 1'),
    ('variants', 'variants_key', '10 10 1'),
    ('content_piece_variants', 'content_piece_variants', '1000000 1000000 2 1'),
    ('content_piece_variants', 'content_piece_variants_slug', '1000000 1000000 100000 2 1'),
    ('content_piece_variant_contents', 'sqlite_autoindex_content_piece_variant_contents_1',
        '1000000 1000000 2 1'),
    ('content_piece_variant_contents', 'content_piece_variant_contents_variant',
        '1000000 1000000 100000 1'),
    ('content_piece_variant_tags', 'content_piece_variant_tags', '2000000 2000000 4 2 1'),
    ('content_piece_variant_tags', 'content_piece_variant_tags_tag',
        '2000000 2000000 2000 200 1'),
    ('content_piece_variant_members', 'content_piece_variant_members', '1000000 1000000 2 1 1'),
    ('content_piece_variant_members', 'content_piece_variant_members_member',
        '1000000 1000000 10000 1000 1');
ANALYZE sqlite_schema;
*/
