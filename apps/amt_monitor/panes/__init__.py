"""The panes: each shows one thing of a measurement."""
