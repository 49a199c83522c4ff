"""The main window, its docks and states, the wall view, and the start of the program."""
