"""Repetition, the 60-move rule and dead material in plain Python: whole boards are compared, nothing is incremental.

Sides are booleans, True for White. Pieces are followed by the square on which they stood at the start of the line.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from tests.reference.rules import (
    ORTHOGONAL,
    Board,
    Square,
    after,
    attacked,
    checkers,
    king_square,
    legal_moves,
    name,
    parse,
    reachable,
    walk,
)

MATE = 32000
FREE_CHECKS, RULE60_LIMIT = 10, 120
GREATER = {"N": "R", "C": "R", "A": "RNC", "B": "RNC", "R": ""}


def square_of(text: str) -> Square:
    return "abcdefghi".index(text[0]), int(text[1])


def is_side(letter: str, white: bool) -> bool:
    return letter.isupper() == white


# --- threats


def captures(board: Board, origin: Square, target: Square) -> bool:
    """Whether the piece on origin takes on target by its way of moving."""
    return target in reachable(board, origin)


def is_safe(board: Board, origin: Square, target: Square) -> bool:
    return not attacked(after(board, (origin, target)), board[origin].isupper())


def between(one: Square, other: Square) -> list[Square] | None:
    """The squares strictly between two of a rank or file; None if they share neither."""
    for step in ORTHOGONAL:
        squares = list(walk(one, step))
        if other in squares:
            return squares[: squares.index(other)]
    return None


def knight_leg(knight: Square, target: Square) -> Square | None:
    """The leg on the way of a knight to a square that it may jump to on an empty board."""
    df, dr = target[0] - knight[0], target[1] - knight[1]
    if sorted((abs(df), abs(dr))) != [1, 2]:
        return None
    return (knight[0] + df // 2, knight[1]) if abs(df) == 2 else (knight[0], knight[1] + dr // 2)


def shields_and_pinners(board: Board, white: bool) -> tuple[set[Square], set[Square]]:
    king = king_square(board, white)
    snipers = {
        square
        for square, letter in board.items()
        if not is_side(letter, white)
        and (
            (letter.upper() in "RCK" and between(king, square) is not None)
            or (letter.upper() == "N" and knight_leg(square, king) is not None)
        )
    }
    shields, pinners = set(), set()
    for sniper in snipers:
        kind = board[sniper].upper()
        way = [knight_leg(sniper, king)] if kind == "N" else between(king, sniper)
        screen = [square for square in way if square in board]
        if kind != "C":
            screen = [square for square in screen if square not in snipers or board[square].upper() == "C"]
        if len(screen) == (2 if kind == "C" else 1):
            shields.update(screen)
            if any(is_side(board[square], white) for square in screen):
                pinners.add(sniper)
    return shields, pinners


def is_guarded(board: Board, chaser: Square, victim: Square) -> bool:
    taken = after(board, (chaser, victim))
    guards = [square for square, letter in taken.items() if letter.isupper() == board[victim].isupper()]
    return any(captures(taken, guard, victim) and is_safe(taken, guard, victim) for guard in guards)


def is_threatened(board: Board, chaser: Square, victim: Square, shields: set, pinners: set) -> bool:
    """Whether a piece that the chaser attacks is threatened by it."""
    white = board[chaser].isupper()
    kind, victim_kind = board[chaser].upper(), board[victim].upper()
    if victim_kind == "K":
        return False
    if chaser in shields:
        if victim not in pinners:
            return False
    elif victim_kind == "P" and (victim[1] <= 4) != white:
        return False
    if not is_safe(board, chaser, victim):
        return False
    if victim_kind in GREATER[kind]:
        return True
    if is_guarded(board, chaser, victim):
        return False
    return kind != victim_kind or not (captures(board, victim, chaser) and is_safe(board, victim, chaser))


def threat_set(board: Board, white: bool) -> set[Square]:
    """Squares of the enemy pieces that a side threatens."""
    shields, pinners = shields_and_pinners(board, white)
    chasers = [square for square, letter in board.items() if is_side(letter, white) and letter.upper() in "RNCAB"]
    return {
        victim
        for chaser in chasers
        for victim in reachable(board, chaser)
        if victim in board
        and not is_side(board[victim], white)
        and is_threatened(board, chaser, victim, shields, pinners)
    }


# --- the line


@dataclass(frozen=True)
class Moment:
    """A position of the line; `origins` maps squares to the squares on which their pieces began."""

    board: Board
    white: bool
    origins: dict[Square, Square]
    rule60: int
    checks: dict[bool, int]
    ply: int

    @cached_property
    def in_check(self) -> bool:
        return bool(checkers(self.board, self.white))

    @property
    def same(self) -> tuple:
        return frozenset(self.board.items()), self.white

    def threatened(self, white: bool) -> set[Square]:
        return {self.origins[square] for square in threat_set(self.board, white)}


def line_of(fen: str, moves: list[str]) -> list[Moment]:
    board, white = parse(fen)
    fields = fen.split()
    rule60 = int(fields[4]) if len(fields) > 4 else 0
    line = [Moment(board, white, {square: square for square in board}, rule60, {True: 0, False: 0}, 0)]
    for move in moves:
        line.append(_next(line[-1], square_of(move[:2]), square_of(move[2:])))
    return line


def _next(before: Moment, origin: Square, target: Square) -> Moment:
    board = after(before.board, (origin, target))
    origins = after(before.origins, (origin, target))
    rule60, checks = before.rule60, dict(before.checks)
    mover, opponent = before.white, not before.white
    if target in before.board:
        rule60, checks = 0, {True: 0, False: 0}
    else:
        is_counted = True
        if checkers(board, opponent):
            checks[mover] += 1
            is_counted = checks[mover] <= FREE_CHECKS
        if is_counted and checks[opponent] > FREE_CHECKS and before.in_check:
            checks[opponent] += 1
            is_counted = False
        rule60 += is_counted
    return Moment(board, opponent, origins, rule60, checks, before.ply + 1)


# --- verdicts: (result, final, score, kind, squares of the chased pieces)

NOTHING = ("none", False, None, "none", ())


def draw(kind: str, victims=()) -> tuple:
    return "draw", True, 0, kind, tuple(victims)


def win(ply: int, kind: str, victims=()) -> tuple:
    return "win", True, MATE - ply, kind, tuple(victims)


def loss(ply: int, kind: str, victims=()) -> tuple:
    return "loss", True, ply - MATE, kind, tuple(victims)


def adjudicate(fen: str, moves: list[str], ply: int = 0) -> tuple:
    line = line_of(fen, moves)
    verdict = by_repetition(line, ply)
    if verdict[1]:
        return verdict
    return by_rule60(line[-1], ply) or by_material(line[-1], ply) or verdict


def matches(line: list[Moment]) -> Iterator[int]:
    """Distances, in plies, of the earlier occurrences that may count, nearest first."""
    now = line[-1]
    window = now.rule60 + sum(max(0, given - FREE_CHECKS) for given in now.checks.values())
    for distance in range(4, min(window, now.ply) + 1, 2):
        if line[-1 - distance].same == now.same:
            yield distance


def by_repetition(line: list[Moment], ply: int) -> tuple:
    verdict = NOTHING
    seen = Counter(moment.same for moment in line[:-1])
    for number, distance in enumerate(matches(line), 1):
        if number == 2:
            return by_span(line[-1 - distance :], ply)
        if distance < ply:
            verdict = by_span(line[-1 - distance :], ply)
            is_first_return = (
                seen[line[-1].same] == 1
                and line[-1].rule60 < RULE60_LIMIT
                and line[-2].same == line[-2 - distance].same
                and all(seen[moment.same] == 1 for moment in line[-distance:-2])
            )
            if verdict[0] == "draw" or is_first_return:
                return verdict
            verdict = (verdict[0], False, *verdict[2:])
            if seen[line[-1].same] < 2:
                return verdict
    return verdict


def by_span(span: list[Moment], ply: int) -> tuple:
    they_check = all(moment.in_check for moment in span[::2])
    we_check = all(moment.in_check for moment in span[1::2])
    if they_check and we_check:
        return draw("mutual-perpetual-check")
    if they_check:
        return win(ply, "perpetual-check")
    if we_check:
        return loss(ply, "perpetual-check")
    if any(moment.in_check for moment in span):
        return draw("repetition")
    now = span[-1]
    where = {origin: name(square) for square, origin in now.origins.items()}
    chased = {white: sorted(where[origin] for origin in chased_by(span, white)) for white in (True, False)}
    ours, theirs = chased[now.white], chased[not now.white]
    if ours and theirs:
        return draw("mutual-chase", sorted(ours + theirs))
    if ours:
        return loss(ply, "perpetual-chase", ours)
    if theirs:
        return win(ply, "perpetual-chase", theirs)
    return draw("repetition")


def chased_by(span: list[Moment], white: bool) -> set[Square]:
    """The pieces newly threatened by every move of a side."""
    steps = [(before, later) for before, later in pairwise(span) if before.white == white]
    return set.intersection(*(later.threatened(white) - before.threatened(white) for before, later in steps))


def by_rule60(moment: Moment, ply: int) -> tuple | None:
    if moment.rule60 < RULE60_LIMIT:
        return None
    return draw("rule60") if legal_moves(moment.board, moment.white) else loss(ply, "rule60-mated")


def by_material(moment: Moment, ply: int) -> tuple | None:
    status = material_status(Counter(moment.board.values()))
    if status == "alive":
        return None
    if status == "dead unless mate":
        moves = legal_moves(moment.board, moment.white)
        if not moves:
            return loss(ply, "insufficient-material-mated")
        for move in moves:
            board = after(moment.board, (square_of(move[:2]), square_of(move[2:])))
            if not legal_moves(board, not moment.white):
                return None
    return draw("insufficient-material")


def material_status(count: Counter) -> str:
    majors = sum(count[letter] for letter in "RNCrnc")
    if count["P"] + count["p"]:
        return "alive"
    if majors == 0:
        return "dead"
    if majors == 1 and count["C"] + count["c"] == 1:
        owner, other = ("AB", "a") if count["C"] else ("ab", "A")
        if count[owner[0]]:
            return "alive"
        return {
            (0, False): "dead",
            (0, True): "dead",
            (1, False): "dead",
            (1, True): "dead unless mate",
            (2, False): "dead unless mate",
            (2, True): "alive",
        }[count[other], count[owner[1]] > 0]
    if majors == 2 and count["C"] == count["c"] == 1 and count["A"] + count["a"] == 0:
        return "dead unless mate" if count["B"] + count["b"] else "dead"
    return "alive"
