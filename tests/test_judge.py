"""The judge: recorded verdicts, symmetries, and a plain twin on random lines full of shuffles, checks and chases."""

import random
from collections import Counter

import pytest

from games.xiangqi import Game, PositionError, adjudicate, threatened
from games.xiangqi.fen import parse_fen
from games.xiangqi.line import HISTORY_LENGTH
from games.xiangqi.repetition import judge_game
from tests.reference import judge as twin
from tests.reference import rules
from tests.support.games import random_walk
from tests.support.golden import all_fens, rows


def victims_of(row) -> list[str]:
    victims = row["victims"] or []
    if isinstance(victims, dict):
        return sorted(victims["victims_of_opponent"] + victims["victims_of_stm"])
    return victims


def as_tuple(verdict) -> tuple:
    return verdict.result, verdict.final, verdict.score, verdict.kind, verdict.victims


@pytest.mark.parametrize("row", rows("rules"), ids=lambda row: row["id"])
def test_recorded_verdicts(row):
    verdict = adjudicate(row["fen"], row["moves"], row["ply"])
    assert (verdict.result, verdict.final, verdict.score) == (row["judgement"], row["final"], row["score"])
    assert (verdict.kind, list(verdict.victims)) == (row["kind"], victims_of(row))
    game = Game(row["fen"], row["moves"])
    assert game.rule60 == row["rule60_after"]
    assert dict(zip("wb", game.checks, strict=True)) == row["check_counts_after"]
    assert game.fen() == row.get("fen_after", game.fen())
    assert as_tuple(verdict) == twin.adjudicate(row["fen"], row["moves"], row["ply"])


@pytest.mark.parametrize("row", rows("positions"), ids=lambda row: row["fen"])
def test_recorded_threats(row):
    assert threatened(row["fen"], "w") == row["threatened_by_white"]
    assert threatened(row["fen"], "b") == row["threatened_by_black"]


@pytest.mark.parametrize("row", [row for row in rows("rules") if "threatened_white" in row], ids=lambda row: row["id"])
def test_threats_at_the_end_of_a_line(row):
    fen = " ".join(Game(row["fen"], row["moves"]).fen().split()[:4])
    assert (threatened(fen, "w"), threatened(fen, "b")) == (row["threatened_white"], row["threatened_black"])


def turned(text: str) -> str:
    """Squares of a move or a square name with the ranks flipped."""
    return "".join(str(9 - int(letter)) if letter.isdigit() else letter for letter in text)


def mirrored(text: str) -> str:
    return "".join(letter if letter.isdigit() else "ihgfedcba"["abcdefghi".index(letter)] for letter in text)


@pytest.mark.parametrize("row", rows("rules"), ids=lambda row: row["id"])
def test_neither_colour_nor_wing_matters(row):
    expected = as_tuple(adjudicate(row["fen"], row["moves"], row["ply"]))
    placement, side, *rest = row["fen"].split()
    flipped = "/".join(reversed(placement.split("/"))).swapcase()
    fen = " ".join([flipped, "b" if side == "w" else "w", *rest])
    verdict = as_tuple(adjudicate(fen, map(turned, row["moves"]), row["ply"]))
    assert verdict == (*expected[:4], tuple(sorted(map(turned, expected[4]))))
    fen = " ".join(["/".join(rank[::-1] for rank in placement.split("/")), side, *rest])
    verdict = as_tuple(adjudicate(fen, map(mirrored, row["moves"]), row["ply"]))
    assert verdict == (*expected[:4], tuple(sorted(map(mirrored, expected[4]))))


