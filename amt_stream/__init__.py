"""Streaming auditory models: stateful block-processing stages, a live engine, loudness meters.

The public names and their types stand in `__init__.pyi`, one line each. A name is imported when it
is first used, so that `import amt_stream` stays free of torch.
"""

__version__ = "0.2.0"

_attached: list[tuple] = []


def _lazy() -> tuple:
    """What `lazy_loader` makes of the stub.

    Only when it is first used: until a command has begun, Ctrl-C would show where it was in this
    import.
    """
    if not _attached:
        import lazy_loader

        _attached.append(lazy_loader.attach_stub(__name__, __file__))
    return _attached[0]


def __getattr__(name: str) -> object:
    from amt_stream.core.importing import uncollected

    imported, _, names = _lazy()
    if name == "__all__":
        return names
    with uncollected():
        return imported(name)


def __dir__() -> list[str]:
    return _lazy()[1]()
