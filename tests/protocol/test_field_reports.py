"""What users of other engines reported, and that it is not so here.

The numbers are those of the reports' list. REPORTS tells where each is tested; what fits nowhere else is tested below.
"""

import importlib
import random
import re
import string
import time

import pytest

from games.xiangqi import START_FEN, Game, PositionError
from games.xiangqi.geometry import move_text
from tests.support import scenes
from tests.support.golden import all_fens

SOON_S = 30

# Number of a report -> the tests that would fail if it came true, as module.function or module.Class.function.
REPORTS = {
    "A1 compiles before it answers": [
        "protocol.test_handshake.test_the_handshake_does_not_wait_for_the_engine",
        "protocol.test_handshake.test_a_first_start_compiles_once",
    ],
    "A2 no answer to isready": ["protocol.test_handshake.test_a_start_with_compiled_kernels_is_short"],
    "A3 loading within the first go": ["protocol.test_handshake.test_nothing_is_left_to_load_after_isready"],
    "A4 a network times out isready": ["protocol.test_networks.test_a_network_of_known_shape_compiles_nothing"],
    "A5 a move that stays in a buffer": ["protocol.test_handshake.test_lines_are_flushed_without_help"],
    "A6 lines within lines": ["protocol.test_searching.TestReady.test_500_are_answered_within_50_ms_and_whole"],
    "A7 plain error text": ["protocol.test_errors.test_a_critical_error_is_named_and_survived"],
    "A8 no UCI_Variant": ["protocol.test_handshake.test_common_host_options_are_listed"],
    "A9 older spellings": ["protocol.test_dialects.test_positions_without_the_word"],
    "A10 no Move Overhead": ["protocol.test_handshake.test_common_host_options_are_listed"],
    "B11 runs on without input": ["protocol.test_handshake.test_the_end_of_input_during_loading_leaves"],
    "B12 outlives its host": ["protocol.test_searching.TestEnd.test_the_end_of_input_brings_the_move"],
    "B13 infinite ends by itself": [
        "protocol.test_searching.TestInfinite.test_a_mate_or_a_single_move_waits",
        "protocol.test_searching.TestInfinite.test_waiting_takes_no_processor_time",
    ],
    "B14 a mate ends infinite and ponder": [
        "protocol.test_searching.TestInfinite.test_a_mate_or_a_single_move_waits",
        "protocol.test_searching.TestPonder.test_mates_and_single_moves_wait",
    ],
    "B15 no legal move": ["protocol.test_output.test_a_lost_root_has_no_move"],
    "B18 isready ignored while searching": ["protocol.test_searching.TestReady.test_is_answered_during_a_search"],
    "B20 Ctrl-C ignored": ["protocol.test_one_shot.test_an_interrupt_ends_a_session_quietly"],
    "C21 a bad FEN crashes": ["protocol.test_field_reports.test_mutated_fens_are_read_or_refused"],
    "C22 no king": ["protocol.test_errors.test_a_critical_error_is_named_and_survived", "test_fen.test_missing_king"],
    "C23 more than 32 pieces": ["test_fen.test_more_pieces_than_identities"],
    "C25 a go within the moves": ["protocol.test_errors.test_a_critical_error_is_named_and_survived"],
    "C27 position during a search": [
        "protocol.test_searching.TestPosition.test_a_position_does_not_disturb_the_search"
    ],
    "D28 perpetual check seen late": [
        "test_search_repetition.test_a_win_by_repetition_is_claimed",
        "protocol.test_field_reports.test_perpetual_check_has_lost",
    ],
    "D29 a chase by discovered attack": ["test_judge.test_recorded_verdicts"],
    "D31 who chases whom": ["test_judge.test_recorded_verdicts", "test_judge.test_equals_the_plain_twin"],
    "D32 the losing repetition is played": ["test_search_repetition.test_a_forbidden_repetition_is_avoided"],
    "D33 a quiet shuffle is a draw": ["protocol.test_field_reports.test_a_quiet_shuffle_is_a_draw"],
    "E36 mate with several lines": ["protocol.test_go_limits.TestMate.test_counts_for_the_first_of_several_lines"],
    "E37 fewer lines, illegal lines": [
        "protocol.test_output.test_there_are_no_more_lines_than_moves",
        "protocol.test_output.test_variations_moves_and_replies_are_legal",
        "protocol.test_go_limits.TestSearchmoves.test_with_several_lines",
    ],
    "E39 all time before the control": [
        "protocol.test_go_limits.TestClock.test_the_last_move_before_the_control_keeps_the_overhead"
    ],
    "E41 time of a depth": ["protocol.test_output.test_numbers_are_sound"],
    "E42 the same search twice": [
        "protocol.test_go_limits.TestNodes.test_repeats_exactly",
        "protocol.test_bench.test_the_node_total_repeats",
    ],
    "E43 movetime with many threads": ["protocol.test_field_reports.test_movetime_is_kept_by_many_threads"],
    "F44 broken networks": ["protocol.test_networks.test_a_broken_file_leaves_the_network_in_use"],
    "F47 threads that are not used": ["protocol.test_output.test_a_search_begins_with_what_it_runs_on"],
}


