"""The bulk reader of FENs against `parse_fen`: the same verdict, record and sentence for any text."""

import random

import numpy as np
import pytest

from games.xiangqi import START_FEN, PositionError
from games.xiangqi.bulk_fen import (
    ACCEPTED,
    REFUSED,
    UNDECIDED,
    BulkFens,
    count_line_ends,
    fen_part,
    parse_lines,
    parse_texts,
)
from games.xiangqi.fen import parse_fen
from games.xiangqi.packed import PACKED, pack
from tests.support.games import random_walk
from tests.support.golden import all_fens, rows

PLACEMENT = START_FEN.split()[0]
MUTATIONS = 12_000
LETTERS = "kabnrcpKABNRCP123456789/ wb-0+_\t.#hé\x00\xa0٣"


def as_bytes(text: str | bytes) -> np.ndarray:
    return np.frombuffer(text.encode() if isinstance(text, str) else text, np.uint8)


def parse_all(texts: list[str]) -> BulkFens:
    """All texts, whatever line ends are in them."""
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)])
    return parse_texts(as_bytes(b"".join(encoded)), ends[:-1], ends[1:])


def fen_texts(fens: BulkFens) -> list[str]:
    offsets, data = fens.compact()
    return [data[offsets[i] : offsets[i + 1]].tobytes().decode() for i in range(len(fens))]


def assert_same(texts: list[str]) -> int:
    """Compare with `parse_fen`; returns the number of texts that are refused."""
    fens = parse_all(texts)
    for number, text in enumerate(texts):
        try:
            expected = pack([parse_fen(text)])[0]
        except PositionError as error:
            assert fens.refusals[number] == str(error), repr(text)
            assert fens.packed[number] == np.zeros(1, PACKED)[0]
        else:
            assert number not in fens.refusals, (text, fens.refusals[number])
            assert fens.packed[number] == expected, text
    assert fen_texts(fens) == [fen_part(text) for text in texts]
    return len(fens.refusals)


def test_recorded_positions():
    assert assert_same(all_fens()) == 0


def test_recorded_verdicts():
    commands = [row["command"].removeprefix("position fen ") for row in rows("fen_validation")]
    assert assert_same([command.partition(" moves ")[0] for command in commands]) > 15


def test_random_walk():
    texts = [game.fen() for game in random_walk(seed=11, count=3000)]
    assert assert_same(texts) == 0
    assert parse_all(texts).packed["in_check"].any()


