"""The command `jaxfish analyse`: a file of positions in, a table of what a search finds about each out."""

import argparse

from games.jit import source_hash
from games.processors import available_processors
from nnue_jax.network_file import read_network
from search.engine import Engine
from search.leaf_queue import EvaluationFailure
from search.limits import Limits
from search.processors import MAX_THREADS
from search.transposition import MAX_HASH_MIB, HashTableError
from uci.analysis_run import AnalysisSettings, analyse_file
from uci.backend_names import AUTO, make_evaluator
from uci.file_command import (
    ERRORS,
    NETWORK,
    OUTPUT,
    Flag,
    ProgressLine,
    UsageError,
    carry_out,
    output_path,
    parse,
    run_identity,
    whole_number,
)
from uci.file_run import Summary
from uci.options import find_option
from uci.startup import quick_loading

DEFAULT_HASH_MIB = 64
MAX_SEARCHERS = 1 << 16
LEAST_HASH_MIB = 1  # for a table that is not used

NODES, DEPTH, MOVETIME = "--nodes", "--depth", "--movetime"
MULTI_PV, THREADS, HASH, SEARCHERS, BATCH = "--multipv", "--threads", "--hash", "--searchers", "--batch"
ISOLATED = "--isolated"
FLAGS = (
    Flag(NODES, "N", "ends the search of a position after so many nodes"),
    Flag(DEPTH, "D", "ends it after this depth"),
    Flag(MOVETIME, "MS", "ends it after so many milliseconds; of several limits the first that is reached counts"),
    Flag(MULTI_PV, "K", "number of best lines, each of which is a row", "1"),
    OUTPUT,
    Flag(
        "--backend",
        "B",
        "what evaluates: `numba`, every thread by itself; `jax`, `jax:cpu`, `jax:gpu`, …, many positions in a batch",
        AUTO,
        f"`{AUTO}`: an accelerator if JAX has one, otherwise `numba`",
    ),
    NETWORK,
    Flag(THREADS, "N", "search threads", default_meaning="one for each processor"),
    Flag(
        HASH,
        "MIB",
        "size of the transposition table that all positions share",
        default_meaning=f"`{DEFAULT_HASH_MIB}`",
    ),
    Flag(
        SEARCHERS,
        "N",
        "positions that are searched at once on a batched backend, all threads together",
        default_meaning="what suits the backend",
    ),
    Flag(BATCH, "N", "positions in a batch at most", default_meaning="what suits the backend"),
    Flag(
        ISOLATED,
        "",
        "gives every position tables of its own: what is found then depends on the position, the network and the "
        "limits alone, unless time is one of these",
    ),
    ERRORS,
)


def main(arguments: list[str]) -> int:
    """Carry out the command; returns the exit status."""
    return carry_out(lambda: _analyse(arguments), (HashTableError, EvaluationFailure))


def _analyse(arguments: list[str]) -> Summary:
    options = parse("analyse", "Search every position of a file.", FLAGS, arguments)
    settings = _settings(options)
    with ProgressLine(settings.output) as progress:
        with quick_loading():
            engine = _engine(options, progress)
        try:
            identity = _identity(options, settings)
            summary = analyse_file(settings, engine, identity, progress.show, progress.info)
            if engine.evaluator is not None:
                progress.info(f"{engine.evaluator.name}: {engine.take_telemetry()}.")
            return summary
        finally:
            engine.close()


def _settings(options: argparse.Namespace) -> AnalysisSettings:
    """Check what can be checked before anything is loaded."""
    limits = Limits(
        nodes=whole_number(NODES, options.nodes, "a number of nodes"),
        depth=whole_number(DEPTH, options.depth, "a depth in plies"),
        movetime_ms=whole_number(MOVETIME, options.movetime, "a time in milliseconds"),
    )
    if limits == Limits():
        raise UsageError(f"There is no limit to the search; expected {NODES}, {DEPTH} or {MOVETIME}.")
    if options.isolated and options.hash is not None:
        raise UsageError(f"{HASH} is about the table that positions share; with {ISOLATED} there is none.")
    return AnalysisSettings(
        source=options.input,
        output=output_path(options),
        keep_refused=options.errors == "row",
        limits=limits,
        multi_pv=whole_number(MULTI_PV, options.multipv, "a number of lines", find_option("MultiPV").maximum),
        isolated=options.isolated,
        searchers=whole_number(SEARCHERS, options.searchers, "a number of positions", MAX_SEARCHERS) or 0,
    )


def _engine(options: argparse.Namespace, progress: ProgressLine) -> Engine:
    threads = whole_number(THREADS, options.threads, "a number of threads", MAX_THREADS)
    hash_mib = whole_number(HASH, options.hash, "a size in MiB", MAX_HASH_MIB)
    batch = whole_number(BATCH, options.batch, "a number of positions")
    maker, choice = make_evaluator(options.backend)
    if maker is None:
        for flag, value in ((SEARCHERS, options.searchers), (BATCH, options.batch)):
            if value is not None:
                raise UsageError(f"{flag} is for backends that evaluate in batches. {choice}")
    engine = Engine(
        read_network(options.network),
        threads or min(len(available_processors()), MAX_THREADS),
        LEAST_HASH_MIB if options.isolated else hash_mib or DEFAULT_HASH_MIB,
    )
    if maker is not None:
        engine.set_backend(maker, batch or 0)
    if options.backend == AUTO:
        progress.info(choice)
    return engine


def _identity(options: argparse.Namespace, settings: AnalysisSettings) -> bytes:
    """Of all that is asked for; the means, such as threads and backend, may change from run to run."""
    facts = (settings.limits, settings.multi_pv, settings.isolated, source_hash())
    return run_identity(options.network, "analyse", *map(repr, facts))
