-- oldest-program: 0.2.0

-- The language of pieces themselves, by whose rules their words are searched. Null: by none.
ALTER TABLE workspaces ADD COLUMN language TEXT;

-- The search index of each workspace. Its terms begin with `number`. `sequence` is that of the last
-- event whose change is indexed. While the index is rebuilt, `rebuild_after` is the id of the last piece
-- that was indexed again, or empty; another one follows if `rebuild_again` is set. A rebuild of documents
-- without a change has a new `revision`. The first build is complete if `is_complete` is set.
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

-- The parts of an index that are searched apart: the pieces themselves (with an empty variant) and each
-- variant, in each view.
CREATE TABLE search_partitions (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    view TEXT NOT NULL,
    variant_id TEXT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (workspace_id, view, variant_id)
) /*sqlite: WITHOUT ROWID*/;

-- The indexed documents, by piece and partition. A document that is indexed again gets a new `row_id`,
-- higher than all before. `hash` is that of its texts and of their analysis.
CREATE TABLE search_documents (
    workspace_id TEXT NOT NULL REFERENCES workspaces (id),
    content_piece_id TEXT NOT NULL,
    partition_number BIGINT NOT NULL,
    row_id BIGINT NOT NULL,
    hash BYTEA NOT NULL,
    PRIMARY KEY (workspace_id, content_piece_id, partition_number)
) /*sqlite: WITHOUT ROWID*/;
CREATE UNIQUE INDEX search_documents_row ON search_documents (workspace_id, row_id);

/*sqlite:
-- The terms of documents. Each is a word that needs no further analysis.
CREATE VIRTUAL TABLE search_terms USING fts5 (
    title, description, content, others,
    content = '', contentless_delete = 1, tokenize = 'ascii'
);

INSERT INTO sqlite_stat1 (tbl, idx, stat) VALUES
    ('search_indexes', 'sqlite_autoindex_search_indexes_1', '100 1'),
    ('search_indexes', 'search_indexes_number', '100 1'),
    ('search_partitions', 'search_partitions', '1000 10 5 1'),
    ('search_documents', 'search_documents', '1000000 1000000 2 1'),
    ('search_documents', 'search_documents_row', '1000000 1000000 1');
ANALYZE sqlite_schema;
*/

/*postgres:
-- The terms of documents. `head` has those of title and description. A long document is split into several
-- parts.
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
