-- oldest-program: 0.2.0

-- The time at which the user has shown that mail to the address arrives, or null.
ALTER TABLE users ADD COLUMN email_verified_at_ms BIGINT;
UPDATE users SET email_verified_at_ms = created_at_ms;

-- Signed-in browsers. `hash` is the SHA-256 of the cookie. A session with a workspace reaches that one
-- only, as the address of its user is not verified.
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

-- Requests to sign in that were not completed yet. `link_hash` is the SHA-256 of the code in the link,
-- and `browser_hash` that of the cookie of the browser that asked, or null for a link that any browser
-- may use. The user is null until the mail is written, and stays null for an unknown address.
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

-- Tickets, preview tokens and idempotency keys belong to a credential. Their column `token_id` has the id
-- of a token or of a session, so it no longer refers to the tokens.
CREATE TABLE event_tickets_of_credentials (
    hash BYTEA NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    token_id TEXT NOT NULL,
    origin_hash BYTEA,
    is_used BOOLEAN NOT NULL,
    expires_at_ms BIGINT NOT NULL
) /*sqlite: WITHOUT ROWID*/;
INSERT INTO event_tickets_of_credentials
    SELECT hash, workspace_id, token_id, origin_hash, is_used, expires_at_ms FROM event_tickets;
DROP TABLE event_tickets;
ALTER TABLE event_tickets_of_credentials RENAME TO event_tickets;
CREATE INDEX event_tickets_expiry ON event_tickets (expires_at_ms);

CREATE TABLE preview_tokens_of_credentials (
    hash BYTEA NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    token_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    expires_at_ms BIGINT NOT NULL
) /*sqlite: WITHOUT ROWID*/;
INSERT INTO preview_tokens_of_credentials
    SELECT hash, workspace_id, token_id, content_piece_id, expires_at_ms FROM preview_tokens;
DROP TABLE preview_tokens;
ALTER TABLE preview_tokens_of_credentials RENAME TO preview_tokens;
CREATE INDEX preview_tokens_expiry ON preview_tokens (expires_at_ms);

/*sqlite:
INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('sessions', 'sessions', '10000 1'),
    ('sessions', 'sessions_id', '10000 1'),
    ('sessions', 'sessions_user', '10000 3 1'),
    ('sessions', 'sessions_expiry', '10000 1'),
    ('sign_ins', 'sign_ins', '1000 1'),
    ('sign_ins', 'sign_ins_browser', '1000 1'),
    ('sign_ins', 'sign_ins_email', '1000 3 1'),
    ('sign_ins', 'sign_ins_expiry', '1000 1'),
    ('event_tickets', 'event_tickets', '1000 1'),
    ('event_tickets', 'event_tickets_expiry', '1000 1'),
    ('preview_tokens', 'preview_tokens', '1000 1'),
    ('preview_tokens', 'preview_tokens_expiry', '1000 1');
ANALYZE sqlite_schema;
*/
