"""Games under the engine class of pikafish-terminal, a program to play against Pikafish in a terminal.

It starts one executable file, waits 15 s for `uciok`, sends options without looking at the list, and `isready`.
Its patience with `readyok` ends after 10 s, but it looks at the clock only after a second without a line: with a
sign of life more often than that it waits for any first start. Positions are `position fen F moves ...`, with a FEN
of two fields.

Legal moves come from `go perft 1`, the end of the game from `bestmove (none)`, hints from `MultiPV`.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pikafish_terminal.board import INITIAL_FEN, XiangqiBoard
from pikafish_terminal.config import get_config
from pikafish_terminal.difficulty import DifficultyLevel
from pikafish_terminal.engine import PikafishEngine
from pikafish_terminal.game import play

from games.xiangqi import Game
from games.xiangqi.geometry import BLACK, WHITE
from tests.clients.common import (
    DEPTH_OF_WIN,
    NO_MOVE,
    TIMEOUT_S,
    WON_ENDGAME,
    exit_status,
    move_texts,
    play_game,
    random_player,
    short_fen,
)

MATE_IN_ONE = "3k5/8R/9/9/9/9/9/9/9/R3K4 w"

# `quit` closes the pipe that a thread of its own may still be reading.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")


@contextmanager
def started(path: str, **settings) -> Iterator[PikafishEngine]:
    """An engine that is made to quit at the end, for which the class allows it a second."""
    engine = PikafishEngine(path, **settings)
    try:
        yield engine
    finally:
        engine.quit()
        status = ended(engine)
    assert status == 0, f"status {status}; after its second it is killed"


def ended(engine: PikafishEngine) -> int:
    """Exit status of an engine that is about to end; closes what the class leaves open."""
    status = exit_status(engine._proc)
    engine._reader_thread.join(TIMEOUT_S)
    for pipe in (engine._proc.stdin, engine._proc.stdout, engine._proc.stderr):
        pipe.close()
    return status


def asks(engine: PikafishEngine):
    """The engine as a player; the class leaves rules to it, and keeps a board to show."""

    def choose(game: Game) -> str:
        moves = move_texts(game)
        board = XiangqiBoard()
        for move in moves:
            board.push_move(move)
        assert board.board_to_fen() == short_fen(game)
        return engine.best_move(INITIAL_FEN, moves)

    return choose


@pytest.mark.parametrize("colour", [WHITE, BLACK])
def test_it_mates_a_random_mover(jaxfish, colour):
    with started(jaxfish, depth=4) as engine:
        engine.new_game()
        players = (asks(engine), random_player(seed=5))
        game, ending = play_game(*(players if colour == WHITE else players[::-1]))
        moves = move_texts(game)
        assert ending == NO_MOVE
        assert game.side != colour
        assert engine.is_game_over(INITIAL_FEN, moves)[0]
        assert not engine.is_game_over(INITIAL_FEN, moves[:-1])[0]


def test_it_plays_against_itself_on_time(jaxfish):
    level = DifficultyLevel("Short", "", depth=1, time_limit_ms=10)
    with started(jaxfish, difficulty=level) as engine:
        engine.new_game()
        game, ending = play_game(asks(engine), asks(engine))
        assert engine.is_game_over(INITIAL_FEN, move_texts(game))[0] == (ending == NO_MOVE)


def test_it_tells_legal_moves_from_others(jaxfish):
    moves = ["h2e2", "h9g7"]
    game = Game(moves=moves)
    with started(jaxfish) as engine:
        assert all(engine.is_move_legal(INITIAL_FEN, moves, move) for move in game.legal_move_texts())
        assert not any(engine.is_move_legal(INITIAL_FEN, moves, move) for move in ("h2e2", "a9a8", "a0a5", "e0f1"))


def test_it_gives_hints_and_scores(jaxfish, monkeypatch):
    settings = get_config()._config
    monkeypatch.setitem(settings["hints"], "time_limit_ms", 300)
    monkeypatch.setitem(settings["scoring"], "time_limit_ms", 300)
    with started(jaxfish) as engine:
        hints = engine.get_candidate_moves(INITIAL_FEN, ["h2e2"], max_moves=10)
        assert len({move for move, _ in hints}) == 10
        assert {move for move, _ in hints} <= set(Game(moves=["h2e2"]).legal_move_texts())
        assert engine.get_position_evaluation(MATE_IN_ONE, []) == 10000 - 1
        assert engine.get_position_evaluation(INITIAL_FEN, ["h2e2", "b7e7"]) < 9000


def test_it_takes_options_that_we_do_not_have(jaxfish):
    """They are refused with a sentence each, and the game is on."""
    level = DifficultyLevel("Odd", "", depth=2, uci_options={"Skill Level": 20, "Hash": 32, "UCI_Elo": "high"})
    with started(jaxfish, difficulty=level) as engine:
        assert engine.best_move(INITIAL_FEN, []) in Game().legal_move_texts()


def test_it_wins_a_won_endgame(jaxfish):
    with started(jaxfish, depth=DEPTH_OF_WIN) as engine:
        engine.new_game()

        def choose(game: Game) -> str:
            return engine.best_move(WON_ENDGAME, move_texts(game))

        game, ending = play_game(choose, choose, WON_ENDGAME)
        assert (ending, game.side) == (NO_MOVE, BLACK)
        assert engine.is_game_over(WON_ENDGAME, move_texts(game))[0]


def test_the_program_sends_the_moves_behind_the_position_that_they_led_to(jaxfish):
    """A fault of the program around the class.

    After h2e2 it sends the FEN that has the cannon on e2 already, and `moves h2e2` behind it. Pikafish used to skip
    illegal moves, and to play on from that FEN; today's ends with a critical error, and so do we.
    """
    board = XiangqiBoard()
    board.push_move("h2e2")
    engine = PikafishEngine(jaxfish, depth=1)
    engine._cmd(f"position fen {board.board_to_fen()} moves {' '.join(board.move_history)}")
    assert ended(engine) == 1
    lines = []
    while not engine._stdout_queue.empty():
        lines.append(engine._stdout_queue.get_nowait())
    (message,) = [line for line in lines if "CRITICAL ERROR" in line]
    assert "'h2e2' is not legal" in message


class MendedBoard(XiangqiBoard):
    """The program's board, telling the FEN that its moves begin from."""

    present: "MendedBoard"

    def __init__(self):
        super().__init__()
        MendedBoard.present = self

    def board_to_fen(self) -> str:
        return INITIAL_FEN


def test_the_program_plays_a_game_once_that_is_mended(jaxfish, monkeypatch, capsys):
    player = random_player(seed=7)

    def type_line(prompt: str = "") -> str:
        board = MendedBoard.present
        return board._convert_from_engine_format(player(Game(moves=board.move_history))) if prompt else "red"

    monkeypatch.setattr("builtins.input", type_line)
    monkeypatch.setattr("pikafish_terminal.game.XiangqiBoard", MendedBoard)
    monkeypatch.setitem(get_config()._config["game"], "show_score", False)
    play(jaxfish, difficulty=DifficultyLevel("Short", "", depth=4))
    assert "Game Over: No legal moves available" in capsys.readouterr().out
    game = Game(moves=MendedBoard.present.move_history)
    assert game.legal_moves() == []
    assert game.side == WHITE


@pytest.mark.slow
def test_it_waits_for_a_first_start(jaxfish, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXFISH_CACHE_DIR", str(tmp_path))
    with started(jaxfish, depth=1) as engine:
        assert engine.best_move(INITIAL_FEN, []) in Game().legal_move_texts()
