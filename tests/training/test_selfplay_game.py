"""Games of self-play: legal, reproducible, ended by the rules, and with the right things kept of them."""

from collections.abc import Iterator

import numpy as np
import pytest

from experiments.selfplay_game import ENDS, GameSettings, OpeningError, PlayedGame, SelfPlayer
from games.xiangqi import Game
from games.xiangqi.geometry import EMPTY, MOVE_SHIFT, move_text
from games.xiangqi.judge import KINDS_OF_VERDICT
from games.xiangqi.repetition import judge_game
from nnue_jax.network_file import Network
from nnue_jax.training.records import RECORD
from search.limits import Limits
from tests.support.networks import bootstrap_network

NODES = 150
SEED = 5
GAMES = 60

# Drawn by length, decided by the smallest of leads, without random moves, with many.
VARIANTS = {
    "plain": GameSettings(NODES),
    "short": GameSettings(NODES, max_plies=14),
    "decided": GameSettings(NODES, decided_score=60, decided_plies=3),
    "best moves only": GameSettings(NODES, random_per_mille=0),
    "random": GameSettings(40, random_per_mille=1000, random_max_ply=1000, decided_score=31000),
}


@pytest.fixture(scope="session")
def network() -> Network:
    """One that does not change: how its games end is known."""
    return bootstrap_network()


@pytest.fixture(scope="module")
def games(network) -> dict[str, list[PlayedGame]]:
    """The first games of every variant."""
    players = {name: SelfPlayer(network, settings, SEED) for name, settings in VARIANTS.items()}
    return {name: [player.play(number) for number in range(GAMES)] for name, player in players.items()}


@pytest.fixture(params=VARIANTS)
def variant(request) -> str:
    return request.param


def replay(game: PlayedGame) -> Iterator[Game]:
    """The same Game object before the first move and after each; every move is checked for legality."""
    played = Game()
    yield played
    for move in game.moves:
        played.play(move_text(move))
        yield played


def test_same_game_whatever_was_played_before(network, games):
    """Forwards and backwards, by two players, and the same game twice running."""
    player = SelfPlayer(network, VARIANTS["plain"], SEED)
    for number in np.repeat(range(GAMES - 1, 0, -6), 2).tolist():
        again, before = player.play(number), games["plain"][number]
        assert again.records.tobytes() == before.records.tobytes()
        assert (again.moves, again.end, again.nodes) == (before.moves, before.end, before.nodes)


def test_other_numbers_and_seeds_are_other_games(network, games):
    other = SelfPlayer(network, VARIANTS["plain"], SEED + 1)
    moves = [tuple(game.moves) for game in games["plain"]] + [tuple(other.play(number).moves) for number in range(5)]
    assert len(set(moves)) == GAMES + 5


def test_moves_are_legal_and_games_end_where_the_rules_say(games, variant):
    for game in games[variant]:
        for played in replay(game):
            if len(played.moves) < len(game.moves):
                assert played.legal_moves()
                assert judge_game(played).result == "none"
        check_end(game, played, VARIANTS[variant])


def check_end(game: PlayedGame, played: Game, settings: GameSettings) -> None:
    """That the end and the result are right; `played` is the final position."""
    mover_result = game.white_result if played.side == 0 else -game.white_result
    has_moves = bool(played.legal_moves())
    if game.end == "no-move":
        assert not has_moves
        assert mover_result == -1
        return
    verdict = judge_game(played)
    if game.end in KINDS_OF_VERDICT:
        assert game.end == verdict.kind
        assert mover_result == {"win": 1, "draw": 0, "loss": -1}[verdict.result]
        return
    assert has_moves
    assert verdict.result == "none"
    if game.end == "length":
        assert len(game.moves) == settings.max_plies
        assert game.white_result == 0
    else:
        assert game.end in ("mate", "decided")
        assert game.white_result != 0


def test_ends_are_all_met(games):
    """So that the test above means something."""
    ends = {name: {game.end for game in played} for name, played in games.items()}
    met = set().union(*ends.values())
    assert {"no-move", "mate", "decided", "length", "repetition", "rule60"} <= met <= set(ENDS)
    results = {game.white_result for game in games["plain"]}
    assert results == {-1, 0, 1}


def test_mates_are_mates(games, engine):
    """Another search finds them, for the side that has won."""
    mates = [game for game in games["plain"] if game.end == "mate"]
    assert len(mates) >= 5
    for game in mates[:8]:
        *_, played = replay(game)
        engine.set_position(played)
        score = engine.go(Limits(nodes=100_000)).wait().report.score
        assert score.is_mate
        assert (score.mate_plies > 0) == ((played.side == 0) == (game.white_result == 1))


