"""How messages are sent and commands come: a file each."""
