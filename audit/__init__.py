"""The append-only trail: who, when, what, before and after, why."""
