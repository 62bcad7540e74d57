"""Random command lines for the fuzz test: correct ones of every kind, and what mutation makes of them.

No line takes long, much memory, or a file outside the working directory: `is_harmless` keeps the others out.
"""

import re

from hypothesis import strategies as st

from tests.support import scenes
from tests.support.golden import all_fens

MAX_HASH_MIB = 64
MAX_THREADS = 2
MAX_PERFT_DEPTH = 4
LONG = 30_000

NETWORK_FILES = ("small.nnue", "broken.nnue", "nowhere.nnue", "<empty>", "")
OPTION_NAMES = (
    *("Debug Log File", "NumaPolicy", "Threads", "Hash", "Clear Hash", "Ponder", "MultiPV", "Move Overhead"),
    *(
        "nodestime",
        "UCI_ShowWDL",
        "EvalFile",
        "UCI_Variant",
        "UCI_AnalyseMode",
        "Backend",
        "BatchSize",
        "Searchers",
        "Survive Errors",
    ),
    *("usemillisec", "SyzygyPath", "UCI_Chess960", "UCI_Opponent", "Skill Level", ""),
)
PLAIN_COMMANDS = (
    *("uci", "ucci", "isready", "ucinewgame", "uccinewgame", "newgame", "stop", "stop", "ponderhit", "d", "eval"),
    *("flip", "compiler", "help", "--help", "license", "usemillisec true", "debug on", "register later", "xboard"),
    *("", "  ", "# comment", "bestmove a0a1", "info depth 1", "option name Hash", "id name x", "readyok", "export_net"),
    *(
        "export_net out.nnue",
        "export_net nowhere/out.nnue",
        "position",
        "go",
        "setoption",
        "bench 4 1 1 nowhere.txt",
        "quit",
    ),
)
# Those that a search without limits does not end by itself are rare: what comes after them hardly searches.
GO_WORDS = (
    *("depth", "depth", "nodes", "nodes", "movetime", "movetime", "mate", "wtime", "btime", "winc", "binc"),
    *("movestogo", "searchmoves", "searchmoves", "perft", "infinite", "ponder", "time", "opptime", "increment"),
    *("opincrement", "quickly"),
)
VOCABULARY = (
    *("go", "position", "startpos", "fen", "moves", "setoption", "name", "value", "infinite", "ponder", "searchmoves"),
    *("depth", "nodes", "mate", "perft", "true", "false", "<empty>", "none", "stop", "quit!", "isready", "bench", "w"),
    *("-", "0", "1", "-1", "h2e2", "h9g7", "0000", "a0a10", "Hash", "Threads", "MultiPV", "Survive", "Errors", "UCI"),
)
NUMBERS = (
    *("0", "1", "2", "3", "5", "10", "16", "-1", "-50", "007", "+5", "1.5", "1e3", "0x10", "1_0", "٣", "½", "-", "--1"),
    *("120", "1025", "99999", "1000000000000000", "9" * 30, "9" * 6000),
)
LETTERS = (
    *"abcdefghi0123456789rnbakcpRNBAKCP/wW-_ \t'`\"\\<>%{}",
    *"\0\x01\x07\x08\x0b\x0c\r\x1b\x1c\x1e\x7f\x85\xa0\xad\u200b\u2028\u2029\ufeff\ufffd",
    *"é走馬車٣½\U0001f600",
    *"\udc80\udcc3\udce9\udcff",  # bytes that are not UTF-8
)

_words = st.sampled_from(VOCABULARY)
_numbers = st.one_of(st.integers(0, 20).map(str), st.integers(-100, 3000).map(str), st.sampled_from(NUMBERS))
_small_numbers = st.integers(1, 5).map(str)
_moves = st.one_of(
    st.sampled_from(scenes.SHUFFLE),
    st.sampled_from(("h2e2", "h9g7", "a3a4", "c3c4", "0000", "H2E2", "e0e9", "j0j1")),
    st.from_regex(r"[a-i][0-9][a-i][0-9]", fullmatch=True),
)
_fens = st.one_of(
    st.sampled_from(all_fens()),
    st.sampled_from([value for value in vars(scenes).values() if isinstance(value, str) and value.count("/") == 9]),
)


@st.composite
def _go(draw) -> str:
    words = ["go"]
    for word in draw(st.lists(st.sampled_from(GO_WORDS), min_size=1, max_size=4)):
        words.append(word)
        if word == "searchmoves":
            words += draw(st.lists(_moves, max_size=4))
        elif word in ("depth", "mate", "perft"):
            words.append(draw(_small_numbers))
        elif word in ("movetime", "wtime", "btime", "time"):
            words.append(str(draw(st.integers(0, 30))))
        elif word not in ("infinite", "ponder", "quickly"):
            words.append(str(draw(st.integers(0, 3000))))
    return " ".join(words)


@st.composite
def _position(draw) -> str:
    start = draw(st.one_of(st.just("startpos"), _fens.map("fen {}".format)))
    moves = draw(st.lists(_moves, max_size=6))
    tail = f" moves {' '.join(moves)}" if moves or draw(st.booleans()) else ""
    return draw(st.sampled_from(("position ", "position ", "position ", ""))) + start + tail