@pytest.mark.parametrize("report", REPORTS)
def test_every_report_has_a_test(report):
    for name in REPORTS[report]:
        path = name.split(".")
        is_package = path[0] == "protocol"
        found = importlib.import_module(".".join(["tests", *path[: 1 + is_package]]))
        for part in path[1 + is_package :]:
            found = getattr(found, part)
        assert callable(found)


def mutated_fen(rng: random.Random) -> str:
    letters = list(rng.choice(all_fens()))
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(letters))
        what = rng.randrange(4)
        if what == 0:
            del letters[at]
        elif what == 1:
            letters.insert(at, rng.choice("rnbakcpRNBAKCP0123456789/ wb-"))
        elif what == 2:
            letters[at] = rng.choice(string.printable.strip() + "走")
        else:
            other = rng.randrange(len(letters))
            letters[at], letters[other] = letters[other], letters[at]
    return "".join(letters)


def test_mutated_fens_are_read_or_refused(engine):
    """C21: with one sentence each, and the position before them stays."""
    rng = random.Random(21)
    engine.send("setoption name Survive Errors value true")
    engine.ask("position startpos")
    expected = START_FEN
    for fen in ["foobar", "startpos", *(mutated_fen(rng) for _ in range(200))]:
        if "moves" in fen:
            continue
        lines = engine.ask(f"position fen {fen}", "d")
        try:
            expected = Game(fen).fen()
            assert not [line for line in lines if line.startswith("info string")]
        except PositionError:
            assert sum(line.startswith("info string CRITICAL ERROR") for line in lines) == 1
        assert f"Fen: {expected}" in lines
    assert engine.search("go depth 2").best_move in Game(expected).legal_move_texts()


def test_twenty_errors_are_all_of_the_protocol(engine):
    """A7: XBoard stumbled over plain text; the grammar is checked when the engine is given back."""
    engine.ask("setoption name Survive Errors value true")
    for number in range(20):
        lines = engine.ask(rng_error(number))
        assert next(line for line in lines if line).startswith("info string ")


def rng_error(number: int) -> str:
    kinds = (
        "nonsense {}",
        "position fen {}",
        "position startpos moves {}",
        "go depth x{}",
        "setoption name N{} value 1",
    )
    return kinds[number % len(kinds)].format(number)


def test_perpetual_check_has_lost(engine):
    """D28: who has checked all the time loses; the other side, to move, has won at once."""
    start = "4k4/8R/9/9/9/9/9/9/9/3K5 w - - 0 1"
    moves = ["i8i9", "e9e8", "i9i8", "e8e9"] * 2
    lines = engine.ask(f"position fen {start} moves {' '.join(moves)}", "d")
    assert "Verdict: loss (perpetual-check)" in lines
    engine.send(f"position fen {start} moves {' '.join(moves[:-1])}")
    searched = engine.search("go depth 5")
    assert searched.best_move == "e8e9"
    assert searched.infos[-1].mate == 1


def test_a_quiet_shuffle_is_a_draw(engine):
    """D33."""
    moves = [*scenes.SHUFFLE * 2]
    lines = engine.ask(f"position startpos moves {' '.join(moves)}", "d")
    assert any(line.startswith("Verdict: draw (repetition") for line in lines)
    engine.send(f"position startpos moves {' '.join(moves[:-1])}")
    assert engine.search("go depth 4 searchmoves c7b9").infos[-1].cp == 0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_movetime_is_kept_by_many_threads(engine):
    """E43: four threads on each of two processors; a machine that is busy may be late now and then."""
    engine.send("setoption name Threads value 8")
    fens = all_fens()[:100]
    late = 0
    for fen in fens:
        engine.send(f"position fen {fen}")
        late += engine.search("go movetime 300").elapsed_s > 0.45
    assert late <= 2


def test_the_processors_in_use_are_told(engine):
    """F47."""
    strings = engine.search("go depth 1").strings
    assert re.fullmatch(r"Available processors: [0-9,:-]+", strings[0])


@pytest.mark.slow
def test_a_minute_of_a_hasty_gui(engine):
    """C25: stop, position and go without end, as an app for telephones sends them."""
    rng = random.Random(25)
    game = Game()
    began_s = time.monotonic()
    while time.monotonic() - began_s < 60:
        moves = " ".join(map(move_text, game.moves))
        engine.send("stop", f"position fen {START_FEN} moves {moves}" if moves else f"position fen {START_FEN}")
        engine.send(rng.choice(["go infinite", "go movetime 20", "go ponder wtime 1000 btime 1000", "go depth 3"]))
        time.sleep(rng.random() * 0.05)
        engine.send("stop")
        best = engine.searched(SOON_S).best_move
        assert best in game.legal_move_texts()
        game.play(best)
        if not game.legal_moves() or game.game_ply > 150:
            game = Game()
