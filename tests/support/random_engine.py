"""A UCI engine that plays random legal moves, always the same in the same position, and misbehaves on demand.

    python -m tests.support.random_engine [--claim CENTIPAWNS] [--faults FAULT,FAULT,...]

It claims a score that is its own whatever the position, except in one opening of three, where it claims 0. In the
n-th game of a process it commits the n-th fault: illegal (move), late (answer), crash, or none. The environment
variable RANDOM_ENGINE_DELAY_MS makes it take its time for every move.
"""

import argparse
import os
import random
import sys
import time
from itertools import cycle
from zlib import crc32

from games.xiangqi import Game

OPENING_PLIES = 6
DELAY_VARIABLE = "RANDOM_ENGINE_DELAY_MS"
LATE_S = 1.5
CRASH_STATUS = 3


def answer(moves: list[str], claim_cp: int, fault: str) -> str:
    """What follows a go in the position after `moves`."""
    if fault == "crash":
        print("about to crash", file=sys.stderr, flush=True)
        os._exit(CRASH_STATUS)
    time.sleep(int(os.environ.get(DELAY_VARIABLE, "0")) / 1000)
    if fault == "late":
        time.sleep(LATE_S)
    if fault == "illegal":
        return "bestmove a0a0"
    score_cp = claim_cp if crc32(" ".join(moves[:OPENING_PLIES]).encode()) % 3 else 0
    move = random.Random(" ".join(moves)).choice(Game(moves=moves).legal_move_texts())
    return f"info depth 1 score cp {score_cp} nodes 1 pv {move}\nbestmove {move}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--claim", type=int, default=0)
    parser.add_argument("--faults", default="none")
    arguments = parser.parse_args()
    faults = cycle(arguments.faults.split(","))
    fault, moves = "none", []
    Game(moves=["h2e2"]).legal_moves()  # kernels are compiled or loaded before the clock runs
    for line in sys.stdin:
        words = line.split()
        if words[0] == "uci":
            print("uciok", flush=True)
        elif words[0] == "isready":
            print("readyok", flush=True)
        elif words[0] == "ucinewgame":
            fault = next(faults)
        elif words[0] == "position":
            moves = words[3:]  # position startpos moves ...
        elif words[0] == "go":
            print(answer(moves, arguments.claim, fault), flush=True)
        elif words[0] == "quit":
            return


if __name__ == "__main__":
    main()
