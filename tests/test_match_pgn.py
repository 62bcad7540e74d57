"""Games of a match as PGN, read back by a parser that knows nothing of the writer."""

import json
import random
import re
import sys

import pytest

from experiments import pgn
from experiments.game_record import GameRecord
from experiments.pgn import PgnError, PgnFile, game_text
from experiments.play import ENGINE_FAILURE, ILLEGAL_MOVE, TIME_FORFEIT
from games.xiangqi import START_FEN, Game
from games.xiangqi.geometry import move_text
from tests.support.games import play_random_moves
from tests.support.match_records import game_record

SETTINGS = {"engines": [{"name": "new", "time": None}, {"name": "old", "time": None}], "time": "100"}
BLACK_FEN = "rnbakabnr/9/1c5c1/p1p1p1p1p/9/9/P1P1P1P1P/1C2C4/9/RNBAKABNR b - - 1 7"


def parse_games(text: str) -> list[tuple[dict[str, str], list[str]]]:
    """Tags and UCI moves of every game; an assertion fails where the text is no PGN."""
    games = []
    for tag_text, movetext in re.findall(r"((?:\[.*\]\n)+)\n((?:[^\[\n].*\n)+)\n", text):
        tags = {name: re.sub(r"\\(.)", r"\1", value) for name, value in re.findall(r'\[(\w+) "(.*)"\]\n', tag_text)}
        *words, result = movetext.split()
        assert result == tags["Result"]
        games.append((tags, _parse_moves(words, *tags.get("FEN", START_FEN).split()[1::4])))
    assert len(games) == text.count("[Game ") == text.count("\n\n") / 2
    return games


def _parse_moves(words: list[str], side: str, number: str) -> list[str]:
    """Moves whose numbers are right."""
    moves, expected = [], [f"{number}..."] if side == "b" else []
    full_move, black = int(number), side == "b"
    for word in words:
        if re.fullmatch(r"[A-I]\d-[A-I]\d", word):
            if not black:
                expected.append(f"{full_move}.")
            full_move, black = full_move + black, not black
            moves.append(word.replace("-", "").lower())
    assert [word for word in words if "." in word] == expected
    return moves


def played_record(game: int, fen: str, plies: int, **fields) -> GameRecord:
    """A record of random moves."""
    *_, last = play_random_moves(Game(fen), random.Random(game), plies)
    moves = " ".join(map(move_text, last.moves))
    return game_record(game, "1/2-1/2", "length limit", fen=fen, moves=moves, plies=plies, **fields)


@pytest.mark.parametrize(("fen", "plies"), [(START_FEN, 61), (START_FEN, 120), (BLACK_FEN, 30), (BLACK_FEN, 31)])
def test_moves_can_be_read_back_and_replayed(fen, plies):
    record = played_record(plies, fen, plies)
    text = game_text(record, SETTINGS)
    assert max(map(len, text.splitlines())) <= 80
    [(tags, moves)] = parse_games(text)
    assert " ".join(moves) == record.moves
    assert Game(tags.get("FEN", START_FEN), moves).fen() == Game(fen, record.moves.split()).fen()
    assert ("FEN" in tags) == ("SetUp" in tags) == (fen != START_FEN)


def test_the_first_moves_are_written_as_expected():
    text = game_text(game_record(0, "1-0"), SETTINGS)
    assert text.endswith("\n\n1. H2-E2 H9-G7 1-0\n\n")
    later = game_text(game_record(0, "1-0", fen=BLACK_FEN, moves="h9g7 h0g2"), SETTINGS)
    assert "\n7... H9-G7 8. H0-G2 1-0\n" in later


def test_tags_tell_players_round_date_and_time():
    [(tags, _)] = parse_games(game_text(game_record(5, "0-1", started="2026-01-31T12:00:00Z"), SETTINGS))
    assert tags == {
        "Game": "Chinese Chess",
        "Event": "new vs old",
        "Site": "?",
        "Date": "2026.01.31",
        "Round": "3.2",
        "White": "old",
        "Red": "old",
        "Black": "new",
        "Result": "0-1",
        "Format": "ICCS",
        "Termination": "normal",
        "TerminationDetails": "checkmate",
        "TimeControl": "0.1/move",
    }
    assert parse_games(game_text(game_record(5, "0-1"), SETTINGS))[0][0]["Date"] == "????.??.??"


@pytest.mark.parametrize(
    ("reason", "termination"),
    [
        ("repetition", "normal"),
        (TIME_FORFEIT, "time forfeit"),
        (ILLEGAL_MOVE, "rules infraction"),
        (ENGINE_FAILURE, "abandoned"),
        ("adjudicated draw", "adjudication"),
        ("adjudicated win", "adjudication"),
        ("length limit", "adjudication"),
    ],
)
def test_terminations_are_said_in_the_words_of_pgn(reason, termination):
    [(tags, _)] = parse_games(game_text(game_record(0, "1-0", reason), SETTINGS))
    assert (tags["Termination"], tags["TerminationDetails"]) == (termination, reason)


def test_engines_with_different_times_have_a_tag_each():
    settings = {"engines": [{"name": "new", "time": "60000+500"}, {"name": "old", "time": None}], "time": "50"}
    [(tags, _)] = parse_games(game_text(game_record(1, "1-0"), settings))
    assert (tags["WhiteTimeControl"], tags["BlackTimeControl"]) == ("0.05/move", "60+0.5")
    assert "TimeControl" not in tags


def test_quotes_in_names_are_escaped():
    name = 'the "new" \\ one'
    settings = {"engines": [{"name": name, "time": None}, {"name": "old", "time": None}], "time": "50"}
    record = GameRecord(0, 0, "1/0", name, "old", "1-0", "checkmate", 2, 2, {}, "h2e2 h9g7")
    assert parse_games(game_text(record, settings))[0][0]["White"] == name


RECORDS = [game_record(0, "1-0"), game_record(1, "0-1"), game_record(2, "1/2-1/2", "repetition")]
WHOLE = "".join(game_text(record, SETTINGS) for record in RECORDS)


def test_a_file_grows_by_whole_games(tmp_path):
    path = tmp_path / "games.pgn"
    file = PgnFile(path, SETTINGS, [])
    for count, record in enumerate(RECORDS, 1):
        file.add(record)
        assert len(parse_games(path.read_text())) == count
    assert path.read_text() == WHOLE


@pytest.mark.parametrize("length", [0, 1, len(game_text(RECORDS[0], SETTINGS)), len(WHOLE) - 20, len(WHOLE)])
def test_a_file_that_was_cut_short_is_completed(tmp_path, length):
    path = tmp_path / "games.pgn"
    path.write_text(WHOLE[:length])
    PgnFile(path, SETTINGS, RECORDS)
    assert path.read_text() == WHOLE


def test_a_file_with_other_games_is_left_alone(tmp_path):
    path = tmp_path / "games.pgn"
    path.write_text(WHOLE)
    with pytest.raises(PgnError, match="does not hold the games of this match's log"):
        PgnFile(path, SETTINGS, RECORDS[1:])
    assert path.read_text() == WHOLE


def test_a_log_can_be_turned_into_pgn_afterwards(tmp_path, monkeypatch, capsys):
    log = tmp_path / "match.jsonl"
    lines = [{"match": SETTINGS}, *map(vars, RECORDS)]
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines) + '{"game": 3, "pa')
    monkeypatch.setattr(sys, "argv", ["pgn", str(log)])
    assert pgn.main() == 0
    assert capsys.readouterr().out == WHOLE
