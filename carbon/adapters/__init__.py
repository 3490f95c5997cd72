"""Outside formats of the room: power as CSV and JSON, PostgreSQL's binary rows."""
