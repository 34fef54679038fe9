-- oldest-program: 0.2.0

-- The published revision of a piece, and its schedule: `publish_revision` is null for the latest one.
ALTER TABLE content_pieces ADD COLUMN published_revision BIGINT;
ALTER TABLE content_pieces ADD COLUMN published_at_ms BIGINT;
ALTER TABLE content_pieces ADD COLUMN published_by TEXT;
ALTER TABLE content_pieces ADD COLUMN publish_at_ms BIGINT;
ALTER TABLE content_pieces ADD COLUMN publish_revision BIGINT;
ALTER TABLE content_pieces ADD COLUMN unpublish_at_ms BIGINT;
CREATE INDEX content_pieces_publish ON content_pieces (publish_at_ms, workspace_id, id)
    WHERE publish_at_ms IS NOT NULL;
CREATE INDEX content_pieces_unpublish ON content_pieces (unpublish_at_ms, workspace_id, id)
    WHERE unpublish_at_ms IS NOT NULL;

-- True for a revision that was published, or is to be. It is neither replaced nor removed with age.
ALTER TABLE content_piece_revisions ADD COLUMN is_published BOOLEAN NOT NULL DEFAULT FALSE;

-- The published view: a copy of each published piece as it is at its published revision, in tables
-- with the columns and indexes of those of the current view. So lists, filters and sorts of both
-- views have the same statements and the same cost. Positions and groups are those of the current view.
CREATE TABLE published_pieces (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    content_group_id TEXT NOT NULL,
    order_key TEXT NOT NULL,
    placed_at_ms BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    updated_at_ms BIGINT NOT NULL,
    date_ms BIGINT,
    title TEXT NOT NULL,
    description TEXT,
    slug TEXT NOT NULL,
    cover_url TEXT,
    cover_alt TEXT,
    cover_width TEXT,
    canonical_link TEXT,
    filename TEXT,
    tag_ids TEXT NOT NULL,
    member_ids TEXT NOT NULL,
    variant_ids TEXT NOT NULL,
    created_by TEXT,
    updated_by TEXT,
    revision BIGINT,
    published_revision BIGINT,
    published_at_ms BIGINT,
    published_by TEXT,
    publish_at_ms BIGINT,
    publish_revision BIGINT,
    unpublish_at_ms BIGINT,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, id) REFERENCES content_pieces (workspace_id, id),
    FOREIGN KEY (workspace_id, content_group_id) REFERENCES content_groups (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE UNIQUE INDEX published_pieces_order ON published_pieces (workspace_id, order_key);
CREATE INDEX published_pieces_group ON published_pieces (workspace_id, content_group_id, order_key);
CREATE INDEX published_pieces_slug ON published_pieces (workspace_id, slug, order_key);
CREATE INDEX published_pieces_date
    ON published_pieces (workspace_id, COALESCE(date_ms, -9223372036854775807), id);
CREATE INDEX published_pieces_updated ON published_pieces (workspace_id, updated_at_ms, id);
CREATE INDEX published_pieces_title ON published_pieces (workspace_id, substr(title, 1, 200), id);

CREATE TABLE published_piece_contents (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    tree TEXT NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id),
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES published_pieces (workspace_id, id)
        ON DELETE CASCADE
);

CREATE TABLE published_piece_custom_data (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    custom_data TEXT NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id),
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES published_pieces (workspace_id, id)
        ON DELETE CASCADE
);

