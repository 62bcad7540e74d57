"""How fast many roots are searched at once, by what evaluates.

    python -m experiments.analysis_speed positions.txt --positions 4096 --nodes 5000 --backends free,simulated:200:20

Searches positions (FENs, one a line) as `jaxfish analyse` does, with each backend in turn, several rounds, and prints
nodes and evaluations a second: the median of the rounds, and the least and the most. The backend `free` answers at
once, with zeros: what searchers can do if evaluations cost nothing.
"""

import argparse
import statistics
import sys
import time
from itertools import islice
from pathlib import Path

from games.processors import available_processors
from games.xiangqi.packed import pack_fens
from nets import BOOTSTRAP_NETWORK
from nnue_jax.network_file import read_network
from nnue_jax.wrappers import ConstantEvaluator
from search.engine import Engine
from search.limits import Limits
from search.root_blocks import packed_block
from uci.backend_names import make_evaluator

FREE = "free"
BLOCK = 256


class FreeEvaluator(ConstantEvaluator):
    name = FREE
    preferred_batch = maximum_batch = 1 << 16


def maker_of(backend: str):
    return (lambda network: FreeEvaluator()) if backend == FREE else make_evaluator(backend)[0]


def measure(engine: Engine, packed, limits: Limits, searchers: int) -> tuple[float, float, str]:
    """(million nodes/s, million evaluations/s, telemetry) of one run."""
    blocks = (packed_block(packed[start : start + BLOCK]) for start in range(0, len(packed), BLOCK))
    engine.new_game()
    engine.take_telemetry()
    started = time.perf_counter()
    nodes = sum(outcome.nodes for outcome in engine.analyse_blocks(blocks, limits, searchers=searchers))
    elapsed_s = time.perf_counter() - started
    telemetry = engine.take_telemetry()
    evaluations = 0 if telemetry is None else telemetry.positions
    return nodes / elapsed_s / 1e6, evaluations / elapsed_s / 1e6, "" if telemetry is None else str(telemetry)


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input", type=Path, help="FENs, one a line")
    parser.add_argument("--positions", type=int, default=4096, help="of the file (default %(default)s)")
    parser.add_argument("--nodes", type=int, default=5000, help="for each position (default %(default)s)")
    parser.add_argument("--backends", default=f"{FREE},simulated:200:20", help="default %(default)s")
    parser.add_argument("--searchers", default="0", help="numbers to try, with commas; 0 for the default")
    parser.add_argument("--threads", type=int, default=len(available_processors()), help="default %(default)s")
    parser.add_argument("--network", type=Path, default=BOOTSTRAP_NETWORK, help="default: the bootstrap network")
    parser.add_argument("--rounds", type=int, default=3, help="default %(default)s")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    arguments = parse_arguments(words)
    with arguments.input.open() as file:
        packed = pack_fens(line.strip() for line in islice(file, arguments.positions))
    engine = Engine(read_network(arguments.network), arguments.threads, hash_mib=64)
    limits = Limits(nodes=arguments.nodes)
    choices = [
        (backend, searchers)
        for backend in arguments.backends.split(",")
        for searchers in map(int, arguments.searchers.split(","))
    ]
    found: dict = {choice: [] for choice in choices}
    for round_number in range(-1, arguments.rounds):
        for choice in choices:
            engine.set_backend(maker_of(choice[0]))
            if round_number < 0:
                measure(engine, packed[:64], Limits(nodes=100), choice[1])  # compile
            else:
                found[choice].append(measure(engine, packed, limits, choice[1]))
    for (backend, searchers), runs in found.items():
        nodes, evaluations, telemetry = zip(*runs, strict=True)
        print(
            f"{backend} searchers {searchers or 'default'}: {statistics.median(nodes):.3f} million nodes/s "
            f"({min(nodes):.3f} to {max(nodes):.3f}), {statistics.median(evaluations):.3f} million evaluations/s; "
            f"{telemetry[-1]}"
        )
    engine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
