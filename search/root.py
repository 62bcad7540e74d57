"""The root: iterative deepening, aspiration windows, and the list of root moves with their lines.

Each iteration searches multi_pv lines; line number i may use the moves root_order[i:]. A line is searched in a
narrow window around its average score, which is widened until the score lies inside.
"""

from numba import int64

from games.jit import leaf
from games.xiangqi.attacks import king_attacked
from games.xiangqi.geometry import NO_MOVE
from search.history import note_searched, reward_best
from search.layout import INFINITE, NO_CONTINUATION, NO_VALUE
from search.main_search import search_again
from search.nodes import (
    FINISHED,
    ITERATION_DONE,
    NEXT_MOVE,
    ROOT_FINISHED,
    ROOT_LINE,
    ROOT_LINE_DONE,
    ROOT_MOVE_CHOSEN,
    ROOT_NEXT_MOVE,
    ROOT_OUTSIDE,
    ROOT_WINDOW,
    SEARCH_MOVE,
    look_back,
    store_node,
    take_back,
)
from search.reductions import base_reduction
from search.transposition import EXACT, LOWER, UPPER

FIRST_WINDOW = 10


@leaf
def root_iteration(searcher):
    """Begin the next iteration."""
    if searcher.depth >= searcher.max_depth:
        return FINISHED
    searcher.depth += 1
    skip = searcher.depth_skip
    if skip and (searcher.depth + searcher.variant) // skip % 2:
        searcher.depth = min(searcher.depth + skip, searcher.max_depth)
    for i in range(searcher.root_count):
        root_move = searcher.root_moves[i]
        root_move.previous_score = root_move.score
    searcher.pv_index = 0
    return ROOT_LINE


@leaf
def root_line(searcher):
    """Begin the next line: choose its first window."""
    frame = searcher.frames[0]
    average = searcher.root_moves[searcher.root_order[searcher.pv_index]].average_score
    searcher.selective_depth = 0
    searcher.fail_highs = 0
    searcher.window = FIRST_WINDOW + searcher.thread % 8
    if average == NO_VALUE:
        frame.first_alpha = -INFINITE
        frame.beta = INFINITE
    else:
        frame.first_alpha = max(average - searcher.window, -INFINITE)
        frame.beta = min(average + searcher.window, INFINITE)
    return ROOT_WINDOW


@leaf
def root_window(searcher):
    """Begin a search of all moves of the line in the present window."""
    frame = searcher.frames[0]
    searcher.top = 0
    searcher.ply = 0
    frame.alpha = frame.first_alpha
    frame.depth = max(1, searcher.depth - searcher.fail_highs)
    frame.is_pv = 1
    frame.tt_pv = 1
    frame.cut_node = 0
    frame.in_check = int64(king_attacked(searcher.position, searcher.position.side))
    frame.counters.rule60 = searcher.root_counters.rule60
    frame.counters.checks[0] = searcher.root_counters.checks[0]
    frame.counters.checks[1] = searcher.root_counters.checks[1]
    frame.counters.since_pass = searcher.root_counters.since_pass
    look_back(searcher, frame)  # for the table's key: the root itself is never judged
    frame.tt_move = searcher.root_moves[searcher.root_order[searcher.pv_index]].move
    frame.raw_eval = NO_VALUE
    frame.static_eval = NO_VALUE
    frame.eval_1 = NO_VALUE
    frame.eval_2 = NO_VALUE
    frame.improving = 1
    frame.excluded = NO_MOVE
    frame.after_pass = 0
    frame.continuation_1 = NO_CONTINUATION
    frame.continuation_2 = NO_CONTINUATION
    frame.continuation_3 = NO_CONTINUATION
    frame.continuation_4 = NO_CONTINUATION
    frame.begin = 0
    frame.end = 0
    frame.best_value = -INFINITE
    frame.best_move = NO_MOVE
    frame.move_count = 0
    frame.quiet_count = 0
    frame.capture_count = 0
    searcher.root_next = searcher.pv_index
    return ROOT_NEXT_MOVE


@leaf
def _rotate(searcher, first):
    """Rotate root_order[first:], so that searchers of one root begin with different moves."""
    order = searcher.root_order
    count = searcher.root_count - first
    for _ in range(searcher.root_rotation % count):
        index = order[first]
        for i in range(first, searcher.root_count - 1):
            order[i] = order[i + 1]
        order[searcher.root_count - 1] = index


