"""What talks to sound cards: PortAudio in its own process, device names, PulseAudio routing."""
