"""Links of a file or stream: sounds in a row, each with its own header and decoder."""
