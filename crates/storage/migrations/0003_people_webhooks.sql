-- oldest-program: 0.1.0

-- What the operator says about a workspace's billing; nothing here is worked out by the program.
ALTER TABLE workspaces ADD COLUMN customer_id TEXT;
ALTER TABLE workspaces ADD COLUMN subscription_status TEXT;
ALTER TABLE workspaces ADD COLUMN subscription_plan TEXT;
ALTER TABLE workspaces ADD COLUMN subscription_data TEXT;
ALTER TABLE workspaces ADD COLUMN subscription_expires_at_ms BIGINT;

ALTER TABLE tokens ADD COLUMN version BIGINT NOT NULL DEFAULT 1;

-- The lower-case form of the address that an invite went to, by which it is found.
ALTER TABLE workspace_members ADD COLUMN invited_email_key TEXT;
CREATE INDEX workspace_members_invited ON workspace_members (workspace_id, invited_email_key);

-- `code_hash` is the SHA-256 of the code in the mail's link. `ended_at_ms` is when it was used, or
-- became void because another one took its place or its member was removed.
CREATE TABLE invites (
    code_hash BYTEA NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    member_id TEXT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    ended_at_ms BIGINT
);
CREATE INDEX invites_member ON invites (workspace_id, member_id, created_at_ms);
CREATE INDEX invites_created ON invites (workspace_id, created_at_ms);

-- Mails that are still to be sent. `sealed` is what the mail says, encrypted, because it may hold
-- the code of an invite. `member_id` is whom it is about: a removed member gets no mail.
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
    PRIMARY KEY (workspace_id, id)
);
CREATE INDEX mails_due ON mails (due_at_ms);
CREATE INDEX mails_member ON mails (workspace_id, member_id);

-- `sealed_secret` is encrypted. `content_group_id` names a group without referring to it: a webhook
-- outlives the group that it watched.
CREATE TABLE webhooks (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    id TEXT NOT NULL,
    url TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT,
    event TEXT NOT NULL,
    content_group_id TEXT,
    extension TEXT,
    sealed_secret BYTEA,
    enabled BOOLEAN NOT NULL,
    disabled_reason TEXT,
    failing_since_ms BIGINT,
    version BIGINT NOT NULL,
    created_at_ms BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, id)
);
CREATE INDEX webhooks_group ON webhooks (workspace_id, content_group_id);

-- The first success of a request with this key: `answer` is what was answered, or null where that
-- can't be told again.
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

-- A known text, encrypted with the installation's key: another key can't read it.
CREATE TABLE key_check (
    id BIGINT NOT NULL PRIMARY KEY,
    sealed BYTEA NOT NULL
);

/*sqlite:
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('workspace_members', 'workspace_members_invited', '100 100 1'),
    ('invites', 'sqlite_autoindex_invites_1', '1000 1'),
    ('invites', 'invites_member', '1000 1000 2 1'),
    ('invites', 'invites_created', '1000 1000 1'),
    ('mails', 'sqlite_autoindex_mails_1', '1000 1000 1'),
    ('mails', 'mails_due', '1000 1'),
    ('mails', 'mails_member', '1000 1000 1'),
    ('webhooks', 'sqlite_autoindex_webhooks_1', '100 100 1'),
    ('webhooks', 'webhooks_group', '100 100 5'),
    ('idempotency_keys', 'sqlite_autoindex_idempotency_keys_1', '100000 100000 10000 1'),
    ('idempotency_keys', 'idempotency_keys_created', '100000 1');
ANALYZE sqlite_schema;
*/
