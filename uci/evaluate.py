"""The command `jaxfish evaluate`: a file of positions in, a table of evaluations out."""

from nnue_jax.backends import BACKENDS
from uci.backend_names import load_evaluator
from uci.evaluation_run import RunSettings, evaluate_file
from uci.file_command import (
    ERRORS,
    NETWORK,
    OUTPUT,
    Flag,
    ProgressLine,
    carry_out,
    output_path,
    parse,
    run_identity,
    whole_number,
)
from uci.file_run import Summary
from uci.startup import quick_loading

BATCH = "--batch"
FLAGS = (
    OUTPUT,
    Flag(
        "--backend",
        "B",
        f"what evaluates: {', '.join(f'`{name}`' for name in BACKENDS)}; all give the same numbers",
        "auto",
    ),
    NETWORK,
    Flag(BATCH, "N", "positions that are evaluated at once", default_meaning="what suits the backend"),
    ERRORS,
)


def main(arguments: list[str]) -> int:
    """Carry out the command; returns the exit status."""
    return carry_out(lambda: _evaluate(arguments))


def _evaluate(arguments: list[str]) -> Summary:
    options = parse("evaluate", "Evaluate every position of a file with the network.", FLAGS, arguments)
    settings = RunSettings(
        source=options.input,
        output=output_path(options),
        keep_refused=options.errors == "row",
        batch=whole_number(BATCH, options.batch, "a number of positions"),
    )
    with quick_loading():
        evaluator = load_evaluator(options.network, options.backend)
    with ProgressLine(settings.output) as progress:
        identity = run_identity(options.network, "evaluate")
        return evaluate_file(settings, evaluator, identity, progress.show, progress.info)
