"""Sound card access: PortAudio in a separate process, device names, PulseAudio routing."""
