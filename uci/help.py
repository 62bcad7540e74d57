"""What the engine says of itself: the commands, from the table below, and the options, from theirs."""

from uci.options import OPTIONS

HELP_NAMES = ("help", "--help", "-h")
LICENSE_NAMES = ("license", "--license")

LICENSE_LINES = ("jaxfish is free software under the MIT licence; the file LICENSE has its text.",)

# What is typed, and what it does.
COMMANDS = (
    ("uci", "name, author and options"),
    ("isready", "answers `readyok`; waits for loading and for earlier commands, but not for a search"),
    ("setoption name N [value V]", "sets an option"),
    ("ucinewgame", "forgets all that was learnt in earlier searches; the position stays"),
    ("position startpos|fen F [moves M ...]", "sets the position, with the moves that led to it"),
    (
        "go [LIMIT ...]",
        "searches; the limits, which combine, are `depth N`, `nodes N`, `movetime MS`, `mate N`, `wtime MS`, "
        "`btime MS`, `winc MS`, `binc MS`, `movestogo N`, `infinite`, `ponder` and `searchmoves M ...`",
    ),
    ("go perft N", "counts the lines of N moves, by first move"),
    ("stop", "ends the search with the best move found so far"),
    ("ponderhit", "the expected move was played: the clock runs"),
    ("d", "shows the position, its counters, and the judge's verdict if there is one"),
    ("eval", "shows what the network makes of the position"),
    ("flip", "swaps the colours and turns the board"),
    ("bench [HASH] [THREADS] [LIMIT] [FILE|default|current] [TYPE]", "searches a set of positions and counts nodes"),
    ("speedtest [THREADS] [HASH] [SECONDS]", "plays through games of our own and tells the speed"),
    ("export_net [FILE]", "writes the network in use, not compressed"),
    ("compiler", "versions, processor, devices and cache folders"),
    ("help", "this text"),
    ("license", "the licence"),
    ("quit", "leaves; so does the end of the input"),
)

# What the program does instead, by its first argument; each is carried out by the module of this name.
FILE_COMMANDS = {
    "evaluate": "writes the network's evaluation of every position of a file; `jaxfish evaluate --help` tells more",
    "analyse": "writes what a search finds about every position of a file; `jaxfish analyse --help` tells more",
}


def help_lines() -> list[str]:
    """The answer to `help`."""
    lines = [
        "jaxfish is a UCI engine for xiangqi (Chinese chess). It is meant to be used from a GUI, and understands these",
        "commands, from a GUI, a terminal, or as the arguments of one call:",
        "",
        *(line for usage, meaning in COMMANDS for line in (f"  {usage}", f"      {_plain(meaning)}")),
        "",
        "As the first argument of a call, these make a table of a file instead:",
        "",
        *(line for name, meaning in FILE_COMMANDS.items() for line in (f"  {name}", f"      {_plain(meaning)}")),
        "",
        "Options, with their defaults:",
        "",
    ]
    for option in OPTIONS:
        if option.is_listed:
            default = f" ({option.default_text()})" if option.kind != "button" else ""
            lines += [f"  {option.name}{default}", f"      {_plain(option.description)}"]
    return lines


def _plain(text: str) -> str:
    """Without the marks of Markdown."""
    return text.replace("`", "")


def command_table() -> list[str]:
    """The commands as a Markdown table."""
    rows = [f"| `{usage.replace('|', chr(92) + '|')}` | {meaning} |" for usage, meaning in COMMANDS]
    return ["| command | what it does |", "|---|---|", *rows]