def mutated(rng: random.Random, fen: str) -> str:
    """One to three edits, half of them behind the placement, where less can go wrong."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randint(rng.choice([0, fen.find(" ")]), len(fen))
        kept_from = at + rng.randint(0, 1)
        fen = fen[:at] + rng.choice(["", *LETTERS]) + fen[kept_from:]
    return fen


def test_mutated_texts():
    rng = random.Random(12)
    fens = [*all_fens(), *(game.fen() for game in random_walk(seed=13, count=500))]
    texts = [mutated(rng, rng.choice(fens)) for _ in range(MUTATIONS)]
    assert MUTATIONS // 4 < assert_same(texts) < MUTATIONS * 9 // 10


def moved_piece(rng: random.Random, fen: str) -> str:
    """One rank with its letters in another order: counts stay right, standing squares and checks may not."""
    placement, _, rest = fen.partition(" ")
    ranks = placement.split("/")
    number = rng.randrange(len(ranks))
    ranks[number] = "".join(rng.sample(ranks[number], len(ranks[number])))
    if rng.random() < 0.2:
        ranks[number] = rng.choice(ranks)
    if rng.random() < 0.5:
        rest = ("b" if rest[0] == "w" else "w") + rest[1:]
    return f"{'/'.join(ranks)} {rest}"


def test_pieces_elsewhere():
    rng = random.Random(14)
    fens = [game.fen() for game in random_walk(seed=15, count=1000)]
    assert 1000 < assert_same([moved_piece(rng, rng.choice(fens)) for _ in range(4000)]) < 3900


COUNTERS = [
    "", " -", " - -", " - - 7", " - - 7 9", " - - 119 100000", " - - 120 1", " - - 119 100001", " - - 1\u00a0N7",
    " - - -1 1", " - - 1 -1",
    " - - +5 +6", " - - 1_0 1_1", " - - 1__0 1", " - - _1 1", " - - 007 0009", " - - 0000000000007 1", " - - -0 1",
    " - - ٣ ٤", " - - 3 ٤", " - - x 200000", " - - 5 x", " - - 5x 6", " - - - -", " - - + 3", " - - 7 9 and more",
    " - - 99999999999999999999 1", " - - 5 99999999999999999999", " - -\u00a07 9", " 中 - 7", " - - 中 7", " - - 7 中",
    " - - 1.5 2", " - - " + "1" * 5000 + " 3", "\t-\v-\f7\r", " - - 7\x1c9", "\u20037",
]  # fmt: skip


@pytest.mark.parametrize("side", [" w", " b", "  w", " W", " wb", " w\u00a0", ""])
@pytest.mark.parametrize("counters", COUNTERS, ids=range(len(COUNTERS)))
def test_fields_after_the_placement(side, counters):
    assert_same([PLACEMENT + side + counters, f" \t{PLACEMENT}{side}{counters} "])


@pytest.mark.parametrize(
    ("line", "fen", "rule60"),
    [
        (f'{PLACEMENT} w - - bm h2e2; id "x";', f"{PLACEMENT} w - -", 0),
        (f"{PLACEMENT} w - - ; 99", f"{PLACEMENT} w - -", 0),
        (f'{PLACEMENT} w - - c0 "象棋";', f"{PLACEMENT} w - -", 0),
        (f"  {PLACEMENT}   w - -   7  9  x", f"{PLACEMENT}   w - -   7  9", 7),
        (f"{PLACEMENT} w - - 7 bm h2e2;", f"{PLACEMENT} w - - 7", 7),
        (f"{PLACEMENT} w", f"{PLACEMENT} w", 0),
    ],
)
def test_epd(line, fen, rule60):
    fens = parse_lines(as_bytes(line + "\n"))
    assert fen_texts(fens) == [fen]
    assert fens.packed["rule60"].tolist() == [rule60]
    assert not fens.refusals


def test_lines():
    text = f"# a comment\n\n  \t\r\n{START_FEN}\r\n   # another\nnonsense here\n\n{PLACEMENT} b"
    fens = parse_lines(as_bytes(text))
    assert fen_texts(fens) == [START_FEN, "nonsense here", f"{PLACEMENT} b"]
    assert list(fens.refusals) == [1]
    assert fens.packed["side"].tolist() == [0, 0, 1]
    assert count_line_ends(as_bytes(text)) == 7


@pytest.mark.parametrize("text", ["", "\n", "\n\n# nothing\n", "#"])
def test_nothing_to_read(text):
    assert len(parse_lines(as_bytes(text))) == 0


def test_bytes_that_are_not_text():
    fens = parse_lines(as_bytes(b"\xff\xfe\n" + f"{PLACEMENT} w \x00 -\n{PLACEMENT} w - - ".encode() + b"c0 \xff;\n"))
    assert list(fens.refusals) == [0]
    assert "UTF-8" in fens.refusals[0]
    assert fen_texts(fens) == ["\ufffd\ufffd", f"{PLACEMENT} w \x00 -", f"{PLACEMENT} w - -"]


def test_stops_at_the_first_refusal():
    fens = parse_lines(as_bytes(f"{START_FEN}\nx\ny\n"), stop=True)
    assert list(fens.refusals) == [1]


def test_the_kernel_decides_nearly_always():
    """Otherwise the comparison above would test `parse_fen` against itself."""
    fens = [game.fen() for game in random_walk(seed=16, count=200)]
    assert set(parse_all(fens).verdicts) == {ACCEPTED}
    assert set(parse_all([START_FEN.replace("R", "P"), "x", PLACEMENT]).verdicts) == {REFUSED}
    assert set(parse_all([f"{PLACEMENT} w - - +1", "\u00a0"]).verdicts) == {UNDECIDED}
