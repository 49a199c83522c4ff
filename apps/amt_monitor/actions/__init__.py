"""What menus and keys do, and the menus."""
