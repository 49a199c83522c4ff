"""Sources that need no device, and what stores and passes on their sound."""
