-- oldest-program: 0.1.0
--
-- One text for both engines. For PostgreSQL every TEXT column gets COLLATE "C", so that texts are
-- compared byte by byte as SQLite does; what stands in a comment that starts with `sqlite:` is
-- taken in for SQLite only.

CREATE TABLE workspaces (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT,
    logo TEXT,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL
);

-- The number of the last event. A table of its own, because every change counts here: its short
-- row lock must not meet the longer ones on the workspace itself.
CREATE TABLE workspace_sequences (
    workspace_id TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    last_sequence BIGINT NOT NULL
);

-- `email_key` and `username_key` are the lower-case forms by which they are unique.
CREATE TABLE users (
    id TEXT NOT NULL PRIMARY KEY,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL,
    username TEXT NOT NULL,
    username_key TEXT NOT NULL,
    full_name TEXT NOT NULL,
    avatar TEXT,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX users_email ON users (email_key);
CREATE UNIQUE INDEX users_username ON users (username_key);

CREATE TABLE roles (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    permissions TEXT NOT NULL,
    base_type TEXT,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE UNIQUE INDEX roles_name ON roles (workspace_id, name);

-- `user_id` is null while the invite is pending.
CREATE TABLE workspace_members (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    user_id TEXT REFERENCES users (id),
    role_id TEXT NOT NULL,
    invited_email TEXT,
    invited_name TEXT,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, role_id) REFERENCES roles (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE UNIQUE INDEX workspace_members_user ON workspace_members (workspace_id, user_id);
CREATE INDEX workspace_members_of_user ON workspace_members (user_id);
CREATE INDEX workspace_members_role ON workspace_members (workspace_id, role_id);

-- `hash` is the SHA-256 of the token's text. `content_group_ids` is null where the token's view
-- is not limited.
CREATE TABLE tokens (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    user_id TEXT NOT NULL REFERENCES users (id),
    hash BYTEA NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    permissions TEXT NOT NULL,
    content_group_ids TEXT,
    extension TEXT,
    expires_at_ms BIGINT,
    last_used_at_ms BIGINT,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE UNIQUE INDEX tokens_hash ON tokens (hash);
CREATE INDEX tokens_user ON tokens (workspace_id, user_id, id);

CREATE TABLE content_groups (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    parent_id TEXT,
    name TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, parent_id) REFERENCES content_groups (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX content_groups_parent ON content_groups (workspace_id, parent_id, id);

-- For every group itself (depth 0) and each group above it.
CREATE TABLE content_group_paths (
    workspace_id TEXT NOT NULL,
    group_id TEXT NOT NULL,
    ancestor_id TEXT NOT NULL,
    depth BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, group_id, ancestor_id),
    FOREIGN KEY (workspace_id, group_id) REFERENCES content_groups (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX content_group_paths_under
    ON content_group_paths (workspace_id, ancestor_id, group_id, depth);

CREATE TABLE tags (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    label TEXT NOT NULL,
    color TEXT NOT NULL,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX tags_label ON tags (workspace_id, label, id);

-- `tag_ids` and `member_ids` hold the ids in the order given, separated by commas, so that one row
-- read is one consistent piece; the two tables below find pieces by them. `placed_at_ms` is when
-- the piece was put at its `order_key`.
CREATE TABLE content_pieces (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
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
    custom_data TEXT,
    tag_ids TEXT NOT NULL,
    member_ids TEXT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, content_group_id) REFERENCES content_groups (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE UNIQUE INDEX content_pieces_order ON content_pieces (workspace_id, order_key);
CREATE INDEX content_pieces_group ON content_pieces (workspace_id, content_group_id, order_key);
CREATE INDEX content_pieces_slug ON content_pieces (workspace_id, slug, order_key);
CREATE INDEX content_pieces_date
    ON content_pieces (workspace_id, COALESCE(date_ms, -9223372036854775807), id);
CREATE INDEX content_pieces_updated ON content_pieces (workspace_id, updated_at_ms, id);
-- A prefix, because an index entry of PostgreSQL ends at 2,704 bytes.
CREATE INDEX content_pieces_title ON content_pieces (workspace_id, substr(title, 1, 200), id);

-- Beside the piece's row, so that lists and new titles don't touch it.
CREATE TABLE content_piece_contents (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    tree TEXT NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id),
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES content_pieces (workspace_id, id)
);

CREATE TABLE content_piece_tags (
    workspace_id TEXT NOT NULL,
    tag_id TEXT NOT NULL,
    order_key TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, tag_id, order_key, content_piece_id),
    FOREIGN KEY (workspace_id, tag_id) REFERENCES tags (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;

CREATE TABLE content_piece_members (
    workspace_id TEXT NOT NULL,
    member_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, member_id, content_piece_id),
    FOREIGN KEY (workspace_id, member_id) REFERENCES workspace_members (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;

-- One row for each change of a resource. `path_before` and `path_after` are the groups from the
-- root down where the resource was and is, separated by commas, null where it was or is not;
-- `data` is the resource just after the change (just before, for a removal), `data_before` how it
-- was before it moved between groups.
CREATE TABLE events (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    sequence BIGINT NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    path_before TEXT,
    path_after TEXT,
    data TEXT NOT NULL,
    data_before TEXT,
    PRIMARY KEY (workspace_id, sequence)
);

/*sqlite:
-- Without statistics SQLite takes any index's first column to be selective; here it is the
-- workspace, and often the same in every row. These fixed figures (rows, then rows for each
-- prefix of the index) make it look further, the same way on every machine.
ANALYZE;
DELETE FROM sqlite_stat1;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('content_pieces', 'content_pieces', '1000000 1000000 1'),
    ('content_pieces', 'content_pieces_order', '1000000 1000000 1'),
    ('content_pieces', 'content_pieces_group', '1000000 1000000 10000 1'),
    ('content_pieces', 'content_pieces_slug', '1000000 1000000 2 1'),
    ('content_pieces', 'content_pieces_date', '1000000 1000000 100 1'),
    ('content_pieces', 'content_pieces_updated', '1000000 1000000 2 1'),
    ('content_pieces', 'content_pieces_title', '1000000 1000000 2 1'),
    ('content_piece_contents', 'sqlite_autoindex_content_piece_contents_1', '1000000 1000000 1'),
    ('content_piece_tags', 'content_piece_tags', '2000000 2000000 2000 1 1'),
    ('content_piece_members', 'content_piece_members', '1000000 1000000 10000 1'),
    ('content_groups', 'content_groups', '1000 1000 1'),
    ('content_groups', 'content_groups_parent', '1000 1000 10 1'),
    ('content_group_paths', 'content_group_paths', '3000 3000 3 1'),
    ('content_group_paths', 'content_group_paths_under', '3000 3000 10 1 1'),
    ('tags', 'tags', '1000 1000 1'),
    ('tags', 'tags_label', '1000 1000 2 1'),
    ('roles', 'roles', '10 10 1'),
    ('roles', 'roles_name', '10 10 1'),
    ('workspace_members', 'workspace_members', '100 100 1'),
    ('workspace_members', 'workspace_members_user', '100 100 1'),
    ('workspace_members', 'workspace_members_of_user', '100 2'),
    ('workspace_members', 'workspace_members_role', '100 100 30'),
    ('tokens', 'tokens', '100 100 1'),
    ('tokens', 'tokens_hash', '100 1'),
    ('tokens', 'tokens_user', '100 100 10 1'),
    ('events', 'sqlite_autoindex_events_1', '5000000 5000000 1');
ANALYZE sqlite_schema;
*/