def test_decided_games_were_decided(games):
    """Whatever was kept of the last plies is from the winner's side far ahead."""
    seen = 0
    for game in games["decided"]:
        if game.end != "decided":
            continue
        last = game.records[game.records["ply"] > len(game.moves) - 3]
        side = np.where(last["packed"]["side"] == 0, 1, -1)
        assert (last["score"] * side * game.white_result > 60).all()
        seen += len(last)
    assert seen > 10


def test_records_are_the_positions_of_the_game(games, variant):
    for game in games[variant]:
        assert game.records.dtype == RECORD
        records = iter(game.records)
        record = next(records, None)
        for ply, played in enumerate(replay(game)):
            if record is not None and record["ply"] == ply:
                assert record["packed"]["square_of"].tolist() == played.position["square_of"][0, :32].tolist()
                assert record["packed"]["side"] == played.side
                assert record["packed"]["rule60"] == played.rule60
                assert record["packed"]["in_check"] == played.in_check
                record = next(records, None)
        assert record is None


def test_results_from_both_sides(games, variant):
    for game in games[variant]:
        white = game.records["packed"]["side"] == 0
        assert (game.records["result"][white] == game.white_result).all()
        assert (game.records["result"][~white] == -game.white_result).all()
        assert (white == (game.records["ply"] % 2 == 0)).all()


def test_only_quiet_positions_are_kept(games, variant):
    settings = VARIANTS[variant]
    for game in games[variant]:
        assert (np.abs(game.records["score"]) <= settings.kept_max_score).all()
        assert (game.records["depth"] > 0).all()
        assert not game.records["packed"]["in_check"].any()
        plies = set(game.records["ply"].tolist())
        assert not any(played.in_check for ply, played in enumerate(replay(game)) if ply in plies)


def test_positions_with_a_capture_as_the_best_move_are_not_kept(games):
    """Without random moves, the move played is the best move."""
    captures = kept = 0
    for game in games["best moves only"]:
        plies = set(game.records["ply"].tolist())
        for (ply, move), played in zip(enumerate(game.moves), replay(game), strict=False):
            is_capture = played.position["board"][0, move >> MOVE_SHIFT] != EMPTY
            captures += is_capture
            kept += ply in plies
            assert not (is_capture and ply in plies)
    assert captures > 50
    assert kept > 500


def test_limit_of_kept_scores(network):
    player = SelfPlayer(network, GameSettings(NODES, kept_max_score=40), SEED)
    scores = np.concatenate([player.play(number).records["score"] for number in range(5)])
    assert len(scores) > 0
    assert np.abs(scores).max() <= 40


def test_openings_are_balanced(network):
    """A position after the opening that was kept has a score within the limit; some openings are refused."""
    player = SelfPlayer(network, GameSettings(NODES, 9, 9, opening_max_score=30), SEED)
    games = [player.play(number) for number in range(20)]
    firsts = [game.records[0] for game in games if len(game.records) and game.records["ply"][0] == 9]
    assert len(firsts) > 5
    assert all(abs(int(record["score"])) <= 30 for record in firsts)
    assert sum(game.openings for game in games) > 40
    assert all(game.records["ply"].min() >= 9 for game in games)
    assert len({tuple(game.moves[:9]) for game in games}) == 20


def test_openings_have_all_lengths(games):
    """Eight to ten random plies; a record of the first searched position tells."""
    assert {8, 9, 10} <= {int(game.records["ply"][0]) for game in games["plain"]}


def test_counts(games):
    for game in games["plain"]:
        assert game.searches >= len(game.records)
        assert game.nodes <= game.searches * (NODES + 1)
        assert game.depths >= game.searches


def test_searches_that_are_too_short(network):
    with pytest.raises(OpeningError, match="Game 3 found no balanced opening in 1000 tries"):
        SelfPlayer(network, GameSettings(nodes=5), SEED).play(3)


@pytest.mark.parametrize(
    "wrong",
    [{"nodes": 0}, {"opening_min_plies": 11}, {"max_plies": 10}, {"max_plies": 1024}, {"opening_min_plies": -1}],
)
def test_wrong_settings(wrong):
    with pytest.raises(ValueError, match=r"nodes|plies"):
        GameSettings(**wrong)
