"""The bulk store: received bytes and versioned Parquet; the only room that opens an engine."""
