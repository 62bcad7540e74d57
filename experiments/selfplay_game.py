"""One game of self-play, from the opening to the result, as one kernel.

A game begins with random legal moves, as many times over as it takes until a search finds the position balanced. Then
both sides play the best move of a search with a fixed number of nodes, now and then a random one instead. What the
search says of a quiet position becomes a RECORD. How a game ends:

    no-move                    the side to move has no legal move, and has lost
    mate                       the search has found a mate
    decided                    one side has been far ahead for some plies running
    length                     a draw, after so many plies
    the kinds of the judge     repetition, perpetual check and chase, the 60-move rule, dead material

A game depends on its seed, its number, the network and the settings alone.

All leaves of this folder that the kernel needs are in this file, because Numba compiles a kernel anew only if its own
file has changed, or one of those that `games.jit` watches.
"""

from dataclasses import dataclass

import numpy as np
from numba import int64, uint64

from games.jit import kernel, leaf, routine
from games.memory import aligned_zeros, store_i64
from games.xiangqi.game import Game
from games.xiangqi.geometry import EMPTY, PIECES, WHITE
from games.xiangqi.judge import DRAW, KINDS_OF_VERDICT, WIN, judge, kind_of_verdict, result_of
from games.xiangqi.line import COUNTERS, HISTORY_LENGTH, begin_line_kernel, extend_line_kernel
from games.xiangqi.position import POSITION, target_of
from nnue_jax.network_file import Network
from nnue_jax.numba_evaluator import SharedParameters
from nnue_jax.training.records import RECORD
from search.layout import (
    FIRST_NODE_COUNT,
    INFINITE,
    MATE_IN_MAX_PLY,
    NEVER,
    NODE_LIMIT,
    STOP_FLAG,
    THREAD_COUNT,
)
from search.machine import advance, start
from search.nodes import ITERATION_DONE
from search.roots import copy_counters, copy_position, list_root_moves
from search.searcher import Searcher, ThreadTables
from search.transposition import GENERATIONS, TranspositionTable

# A cached kernel cannot be called by another one, so these are compiled into that of the game.
_begin_line = routine(begin_line_kernel.py_func)
_extend_line = routine(extend_line_kernel.py_func)
_start = routine(start.py_func)
_advance = routine(advance.py_func)

HASH_MIB = 1
MAX_DEPTH = 40  # of a search; only one that sees the end of the game gets there
PER_MILLE = 1000
MAX_OPENINGS = 1000  # half of all are balanced, if settings are sensible

ENDS = (*KINDS_OF_VERDICT, "no-move", "mate", "decided", "length")
NO_MOVE_LEFT, MATE_FOUND, DECIDED, LENGTH = range(len(KINDS_OF_VERDICT), len(ENDS))


class OpeningError(RuntimeError):
    """No opening could be found; the message is a sentence."""


@dataclass(frozen=True)
class GameSettings:
    """Scores in internal units; plies are counted from the start position.

    nodes                       of each search
    opening_min_plies, opening_max_plies     number of random moves at the beginning
    opening_max_score           a position after the opening that is further from 0 is not played
    random_per_mille            share of random moves after the opening, before random_max_ply
    decided_score, decided_plies    a side that is so far ahead for so many plies running has won
    max_plies                   then a game is a draw
    kept_max_score              positions further from 0 are not kept
    """

    nodes: int = 2000
    opening_min_plies: int = 8
    opening_max_plies: int = 10
    opening_max_score: int = 250
    random_per_mille: int = 25
    random_max_ply: int = 120
    decided_score: int = 2000
    decided_plies: int = 6
    max_plies: int = 300
    kept_max_score: int = 3000

    def __post_init__(self):
        if not 0 <= self.opening_min_plies <= self.opening_max_plies < self.max_plies < HISTORY_LENGTH:
            raise ValueError(
                f"Openings of {self.opening_min_plies} to {self.opening_max_plies} plies and games of "
                f"{self.max_plies} do not fit together; a game may have {HISTORY_LENGTH - 1}."
            )
        if self.nodes < 1:
            raise ValueError(f"A search of {self.nodes} nodes finds nothing; expected 1 or more.")


SETTINGS = np.dtype([(name, "i8") for name in GameSettings.__dataclass_fields__])

# The game being played: where it stands, what it has cost, and how it has ended.
GAME = np.dtype(
    [
        ("position", POSITION),
        ("counters", COUNTERS),
        ("before", COUNTERS),  # of the position before
        ("last", "i8"),  # plies played: the index of the position in the searcher's line
        ("random", "u8"),  # state of the random generator
        ("move", "i8"),  # result of the last search
        ("score", "i8"),
        ("depth", "i8"),  # 0 if no iteration was completed
        ("openings", "i8"),  # tried, the last one with success
        ("searches", "i8"),
        ("nodes", "i8"),
        ("depths", "i8"),  # sum over all searches
        ("lead", "i8"),  # plies for which White has been far ahead; negative for Black
        ("end", "i8"),  # index in ENDS
        ("white_result", "i8"),  # 1, 0, -1
    ],
    align=True,
)


