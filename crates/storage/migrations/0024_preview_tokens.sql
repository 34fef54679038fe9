-- oldest-program: 0.2.0

-- A token that reads one piece in the current view. It has the rights of the token that created it, and
-- ends with that. `hash` is the SHA-256 of its text.
CREATE TABLE preview_tokens (
    hash BYTEA NOT NULL PRIMARY KEY,
    workspace_id TEXT NOT NULL,
    token_id TEXT NOT NULL,
    content_piece_id TEXT NOT NULL,
    expires_at_ms BIGINT NOT NULL,
    FOREIGN KEY (workspace_id, token_id) REFERENCES tokens (workspace_id, id) ON DELETE CASCADE
) /*sqlite: WITHOUT ROWID*/;
CREATE INDEX preview_tokens_token ON preview_tokens (workspace_id, token_id);
CREATE INDEX preview_tokens_expiry ON preview_tokens (expires_at_ms);
