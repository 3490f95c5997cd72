"""The bulk store: immutable versioned Parquet and received bytes; the only room that opens an engine."""