@leaf
def _random_below(game, count):
    """A random number from 0 to count - 1: SplitMix64, which needs one word of state."""
    game.random += uint64(0x9E3779B97F4A7C15)
    word = game.random
    word = (word ^ (word >> uint64(30))) * uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> uint64(27))) * uint64(0x94D049BB133111EB)
    word ^= word >> uint64(31)
    return int64((word >> uint64(32)) * uint64(count) >> uint64(32))


@leaf
def _begin(searcher, game, first):
    """Put the position `first` on the board."""
    copy_position(first, game.position)
    _begin_line(game.position, searcher.line)
    game.counters.rule60 = 0
    game.counters.checks[0] = 0
    game.counters.checks[1] = 0
    game.counters.since_pass = 0
    game.last = 0


@leaf
def _play(searcher, game, move):
    copy_counters(game.counters, game.before)
    _extend_line(game.position, searcher.line, game.last, game.before, game.counters, move)
    game.last += 1


@leaf
def _best_root_move(searcher):
    """Index of the best root move, also in the middle of an iteration, when the moves are not sorted yet."""
    best = int64(searcher.root_order[0])
    for i in range(1, searcher.root_count):
        index = int64(searcher.root_order[i])
        if searcher.root_moves[index].score > searcher.root_moves[best].score:
            best = index
    return best


@routine
def _search(searcher, histories, game, nodes):
    """Search the position among its root moves; sets move, score and depth of `game`.

    The iteration that was cut short counts only if it has found another move.
    """
    copy_position(game.position, searcher.position)
    searcher.root_index = game.last
    copy_counters(game.counters, searcher.root_counters)
    searcher.max_depth = MAX_DEPTH
    searcher.verbose_from = NEVER
    searcher.multi_pv = 1
    searcher.tt_generation = (searcher.tt_generation + 1) % GENERATIONS
    store_i64(searcher.shared, STOP_FLAG, 0)
    store_i64(searcher.shared, THREAD_COUNT, 1)
    store_i64(searcher.shared, NODE_LIMIT, nodes)
    store_i64(searcher.shared, FIRST_NODE_COUNT, 0)
    _start(searcher)
    game.depth = 0
    game.move = searcher.root_moves[0].move
    game.score = 0
    while _advance(searcher, histories) == ITERATION_DONE:
        best = searcher.root_moves[searcher.root_order[0]]
        game.move = best.move
        game.score = best.score
        game.depth = searcher.depth
    best = searcher.root_moves[_best_root_move(searcher)]
    if best.move != game.move and best.score > -INFINITE:
        game.move = best.move
        game.score = best.score
    game.searches += 1
    game.nodes += searcher.nodes
    game.depths += game.depth


@leaf
def _finish(game, end, side, points):
    """Note the end and the result: 1, 0 or -1 points for `side`."""
    game.end = end
    game.white_result = points if side == WHITE else -points


@leaf
def _has_ended(searcher, game, settings, count):
    """Whether the game is over by the rules, or by its length; `count` is the number of legal moves."""
    side = int64(game.position.side)
    if count == 0:
        _finish(game, int64(NO_MOVE_LEFT), side, int64(-1))
        return True
    verdict = judge(game.position, searcher.line, game.last, int64(0), game.counters, searcher.moves, int64(0))
    if verdict != 0:
        result = result_of(verdict)
        points = int64(0) if result == DRAW else int64(1) if result == WIN else int64(-1)
        _finish(game, kind_of_verdict(verdict), side, points)
        return True
    if game.last >= settings.max_plies:
        _finish(game, int64(LENGTH), side, int64(0))
        return True
    return False


@leaf
def _open(searcher, histories, game, settings, first):
    """Play random openings until one is balanced, and the search that says so is the first of the game.

    Whether one was found.
    """
    for _ in range(MAX_OPENINGS):
        game.openings += 1
        _begin(searcher, game, first)
        choices = 1 + settings.opening_max_plies - settings.opening_min_plies
        plies = settings.opening_min_plies + _random_below(game, choices)
        count = list_root_moves(searcher, game.position)
        while game.last < plies and count > 0:
            _play(searcher, game, searcher.root_moves[_random_below(game, count)].move)
            count = list_root_moves(searcher, game.position)
        if not _has_ended(searcher, game, settings, count):
            _search(searcher, histories, game, settings.nodes)
            if game.depth > 0 and abs(game.score) <= settings.opening_max_score:
                return True
    return False


