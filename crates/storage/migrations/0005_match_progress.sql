-- oldest-program: 0.1.0

-- How many of a run's webhooks have a delivery of the event `first_sequence` already.
ALTER TABLE event_matches ADD COLUMN done BIGINT NOT NULL DEFAULT 0;
