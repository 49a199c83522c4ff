"""`amt-stream selftest`."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from amt_stream.cli.files import atomic_text_file, not_to_write
from amt_stream.cli.messages import Mistake, WrongUsage, say
from amt_stream.cli.options import SelftestOptions
from amt_stream.meters import catalog


def run_selftest(args: SelftestOptions) -> int:
    """Check the models, or the counting of faults, and print a row each; 1 if any failed."""
    if args.faults:
        return _faults_counted(args)
    checked = catalog.names(lambda entry: entry.checks is not None)
    models = args.model or checked
    for name in models:
        if name not in checked:
            raise WrongUsage(f"--model: {name} has no checks: give some of {', '.join(checked)}")
    report = None if args.report is None else Path(args.report)
    if report is not None and (refusal := not_to_write(report, args.force)):
        raise Mistake(f"{refusal} (nothing was tested)")
    with contextlib.ExitStack() as stack:
        # Opened first, so that an error comes before the checks.
        stream = None if report is None else stack.enter_context(atomic_text_file(report))
        return _tested(models, stream)


def _tested(models: Sequence[str], stream: TextIO | None) -> int:
    from amt_stream.cli.compiling import say_when_compiling
    from amt_stream.dsp.functional.threads import work_alone
    from amt_stream.offline import selftest
    from amt_stream.offline.selftest.report import (
        COLUMNS,
        by_model,
        cells,
        column_widths,
        markdown,
        row,
        statement,
        summary_text,
    )

    work_alone()
    say_when_compiling()
    widths = column_widths(selftest.trials(models))
    print(row(COLUMNS, widths))
    results = []
    for result in selftest.run_checks(models):
        results.append(result)
        print(row(cells(result), widths), flush=True)
    if stream is not None:
        stream.write(markdown(results))
    print()
    for model, of in by_model(results).items():
        print(f"{model}: {summary_text(of)}")
    if len(models) > 1:
        print(f"in all: {summary_text(results)}")
    print(statement(results))
    failed = [result for result in results if not result.passed]
    for result in failed:
        say(f"failed: {result.model}, {result.sound}: {result.reading.what}")
    return 1 if failed else 0


def _faults_counted(args: SelftestOptions) -> int:
    if args.model or args.report:
        raise WrongUsage(
            "--faults tests no model and writes no report: leave out --model and --report"
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
