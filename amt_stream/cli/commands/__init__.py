"""The commands of `amt-stream`, a file each."""
