"""Records of games that nobody played."""

from experiments.game_record import GameRecord

NAMES = ("new", "old")


def game_record(game: int, result: str, reason: str = "checkmate", **fields) -> GameRecord:
    """Game number `game` between NAMES, with the colours that the match runner gives."""
    white, black = NAMES if game % 2 == 0 else NAMES[::-1]
    values = {
        "seed": f"1/{game // 2}",
        "plies": 2,
        "opening_plies": 2,
        "slowest_ms": {"new": 10.0 + game, "old": 5.0},
        "moves": "h2e2 h9g7",
        **fields,
    }
    return GameRecord(game=game, pair=game // 2, white=white, black=black, result=result, reason=reason, **values)
