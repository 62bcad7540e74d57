"""Games under the engine classes of cchess, a library for xiangqi: UciEngine, UcciEngine, and their EngineManager.

They start one executable file in its own folder, send `uci` or `ucci`, and wait 10 s for `uciok` or `ucciok`; there
is no `isready`, and no limit to the time of an answer, so a first start goes unnoticed. Lines end in CR and LF. The
position is `position fen F`, without moves, so the engine knows nothing of repetitions; the library's boards write
FENs of two fields or, on request, of six. `setoption name N value V` follows the handshake, under both protocols.

Info lines are read word by word as keys and values, a mate as `mate`, anything else as `score`. The game is over at
`bestmove (none)` or `nobestmove`.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import cchess
import pytest

from games.xiangqi import Game
from games.xiangqi.geometry import WHITE
from tests.clients.common import (
    DEPTH_OF_WIN,
    MATED,
    NO_MOVE,
    TIMEOUT_S,
    WON_ENDGAME,
    exit_status,
    play_game,
    play_random_movers,
    short_fen,
)

POLL_S = 0.002
PROTOCOLS = pytest.mark.parametrize("protocol", [cchess.UciEngine, cchess.UcciEngine], ids=["uci", "ucci"])


@contextmanager
def ending_with_quit(engine: cchess.UciEngine) -> Iterator[cchess.UciEngine]:
    """A loaded engine that is made to quit at the end; what the class leaves open is closed."""
    try:
        yield engine
    finally:
        engine.running = False  # its thread would go on reading at the end of the pipe
        engine.quit()
        status = exit_status(engine.process)
        engine.join(TIMEOUT_S)
        engine.pin.close()
        engine.pout.close()
    assert status == 0


@contextmanager
def started(protocol: type[cchess.UciEngine], path: str) -> Iterator[cchess.UciEngine]:
    engine = protocol()
    assert engine.load(path)
    with ending_with_quit(engine):
        assert engine.wait_for_ready()
        yield engine


def ask(engine: cchess.UciEngine, fen: str, **limits) -> tuple[dict, list[dict]]:
    """(what the engine did, what it said before) as the class tells it."""
    engine.go_from(fen, limits)
    said = []
    while True:
        action = engine.get_action()
        if action is None:
            time.sleep(POLL_S)
        elif action["action"] in ("bestmove", "dead", "draw"):
            return action, said
        else:
            said.append(action)


class Watched:
    """An engine as a player, on the library's own board."""

    def __init__(self, engine: cchess.UciEngine, **limits):
        self._engine = engine
        self._limits = limits
        self.complaints: list[str] = []

    def __call__(self, game: Game) -> str:
        board = cchess.ChessBoard(game.fen())
        assert board.to_fen() == short_fen(game)
        action, said = ask(self._engine, board.to_fen(), **self._limits)
        assert action["action"] == "bestmove"
        assert board.move_iccs(action["move"]) is not None
        lines = [info["moves"] for info in said if "moves" in info]
        assert lines[-1][0] == action["move"]
        assert "score" in action or "mate" in action
        words = [info["raw_msg"] for info in said if info["action"] == "info"]
        self.complaints += [line for line in words if not line.startswith("info string ") or "ERROR" in line]
        return action["move"]


@PROTOCOLS
def test_it_mates_random_movers(jaxfish, protocol):
    with started(protocol, jaxfish) as engine:
        player = Watched(engine, depth=4)
        assert NO_MOVE in play_random_movers(player, WHITE, games=3)
        assert player.complaints == []


def test_a_lost_position_is_dead(jaxfish):
    with started(cchess.UciEngine, jaxfish) as engine:
        assert cchess.ChessBoard(MATED).no_moves()
        assert ask(engine, MATED, depth=3)[0]["action"] == "dead"


@PROTOCOLS
def test_it_plays_against_itself(jaxfish, protocol):
    with started(protocol, jaxfish) as engine:
        player = Watched(engine, movetime=10) if protocol is cchess.UciEngine else Watched(engine, depth=2)
        game, ending = play_game(player, player)
        assert (ask(engine, short_fen(game), depth=1)[0]["action"] == "dead") == (ending == NO_MOVE)
        assert player.complaints == []


@PROTOCOLS
def test_it_introduces_itself(jaxfish, protocol):
    with started(protocol, jaxfish) as engine:
        assert engine.ids["name"].startswith("jaxfish ")
        assert engine.ids["author"] == "the jaxfish developers"
        assert any("Threads" in line for line in engine.options)


def test_the_manager_plays_out_a_mate(jaxfish, capsys):
    """Options that we do not have are refused with a sentence each, and the game is on."""
    manager = cchess.EngineManager(cchess.FenCache())
    options = {"Hash": 32, "Threads": 1, "Skill Level": 20, "MultiPV": 1}
    loaded = manager.load_uci(jaxfish, options, {"depth": DEPTH_OF_WIN})
    with ending_with_quit(manager.engine):
        assert loaded
        game = Game(WON_ENDGAME)
        scores = []
        while (action := manager.run_engine(short_fen(game)))["action"] == "bestmove":
            game.play(action["move"])
            scores.append(action["score"])
        assert game.legal_moves() == []
        # Of the position after the move, from the side of whoever is to move there: 30000 less the moves to the mate.
        assert scores[-3:] == [-29998, 29999, -29999]
    assert "bestmove (none)" in capsys.readouterr().out
