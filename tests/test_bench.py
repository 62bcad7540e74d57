"""`bench`: its arguments, position files, every type of limit, and the totals."""

import re

import pytest

from games.xiangqi import START_FEN, Game
from uci.bench import BenchError, BenchSettings, parse_bench, run_bench
from uci.bench_positions import POSITIONS

MATE_IN_ONE = "3k5/8R/9/9/9/9/9/9/9/R3K4 w - - 0 1"
START_PERFT_3 = 79666


def never() -> bool:
    return False


class Bench:
    """Runs `bench` in this process, and keeps what it printed and which options it set."""

    def __init__(self, engine, capsys):
        self.engine = engine
        self.options: list[list[str]] = []
        self._capsys = capsys

    def run(self, arguments: str, is_stopped=never) -> None:
        run_bench(self.engine, arguments.split(), is_stopped, self.options.append, self._evaluation_lines)
        self.out, self.err = self._capsys.readouterr()

    @staticmethod
    def _evaluation_lines(game: Game) -> list[str]:
        return [f"evaluation of {game.fen()}"]

    @property
    def headings(self) -> list[str]:
        return re.findall(r"^\nPosition: (.*)$", self.err, re.MULTILINE)

    @property
    def node_total(self) -> int:
        return int(re.search(r"^Nodes searched  : (\d+)$", self.err, re.MULTILINE)[1])

    def info_nodes(self) -> list[int]:
        """The node count of the last info line before each `bestmove`."""
        searches = self.out.split("bestmove")[:-1]
        return [int(re.findall(r" nodes (\d+)", search)[-1]) for search in searches]


@pytest.fixture
def bench(engine, capsys) -> Bench:
    return Bench(engine, capsys)


@pytest.fixture
def position_file(tmp_path):
    def write(*lines: str) -> str:
        path = tmp_path / "positions.txt"
        path.write_text("".join(f"{line}\n" for line in lines))
        return str(path)

    return write


def test_what_is_missing_has_its_default():
    assert parse_bench([]) == BenchSettings(16, 1, 13, "default", "depth")
    assert parse_bench("64 2".split()) == BenchSettings(64, 2, 13, "default", "depth")
    assert parse_bench("8 1 500 my.fen movetime".split()) == BenchSettings(8, 1, 500, "my.fen", "movetime")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("0", ["'0'", "hash size"]),
        ("much", ["'much'", "hash size"]),
        ("16 -1", ["'-1'", "number of threads"]),
        ("16 1 0", ["'0'", "limit"]),
        ("16 1 ²", ["'²'", "limit"]),
        (f"16 1 {'9' * 5000}", ["limit"]),
        ("16 1 5 default speed", ["'speed'", "depth, perft, nodes, movetime, mate, eval"]),
        ("16 1 65 default perft", ["'65'", "64"]),
        ("16 1 5 default depth mixed", ["'mixed'", "too many"]),
    ],
)
def test_bad_arguments_are_named(arguments, words):
    with pytest.raises(BenchError) as failure:
        parse_bench(arguments.split())
    assert all(word in str(failure.value) for word in words)


def test_the_totals_are_those_of_the_last_lines(bench, position_file):
    file = position_file(START_FEN, Game(moves=["h2e2"]).fen())
    bench.run(f"4 1 5 {file}")
    assert bench.headings == [f"1/2 ({START_FEN})", f"2/2 ({Game(moves=['h2e2']).fen()})"]
    assert bench.out.count("bestmove") == 2
    assert bench.node_total == sum(bench.info_nodes()) > 0
    assert re.search(
        r"\n===========================\nTotal time \(ms\) : \d+\nNodes searched  : \d+\nNodes/second    : \d+\n$",
        bench.err,
    )
    assert (bench.engine.threads, bench.engine.table.hash_mib) == (1, 4)


def test_the_node_total_repeats_whatever_was_searched_before(bench, position_file):
    file = position_file(*POSITIONS[:4])
    totals = []
    for _ in range(2):
        bench.run(f"4 1 6 {file}")
        totals.append(bench.node_total)
        bench.run("4 1 6 current")
    assert totals[0] == totals[1]


def test_every_built_in_position_is_examined(bench):
    bench.run("4 1 1 default perft")
    assert len(bench.headings) == len(POSITIONS) == 40
    assert bench.headings[-1].startswith("40/40 (")


