"""`amt-stream selftest`."""

import contextlib
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from amt_stream.cli.files import atomic_text_file, not_to_write
from amt_stream.cli.messages import Mistake, WrongUsage, say
from amt_stream.cli.options.sounds import SelftestOptions
from amt_stream.core.formats import WAYS
from amt_stream.meters import catalog

if TYPE_CHECKING:
    from amt_stream.offline.selftest import Result, Way


def run_selftest(args: SelftestOptions) -> int:
    """Check the models, or the counting of faults, and print a row each; 1 if any failed."""
    if args.faults:
        return _faults_counted(args)
    checked = catalog.names(lambda entry: entry.checks is not None)
    models = args.model or checked
    for name in models:
        if name not in checked:
            raise WrongUsage(f"--model: {name} has no checks: give some of {', '.join(checked)}")
    ways = tuple(dict.fromkeys(args.way or WAYS))
    report = None if args.report is None else Path(args.report)
    if report is not None and (refusal := not_to_write(report, args.force)):
        raise Mistake(f"{refusal} (nothing was tested)")
    with contextlib.ExitStack() as stack:
        # Opened first, so that an error comes before the checks.
        stream = None if report is None else stack.enter_context(atomic_text_file(report))
        return _tested(models, ways, stream)


def _tested(models: Sequence[str], ways: Sequence[str], stream: TextIO | None) -> int:
    from amt_stream.cli.compiling import say_when_compiling
    from amt_stream.dsp.functional.compiler.threads import work_alone
    from amt_stream.offline import selftest
    from amt_stream.offline.selftest import report

    work_alone()
    say_when_compiling()
    results = list(_printed(models, [selftest.WAYS[way] for way in ways]))
    if stream is not None:
        stream.write(report.markdown(results))
    overview = report.overview(results)
    widths = report.widths(overview)
    print("", *(report.row(one, widths) for one in overview), sep="\n")
    print("", *report.not_played(results), sep="\n")
    print(f"in all: {report.summary_text(results)}")
    print(report.statement(results))
    failed = [result for result in results if result.failed]
    for result in failed:
        say(report.failure(result))
    return 1 if failed else 0


def _printed(models: Sequence[str], ways: Sequence["Way"]) -> Iterator["Result"]:
    """The results, each value of which has been printed as a row."""
    from amt_stream.offline import selftest
    from amt_stream.offline.selftest import report

    planned = list(report.as_expected(selftest.trials(models), ways))
    names = report.ways_of(planned)
    heading = report.columns(names)
    rows = [report.cells(of, names) for of in report.by_value(planned).values()]
    widths = report.widths([heading, *rows])
    print(report.row(heading, widths))
    checked = selftest.run_checks(models, ways=ways)
    for _, of_sound in groupby(checked, key=lambda result: (result.model, result.sound)):
        results = list(of_sound)
        for of in report.by_value(results).values():
            print(report.row(report.cells(of, names), widths), flush=True)
        yield from results


def _faults_counted(args: SelftestOptions) -> int:
    if args.model or args.way or args.report:
        raise WrongUsage(
            "--faults tests no model and writes no report: leave out --model, --way and --report"
        )
    from amt_stream.offline.selftest import faults
    from amt_stream.offline.selftest.report import row

    widths = (4, max(len(case.words) for case in faults.CASES), 28, 10, 10)
    print(row(("", "fault", "counted", "inserted", "found"), widths))
    failed = 0
    for result in faults.run_faults():
        words = "pass" if result.passed else "FAIL"
        texts = (words, result.case, result.what, result.injected, result.counted)
        print(row(texts, widths), flush=True)
        failed += not result.passed
    print(f"{failed} failed" if failed else "all faults were counted")
    return 1 if failed else 0
