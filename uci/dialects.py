"""Spellings of UCCI and UCI-Cyclone that hosts still send, as the UCI commands they mean.

UCCI 3.0 (2004-2007) is the older Chinese chess protocol; UCI-Cyclone is UCI whose position commands lack the
word `position`. Moves and squares are written alike in all three.
"""

# By first word: what stands in its place.
_SPELLINGS = {
    "fen": ("position", "fen"),
    "startpos": ("position", "startpos"),
    "uccinewgame": ("ucinewgame",),
    "newgame": ("ucinewgame",),
    "usemillisec": ("setoption", "usemillisec"),
}


def translate(words: list[str]) -> list[str]:
    """The words of a command, with the first replaced where it is one of another protocol."""
    return [*_SPELLINGS.get(words[0], words[:1]), *words[1:]]