def test_the_present_position(bench):
    game = Game(moves=["h2e2", "h9g7"])
    bench.engine.set_position(game)
    bench.run("4 1 3 current")
    assert bench.headings == [f"1/1 ({game.fen()})"]
    assert bench.engine.game.moves == game.moves


def test_a_file_has_comments_moves_and_options_in_their_place(bench, position_file):
    file = position_file(
        "# setoption name Threads value 2",
        "",
        "setoption name Move Overhead value 20",
        f"  {START_FEN} moves h2e2 h9g7\r",
        "  # a comment",
        "   ",
        "setoption name Clear Hash",
        START_FEN.split()[0] + " b",
    )
    seen: list[int] = []
    bench.run(f"4 1 2 {file}", is_stopped=lambda: seen.append(len(bench.options)))
    assert bench.headings == [
        f"1/2 ({Game(moves=['h2e2', 'h9g7']).fen()})",
        f"2/2 ({Game(START_FEN.split()[0] + ' b').fen()})",
    ]
    assert bench.options == [["name", "Move", "Overhead", "value", "20"], ["name", "Clear", "Hash"]]
    assert sorted(set(seen)) == [0, 1, 2], "the second option was set when the first position was done"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([START_FEN, "", "9/9/9 w"], ["Line 3", "ranks"]),
        ([f"{START_FEN} moves h2e2 a0a9"], ["Line 1", "a0a9"]),
        (["# nothing", ""], ["no position"]),
        (["setoption name Hash value 1"], ["no position"]),
    ],
)
def test_a_bad_file_is_refused_before_anything_changes(bench, position_file, lines, words):
    file = position_file(*lines)
    with pytest.raises(BenchError) as failure:
        bench.run(f"4 2 2 {file}")
    assert all(word in str(failure.value) for word in [*words, file])
    assert (bench.engine.threads, bench.engine.table.hash_mib) == (1, 16)
    assert bench.options == []


def test_a_file_that_cannot_be_read_is_named(bench, tmp_path):
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    for name in (tmp_path / "missing", tmp_path, binary, "a\0b"):
        with pytest.raises(BenchError, match="cannot be read"):
            run_bench(bench.engine, ["4", "1", "2", str(name)], never, bench.options.append, lambda game: [])


def test_the_limit_nodes(bench, position_file):
    bench.run(f"4 1 20000 {position_file(START_FEN, POSITIONS[3])} nodes")
    assert 40_000 <= bench.node_total <= 41_000


def test_the_limit_movetime(bench, position_file):
    bench.run(f"4 1 50 {position_file(START_FEN)} movetime")
    assert int(re.search(r"Total time \(ms\) : (\d+)", bench.err)[1]) > 50
    assert bench.out.count("bestmove") == 1


def test_the_limit_mate(bench, position_file):
    bench.run(f"4 1 1 {position_file(MATE_IN_ONE)} mate")
    assert " score mate 1 " in bench.out
    assert bench.out.count("bestmove") == 1


def test_the_limit_perft(bench, position_file):
    bench.run(f"4 1 3 {position_file(START_FEN, START_FEN)} perft")
    assert bench.out.count(f"\n\nNodes searched: {START_PERFT_3}\n\n") == 2
    counts = [int(count) for count in re.findall(r"^[a-i]\d[a-i]\d: (\d+)$", bench.out, re.MULTILINE)]
    assert len(counts) == 2 * 44
    assert bench.node_total == sum(counts) == 2 * START_PERFT_3


def test_the_limit_eval(bench, position_file):
    bench.run(f"4 1 1 {position_file(START_FEN, POSITIONS[3])} eval")
    assert bench.out.splitlines() == [f"evaluation of {START_FEN}", f"evaluation of {POSITIONS[3]}"]
    assert len(bench.headings) == 2
    assert bench.node_total == 0


def test_a_stop_ends_the_search_and_the_bench(bench):
    answers = iter([False, True])
    bench.run("4 1 200", is_stopped=lambda: next(answers, True))
    assert len(bench.headings) == 1
    assert bench.out.count("bestmove") == 1
    assert "Nodes searched" in bench.err


def test_a_stop_ends_perft(bench, position_file):
    answers = iter([False, False, True])
    bench.run(f"4 1 2 {position_file(START_FEN, START_FEN)} perft", is_stopped=lambda: next(answers, True))
    assert bench.out.count(": ") == 1
    assert len(bench.headings) == 1
