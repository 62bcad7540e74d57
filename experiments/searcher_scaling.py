"""What many searchers on one root are worth on a batched evaluator: rounds, time and nodes to a fixed depth.

    python -m experiments.searcher_scaling --depth 9 --searchers 1,4,16,64,256 --latency-us 200 --positions-per-s 20e6

Searches some positions of `bench` on a simulated device with the bootstrap network, and prints a table: nodes a second,
nodes an evaluation, seconds to the depth, and how many times fewer rounds (batches one after the other) and less time
than one searcher needs. A round is what counts where the device is far away. Efficiency is rounds saved by searcher.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass

from games.xiangqi.game import Game
from nets import BOOTSTRAP_NETWORK
from nnue_jax.network_file import read_network
from nnue_jax.simulated_device import SimulatedDevice
from search.engine import Engine
from search.limits import Limits
from uci.bench_positions import POSITIONS

POSITION_STRIDE = 3  # every third one will do


@dataclass(frozen=True)
class Cost:
    """Of one search."""

    rounds: float
    time_s: float
    nodes: int
    evaluations: int


def geometric_mean(values: Iterable[float]) -> float:
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs))


def search_all(engine: Engine, games: list[Game], depth: int) -> list[Cost]:
    costs = []
    groups = 1 if engine.batching.searchers == 1 else 2 * engine.threads
    for game in games:
        engine.new_game()
        engine.set_position(game)
        started = time.perf_counter()
        result = engine.go(Limits(depth=depth)).wait()
        elapsed_s = time.perf_counter() - started
        telemetry = result.telemetry
        costs.append(Cost(telemetry.batches / groups, elapsed_s, result.report.nodes, telemetry.positions))
    return costs


def bench_games() -> list[Game]:
    return [Game(text) for text in POSITIONS if " moves " not in text][::POSITION_STRIDE]


def row(searchers: int, costs: list[Cost], alone: list[Cost]) -> str:
    rounds = geometric_mean(one.rounds / cost.rounds for one, cost in zip(alone, costs, strict=True))
    gain = geometric_mean(one.time_s / cost.time_s for one, cost in zip(alone, costs, strict=True))
    totals = ("nodes", "time_s", "evaluations")
    nodes, time_s, evaluations = (sum(getattr(cost, name) for cost in costs) for name in totals)
    return (
        f"| {searchers} | {nodes / time_s / 1e6:.3f} | {nodes / evaluations:.2f} | {time_s / len(costs):.3f} | "
        f"{rounds:.1f} | {gain:.1f} | {rounds / searchers:.2f} |"
    )


def batch_size_without_guesses(searchers: int) -> int:
    """Such that a batch is full when all searchers of one of two groups wait."""
    return max(1, searchers // 2)


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depth", type=int, default=9, help="default %(default)s")
    parser.add_argument("--searchers", default="1,4,16,64,256", help="default %(default)s; the first is compared with")
    parser.add_argument("--threads", type=int, default=1, help="default %(default)s")
    parser.add_argument("--latency-us", type=float, default=200, help="of a batch (default %(default)s)")
    parser.add_argument("--positions-per-s", type=float, default=20e6, help="default %(default)s")
    parser.add_argument("--no-guesses", action="store_true", help="evaluate nothing that no searcher waits for")
    return parser.parse_args(words)


def main(words: list[str] | None = None) -> int:
    arguments = parse_arguments(words)
    engine = Engine(read_network(BOOTSTRAP_NETWORK), threads=arguments.threads, hash_mib=64)
    games = bench_games()
    print(f"{len(games)} positions to depth {arguments.depth}, {arguments.threads} thread(s)")
    print("| searchers | million nodes/s | nodes an evaluation | seconds | fewer rounds | faster | efficiency |")
    print("|---|---|---|---|---|---|---|")
    alone = None
    for searchers in map(int, arguments.searchers.split(",")):
        engine.set_backend(
            lambda network: SimulatedDevice(network, arguments.latency_us, arguments.positions_per_s),
            batch_size=batch_size_without_guesses(searchers) if arguments.no_guesses else 0,
            searchers=searchers,
        )
        search_all(engine, games[:1], 2)
        costs = search_all(engine, games, arguments.depth)
        alone = alone or costs
        print(row(searchers, costs, alone))
        sys.stdout.flush()
    engine.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
