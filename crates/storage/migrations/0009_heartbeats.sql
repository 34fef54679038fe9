-- oldest-program: 0.1.0

-- What servers that read of standbys write twice a second while they do: a standby that shows a server's number is no
-- older than it.
CREATE TABLE heartbeats (
    server TEXT NOT NULL PRIMARY KEY,
    number BIGINT NOT NULL,
    beaten_at_ms BIGINT NOT NULL
);
