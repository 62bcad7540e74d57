"""`eval`: its table and totals against the reference, the evaluator of the search, and recorded values."""

import re

import pytest

from games.xiangqi import Game
from games.xiangqi.geometry import BLACK
from nnue_jax import reference
from nnue_jax.architecture import LAYER_STACKS
from nnue_jax.network_file import read_network
from nnue_jax.numba_evaluator import NumbaEvaluator
from nnue_jax.win_rate import PIKAFISH_MODEL, model_material
from tests.support.games import random_walk
from tests.support.golden import DATA, rows
from tests.support.networks import random_network
from tests.test_reference_evaluator import attacking_material_kernel, blend_kernel, damp_kernel
from uci.evaluation_table import IN_CHECK, evaluation_lines

NETWORKS = {
    "plain": lambda: random_network(32),
    "threats": lambda: random_network(64, threats=True),
    "extreme": lambda: random_network(64, extreme=True),
    "recorded, with threats": lambda: read_network(DATA / "random128.nnue"),
}
FIRST_ROW = 3
NUMBER = r"([+-]\d+\.\d\d)"
ROW = re.compile(rf" +(\d+) +{NUMBER} +{NUMBER} +{NUMBER}(  <-- this bucket is used)?")
RAW = re.compile(r"NNUE evaluation  (-?\d+) \(side to move, internal units\)")
NNUE = re.compile(rf"NNUE evaluation  {NUMBER} \(white side\)")
FINAL = re.compile(rf"Final evaluation  {NUMBER} \(white side\) \[with scaled NNUE, \.\.\.\]")


@pytest.fixture(scope="module", params=NETWORKS)
def any_network(request):
    return NETWORKS[request.param]()


def quiet_walk(seed: int, count: int):
    return (game for game in random_walk(seed, count) if not game.in_check)


def table_of(lines: list[str]) -> tuple[list[tuple[float, float, float]], int]:
    """(PSQT, positional and total of each bucket, in pawns), and the bucket in use."""
    found = [ROW.fullmatch(line) for line in lines[FIRST_ROW : FIRST_ROW + LAYER_STACKS]]
    assert [int(row[1]) for row in found] == list(range(LAYER_STACKS))
    (used,) = (i for i, row in enumerate(found) if row[5])
    return [tuple(float(row[k]) for k in (2, 3, 4)) for row in found], used


def totals_of(lines: list[str]) -> tuple[int, float, float]:
    """(internal units for the side to move, pawns for White, final pawns for White)."""
    raw, nnue, final = (
        pattern.fullmatch(line)[1] for pattern, line in zip((RAW, NNUE, FINAL), lines[-3:], strict=True)
    )
    return int(raw), float(nnue), float(final)


def pawns(value: int, game: Game) -> float:
    return PIKAFISH_MODEL.at(model_material(game.position[0])).centipawns(value) / 100


def search_value(game: Game, psqt: int, positional: int) -> int:
    """What the kernels of the search make of the network's outputs."""
    value = blend_kernel(psqt, positional, attacking_material_kernel(game.position[0]))
    return damp_kernel(value, game.rule60)


def test_the_used_bucket_equals_the_evaluation(any_network):
    buckets = set()
    for game in quiet_walk(seed=61, count=150):
        table, used = table_of(evaluation_lines(any_network, game))
        expected = reference.evaluate(any_network, game.position[0])
        values = (expected.psqt, expected.positional, expected.psqt + expected.positional)
        assert used == expected.layer_stack
        assert table[used] == tuple(pawns(value, game) for value in values)
        buckets.add(used)
    assert len(buckets) > 3


def test_every_bucket_evaluates_with_its_own_layers(any_network):
    """Row number i shows what layer stack i makes of the position, in use or not."""
    for game in list(quiet_walk(seed=62, count=40))[::9]:
        position = game.position[0]
        found = reference.evaluate_with(any_network, position, range(LAYER_STACKS))
        table, _ = table_of(evaluation_lines(any_network, game))
        us, them = (reference.accumulate(any_network, position, side) for side in (game.side, 1 - game.side))
        transformed = reference.evaluate(any_network, position).transformed
        for stack, row in enumerate(found):
            positional_raw, _ = reference.propagate(any_network.stacks[stack], transformed)
            assert row.layer_stack == stack
            assert row.positional_raw == positional_raw
            assert row.psqt_raw == int((int(us[1][stack]) - int(them[1][stack])) / 2)
            assert table[stack] == tuple(pawns(v, game) for v in (row.psqt, row.positional, row.psqt + row.positional))
        assert len(set(table)) > LAYER_STACKS // 2


def test_totals_are_those_of_the_search(any_network):
    evaluator = NumbaEvaluator(any_network)
    sides, finals, damped = set(), set(), 0
    for game in quiet_walk(seed=63, count=300):
        raw, nnue, final = totals_of(evaluation_lines(any_network, game))
        psqt, positional = evaluator.evaluate(game.position)
        sign = -1 if game.side == BLACK else 1
        assert raw == psqt + positional
        assert nnue == sign * pawns(psqt + positional, game)
        assert final == sign * pawns(search_value(game, psqt, positional), game)
        sides.add(game.side)
        finals.add(final)
        damped += game.rule60 > 10
    assert len(sides) == 2
    assert len(finals) > 2
    assert damped > 5


def test_recorded_values():
    network = read_network(DATA / "random128.nnue")
    for row in rows("eval_random128"):
        game = Game(row["fen"])
        lines = evaluation_lines(network, game)
        if row["in_check"]:
            assert lines == [IN_CHECK]
            continue
        _, used = table_of(lines)
        sign = 1 if row["stm"] == "w" else -1
        assert used == row["layer_bucket"]
        assert totals_of(lines) == (row["nnue"], sign * pawns(row["nnue"], game), sign * pawns(row["final"], game))


def test_heading_names_the_view(any_network):
    for game, name in ((Game(), "White"), (Game(moves=["h2e2"]), "Black")):
        heading, blank, columns, *_ = evaluation_lines(any_network, game)
        assert heading.endswith(f"in pawns, from the view of the side to move ({name})")
        assert (blank, columns.split()) == ("", ["bucket", "PSQT", "positional", "total"])


def test_the_two_views():
    """Black is far ahead and to move."""
    network = read_network(DATA / "piece_square128.nnue")
    game = Game("rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/9/9/2BAKAB2 b - - 0 1")
    raw, nnue, final = totals_of(evaluation_lines(network, game))
    assert (raw > 0) == (nnue < 0)
    assert (raw > 0) == (final < 0)


def test_a_counter_beyond_what_a_fen_may_say():
    network = random_network(64)
    game = Game("3k5/9/9/9/9/9/9/9/9/R3K4 w - - 118 60", ["a0a1", "d9d8", "a1a2", "d8d9"])
    assert game.rule60 == 122
    _, nnue, final = totals_of(evaluation_lines(network, game))
    found = reference.evaluate(network, game.position[0])
    assert final == pawns(search_value(game, found.psqt, found.positional), game)
    assert 0.3 < final < nnue - 0.3


def test_in_check():
    assert evaluation_lines(random_network(32), Game("3k5/R8/4R4/9/9/9/9/9/9/4K4 b - - 0 1")) != [IN_CHECK]
    assert evaluation_lines(random_network(32), Game("R2k5/9/4R4/9/9/9/9/9/9/4K4 b - - 0 1")) == [
        "Final evaluation: none (in check)"
    ]
