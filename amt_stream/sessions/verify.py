"""Checking that a session is unchanged."""

import sqlite3
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeGuard

from amt_stream.core.safe_text import sentence
from amt_stream.core.words import counted
from amt_stream.meters.frames import Event
from amt_stream.sessions import database
from amt_stream.sessions.chain import REMOVED, Entry, first_break, head_of, is_locked, present
from amt_stream.sessions.files import SessionError, sha256_of
from amt_stream.sessions.folder import DATABASE, DESCRIBED, PART
from amt_stream.sessions.reading import UNREAD, Session, opened
from amt_stream.sessions.signature import signed


@dataclass
class Verdict:
    """The result of `verify`.

    edited, missing: sentences about changed and missing data
    removed: entries of the chain for parts that the log removed, as it was asked to
    open: open parts, whose content is not proven: of a running meter or an interrupted run
    gaps: run, sampling rate and event of each loss of sound during the measurement
    head: last hash of the chain, which covers all closed parts
    proved: why nothing is missing at the end; "" if unknown
    """

    parts: int = 0
    edited: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    removed: list[Entry] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    gaps: list[tuple[int, float, Event]] = field(default_factory=list)
    running: bool = False
    head: str = ""
    proved: str = ""

    @property
    def word(self) -> str:
        """ "intact", "edited" or "gapped" """
        return "edited" if self.edited else "gapped" if self.missing else "intact"

    @property
    def whole(self) -> bool:
        """Whether everything is proven to be unchanged."""
        return self.word == "intact" and not self.open


def verify(
    path: str | Path, head: str | None = None, public_key: str | Path | None = None
) -> Verdict:
    """Compare every closed part of a session with its hash in the chain.

    head: last hash noted earlier; if the chain does not have it, its end is missing
    public_key: file with the key to check the signature of the last hash (`signature.sign`)

    Nothing is written. Raises SessionError if it is not a session, or was not signed.
    """
    session = Session(path)
    verdict = Verdict(running=is_locked(session.path))
    broken = first_break(session.entries)
    if broken:
        (verdict.missing if "missing" in broken else verdict.edited).append(f"the chain: {broken}")
    verdict.head = session.entries[-1]["hash"] if session.entries else ""
    there = present(session.entries)
    verdict.removed = [entry for entry in session.entries if REMOVED in entry]
    verdict.parts = len(there)
    for entry in there:
        if entry["part"] != DATABASE:
            _compare_file(session.path, entry, verdict)
    rows = [entry for entry in session.entries if entry["part"] == DATABASE]
    if rows or (session.path / DATABASE).exists():
        _compare_database(session.path, rows, verdict)
    if head is not None:
        _compare_end(session.entries, head, "noted earlier", verdict)
    if public_key is not None:
        signed_head, utc = signed(session.path, Path(public_key))
        _compare_end(session.entries, signed_head, f"signed at {utc}", verdict)
    _open_parts(session, verdict)
    _gaps(session, verdict)
    return verdict


def _compare_end(entries: list[Entry], head: str, which: str, verdict: Verdict) -> None:
    """Check that the chain still has this former last hash."""
    hashes = [entry["hash"] for entry in entries]
    if head not in hashes:
        verdict.missing.append(f"the hash {head[:80]}, {which}: the end was removed or rewritten")
        return
    later = len(hashes) - 1 - hashes.index(head)
    behind = f", {counted(later, 'closed part')} came later" if later else ""
    verdict.proved = f"everything is present up to the hash {which}{behind}"


def _compare_file(folder: Path, entry: Entry, verdict: Verdict) -> None:
    name = entry["part"]
    if not PART.fullmatch(name):
        verdict.edited.append(f"the chain names an invalid part: {name[:80]!r}")
        return
    path = folder / name
    try:
        if not path.is_file():
            verdict.missing.append(f"{name} is missing")
        elif sha256_of(path, head_of(entry)) != entry["sha256"]:
            verdict.edited.append(f"{name} was edited")
    except OSError as error:
        verdict.edited.append(f"{name} cannot be read: {error.strerror}")


def _compare_database(folder: Path, entries: list[Entry], verdict: Verdict) -> None:
    if not (folder / DATABASE).is_file():
        verdict.missing.append(f"{DATABASE} is missing, with {counted(len(entries), 'part')}")
        return
    try:
        with opened(folder) as connection:
            for table in database.TABLES:
                _compare_table(connection, table, entries, verdict)
    except sqlite3.Error as error:
        verdict.edited.append(f"{DATABASE} cannot be read: {sentence(error)}")


def _compare_table(
    connection: sqlite3.Connection, table: str, entries: list[Entry], verdict: Verdict
) -> None:
    there = database.table_columns(connection, table)
    end = 0
    for entry in entries:
        if entry.get("table") != table:
            continue
        first, last, columns = (entry.get(key) for key in ("first", "last", "columns"))
        where = f"{table} {first} to {last} of {DATABASE}"
        if not (_is_number(first) and _is_number(last) and isinstance(columns, list)):
            verdict.edited.append(f"line {entry['n'] + 1} of the chain has no {table}")
            continue
        if entry.get("hour"):
            where = f"{where} ({entry['hour']})"
        if first != end + 1:
            verdict.missing.append(f"the chain lacks {table} {end + 1} to {first - 1}")
        end = last
        count = f"SELECT count(*) FROM {table} WHERE id BETWEEN ? AND ?"
        held = connection.execute(count, (first, last)).fetchone()[0]
        if held < last - first + 1:
            verdict.missing.append(f"{where}: {last - first + 1 - held} are missing")
        elif (
            not set(map(str, columns)) <= set(there)
            or database.sha256_of_rows(connection, table, [*map(str, columns)], first, last)
            != entry["sha256"]
        ):
            verdict.edited.append(f"{where} were edited")
        elif not database.hash_of_headers(connection, table, first, last).items() <= entry.items():
            verdict.edited.append(f"the header of {where} was edited")
    behind = connection.execute(f"SELECT count(*) FROM {table} WHERE id > ?", (end,)).fetchone()[0]
    if behind:
        verdict.open.append(f"{counted(behind, table.removesuffix('s'))} of {DATABASE}")


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and 0 < value < database.MOST_ROWS


def _open_parts(session: Session, verdict: Verdict) -> None:
    """Find open parts: only one of each kind may be; others must be in the chain."""
    seen: set[str] = set()
    for name in reversed(session.open_parts()):
        kind = name.partition("-")[0] + Path(name).suffix
        if kind in seen or DESCRIBED.fullmatch(name):
            verdict.edited.append(f"{name} was added: it is not in the chain")
        else:
            verdict.open.append(name)
        seen.add(kind)


def _gaps(session: Session, verdict: Verdict) -> None:
    try:
        for run, description in session.descriptions.items():
            fs = float(description["header"]["source"]["fs"])
            gaps = (event for event in session.events(run) if event.kind == "gap")
            verdict.gaps += [(run, fs, event) for event in gaps]
    except (*UNREAD, SessionError) as error:
        verdict.edited.append(f"the events cannot be read: {error}")