def shuffling_line(fen: str, begun: list[str], rng: random.Random, plies: int) -> list[str]:
    """A random line in which each side likes to take its last move back, or to play it once more."""
    game = Game(fen, begun)
    played = list(begun)
    for _ in range(plies):
        moves = game.legal_move_texts()
        if not moves:
            break
        back = played[-2][2:] + played[-2][:2] if len(played) > 1 else None
        again = played[-4] if len(played) > 3 else None
        choice = rng.random()
        if back in moves and choice < 0.55:
            move = back
        elif again in moves and choice < 0.8:
            move = again
        else:
            quiet = [m for m in moves if game.position["board"][0][_square(m[2:])] == 32]
            move = rng.choice(quiet or moves)
        game.play(move)
        played.append(move)
    return played


def _square(name: str) -> int:
    return int(name[1]) * 9 + "abcdefghi".index(name[0])


def assert_equals_twin(seed: int, lines: int) -> Counter:
    rng = random.Random(seed)
    recorded = [row for row in rows("rules") if len(row["moves"]) < 40]
    fens = all_fens()
    kinds: Counter = Counter()
    for _ in range(lines):
        if rng.random() < 0.6:
            row = rng.choice(recorded)
            fen, begun = row["fen"], row["moves"][: rng.randint(2, len(row["moves"]) + 2)]
        else:
            fen, begun = rng.choice(fens), []
        moves = shuffling_line(fen, begun, rng, rng.choice((0, 1, 2, 4, 8, 16)))
        ply = rng.choice((0, 0, 1, len(moves), len(moves) // 2))
        found = as_tuple(adjudicate(fen, moves, ply))
        assert found == twin.adjudicate(fen, moves, ply), (fen, moves, ply)
        kinds[found[3], found[1]] += 1
    return kinds


def test_equals_the_plain_twin():
    kinds = assert_equals_twin(seed=51, lines=400)
    assert {kind for kind, _ in kinds} >= {"none", "repetition", "perpetual-check", "perpetual-chase"}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(52, 62))
def test_equals_the_plain_twin_for_long(seed):
    kinds = assert_equals_twin(seed, lines=2000)
    assert sum(kinds.values()) == 2000
    assert not all(final for _, final in kinds)


def test_threats_equal_the_plain_twin():
    count = 0
    for game in random_walk(seed=63, count=800):
        fen = " ".join(game.fen().split()[:4])
        board, _ = rules.parse(fen)
        for color in "wb":
            expected = sorted(map(rules.name, twin.threat_set(board, color == "w")))
            assert threatened(fen, color) == expected, fen
            count += len(expected)
    assert count > 500


def test_the_position_survives_the_judgement():
    """Walking back a span takes the moves back and plays them again."""
    row = next(row for row in rows("rules") if row["kind"] == "perpetual-chase" and row["final"])
    game = Game(row["fen"], row["moves"])
    before = game.fen(), game.key, game.legal_move_texts()
    assert judge_game(game, row["ply"]).kind == "perpetual-chase"
    assert (game.fen(), game.key, game.legal_move_texts()) == before


def test_a_very_long_game_is_judged_by_its_end():
    """Longer than the line that is kept: the older half goes, and the repetition is still seen."""
    game = Game("4k4/9/9/9/9/9/9/9/3R5/5K3 w - - 0 1")
    cycle = ["d1d2", "e9e8", "d2d1", "e8e9"]
    for i in range(HISTORY_LENGTH + 7):
        game.play(cycle[i % 4])
    assert len(game.moves) == HISTORY_LENGTH + 7
    assert game.last < HISTORY_LENGTH
    assert game.counters["since_pass"][0] <= game.last, "the look-back must end where the line does"
    assert game.past_keys[-4] == game.key
    assert judge_game(game).kind == "repetition"


def test_refusals():
    with pytest.raises(PositionError, match="side is 'x'"):
        threatened("3k5/9/9/9/9/9/9/9/9/4K4 w", "x")
    with pytest.raises(PositionError, match="not legal"):
        adjudicate("3k5/9/9/9/9/9/9/9/9/4K4 w", ["e0e5"])
    assert parse_fen("3k5/9/9/9/9/9/9/9/9/4K4 w").rule60 == 0
