-- oldest-program: 0.2.0
--
-- The schema, as one text for both engines. The program adds COLLATE "C" to each column of texts
-- for PostgreSQL. Texts are then compared byte by byte, as SQLite compares them.
--
-- A comment that begins with `sqlite:` or `postgres:` has SQL for that engine only. Each statement
-- ends with a semicolon at the end of a line, as PostgreSQL gets them one by one. A column that
-- ends in `_ms` has a time in milliseconds since 1970.

-- == Workspaces and people ==

-- The search analyses the words of pieces by the rules of `language`, or by none if it is null. The
-- operator sets `customer_id` and the subscription, from which the program computes nothing.
CREATE TABLE workspaces (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT,
    logo TEXT,
    language TEXT,
    customer_id TEXT,
    subscription_status TEXT,
    subscription_plan TEXT,
    subscription_data TEXT,
    subscription_expires_at_ms BIGINT,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL
);

-- A transaction locks this row for a short time while it numbers its events. The row is apart from
-- the workspace, whose locks are held longer. The number itself is that of the last row of
-- `events`: a counter would leave a dead version of the row for each event. `last_sequence` is the
-- number while the workspace has no event.
--
-- `generation` and `published_generation` are random numbers by which servers on PostgreSQL
-- validate cached responses. A change without an event replaces the first one. Each change that the
-- published view shows replaces the second one. A random number never returns, even if the database
-- is restored to an earlier state.
--
-- `asset_bytes` is the size of all stored files of the workspace.
CREATE TABLE workspace_sequences (
    workspace_id TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    last_sequence BIGINT NOT NULL,
    generation BIGINT NOT NULL DEFAULT 0,
    published_generation BIGINT NOT NULL DEFAULT 0,
    asset_bytes BIGINT NOT NULL DEFAULT 0
);

-- `email_key` and `username_key` are the lower-case forms, which are unique. `email_verified_at_ms`
-- is the time at which the user has shown that mail to the address arrives, or null.
CREATE TABLE users (
    id TEXT NOT NULL PRIMARY KEY,
    email TEXT NOT NULL,
    email_key TEXT NOT NULL,
    email_verified_at_ms BIGINT,
    username TEXT NOT NULL,
    username_key TEXT NOT NULL,
    full_name TEXT NOT NULL,
    avatar TEXT,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL
);
CREATE UNIQUE INDEX users_email ON users (email_key);
CREATE UNIQUE INDEX users_username ON users (username_key);

-- `permissions` are separated by spaces.
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

