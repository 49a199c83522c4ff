"""The plot, the layers that it draws, and its export."""
