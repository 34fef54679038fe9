-- oldest-program: 0.1.0

-- Of an event about a piece that moved: the order that it had before; empty where that is not known.
ALTER TABLE events ADD COLUMN order_before TEXT;
