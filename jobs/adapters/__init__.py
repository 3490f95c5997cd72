"""The outside of the queue: the broker that rings workers."""