@leaf
def root_next_move(searcher):
    if searcher.root_next == searcher.root_count:
        return ROOT_FINISHED
    frame = searcher.frames[0]
    if searcher.root_rotation and searcher.root_next == searcher.pv_index + 1:
        _rotate(searcher, searcher.root_next)
    frame.move = searcher.root_moves[searcher.root_order[searcher.root_next]].move
    searcher.root_next += 1
    frame.move_count += 1
    frame.extension = 0
    frame.reduction = base_reduction(frame)
    frame.nodes_before = searcher.nodes
    return ROOT_MOVE_CHOSEN if searcher.nodes >= searcher.verbose_from else SEARCH_MOVE


@leaf
def _note_score(searcher, root_move, value):
    """Record a score and, unless the move failed low, the line that leads to it."""
    frame = searcher.frames[0]
    root_move.score = value
    root_move.bound = LOWER if value >= frame.beta else UPPER if value <= frame.alpha else EXACT
    if value <= frame.alpha:
        return
    root_move.selective_depth = searcher.selective_depth
    if root_move.average_score == NO_VALUE:
        root_move.average_score = value
    else:
        root_move.average_score = (root_move.average_score + value) // 2
    length = searcher.pv_length[1]
    root_move.pv[0] = root_move.move
    for i in range(length):
        root_move.pv[i + 1] = searcher.pv[1, i]
    root_move.pv_length = length + 1


@leaf
def root_child_returned(searcher):
    frame = searcher.frames[0]
    value = -searcher.value
    phase = search_again(searcher, frame, value)
    if phase != NEXT_MOVE:
        return phase
    take_back(searcher, frame)
    root_move = searcher.root_moves[searcher.root_order[searcher.root_next - 1]]
    root_move.nodes += searcher.nodes - frame.nodes_before
    if frame.move_count == 1 or value > frame.alpha:
        _note_score(searcher, root_move, value)
        if frame.move_count > 1 and searcher.pv_index == 0:
            searcher.best_move_changes += 1
    else:
        root_move.score = -INFINITE
    if value > frame.best_value:
        frame.best_value = value
        if value > frame.alpha:
            frame.best_move = frame.move
            if value >= frame.beta:
                return ROOT_FINISHED
            frame.alpha = value
    if frame.move != frame.best_move:
        note_searched(frame, searcher.position, frame.move)
    return ROOT_NEXT_MOVE


@leaf
def sort_root_moves(searcher, first, end):
    """Stable insertion sort of root_order[first:end], best score first."""
    order = searcher.root_order
    for i in range(first + 1, end):
        index = order[i]
        score = searcher.root_moves[index].score
        j = i
        while j > first and searcher.root_moves[order[j - 1]].score < score:
            order[j] = order[j - 1]
            j -= 1
        order[j] = index


@leaf
def root_finished(searcher, histories):
    """Widen the window if the score lies outside; otherwise the line is done, and after the last the iteration."""
    frame = searcher.frames[0]
    best = frame.best_value
    sort_root_moves(searcher, searcher.pv_index, searcher.root_count)
    if best <= frame.first_alpha:
        frame.beta = (frame.first_alpha + frame.beta) // 2
        frame.first_alpha = max(best - searcher.window, -INFINITE)
        searcher.fail_highs = 0
        bound = UPPER
    elif best >= frame.beta:
        frame.beta = min(best + searcher.window, INFINITE)
        searcher.fail_highs += 1
        bound = LOWER
    else:
        bound = EXACT
    if searcher.pv_index == 0:
        store_node(searcher, frame, bound, frame.depth)
    if frame.best_move != NO_MOVE:
        reward_best(histories, frame, searcher.position, frame.depth)
    searcher.window += searcher.window * 44 // 128
    is_verbose = searcher.nodes >= searcher.verbose_from
    if bound != EXACT:
        return ROOT_OUTSIDE if is_verbose and searcher.multi_pv == 1 else ROOT_WINDOW
    searcher.pv_index += 1
    sort_root_moves(searcher, int64(0), searcher.pv_index)
    if searcher.pv_index == min(searcher.multi_pv, searcher.root_count):
        return ITERATION_DONE
    return ROOT_LINE_DONE if is_verbose else ROOT_LINE