CREATE TABLE published_piece_tags (
    workspace_id TEXT NOT NULL,
    tag_id TEXT NOT NULL,
    order_key TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, tag_id, order_key, content_piece_id),
    FOREIGN KEY (workspace_id, tag_id) REFERENCES tags (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;

CREATE TABLE published_piece_members (
    workspace_id TEXT NOT NULL,
    member_id TEXT NOT NULL,
    order_key TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, member_id, order_key, content_piece_id),
    FOREIGN KEY (workspace_id, member_id) REFERENCES workspace_members (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;

CREATE TABLE published_piece_overridden_variants (
    workspace_id TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    order_key TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, variant_id, order_key, content_piece_id),
    FOREIGN KEY (workspace_id, variant_id) REFERENCES variants (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;

CREATE TABLE published_piece_variants (
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
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES published_pieces (workspace_id, id)
        ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, variant_id) REFERENCES variants (workspace_id, id)
        ON DELETE CASCADE
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX published_piece_variants_slug
    ON published_piece_variants (workspace_id, variant_id, slug, content_piece_id);

CREATE TABLE published_piece_variant_contents (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    tree TEXT NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id, variant_id),
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES published_pieces (workspace_id, id)
        ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, variant_id) REFERENCES variants (workspace_id, id)
        ON DELETE CASCADE
);
CREATE INDEX published_piece_variant_contents_variant
    ON published_piece_variant_contents (workspace_id, variant_id, content_piece_id);

CREATE TABLE published_piece_variant_tags (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    tag_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id, variant_id, tag_id),
    FOREIGN KEY (workspace_id, content_piece_id, variant_id)
        REFERENCES published_piece_variants (workspace_id, content_piece_id, variant_id)
        ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, tag_id) REFERENCES tags (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX published_piece_variant_tags_tag
    ON published_piece_variant_tags (workspace_id, tag_id, variant_id, content_piece_id);

CREATE TABLE published_piece_variant_members (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    member_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id, variant_id, member_id),
    FOREIGN KEY (workspace_id, content_piece_id, variant_id)
        REFERENCES published_piece_variants (workspace_id, content_piece_id, variant_id)
        ON DELETE CASCADE,
    FOREIGN KEY (workspace_id, member_id) REFERENCES workspace_members (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX published_piece_variant_members_member
    ON published_piece_variant_members (workspace_id, member_id, variant_id, content_piece_id);

-- The publication of a trashed piece, without its schedule.
ALTER TABLE trashed_pieces ADD COLUMN published_revision BIGINT;
ALTER TABLE trashed_pieces ADD COLUMN published_at_ms BIGINT;
ALTER TABLE trashed_pieces ADD COLUMN published_by TEXT;

-- True for an event of the published view alone. Events of other resources than pieces are in both views.
ALTER TABLE events ADD COLUMN is_published BOOLEAN NOT NULL DEFAULT FALSE;

-- The view of a token, and of a webhook: `current` or `published`.
ALTER TABLE tokens ADD COLUMN view TEXT NOT NULL DEFAULT 'current';
ALTER TABLE webhooks ADD COLUMN view TEXT NOT NULL DEFAULT 'current';

-- A random number, replaced by each change that the published view shows.
ALTER TABLE workspace_sequences ADD COLUMN published_generation BIGINT NOT NULL DEFAULT 0;

-- Roles that may write pieces may publish them, too.
UPDATE roles SET permissions = permissions || ' publishing:write'
    WHERE ' ' || permissions || ' ' LIKE '% contentPieces:write %';

/*sqlite:
INSERT INTO sqlite_stat1 (tbl, idx, stat)
    SELECT replace(replace(tbl, 'content_pieces', 'published_pieces'), 'content_piece_', 'published_piece_'),
        replace(replace(idx, 'content_pieces', 'published_pieces'), 'content_piece_', 'published_piece_'), stat
    FROM sqlite_stat1
    WHERE tbl IN ('content_pieces', 'content_piece_contents', 'content_piece_custom_data',
        'content_piece_tags', 'content_piece_members', 'content_piece_overridden_variants',
        'content_piece_variants', 'content_piece_variant_contents', 'content_piece_variant_tags',
        'content_piece_variant_members');
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('content_pieces', 'content_pieces_publish', '1000 1 1 1'),
    ('content_pieces', 'content_pieces_unpublish', '1000 1 1 1');
ANALYZE sqlite_schema;
*/
