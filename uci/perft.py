"""`go perft`: lines of so many moves, counted by first move."""

from collections.abc import Callable

from games.xiangqi.divide import divide
from games.xiangqi.game import Game
from uci import output


def count_lines(game: Game, depth: int, is_stopped: Callable[[], bool]) -> int:
    """Print the counts and their total, and return it; when stopped, what there is of it, which is not printed."""
    total = 0
    for move, count in divide(game.position, max(1, depth), is_stopped):
        output.write(f"{move}: {count}")
        total += count
    if not is_stopped():
        output.write("", f"Nodes searched: {total}", "")
    return total