-- `user_id` is null while the invite is pending. `invited_email_key` is the lower-case form of the
-- invited address, by which the member is found.
CREATE TABLE workspace_members (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    user_id TEXT REFERENCES users (id),
    role_id TEXT NOT NULL,
    invited_email TEXT,
    invited_email_key TEXT,
    invited_name TEXT,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, role_id) REFERENCES roles (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE UNIQUE INDEX workspace_members_user ON workspace_members (workspace_id, user_id);
CREATE INDEX workspace_members_of_user ON workspace_members (user_id);
CREATE INDEX workspace_members_role ON workspace_members (workspace_id, role_id);
CREATE INDEX workspace_members_invited ON workspace_members (workspace_id, invited_email_key);

-- `code_hash` is the SHA-256 of the code in the link. `is_copied` is set for a code that the
-- inviter copies: it proves nothing about the address, unlike a mailed one. The page that accepts
-- the invite names the inviter.
--
-- `ended_at_ms` is the time at which the code was used or became void: another one replaced it, or
-- its member was removed.
CREATE TABLE invites (
    code_hash BYTEA NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    member_id TEXT NOT NULL,
    inviter_id TEXT,
    is_copied BOOLEAN NOT NULL DEFAULT FALSE,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT
);
CREATE INDEX invites_member ON invites (workspace_id, member_id, created_at_ms);
CREATE INDEX invites_created ON invites (workspace_id, created_at_ms);

-- == Access ==

-- `hash` is the SHA-256 of the token's text. `view` is `current` or `published`.
-- `content_group_ids` is null if the token is not limited to groups.
CREATE TABLE tokens (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    user_id TEXT NOT NULL REFERENCES users (id),
    hash BYTEA NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    permissions TEXT NOT NULL,
    view TEXT NOT NULL DEFAULT 'current',
    content_group_ids TEXT,
    extension TEXT,
    expires_at_ms BIGINT,
    last_used_at_ms BIGINT,
    version BIGINT NOT NULL DEFAULT 1,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE UNIQUE INDEX tokens_hash ON tokens (hash);
CREATE INDEX tokens_user ON tokens (workspace_id, user_id, id);

-- Signed-in browsers. `hash` is the SHA-256 of the cookie. A session with a workspace reaches only
-- that one, as the address of its user is not verified.
CREATE TABLE sessions (
    hash BYTEA NOT NULL PRIMARY KEY,
    id TEXT NOT NULL,
    user_id TEXT NOT NULL REFERENCES users (id),
    workspace_id TEXT REFERENCES workspaces (id),
    method TEXT NOT NULL,
    user_agent TEXT,
    remote_address TEXT,
    created_at_ms BIGINT NOT NULL,
    last_used_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
) /*sqlite: WITHOUT ROWID*/;
CREATE UNIQUE INDEX sessions_id ON sessions (id);
CREATE INDEX sessions_user ON sessions (user_id, id);
CREATE INDEX sessions_expiry ON sessions (expires_at_ms);

-- Requests to sign in that are not completed. `link_hash` is the SHA-256 of the code in the link.
-- `browser_hash` is that of the cookie of the requesting browser, or null for a link that any
-- browser may use. `code_hash` belongs to the code that a person types.
--
-- The user is null until the mail is written, and stays null for an unknown address. `email_key` is
-- empty for a request to the identity provider, whose state takes the place of the link's code.
CREATE TABLE sign_ins (
    link_hash BYTEA NOT NULL PRIMARY KEY,
    browser_hash BYTEA,
    code_hash BYTEA,
    email_key TEXT NOT NULL,
    user_id TEXT REFERENCES users (id),
    wrong_codes BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX sign_ins_browser ON sign_ins (browser_hash);
CREATE INDEX sign_ins_email ON sign_ins (email_key, created_at_ms);
CREATE INDEX sign_ins_expiry ON sign_ins (expires_at_ms);

-- Tokens that each read one piece in the current view, with the rights of the credential that
-- created them. `hash` is the SHA-256 of the text. `token_id` has the id of a token or of a
-- session, so it refers to neither table.
CREATE TABLE preview_tokens (
    hash BYTEA NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    token_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    expires_at_ms BIGINT NOT NULL
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX preview_tokens_expiry ON preview_tokens (expires_at_ms);

-- Tickets that stand for a credential in the address of an event stream. `token_id` is as in
-- `preview_tokens`. `hash` is the SHA-256 of the ticket's text, and `origin_hash` that of the
-- `Origin` to which the ticket is bound, or null for none. The first use sets `is_used`, and binds
-- the ticket to the origin of its request, or to none.
CREATE TABLE event_tickets (
    hash BYTEA NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    token_id TEXT NOT NULL,
    origin_hash BYTEA,
    is_used BOOLEAN NOT NULL,
    expires_at_ms BIGINT NOT NULL
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX event_tickets_expiry ON event_tickets (expires_at_ms);

-- == Content groups, tags and variants ==

-- `unique_slugs` is set if the slugs of the pieces in the group and its descendants are unique.
-- `custom_data_schema` is a JSON Schema of the custom data of these pieces. `preview_url` is the
-- URL of the page that shows their drafts, with placeholders. A descendant's own schema or URL
-- replaces that of the group.
CREATE TABLE content_groups (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    parent_id TEXT,
    name TEXT NOT NULL,
    unique_slugs BOOLEAN NOT NULL DEFAULT FALSE,
    custom_data_schema TEXT,
    preview_url TEXT,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, parent_id) REFERENCES content_groups (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX content_groups_parent ON content_groups (workspace_id, parent_id, id);
CREATE INDEX content_groups_unique_slugs ON content_groups (workspace_id, id) WHERE unique_slugs;
CREATE INDEX content_groups_custom_data_schema ON content_groups (workspace_id, id)
    WHERE custom_data_schema IS NOT NULL;

-- A row for each group and each of its ancestors, with the group itself at depth 0. So a subtree is
-- one range of an index, and a path is one range of the key, in order.
CREATE TABLE content_group_paths (
    workspace_id TEXT NOT NULL,
    group_id TEXT NOT NULL,
    ancestor_id TEXT NOT NULL,
    depth BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, group_id, depth),
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

-- Keys are compared without regard to case.
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
CREATE UNIQUE INDEX variants_key ON variants (workspace_id, lower(key));

-- == Content pieces ==

-- `tag_ids`, `member_ids` and `variant_ids` have ids, separated by commas, so that one row is one
-- consistent piece. Tags and members are in the order of the client, and variants in that of their
-- ids. `content_piece_tags` and the tables after it find pieces by them.
--
-- `placed_at_ms` is the time at which the piece got its `order_key`. An author is `system`, the id
-- of the member, or the ids of the token and the member.
--
-- `revision` is the number of the latest revision that is recorded, or 0 while the first one is
-- not. `published_revision` is that of the published one, or null. `publish_at_ms` and
-- `unpublish_at_ms` are the schedule, whose `publish_revision` is null for the latest one.
CREATE TABLE content_pieces (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    content_group_id TEXT NOT NULL,
    order_key TEXT NOT NULL,
    placed_at_ms BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    created_by TEXT,
    updated_at_ms BIGINT NOT NULL,
    updated_by TEXT,
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
    variant_ids TEXT NOT NULL DEFAULT '',
    revision BIGINT,
    published_revision BIGINT,
    published_at_ms BIGINT,
    published_by TEXT,
    publish_at_ms BIGINT,
    publish_revision BIGINT,
    unpublish_at_ms BIGINT,
    PRIMARY KEY (workspace_id, id),
    FOREIGN KEY (workspace_id, content_group_id) REFERENCES content_groups (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE UNIQUE INDEX content_pieces_order ON content_pieces (workspace_id, order_key);
CREATE INDEX content_pieces_group ON content_pieces (workspace_id, content_group_id, order_key);
CREATE INDEX content_pieces_slug ON content_pieces (workspace_id, slug, order_key);
CREATE INDEX content_pieces_date
    ON content_pieces (workspace_id, COALESCE(date_ms, -9223372036854775807), id);
CREATE INDEX content_pieces_updated ON content_pieces (workspace_id, updated_at_ms, id);
-- The index has a prefix, because an entry of an index of PostgreSQL has at most 2,704 bytes.
CREATE INDEX content_pieces_title ON content_pieces (workspace_id, substr(title, 1, 200), id);
CREATE INDEX content_pieces_publish ON content_pieces (publish_at_ms, workspace_id, id)
    WHERE publish_at_ms IS NOT NULL;
CREATE INDEX content_pieces_unpublish ON content_pieces (unpublish_at_ms, workspace_id, id)
    WHERE unpublish_at_ms IS NOT NULL;

-- The content is apart from the piece's row, so that lists and changes of fields don't touch it.
CREATE TABLE content_piece_contents (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    tree TEXT NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id),
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES content_pieces (workspace_id, id)
);

-- The custom data is apart from the piece's row. It has up to 256 KiB, and SQLite rewrites all
-- columns of a row at each change.
CREATE TABLE content_piece_custom_data (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    custom_data TEXT NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id),
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES content_pieces (workspace_id, id)
        ON DELETE CASCADE
);

-- The tags of pieces. The key has the position of the piece, so that a page of the pieces with a
-- tag needs no sorting. The next two tables have the same form.
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
    order_key TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, member_id, order_key, content_piece_id),
    FOREIGN KEY (workspace_id, member_id) REFERENCES workspace_members (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;

-- The variants in which a piece overrides fields or its content.
CREATE TABLE content_piece_overridden_variants (
    workspace_id TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    order_key TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, variant_id, order_key, content_piece_id),
    FOREIGN KEY (workspace_id, variant_id) REFERENCES variants (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;

-- The hash of the source from which a piece was imported, and that of the piece as the import left
-- it. The next import compares both, and detects which of the two has changed since.
CREATE TABLE content_piece_sources (
    workspace_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    source_hash TEXT NOT NULL,
    imported_hash TEXT NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id),
    FOREIGN KEY (workspace_id, content_piece_id) REFERENCES content_pieces (workspace_id, id)
        ON DELETE CASCADE
);

-- A workspace with long order keys, and the progress of spreading them out. Pieces below `left_end`
-- and above `right_start` are still to be moved into the gap between the two. The window is from
-- `low` to `high`, exclusive.
--
-- `left_end` is null until the spread is planned. `next_around` is another place that has become
-- crowded meanwhile.
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

-- == Overrides in variants ==

-- The fields of a piece in a variant. The value of the piece applies if a column is null. A row has
-- at least one override. Overrides are deleted with their piece and with their variant by cascades,
-- so the deletion of many pieces takes no more statements.
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

-- The content of a piece in a variant. A piece may have this override and no other.
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

-- The same as `content_piece_sources`, for a piece in a variant.
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

-- == Publishing ==

-- The published view has a copy of each published piece as it is at its published revision. Its
-- tables have the columns of those of the current view, and the indexes except those of the
-- schedule. So lists, filters and sorts of both views have the same statements and the same cost.
-- Positions and groups are those of the current view.
CREATE TABLE published_pieces (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    content_group_id TEXT NOT NULL,
    order_key TEXT NOT NULL,
    placed_at_ms BIGINT NOT NULL,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    created_by TEXT,
    updated_at_ms BIGINT NOT NULL,
    updated_by TEXT,
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

-- == Revisions ==

-- Each revision has the changed values as they were before, so that the latest state is stored
-- once. A piece's first revision gets its row together with the second one. A foreign key is
-- missing, as each insertion would look up the piece's row again, and lock it on PostgreSQL.
--
-- `depth` counts the revisions of the same part (the piece itself, or one variant) since the last
-- one whose `undo` has all values. A hidden revision only serves to read other ones. A published
-- one was published, or is to be: it is neither replaced nor removed with age. `event_due_at_ms` is
-- the time at which the event of an autosave is raised.
--
-- On SQLite the rows are in the order of their insertion. In the order of the key, rows of some 200
-- bytes would split pages often.
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
    is_published BOOLEAN NOT NULL DEFAULT FALSE,
    event_due_at_ms BIGINT,
    depth BIGINT NOT NULL,
    undo BYTEA NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id, number)
);
CREATE INDEX content_piece_revisions_due ON content_piece_revisions (event_due_at_ms, workspace_id)
    WHERE event_due_at_ms IS NOT NULL;
-- The index finds the revisions of a variant, whose values are removed with it.
CREATE INDEX content_piece_revisions_variant
    ON content_piece_revisions (workspace_id, variant_id, content_piece_id)
    WHERE variant_id IS NOT NULL;

-- == Trash ==

-- The entries of the trash. The id is that of the deleted piece or group. `content_group_id` is
-- that of the group that contained it, or null at the top level. `pieces` counts the pieces in the
-- entry.
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
    preview_url TEXT,
    PRIMARY KEY (workspace_id, entry_id, position),
    FOREIGN KEY (workspace_id, entry_id) REFERENCES trash_entries (workspace_id, id)
        ON DELETE CASCADE
) /*sqlite: WITHOUT ROWID*/;
CREATE UNIQUE INDEX trashed_groups_id ON trashed_groups (workspace_id, id);

-- The pieces of an entry, with their publication but without its schedule. Their revisions remain
-- in `content_piece_revisions`.
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
    published_revision BIGINT,
    published_at_ms BIGINT,
    published_by TEXT,
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

-- == Assets ==

-- Stored files of assets. Equal files of a workspace are stored once. `id` is the name in the
-- store. The width and height of an image are those after its orientation is applied.
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

-- `key` is the unguessable part of an asset's address. The group may be deleted and restored, so no
-- foreign key refers to it.
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

-- Files that are removed from the store at `remove_at_ms`, unless they get their row before: those
-- of uploads that have begun, and of deleted assets. A claimed one no longer gets a row.
CREATE TABLE asset_leftovers (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    file_id TEXT NOT NULL,
    remove_at_ms BIGINT NOT NULL,
    is_claimed BOOLEAN NOT NULL,
    PRIMARY KEY (workspace_id, file_id)
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX asset_leftovers_due ON asset_leftovers (remove_at_ms, workspace_id, file_id);

-- Resumable uploads that have not ended. `id` is that of the asset, and `metadata` is the text of
-- the client. `received` is the size of the stored parts together.
CREATE TABLE asset_uploads (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    filename TEXT NOT NULL,
    alt TEXT,
    content_group_id TEXT,
    metadata TEXT NOT NULL,
    size BIGINT NOT NULL,
    received BIGINT NOT NULL,
    part_count BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX asset_uploads_expiry ON asset_uploads (expires_at_ms, workspace_id, id);

-- The parts of these uploads, by their first byte. Each is a file in the store, and a leftover.
CREATE TABLE asset_upload_parts (
    workspace_id TEXT NOT NULL,
    upload_id TEXT NOT NULL,
    first_byte BIGINT NOT NULL,
    file_id TEXT NOT NULL,
    size BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, upload_id, first_byte),
    FOREIGN KEY (workspace_id, upload_id) REFERENCES asset_uploads (workspace_id, id)
        ON DELETE CASCADE
) /*sqlite: WITHOUT ROWID*/;

-- The addresses of assets in pieces, by the part of the piece: its fields or its content. The
-- variant is empty for the piece itself. An address may name an asset that does not exist yet.
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
CREATE INDEX published_piece_assets_piece
    ON published_piece_assets (workspace_id, content_piece_id);
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

-- == Events and webhooks ==

-- A row for each change of a resource. `is_published` is set for an event of the published view
-- alone. Events of other resources than pieces are in both views.
--
-- `path_before` and `path_after` are the groups of the resource before and after the change, from
-- the root down, separated by commas. They are null for a resource that did not exist then. `data`
-- is the resource just after the change, or just before its removal. `data_before` is the resource
-- before it moved between groups.
--
-- `custom_data_of` is the piece whose custom data the event leaves out of `data`, and
-- `custom_data_version` is its version then. Readers insert the custom data while the piece has
-- this version.
CREATE TABLE events (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    sequence BIGINT NOT NULL,
    id TEXT NOT NULL,
    type TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    is_published BOOLEAN NOT NULL DEFAULT FALSE,
    path_before TEXT,
    path_after TEXT,
    data TEXT NOT NULL,
    data_before TEXT,
    custom_data_of TEXT,
    custom_data_version BIGINT,
    PRIMARY KEY (workspace_id, sequence)
);

-- `events` are all events of the webhook, separated by commas, and `event` is the first one.
-- `content_group_id` names a group without referring to it, as a webhook outlives its group. `view`
-- is `current` or `published`. `hides_emails` is set if a client that may not see the e-mail
-- addresses of members has set the URL.
--
-- The secrets are encrypted. The previous secret also signs deliveries until its time. `dropped`
-- counts the deliveries that were lost while the webhook was disabled.
CREATE TABLE webhooks (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    url TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    event TEXT NOT NULL,
    events TEXT NOT NULL,
    content_group_id TEXT,
    view TEXT NOT NULL DEFAULT 'current',
    extension TEXT,
    hides_emails BOOLEAN NOT NULL DEFAULT FALSE,
    sealed_secret BYTEA,
    previous_sealed_secret BYTEA,
    previous_secret_until_ms BIGINT,
    enabled BOOLEAN NOT NULL,
    disabled_reason TEXT,
    failing_since_ms BIGINT,
    dropped BIGINT NOT NULL DEFAULT 0,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE INDEX webhooks_group ON webhooks (workspace_id, content_group_id);
CREATE INDEX webhooks_event ON webhooks (workspace_id, event, content_group_id, id);

-- The webhooks that a run of events matches. A transaction inserts them with its events, and the
-- fan-out deletes them once each webhook has its deliveries. `event_type` is the event as these
-- webhooks see it.
--
-- `id` is that of the run's first event, so runs sort by their creation. `webhook_ids` are
-- separated by commas. They are few enough for one transaction, and `part` counts the rows of the
-- run. `done` is the number of these webhooks that have a delivery of the event `first_sequence`.
CREATE TABLE event_matches (
    id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    part BIGINT NOT NULL,
    workspace_id TEXT NOT NULL,
    first_sequence BIGINT NOT NULL,
    last_sequence BIGINT NOT NULL,
    webhook_ids TEXT NOT NULL,
    done BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (id, event_type, part)
);

-- The queue of a webhook's deliveries, with the health of its receiver. The queue outlives its
-- webhook until its deliveries are deleted. `next_at_ms` is the time of the next scan, or null if
-- only a change requires one. The circuit breaker is open until `open_until_ms`.
--
-- No pending delivery is due before `due_from_ms`. None with a smaller id than `leased_from` is
-- leased, or none at all if it is null. Scans begin at these bounds: PostgreSQL keeps deleted rows
-- while a transaction is open, and each scan would read them again.
CREATE TABLE webhook_queues (
    workspace_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    next_at_ms BIGINT,
    failures BIGINT NOT NULL,
    slots BIGINT NOT NULL,
    open_until_ms BIGINT,
    pending BIGINT NOT NULL,
    due_from_ms BIGINT NOT NULL DEFAULT 0,
    leased_from TEXT,
    PRIMARY KEY (workspace_id, webhook_id)
);
CREATE INDEX webhook_queues_next ON webhook_queues (next_at_ms) WHERE next_at_ms IS NOT NULL;

-- An event for a webhook. `status` is `pending`, `delivered` or `failed`. `lane` is 0 for samples
-- that a client requested, 1 before the first attempt, and 2 for retries. `attempts` counts for the
-- schedule of retries, and `log` has all attempts with their results as JSON. The event of a sample
-- is not among those of the workspace, so `data` has it.
CREATE TABLE deliveries (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    event_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    sequence BIGINT,
    data TEXT,
    status TEXT NOT NULL,
    lane BIGINT NOT NULL,
    due_at_ms BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    log TEXT,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE UNIQUE INDEX deliveries_event ON deliveries (workspace_id, webhook_id, event_id);
CREATE INDEX deliveries_due ON deliveries (workspace_id, webhook_id, lane, due_at_ms)
    WHERE status = 'pending';
CREATE INDEX deliveries_failed ON deliveries (workspace_id, webhook_id, id)
    WHERE status = 'failed';

-- The runs of servers that send deliveries. `node` is the name that a server has again after a
-- restart.
CREATE TABLE delivery_sessions (
    session TEXT NOT NULL PRIMARY KEY,
    node TEXT NOT NULL
);

-- Each session writes its heartbeat twice a second. The table is apart from the sessions, to which
-- leases refer. PostgreSQL keeps all versions of a row while a snapshot is open, and each new lease
-- would read them.
--
-- `server` is the start time of PostgreSQL, and `backend_pid` is the process there that served the
-- heartbeat. The session has ended when that process has. Both are 0 before the first heartbeat.
CREATE TABLE delivery_heartbeats (
    session TEXT NOT NULL PRIMARY KEY,
    seen_at_ms BIGINT NOT NULL,
    server BIGINT NOT NULL,
    backend_pid BIGINT NOT NULL
);

-- Deliveries that a session is about to send. A result names its lease, so that after the lease's
-- end it overwrites nothing of another one. By the foreign key, a deleted session has no lease and
-- makes none.
CREATE TABLE delivery_leases (
    workspace_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    delivery_id TEXT NOT NULL,
    lease TEXT NOT NULL,
    session TEXT NOT NULL REFERENCES delivery_sessions (session),
    until_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, webhook_id, delivery_id)
);
CREATE INDEX delivery_leases_session ON delivery_leases (session);

-- Requests to send failed deliveries of a webhook again, a few at a time. They cover deliveries
-- that were created at `since_ms` or later, up to the id `last_id`. `done_id` is the last one that
-- was scheduled again.
CREATE TABLE webhook_recoveries (
    workspace_id TEXT NOT NULL,
    webhook_id TEXT NOT NULL,
    since_ms BIGINT NOT NULL,
    done_id TEXT NOT NULL,
    last_id TEXT NOT NULL,
    PRIMARY KEY (workspace_id, webhook_id)
);

-- == Mails ==

-- Mails to send, and mails that failed. `sealed` is the encrypted content, as it may have the code
-- of an invite. `member_id` is the member that the mail concerns: a removed member gets no mail.
-- `failed_at_ms` is the time at which the mail was given up, as its address was refused, or as its
-- attempts had failed for too long.
CREATE TABLE mails (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    kind TEXT NOT NULL,
    member_id TEXT,
    recipient TEXT NOT NULL,
    sealed BYTEA NOT NULL,
    created_at_ms BIGINT NOT NULL,
    due_at_ms BIGINT NOT NULL,
    attempts BIGINT NOT NULL,
    last_error TEXT,
    failed_at_ms BIGINT,
    PRIMARY KEY (workspace_id, id)
);
CREATE INDEX mails_member ON mails (workspace_id, member_id);
CREATE INDEX mails_due ON mails (due_at_ms) WHERE failed_at_ms IS NULL;
CREATE INDEX mails_failed ON mails (failed_at_ms) WHERE failed_at_ms IS NOT NULL;
CREATE INDEX mails_troubled ON mails (workspace_id, id) WHERE last_error IS NOT NULL;

-- == Operation ==

-- The first successful request with a key. `token_id` has the id of a token or of a session.
-- `answer` is the response, or null if it can't be repeated.
CREATE TABLE idempotency_keys (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    token_id TEXT NOT NULL,
    key TEXT NOT NULL,
    request_hash BYTEA NOT NULL,
    created_at_ms BIGINT NOT NULL,
    answer TEXT,
    PRIMARY KEY (workspace_id, token_id, key)
);
CREATE INDEX idempotency_keys_created ON idempotency_keys (created_at_ms);

-- The changes of a workspace's resources. `id` has the time. `target` is the id of the resource,
-- and `changes` is a JSON array of its changed fields. The address is removed earlier than the
-- entry.
CREATE TABLE audit_entries (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    actor TEXT NOT NULL,
    action TEXT NOT NULL,
    target TEXT NOT NULL,
    revision BIGINT,
    request_id TEXT,
    remote_address TEXT,
    changes TEXT,
    PRIMARY KEY (workspace_id, id)
) /*sqlite: WITHOUT ROWID*/;

-- The requests with rejected credentials, by minute and address. The address is empty for those
-- beyond the limit of rows.
CREATE TABLE rejected_credentials (
    minute_ms BIGINT NOT NULL,
    remote_address TEXT NOT NULL,
    requests BIGINT NOT NULL,
    PRIMARY KEY (minute_ms, remote_address)
) /*sqlite: WITHOUT ROWID*/;

-- A known text, encrypted with the installation's key. Another key can't decrypt it.
CREATE TABLE key_check (
    id BIGINT NOT NULL PRIMARY KEY,
    sealed BYTEA NOT NULL
);

-- A server writes its heartbeat twice a second while it reads from standbys. A standby that shows
-- the number of a heartbeat is at least as recent as that heartbeat.
CREATE TABLE heartbeats (
    server TEXT NOT NULL PRIMARY KEY,
    number BIGINT NOT NULL,
    beaten_at_ms BIGINT NOT NULL
);

-- == Search ==

-- The search index of each workspace. Its terms begin with `number`. `sequence` is that of the last
-- event whose change is indexed. `is_complete` is set once the first build is complete.
--
-- While the index is rebuilt, `rebuild_after` is the id of the last piece that was indexed again,
-- or empty. It is null without a rebuild. Another rebuild follows if `rebuild_again` is set. A
-- rebuild of documents without a change has a new `revision`.
CREATE TABLE search_indexes (
    workspace_id TEXT NOT NULL PRIMARY KEY REFERENCES workspaces (id),
    number BIGINT NOT NULL,
    analysis BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    sequence BIGINT NOT NULL,
    last_row BIGINT NOT NULL,
    rebuild_after TEXT,
    rebuild_again BOOLEAN NOT NULL,
    is_complete BOOLEAN NOT NULL,
    rebuilt BIGINT NOT NULL
);
CREATE UNIQUE INDEX search_indexes_number ON search_indexes (number);

-- The parts of an index that are searched apart: the pieces themselves (with an empty variant) and
-- each variant, in each view.
CREATE TABLE search_partitions (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    view TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, view, variant_id)
) /*sqlite: WITHOUT ROWID*/;

-- The indexed documents, by piece and partition. A document that is indexed again gets a new
-- `row_id`, higher than all before. `hash` is that of its texts and of their analysis.
CREATE TABLE search_documents (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    content_piece_id TEXT NOT NULL,
    partition_number BIGINT NOT NULL,
    row_id BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id, partition_number)
) /*sqlite: WITHOUT ROWID*/;
CREATE UNIQUE INDEX search_documents_row ON search_documents (workspace_id, row_id);

/*postgres:
-- The terms of documents. `head` has those of title and description. A long document is split into
-- several parts.
CREATE TABLE search_terms (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    row_id BIGINT NOT NULL,
    part BIGINT NOT NULL,
    is_split BOOLEAN NOT NULL,
    head tsvector,
    terms tsvector NOT NULL,
    PRIMARY KEY (workspace_id, row_id, part)
);
CREATE INDEX search_terms_whole ON search_terms USING gin (terms) WHERE NOT is_split;
CREATE INDEX search_terms_split ON search_terms USING gin (terms) WHERE is_split;
*/

/*sqlite:
-- The terms of documents. Each is a word that needs no further analysis.
CREATE VIRTUAL TABLE search_terms USING fts5 (
    title, description, content, others,
    content = '', contentless_delete = 1, tokenize = 'ascii'
);
*/

-- == Statistics of SQLite ==

/*sqlite:
-- Without statistics, SQLite takes the first column of each index to be selective. It is the
-- workspace here, and often the same in every row. These fixed figures are the number of rows, and
-- the number of rows for each prefix of the index. So plans are the same on every machine.
--
-- The analysis of an empty table creates the table of statistics.
ANALYZE workspaces;
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('roles', 'roles', '10 10 1'),
    ('roles', 'roles_name', '10 10 1'),
    ('workspace_members', 'workspace_members', '100 100 1'),
    ('workspace_members', 'workspace_members_user', '100 100 1'),
    ('workspace_members', 'workspace_members_of_user', '100 2'),
    ('workspace_members', 'workspace_members_role', '100 100 30'),
    ('workspace_members', 'workspace_members_invited', '100 100 1'),
    ('invites', 'sqlite_autoindex_invites_1', '1000 1'),
    ('invites', 'invites_member', '1000 1000 2 1'),
    ('invites', 'invites_created', '1000 1000 1'),
    ('tokens', 'tokens', '100 100 1'),
    ('tokens', 'tokens_hash', '100 1'),
    ('tokens', 'tokens_user', '100 100 10 1'),
    ('sessions', 'sessions', '10000 1'),
    ('sessions', 'sessions_id', '10000 1'),
    ('sessions', 'sessions_user', '10000 3 1'),
    ('sessions', 'sessions_expiry', '10000 1'),
    ('sign_ins', 'sign_ins', '1000 1'),
    ('sign_ins', 'sign_ins_browser', '1000 1'),
    ('sign_ins', 'sign_ins_email', '1000 3 1'),
    ('sign_ins', 'sign_ins_expiry', '1000 1'),
    ('preview_tokens', 'preview_tokens', '1000 1'),
    ('preview_tokens', 'preview_tokens_expiry', '1000 1'),
    ('event_tickets', 'event_tickets', '1000 1'),
    ('event_tickets', 'event_tickets_expiry', '1000 1'),
    ('content_groups', 'content_groups', '1000 1000 1'),
    ('content_groups', 'content_groups_parent', '1000 1000 10 1'),
    ('content_group_paths', 'content_group_paths', '3000 3000 3 1'),
    ('content_group_paths', 'content_group_paths_under', '3000 3000 10 1 1'),
    ('tags', 'tags', '1000 1000 1'),
    ('tags', 'tags_label', '1000 1000 2 1'),
    ('variants', 'variants', '10 10 1'),
    ('content_pieces', 'content_pieces', '1000000 1000000 1'),
    ('content_pieces', 'content_pieces_order', '1000000 1000000 1'),
    ('content_pieces', 'content_pieces_group', '1000000 1000000 10000 1'),
    ('content_pieces', 'content_pieces_slug', '1000000 1000000 2 1'),
    ('content_pieces', 'content_pieces_date', '1000000 1000000 100 1'),
    ('content_pieces', 'content_pieces_updated', '1000000 1000000 2 1'),
    ('content_pieces', 'content_pieces_title', '1000000 1000000 2 1'),
    ('content_pieces', 'content_pieces_publish', '1000 1 1 1'),
    ('content_pieces', 'content_pieces_unpublish', '1000 1 1 1'),
    ('content_piece_contents', 'sqlite_autoindex_content_piece_contents_1', '1000000 1000000 1'),
    ('content_piece_custom_data', 'sqlite_autoindex_content_piece_custom_data_1',
        '1000000 1000000 1'),
    ('content_piece_tags', 'content_piece_tags', '2000000 2000000 2000 1 1'),
    ('content_piece_members', 'content_piece_members', '1000000 1000000 10000 1 1'),
    ('content_piece_overridden_variants', 'content_piece_overridden_variants',
        '1000000 1000000 100000 1 1'),
    ('content_piece_sources', 'sqlite_autoindex_content_piece_sources_1', '1000000 1000000 1'),
    ('order_spreads', 'sqlite_autoindex_order_spreads_1', '100 1'),
    ('content_piece_variants', 'content_piece_variants', '1000000 1000000 2 1'),
    ('content_piece_variants', 'content_piece_variants_slug', '1000000 1000000 100000 2 1'),
    ('content_piece_variant_contents', 'sqlite_autoindex_content_piece_variant_contents_1',
        '1000000 1000000 2 1'),
    ('content_piece_variant_contents', 'content_piece_variant_contents_variant',
        '1000000 1000000 100000 1'),
    ('content_piece_variant_tags', 'content_piece_variant_tags', '2000000 2000000 4 2 1'),
    ('content_piece_variant_tags', 'content_piece_variant_tags_tag', '2000000 2000000 2000 200 1'),
    ('content_piece_variant_members', 'content_piece_variant_members', '1000000 1000000 2 1 1'),
    ('content_piece_variant_members', 'content_piece_variant_members_member',
        '1000000 1000000 10000 1000 1'),
    ('content_piece_variant_sources', 'sqlite_autoindex_content_piece_variant_sources_1',
        '1000000 1000000 2 1'),
    ('content_piece_variant_sources', 'content_piece_variant_sources_variant',
        '1000000 1000000 10000'),
    ('published_pieces', 'published_pieces', '1000000 1000000 1'),
    ('published_pieces', 'published_pieces_order', '1000000 1000000 1'),
    ('published_pieces', 'published_pieces_group', '1000000 1000000 10000 1'),
    ('published_pieces', 'published_pieces_slug', '1000000 1000000 2 1'),
    ('published_pieces', 'published_pieces_date', '1000000 1000000 100 1'),
    ('published_pieces', 'published_pieces_updated', '1000000 1000000 2 1'),
    ('published_pieces', 'published_pieces_title', '1000000 1000000 2 1'),
    ('published_piece_contents', 'sqlite_autoindex_published_piece_contents_1',
        '1000000 1000000 1'),
    ('published_piece_custom_data', 'sqlite_autoindex_published_piece_custom_data_1',
        '1000000 1000000 1'),
    ('published_piece_tags', 'published_piece_tags', '2000000 2000000 2000 1 1'),
    ('published_piece_members', 'published_piece_members', '1000000 1000000 10000 1 1'),
    ('published_piece_overridden_variants', 'published_piece_overridden_variants',
        '1000000 1000000 100000 1 1'),
    ('published_piece_variants', 'published_piece_variants', '1000000 1000000 2 1'),
    ('published_piece_variants', 'published_piece_variants_slug', '1000000 1000000 100000 2 1'),
    ('published_piece_variant_contents', 'sqlite_autoindex_published_piece_variant_contents_1',
        '1000000 1000000 2 1'),
    ('published_piece_variant_contents', 'published_piece_variant_contents_variant',
        '1000000 1000000 100000 1'),
    ('published_piece_variant_tags', 'published_piece_variant_tags', '2000000 2000000 4 2 1'),
    ('published_piece_variant_tags', 'published_piece_variant_tags_tag',
        '2000000 2000000 2000 200 1'),
    ('published_piece_variant_members', 'published_piece_variant_members', '1000000 1000000 2 1 1'),
    ('published_piece_variant_members', 'published_piece_variant_members_member',
        '1000000 1000000 10000 1000 1'),
    ('content_piece_revisions', 'sqlite_autoindex_content_piece_revisions_1',
        '5000000 5000000 5 1'),
    ('content_piece_revisions', 'content_piece_revisions_due', '1000 1 1'),
    ('content_piece_revisions', 'content_piece_revisions_variant', '1000000 1000000 10000 5'),
    ('asset_files', 'asset_files', '1000000 100000 1'),
    ('asset_files', 'asset_files_sha256', '1000000 100000 1'),
    ('assets', 'assets', '1000000 100000 1'),
    ('assets', 'assets_key', '1000000 1'),
    ('assets', 'assets_file', '1000000 100000 1'),
    ('asset_leftovers', 'asset_leftovers', '1000000 100000 1'),
    ('asset_leftovers', 'asset_leftovers_due', '1000000 1000 1 1'),
    ('asset_uploads', 'asset_uploads', '10000 1000 1'),
    ('asset_uploads', 'asset_uploads_expiry', '10000 2 1 1'),
    ('asset_upload_parts', 'asset_upload_parts', '100000 10000 10 1'),
    ('content_piece_assets', 'content_piece_assets', '1000000 100000 4 1 1 1'),
    ('content_piece_assets', 'content_piece_assets_piece', '1000000 100000 4'),
    ('published_piece_assets', 'published_piece_assets', '1000000 100000 4 1 1 1'),
    ('published_piece_assets', 'published_piece_assets_piece', '1000000 100000 4'),
    ('trashed_piece_assets', 'trashed_piece_assets', '1000000 100000 4 1'),
    ('trashed_piece_assets', 'trashed_piece_assets_piece', '1000000 100000 4'),
    ('events', 'sqlite_autoindex_events_1', '5000000 5000000 1'),
    ('webhooks', 'sqlite_autoindex_webhooks_1', '100 100 1'),
    ('webhooks', 'webhooks_group', '100 100 5'),
    ('webhooks', 'webhooks_event', '100 100 10 2 1'),
    ('event_matches', 'sqlite_autoindex_event_matches_1', '1000 10 10 1'),
    ('webhook_queues', 'sqlite_autoindex_webhook_queues_1', '100 100 1'),
    ('webhook_queues', 'webhook_queues_next', '100 2'),
    ('deliveries', 'sqlite_autoindex_deliveries_1', '1000000 1000000 1'),
    ('deliveries', 'deliveries_event', '1000000 1000000 10000 1'),
    ('deliveries', 'deliveries_due', '100000 100000 1000 500 1'),
    ('deliveries', 'deliveries_failed', '100000 100000 1000 1'),
    ('delivery_sessions', 'sqlite_autoindex_delivery_sessions_1', '3 1'),
    ('delivery_heartbeats', 'sqlite_autoindex_delivery_heartbeats_1', '3 1'),
    ('delivery_leases', 'sqlite_autoindex_delivery_leases_1', '500 500 8 1'),
    ('delivery_leases', 'delivery_leases_session', '500 200'),
    ('mails', 'sqlite_autoindex_mails_1', '1000 1000 1'),
    ('mails', 'mails_member', '1000 1000 1'),
    ('mails', 'mails_due', '1000 1'),
    ('mails', 'mails_failed', '100 1'),
    ('mails', 'mails_troubled', '100 100 1'),
    ('idempotency_keys', 'sqlite_autoindex_idempotency_keys_1', '100000 100000 10000 1'),
    ('idempotency_keys', 'idempotency_keys_created', '100000 1'),
    ('audit_entries', 'audit_entries', '5000000 5000000 1'),
    ('rejected_credentials', 'rejected_credentials', '1000000 1000 1'),
    ('search_indexes', 'sqlite_autoindex_search_indexes_1', '100 1'),
    ('search_indexes', 'search_indexes_number', '100 1'),
    ('search_partitions', 'search_partitions', '1000 10 5 1'),
    ('search_documents', 'search_documents', '1000000 1000000 2 1'),
    ('search_documents', 'search_documents_row', '1000000 1000000 1');
ANALYZE sqlite_schema;
*/
