"""The driver of the state machine: one loop that calls the function of the present phase.

`advance` runs until it has something to tell, and can be called again afterwards:

    EVALUATE          the searcher waits for searcher.evaluator.psqt and .positional of searcher.position
    ITERATION_DONE    an iteration is complete; root_order and root_moves hold its result
    ROOT_MOVE_CHOSEN, ROOT_OUTSIDE, ROOT_LINE_DONE    from searcher.verbose_from nodes on: the search of frames[0].move
                      begins; the score of the only line lies outside its window; a line of several is complete
    STOPPED           a limit was reached or a stop was asked for; the searcher must be set up anew
    FINISHED          the last iteration is complete
"""

from numba import int64

from games.jit import kernel, leaf
from games.xiangqi.judge import judge
from nnue_jax.accumulator import reset
from nnue_jax.numba_evaluator import evaluate
from search.main_search import (
    child_returned,
    choose_move,
    entered,
    evaluated,
    pass_returned,
    search_move,
    start_moves,
)
from search.nodes import (
    CHILD_RETURNED,
    ENTER,
    ENTERED,
    EVALUATE,
    EVALUATED,
    FINISHED,
    ITERATION_DONE,
    JUDGE,
    NEXT_MOVE,
    PASS_RETURNED,
    Q_CHILD_RETURNED,
    Q_ENTER,
    Q_ENTERED,
    Q_EVALUATE,
    Q_EVALUATED,
    Q_JUDGE,
    Q_NEXT_MOVE,
    ROOT_CHILD_RETURNED,
    ROOT_FINISHED,
    ROOT_ITERATION,
    ROOT_LINE,
    ROOT_LINE_DONE,
    ROOT_MOVE_CHOSEN,
    ROOT_NEXT_MOVE,
    ROOT_OUTSIDE,
    ROOT_WINDOW,
    SEARCH_MOVE,
    SINGULAR_RETURNED,
    START_MOVES,
    STOPPED,
    enter,
    top_frame,
)
from search.quiescence import q_child_returned, q_entered, q_evaluated, q_next_move
from search.root import (
    root_child_returned,
    root_finished,
    root_iteration,
    root_line,
    root_next_move,
    root_window,
)
from search.singular import singular_returned


@kernel
def start(searcher):
    """Make a searcher with position, root moves and limits set ready for `advance`."""
    searcher.phase = ROOT_ITERATION
    searcher.depth = 0
    searcher.completed_depth = 0
    searcher.top = 0
    searcher.ply = 0
    searcher.nodes = 0
    searcher.next_check = 0
    searcher.best_move_changes = 0
    if searcher.evaluates_inline:
        reset(searcher.evaluator, searcher.position)


@leaf
def _judged(searcher):
    """The judge's verdict on the node being entered."""
    frame = top_frame(searcher)
    last = searcher.root_index + searcher.ply
    ply = int64(searcher.ply)
    return judge(searcher.position, searcher.line, last, ply, frame.counters, searcher.moves, frame.begin)


@kernel
def advance(searcher, histories):
    """Run until there is something to tell; see the head of this file."""
    phase = searcher.phase
    while True:
        # The most frequent phases come first, and fall through to what usually follows.
        if phase == Q_ENTER:
            phase = enter(searcher, Q_JUDGE, Q_ENTERED)
        if phase == JUDGE or phase == Q_JUDGE:
            searcher.verdict = _judged(searcher)
            phase = ENTERED if phase == JUDGE else Q_ENTERED
        if phase == Q_ENTERED:
            phase = q_entered(searcher)
        if phase == EVALUATE or phase == Q_EVALUATE:
            phase = EVALUATED if phase == EVALUATE else Q_EVALUATED
            if not searcher.evaluates_inline:
                searcher.phase = phase
                return EVALUATE
            evaluate(searcher.evaluator, searcher.position, searcher.ply)
        if phase == Q_EVALUATED:
            phase = q_evaluated(searcher)
        if phase == Q_NEXT_MOVE:
            phase = q_next_move(searcher, histories)
        elif phase == Q_CHILD_RETURNED:
            phase = q_child_returned(searcher)
        elif phase == ENTER:
            phase = enter(searcher, JUDGE, ENTERED)
        elif phase == ENTERED:
            phase = entered(searcher)
        elif phase == EVALUATED:
            phase = evaluated(searcher)
        elif phase == START_MOVES:
            phase = start_moves(searcher)
        elif phase == NEXT_MOVE:
            phase = choose_move(searcher, histories)
        elif phase == SEARCH_MOVE:
            phase = search_move(searcher, histories)
        elif phase == CHILD_RETURNED:
            phase = child_returned(searcher, histories)
        elif phase == PASS_RETURNED:
            phase = pass_returned(searcher)
        elif phase == SINGULAR_RETURNED:
            phase = singular_returned(searcher)
        elif phase == ROOT_NEXT_MOVE:
            phase = root_next_move(searcher)
        elif phase == ROOT_CHILD_RETURNED:
            phase = root_child_returned(searcher)
        elif phase == ROOT_FINISHED:
            phase = root_finished(searcher, histories)
        elif phase == ROOT_LINE:
            phase = root_line(searcher)
        elif phase == ROOT_WINDOW:
            phase = root_window(searcher)
        elif phase == ROOT_ITERATION:
            phase = root_iteration(searcher)
        elif phase == ITERATION_DONE:
            searcher.phase = ROOT_ITERATION
            searcher.completed_depth = searcher.depth
            return ITERATION_DONE
        elif phase == ROOT_MOVE_CHOSEN:
            searcher.phase = SEARCH_MOVE
            return ROOT_MOVE_CHOSEN
        elif phase == ROOT_OUTSIDE:
            searcher.phase = ROOT_WINDOW
            return ROOT_OUTSIDE
        elif phase == ROOT_LINE_DONE:
            searcher.phase = ROOT_LINE
            return ROOT_LINE_DONE
        elif phase == STOPPED or phase == FINISHED:
            searcher.phase = phase
            return phase
