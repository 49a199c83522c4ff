"""`amt-stream report`."""

import os
from pathlib import Path

from amt_stream.cli.files import atomic_text_file, not_to_write, write_bytes
from amt_stream.cli.messages import Mistake, WrongUsage, say
from amt_stream.cli.options.sessions import ReportOptions
from amt_stream.core.importing import install

HTML, PDF = ".html", ".pdf"


def run_report(args: ReportOptions) -> int:
    """Write the report, and say where."""
    sessions = [Path(one) for one in args.sessions]
    usual = f"{sessions[0].resolve().name}-report.html"
    out = page_target(args.out or usual, args.force)
    if args.run is not None and len(sessions) > 1:
        raise WrongUsage(f"--run {args.run} is of one log, and there are {len(sessions)}: give one")
    from amt_stream.core.formats import PAPERS
    from amt_stream.meters.presets import load_preset
    from amt_stream.meters.rows import Column
    from amt_stream.sessions.compare import reports_page
    from amt_stream.sessions.exclusion import results_without
    from amt_stream.sessions.report import About, report_page
    from amt_stream.sessions.report.content import exclusions, integrity
    from amt_stream.sessions.report.curves import is_drawn, is_followed
    from amt_stream.sessions.report.day_levels import is_energy
    from amt_stream.sessions.report.times import Clock
    from amt_stream.sessions.results import Results, read_results
    from amt_stream.sessions.results.parts import part_of, results_of_part

    of_preset = {} if args.preset is None else load_preset(args.preset).report
    paper, company, logo = (
        getattr(args, name) or of_preset.get(name) for name in ("paper", "company", "logo")
    )
    texts = args.title, args.place, args.client, args.engineer, args.note
    about = About(*texts, company or "", logo or "")
    whole = args.begin is None and args.end is None
    every = not whole or args.interval is not None or bool(args.exclude)

    def wanted(column: Column) -> bool:
        compared = len(sessions) > 1 and is_followed(column)
        return every or compared or is_drawn(column) or is_energy(column)

    def read(session: Path) -> Results:
        found = read_results(session, wanted, run=args.run, microphone=args.microphone)
        part = None if whole else part_of(found, args.begin, args.end, args.zone)
        if args.exclude:
            return results_without(found, args.exclude, part, args.zone)
        return found if part is None else results_of_part(found, part)

    results = [read(session) for session in sessions]
    given = about, args.zone, args.interval, paper or PAPERS[0]
    one = len(results) == 1
    write_page(out, report_page(results[0], *given) if one else reports_page(results, *given))
    for found in results:
        clock = Clock.of(found, args.zone)
        for name, words in (*integrity(found), *exclusions(found, clock)):
            words = words.replace("\n", "; ")
            say(f"{name} {words}" if one else f"{found.name}: {name} {words}")
    say(f"{out}: report of {', '.join(map(str, sessions))}")
    return 0


def page_target(name: str, force: bool) -> Path:
    """The path of a page. Raises Mistake if it cannot be written."""
    out = Path(name)
    if out.suffix not in (HTML, PDF):
        raise WrongUsage(f"--out is {out}: give a name that ends in {HTML} or {PDF}")
    if refusal := not_to_write(out, force):
        raise Mistake(refusal)
    return out


def write_page(out: Path, page: str) -> None:
    """Write a page as HTML or PDF."""
    if out.suffix == PDF:
        _write_pdf(out, page)
        return
    with atomic_text_file(out) as stream:
        stream.write(page)


def _write_pdf(out: Path, page: str) -> None:
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    try:
        from amt_monitor.dialogs.report_pdf import pdf_of
    except ImportError as error:
        raise Mistake(
            f"a PDF needs the window's libraries, which are not installed ({error}): "
            f"{install('app')}, or write {HTML}, which every browser prints"
        ) from error
    write_bytes(out, pdf_of(page))
