"""The CPU evaluator against the reference: single positions, and incremental sums all over the game tree."""

import json
import os
import random
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest

from games.xiangqi.fen import START_FEN, parse_fen
from games.xiangqi.geometry import BLACK, EMPTY, KIND_OF, KING, SQUARE_MASK, WHITE, parse_move
from nets import DEFAULT_NETWORK
from nnue_jax import reference
from nnue_jax.network_file import Network, read_network
from nnue_jax.numba_evaluator import NumbaEvaluator
from tests.support.games import random_positions
from tests.support.golden import DATA, all_fens, rows
from tests.support.line import Line
from tests.support.networks import bootstrap_network, random_network

NETWORKS = {
    "width 32": lambda: random_network(32),
    "width 128": lambda: random_network(128),
    "width 256": lambda: random_network(256),
    "recorded": lambda: read_network(DATA / "piece_square128.nnue"),
    "bootstrap": bootstrap_network,
    "default": lambda: read_network(DEFAULT_NETWORK),
    # Accumulators wrap around, and every clipping meets both of its ends.
    "extreme": lambda: random_network(64, extreme=True),
    "extreme, in whole groups of vectors": lambda: random_network(128, extreme=True),
    "threats": lambda: random_network(32, threats=True),
    "threats, extreme, in whole groups of vectors": lambda: random_network(128, extreme=True, threats=True),
    "recorded, with threats": lambda: read_network(DATA / "random128.nnue"),
}


@pytest.fixture(scope="module", params=NETWORKS)
def any_network(request) -> Network:
    return NETWORKS[request.param]()


def reference_outputs(network: Network, position) -> tuple[int, int]:
    found = reference.evaluate(network, position)
    return found.psqt, found.positional


def assert_equals_reference(network: Network, seed: int, count: int) -> None:
    evaluator = NumbaEvaluator(network)
    outputs = set()
    for position in random_positions(seed, count):
        found = evaluator.evaluate(position)
        assert found == reference_outputs(network, position[0])
        outputs.add(found)
    assert len(outputs) > count / 5, "the network hardly tells positions apart"


def test_equals_the_reference(any_network):
    assert_equals_reference(any_network, seed=31, count=2000)


@pytest.mark.slow
def test_equals_the_reference_for_long(any_network):
    assert_equals_reference(any_network, seed=32, count=10_000)


@pytest.mark.parametrize(
    ("network", "records"),
    [
        ("piece_square128.nnue", "eval_piece_square128"),
        ("random128.nnue", "eval_random128"),
        ("random128.nnue", "eval_games_random128"),
    ],
)
def test_recorded_outputs(network, records):
    evaluator = NumbaEvaluator(read_network(DATA / network))
    for row in rows(records):
        assert evaluator.evaluate(parse_fen(row["fen"]).position) == (row["psqt"], row["positional"])


@pytest.mark.parametrize(("width", "extreme"), [(32, False), (128, False), (256, False), (64, True)])
def test_random_networks_use_their_range(width, extreme):
    """Equality would say little if units were dead or saturated, or outputs all the same."""
    network = random_network(width, extreme)
    found = [reference.evaluate(network, position[0]) for position in random_positions(seed=33, count=100)]
    transformed = np.stack([evaluation.transformed for evaluation in found])
    assert 0.05 < (transformed == 0).mean() < 0.95
    assert transformed.max() > 60
    assert len({evaluation.positional for evaluation in found}) > 50


def test_the_extreme_network_overflows():
    """Accumulators wrap around, and outputs of fc0 are so large that their squares need the cap."""
    network = random_network(64, extreme=True)
    farthest = largest = 0
    for position in random_positions(seed=33, count=100):
        features = reference.piece_square_features(position[0], WHITE)
        exact = network.transformer_bias.astype(int) + network.piece_square_weight[features].sum(axis=0, dtype=int)
        farthest = max(farthest, np.abs(exact).max())
        largest = max(largest, np.abs(reference.evaluate(network, position[0]).fc0_out.astype(int)).max())
    assert farthest > 1 << 15
    assert largest**2 > 1 << 31


# --- incremental sums


def assert_up_to_date(network: Network, line: Line) -> None:
    """Evaluate, and compare the outputs and all sums behind them with a fresh evaluation."""
    assert line.evaluate() == reference_outputs(network, line.record)
    for perspective in (WHITE, BLACK):
        hidden, psqt = line.sums(perspective)
        fresh_hidden, fresh_psqt = reference.accumulate(network, line.record, perspective)
        assert np.array_equal(hidden, fresh_hidden), (perspective, line.ply)
        assert np.array_equal(psqt, fresh_psqt), (perspective, line.ply)


