"""The options of each command, and the parser that reads them."""