@leaf
def _is_kept(searcher, game, settings):
    """Whether the position that was searched is quiet, and its score says something."""
    if searcher.line.in_check[game.last] or game.depth == 0 or abs(game.score) > settings.kept_max_score:
        return False
    return game.position.board[target_of(game.move)] == EMPTY


@leaf
def _keep(game, record):
    for piece in range(PIECES):
        record.packed.square_of[piece] = game.position.square_of[piece]
    record.packed.side = game.position.side
    record.packed.in_check = 0
    record.packed.rule60 = game.counters.rule60
    record.score = game.score
    record.ply = game.last
    record.depth = game.depth


@leaf
def _is_decided(game, settings):
    """Whether the search has found a mate, or one side has been far ahead for long enough."""
    white_score = game.score if game.position.side == WHITE else -game.score
    if abs(white_score) >= MATE_IN_MAX_PLY:
        _finish(game, int64(MATE_FOUND), int64(WHITE), int64(1) if white_score > 0 else int64(-1))
        return True
    if white_score > settings.decided_score:
        game.lead = max(game.lead, 0) + 1
    elif white_score < -settings.decided_score:
        game.lead = min(game.lead, 0) - 1
    else:
        game.lead = 0
    if abs(game.lead) < settings.decided_plies:
        return False
    _finish(game, int64(DECIDED), int64(WHITE), int64(1) if game.lead > 0 else int64(-1))
    return True


@leaf
def _choose_move(searcher, game, settings):
    """The move that the search has found, or now and then any."""
    if game.last < settings.random_max_ply and _random_below(game, int64(PER_MILLE)) < settings.random_per_mille:
        return searcher.root_moves[_random_below(game, searcher.root_count)].move
    return game.move


@kernel
def _play_game(searcher, histories, game, settings, first, records):
    """Play a game from the position `first` and fill `records`; returns their number, or -1 without an opening."""
    if not _open(searcher, histories, game, settings, first):
        return int64(-1)
    kept = int64(0)
    while True:
        if _is_kept(searcher, game, settings):
            _keep(game, records[kept])
            kept += 1
        if _is_decided(game, settings):
            break
        _play(searcher, game, _choose_move(searcher, game, settings))
        if _has_ended(searcher, game, settings, list_root_moves(searcher, game.position)):
            break
        _search(searcher, histories, game, settings.nodes)
    for i in range(kept):
        records[i].result = game.white_result if records[i].packed.side == WHITE else -game.white_result
    return kept


@dataclass(frozen=True)
class PlayedGame:
    """records: [n] RECORD. white_result: 1, 0, -1. end: one of ENDS. depths: sum over all searches, in plies."""

    records: np.ndarray
    white_result: int
    end: str
    moves: list[int]
    openings: int
    searches: int
    nodes: int
    depths: int


class SelfPlayer:
    """Plays games by their numbers, one after the other."""

    def __init__(self, network: Network, settings: GameSettings, seed: int):
        self._seed = seed
        self._nodes = settings.nodes
        self._settings = np.zeros(1, SETTINGS)
        for name in SETTINGS.names:
            self._settings[name] = getattr(settings, name)
        self._first = Game().position
        self._game = np.zeros(1, GAME)
        self._records = np.zeros(settings.max_plies + 1, RECORD)
        self._table = TranspositionTable(HASH_MIB)
        self._tables = ThreadTables()
        self._shared = aligned_zeros(FIRST_NODE_COUNT + 1, np.int64)
        self._searcher = Searcher(SharedParameters(network), self._table, self._shared)

    def play(self, number: int) -> PlayedGame:
        """The game of this number; OpeningError if no opening is balanced."""
        self._table.clear()
        self._table.attach(self._searcher.record)
        self._tables.is_used = True
        self._tables.clear()
        self._game[:] = 0
        self._game["random"] = np.random.SeedSequence([self._seed, number]).generate_state(1, np.uint64)
        game = self._game[0]
        kept = _play_game(
            self._searcher.record, self._tables.record, game, self._settings[0], self._first[0], self._records
        )
        if kept < 0:
            raise OpeningError(
                f"Game {number} found no balanced opening in {MAX_OPENINGS} tries: either its searches of "
                f"{self._nodes} nodes are too short for one ply, or the limit of its score is too strict."
            )
        plies = int(game["last"])
        return PlayedGame(
            records=self._records[:kept].copy(),
            white_result=int(game["white_result"]),
            end=ENDS[game["end"]],
            moves=self._searcher.record["line"]["moves"][1 : plies + 1].tolist(),
            openings=int(game["openings"]),
            searches=int(game["searches"]),
            nodes=int(game["nodes"]),
            depths=int(game["depths"]),
        )
