"""How much memory a process has."""

from pathlib import Path


def resident_mb(process: int | str = "self") -> float:
    """MiB that lie in memory."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) / 1024