def wander(line: Line, rng: random.Random) -> str:
    """Take one random step in the tree: a move, a pass, or some plies back."""
    moves = line.legal_moves()
    choice = rng.random()
    if line.ply == line.MAX_PLY or not moves or choice < 0.12:
        for _ in range(min(line.ply, rng.choice((1, 1, 1, 2, 3, 5, 40)))):
            line.take_back()
        return "back"
    if choice < 0.2 and not line.in_check:
        line.pass_move()
        return "pass"
    captures = [move for move in moves if line.record["board"][move >> 7] != EMPTY]
    move = rng.choice(captures if captures and choice < 0.4 else moves)
    is_king = KIND_OF[line.record["board"][move & SQUARE_MASK]] == KING
    before = [line.orientation(perspective) for perspective in (WHITE, BLACK)]
    captured = line.play(move)
    after = [line.orientation(perspective) for perspective in (WHITE, BLACK)]
    if is_king:
        return "king"
    if any((old ^ new) & 1 for old, new in zip(before, after, strict=True)):
        return "mirror flip"
    if before != after:
        return "attackers gone"
    return "quiet" if captured == EMPTY else "capture"


def test_sums_follow_the_line_everywhere(any_network):
    """Random walks up and down the tree; now and then plies are left unevaluated, so several are made up for."""
    rng = random.Random(34)
    line = Line(any_network)
    seen = set()
    for fen in [START_FEN, *rng.sample(all_fens(), 12)]:
        line.start(parse_fen(fen).position)
        for _ in range(150):
            seen.add(wander(line, rng))
            if rng.random() < 0.7:
                assert_up_to_date(any_network, line)
    assert seen == {"back", "pass", "king", "mirror flip", "attackers gone", "quiet", "capture"}


def test_sums_along_whole_games():
    """Evaluated at every ply of the longest lines there can be, then at every ply of the way back."""
    network = random_network(32)
    rng = random.Random(35)
    line = Line(network)
    for _ in range(3):
        line.start(parse_fen(START_FEN).position)
        while line.ply < line.MAX_PLY and line.legal_moves():
            line.play(rng.choice(line.legal_moves()))
            assert_up_to_date(network, line)
        while line.ply:
            line.take_back()
            assert_up_to_date(network, line)


def test_one_evaluation_makes_up_for_a_whole_game():
    network = random_network(32)
    rng = random.Random(36)
    line = Line(network)
    for _ in range(10):
        line.start(parse_fen(START_FEN).position)
        while line.ply < 100 and line.legal_moves():
            line.play(rng.choice(line.legal_moves()))
        assert_up_to_date(network, line)


KINGS_AND_ROOKS = "4k4/9/9/9/4p4/9/P7P/9/9/R3K3R w - - 0 1"


@pytest.mark.parametrize(
    ("fen", "moves", "changes"),
    [
        # White's king changes its bucket, then its file, and at last mirrors both views.
        (KINGS_AND_ROOKS, "e0e1 e9e8 e1d1 e8e9 d1e1 e9e8 e1f1", "w b w b w b wb"),
        # Black's king on f mirrors also the view of White's, on e.
        (KINGS_AND_ROOKS, "a3a4 e9d9 a4a5 d9e9 a5a6 e9f9 a6a7 f9e9", "- b - b - wb - wb"),
        # Both kings on the e-file: a side's own pieces decide, and where those balance, the other's.
        (KINGS_AND_ROOKS, "i0h0 e5e4 a0b0 e4f4 h0g0 f4e4 b0c0 e4d4", "- - - wb w b - -"),
        # The last rook goes, then the last knight.
        ("3k5/9/9/9/r8/9/9/2N6/9/R4K3 b - - 0 1", "a5a0 c2b0 a0b0 f0f1", "w - w w"),
    ],
)
def test_changes_of_orientation(fen, moves, changes):
    """Scripted lines there and back; `changes` are the perspectives whose orientation each move must change."""
    network = random_network(128)
    line = Line(network)
    line.start(parse_fen(fen).position)
    orientations = [[line.orientation(perspective) for perspective in (WHITE, BLACK)]]
    for move in moves.split():
        line.play(parse_move(move))
        assert_up_to_date(network, line)
        orientations.append([line.orientation(perspective) for perspective in (WHITE, BLACK)])
    changed = [
        "".join(name for name, old, new in zip("wb", before, after, strict=True) if old != new) or "-"
        for before, after in pairwise(orientations)
    ]
    assert " ".join(changed) == changes
    while line.ply:
        line.take_back()
        assert_up_to_date(network, line)


# --- the code for processors without the byte dot product

EVALUATE_FENS = """
import json, sys
from games.xiangqi.fen import parse_fen
from nnue_jax.network_file import read_network
from nnue_jax.numba_evaluator import NumbaEvaluator
from nnue_jax.simd import HAS_NATIVE_DOT
evaluator = NumbaEvaluator(read_network(sys.argv[1]))
values = [evaluator.evaluate(parse_fen(fen).position) for fen in json.load(sys.stdin)]
print(json.dumps({"native": HAS_NATIVE_DOT, "values": values}))
"""


def test_portable_code_gives_the_same_values():
    recorded = rows("eval_piece_square128")
    answer = subprocess.run(
        [sys.executable, "-c", EVALUATE_FENS, DATA / "piece_square128.nnue"],
        env=os.environ | {"JAXFISH_PORTABLE": "1"},
        input=json.dumps([row["fen"] for row in recorded]),
        capture_output=True,
        check=True,
        text=True,
    )
    found = json.loads(answer.stdout)
    assert not found["native"]
    assert found["values"] == [[row["psqt"], row["positional"]] for row in recorded]
