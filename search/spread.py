"""What keeps many searchers of one root on different work.

They share the transposition table and the histories, so without more they would all walk the same tree in step. The
main searcher, number 0, searches as if alone; what the others find reaches it through the table.
"""

from dataclasses import dataclass

import numpy as np

DEPTH_SKIPS = (1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3)  # by number, over and over


@dataclass(frozen=True)
class Spread:
    """order_noise: of quiet moves, in units of their scores.

    rotates: whether searchers begin with different root moves. skips: whether they leave out iterations.
    """

    order_noise: int = 8000
    rotates: bool = True
    skips: bool = True

    def apply(self, searchers: np.ndarray, first_number: int) -> None:
        """Tell [n] SEARCHERs, the first of which has this number among all of the root."""
        for number, searcher in enumerate(searchers, first_number):
            searcher["variant"] = number
            if number == 0:
                continue
            searcher["order_noise"] = self.order_noise
            searcher["root_rotation"] = number * self.rotates
            searcher["depth_skip"] = DEPTH_SKIPS[number % len(DEPTH_SKIPS)] * self.skips
