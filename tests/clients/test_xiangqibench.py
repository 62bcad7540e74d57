"""Games against the defender of xiangqibench, a benchmark that lets language models play out composed endgames.

Its engine class starts one executable file and sends `uci`, `setoption` EvalFile (only if it was told of a network
or finds `pikafish.nnue` beside the file), Threads and Hash, `isready`, and a search of depth 1. Before each search come
`ucinewgame`, `isready`, `position fen F` with six fields and no moves, and `isready` again: an answer that holds
CRITICAL ERROR, or an engine that has gone, means that the position is not supported, and the defender finds a move by
its own rules.

Every answer has to come within `start_timeout`, 20 s unless its caller says otherwise and regardless of signs of
life. A first start may take longer, so before it the command has to be run once, as the README says.

`close` sends `quit`, and a signal right behind it.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from xiangqibench.cases import load_case, load_cases
from xiangqibench.cli import main as xiangqibench_command
from xiangqibench.defender import PikafishDefender, PikafishEngine, UnsupportedPosition
from xiangqibench.llm import Completion
from xiangqibench.modes import get_mode
from xiangqibench.runner import play_trial

from games.xiangqi import Game
from games.xiangqi.geometry import BLACK
from tests.clients.common import DEPTH_OF_WIN, MATED, NO_MOVE, WON_ENDGAME, play_random_movers, short_fen

CASES = load_cases()
WON = ["xq_shi_qing_ya_qu_038", "xq_shi_qing_ya_qu_083", "xq_shi_qing_ya_qu_158"]
REFUSED = ["xq_jianghu_endgames_327", "xq_jianghu_endgames_084"]
PAWN_BEHIND_ITS_START = "3k5/9/9/9/9/9/9/P8/9/4K4 b"
# One that has gone before the second `isready` is not closed by the class.
AN_ENGINE_IS_FORGOTTEN = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def _no_network_from_outside(monkeypatch):
    monkeypatch.delenv("PIKAFISH_NNUE", raising=False)


@contextmanager
def started(path: str, **settings) -> Iterator[PikafishEngine]:
    with PikafishEngine(path=path, hash_mb=16, **settings) as engine:
        yield engine
        process = engine._process
    assert process.poll() is not None


class Challenger:
    """What the benchmark takes for a model: reads the position from the chat, and asks an engine."""

    name = "jaxfish"

    def __init__(self, engine: PikafishEngine):
        self._engine = engine

    def complete(self, messages) -> Completion:
        fen = re.findall(r"FEN: (\S+ [wb])", messages[-1]["content"])[-1]
        return Completion(f"```bash\nmove {self._engine.best_move(fen)}\n```")


@pytest.mark.parametrize("name", WON)
def test_an_endgame_is_won_against_the_defender(jaxfish, name):
    case = load_case(name)
    with started(jaxfish, depth=6) as engine, started(jaxfish, depth=DEPTH_OF_WIN) as challenger:
        defender = PikafishDefender(case.challenger, engine)
        summary, record = play_trial(case, get_mode("sighted"), Challenger(challenger), defender)
    assert (summary.outcome, summary.termination_reason, summary.status) == ("challenger_win", "checkmate", "pass")
    assert summary.defender["engine_id"].startswith("jaxfish ")
    turns = record["trajectory"]
    assert {turn["defender_backend"] for turn in turns if turn["player"] != case.challenger} == {"pikafish"}
    assert Game(case.fen, record["moves"]).legal_moves() == []


def test_the_defender_mates_random_movers(jaxfish):
    with started(jaxfish, depth=4) as engine:
        defender = PikafishDefender("red", engine, fallback_depth=1)

        def choose(game: Game) -> str:
            choice = defender.choose(short_fen(game))
            assert choice.backend == "pikafish"
            return choice.move

        assert NO_MOVE in play_random_movers(choose, BLACK, games=3)


def test_the_defender_has_no_move_when_mated(jaxfish):
    with started(jaxfish, depth=3) as engine:
        assert engine.best_move(MATED) is None
        assert PikafishDefender("red", engine, fallback_depth=1).choose(MATED).move is None


@AN_ENGINE_IS_FORGOTTEN
def test_the_endgames_are_understood(jaxfish):
    """But for two with a pawn on a square behind its first, which Pikafish refuses, too."""
    with started(jaxfish, depth=1) as engine:
        moves = {case.id: engine.best_move(case.fen) for case in CASES}
    assert [name for name, move in moves.items() if move is None] == REFUSED
    for case in CASES:
        assert moves[case.id] is None or moves[case.id] in Game(case.fen).legal_move_texts()


def test_an_analysis_tells_mate_line_and_depth(jaxfish):
    with started(jaxfish) as engine:
        analysis = engine.analyse(WON_ENDGAME, depth=DEPTH_OF_WIN)
    assert (analysis.score_mate, analysis.score_cp, analysis.depth) == (5, None, DEPTH_OF_WIN)
    assert analysis.bestmove == analysis.pv[0]
    Game(WON_ENDGAME, analysis.pv)


@AN_ENGINE_IS_FORGOTTEN
def test_a_position_that_we_refuse_is_left_to_the_defender_s_own_rules(jaxfish):
    with started(jaxfish, depth=3) as engine:
        with pytest.raises(UnsupportedPosition):
            engine.analyse(PAWN_BEHIND_ITS_START)
        choice = PikafishDefender("red", engine, fallback_depth=1).choose(PAWN_BEHIND_ITS_START)
        assert choice.backend == "rule"
        assert engine.best_move(CASES[0].fen) in Game(CASES[0].fen).legal_move_texts()


def test_the_doctor_finds_nothing_wrong(jaxfish, capsys):
    """Its settings are those of the benchmark, but for the depth."""
    assert xiangqibench_command(["doctor", "--engine-path", jaxfish, "--depth", "4"]) == 0
    assert "[ok]   Pikafish jaxfish " in capsys.readouterr().out