@st.composite
def _setoption(draw) -> str:
    name = draw(st.sampled_from(OPTION_NAMES))
    values = {
        "Debug Log File": st.sampled_from(("log.txt", "other log.txt", "<empty>", "", ".")),
        "NumaPolicy": st.sampled_from(("auto", "system", "hardware", "none", "0", "0-1", "0:1", "1-0", "0-9999999999")),
        "EvalFile": st.sampled_from(NETWORK_FILES),
        "UCI_Variant": st.sampled_from(("xiangqi", "chess")),
        "Backend": st.sampled_from(("auto", "numba", "cuda", "jax:gpu")),
        "Threads": st.sampled_from(("1", "2", "0", "99999", "two")),
        "Hash": st.sampled_from(("1", "4", "16", "64", "0", "33554432", "99999999999", "much")),
    }
    is_check = name.startswith("UCI_") or name in ("Ponder", "Survive Errors")
    value = draw(values.get(name, st.sampled_from(("true", "false", "True", "")) if is_check else _numbers))
    name = draw(st.sampled_from((str, str, str.lower, str.upper)))(name)
    return draw(st.sampled_from(("setoption name {} value {}",) * 4 + ("setoption {} {}", "setoption name {}"))).format(
        name, value
    )


@st.composite
def _bench(draw) -> str:
    kind = draw(st.sampled_from(("depth", "nodes", "movetime", "mate")))
    limit = {"depth": 2, "nodes": 500, "movetime": 5, "mate": 1}[kind]
    return f"bench 4 {draw(st.integers(1, 2))} {limit} {'current' if kind == 'mate' else 'few.txt'} {kind}"


_correct = st.one_of(_go(), _go(), _go(), _position(), _position(), _setoption(), _setoption()) | st.one_of(
    st.sampled_from(PLAIN_COMMANDS), st.sampled_from(PLAIN_COMMANDS), _bench()
)


def _with_word(line: str, at: int, word: str) -> str:
    words = line.split(" ")
    at %= len(words) + 1
    return " ".join([*words[:at], word, *words[at:]])


def _without_word(line: str, at: int, _: str) -> str:
    words = line.split(" ")
    at %= len(words)
    return " ".join(words[:at] + words[at + 1 :])


def _with_other_word(line: str, at: int, word: str) -> str:
    return _with_word(_without_word(line, at, ""), at % max(1, len(line.split(" "))), word)


def _with_letter(line: str, at: int, letter: str) -> str:
    at %= len(line) + 1
    return line[:at] + letter + line[at:]


def _without_letter(line: str, at: int, _: str) -> str:
    at %= max(1, len(line))
    return line[:at] + line[at + 1 :]


def _cut(line: str, at: int, _: str) -> str:
    return line[: at % max(1, len(line))]


def _with_number(line: str, at: int, number: str) -> str:
    found = list(re.finditer(r"-?\d+", line))
    if not found:
        return f"{line} {number}"
    match = found[at % len(found)]
    return line[: match.start()] + number + line[match.end() :]


def _long(line: str, at: int, word: str) -> str:
    return f"{line} {(word + ' ') * (LONG // (len(word) + 1))}" if at % 2 else line + "x" * LONG


def _in_other_case(line: str, at: int, _: str) -> str:
    return line.swapcase() if at % 2 else line.title()


_mutations = st.one_of(
    st.tuples(st.sampled_from((_with_word, _without_word, _with_other_word, _in_other_case, _cut)), _words),
    st.tuples(st.sampled_from((_with_letter, _with_letter, _without_letter)), st.sampled_from(LETTERS)),
    st.tuples(st.just(_with_number), _numbers),
    st.tuples(st.sampled_from((_long, _with_word)), _words),
)


@st.composite
def _mutated(draw) -> str:
    line = draw(_correct)
    for _ in range(draw(st.integers(1, 3))):
        mutate, material = draw(_mutations)
        line = mutate(line, draw(st.integers(0, 200)), material)
    return line


def is_harmless(line: str) -> bool:
    """Whether a line can be sent to an engine on a machine that has other things to do."""
    lower = line.lower()
    numbers = [int(digits) for digits in re.findall(r"[0-9]{1,18}", lower)]
    is_large = any(MAX_HASH_MIB < number < 33554432 for number in numbers)
    if "hash" in lower and is_large:
        return False
    if "threads" in lower and any(MAX_THREADS < number <= 4096 for number in numbers):
        return False
    if "bench" in lower and (is_large or "eval" in lower or "perft" in lower or numbers[1:2] > [MAX_THREADS]):
        return False
    if "speedtest" in lower or "evaluate" in lower:
        return False
    return not (any(word in lower for word in ("log", "export")) and re.search(r"(?:^|\s)/|\.\.|~", lower))


lines = st.one_of(_correct, _mutated()).filter(is_harmless).filter(lambda line: "\n" not in line)
