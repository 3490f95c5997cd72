"""The synthetic demo project: its story, its generated files, its ledger, and the loader."""
