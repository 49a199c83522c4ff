"""An engine's sinks: their threads, rows, events and snapshots."""
