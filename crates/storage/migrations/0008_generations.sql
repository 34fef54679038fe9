-- oldest-program: 0.1.0

-- Another one after each change of what remembered answers show, in the change's own transaction: a random number,
-- so that none ever comes back, also where the database itself is set back to an earlier state. Where one program
-- alone writes it is not needed.
ALTER TABLE workspace_sequences ADD COLUMN generation BIGINT NOT NULL DEFAULT 0;
UPDATE workspace_sequences SET generation = CAST(random() * 9000000000000000 AS BIGINT);
