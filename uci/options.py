"""The engine's options, in the order in which `uci` lists them: one table for the protocol, `help` and README."""

from dataclasses import dataclass

from search.batching import MAX_SEARCHERS
from search.processors import MAX_THREADS

EMPTY_STRING = "<empty>"
LOG_OPTION = "Debug Log File"


class OptionError(ValueError):
    """An option or value that is refused; the message is a sentence."""


@dataclass(frozen=True)
class Option:
    """kind: check, spin, combo, string or button. minimum and maximum bound a spin; choices are those of a combo.

    is_open: whether a combo takes other values as well, of which whoever uses it says what they mean.
    is_listed: whether `uci` announces it.
    """

    name: str
    kind: str
    default: bool | int | str | None
    description: str
    minimum: int = 0
    maximum: int = 0
    choices: tuple[str, ...] = ()
    is_open: bool = False
    is_listed: bool = True

    def default_text(self) -> str:
        """The default as the protocol spells it; empty for a button."""
        if self.kind == "check":
            return str(self.default).lower()
        if self.kind == "string":
            return self.default or EMPTY_STRING
        return "" if self.default is None else str(self.default)

    def declaration(self) -> str:
        """The line by which `uci` announces the option."""
        text = f"option name {self.name} type {self.kind}"
        if self.kind != "button":
            text += f" default {self.default_text()}"
        if self.kind == "spin":
            text += f" min {self.minimum} max {self.maximum}"
        return text + "".join(f" var {choice}" for choice in self.choices)

    def parse(self, text: str) -> bool | int | str | None:
        """The value that `text` spells; OptionError if it is none."""
        if self.kind == "button":
            return None
        if self.kind == "string":
            return "" if text == EMPTY_STRING else text
        if self.kind == "check" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if self.kind == "combo":
            for choice in self.choices:
                if choice.lower() == text.lower():
                    return choice
            if self.is_open and text not in ("", EMPTY_STRING):
                return text.lower()
        if self.kind == "spin":
            digits = text.removeprefix("-")
            if digits.isascii() and digits.isdigit() and len(digits) < 20:
                if self.minimum <= int(text) <= self.maximum:
                    return int(text)
        raise OptionError(f"'{text}' is no value for option {self.name}; expected {self._expected()}.")

    def _expected(self) -> str:
        if self.kind == "check":
            return "true or false"
        if self.kind == "combo":
            return " or ".join(self.choices)
        return f"a whole number from {self.minimum} to {self.maximum}"


OPTIONS = (
    Option(LOG_OPTION, "string", "", "file to which all that comes in and goes out is appended; empty for none"),
    Option(
        "NumaPolicy",
        "string",
        "auto",
        "where search threads run: `auto`, `system`, `hardware`, `none`, or sets of processors such as `0-3:4-7`",
    ),
    Option("Threads", "spin", 1, "search threads", 1, MAX_THREADS),
    Option("Hash", "spin", 16, "size of the transposition table in MiB", 1, 33554432),
    Option("Clear Hash", "button", None, "forget all that was learnt in earlier searches"),
    Option("Ponder", "check", False, "the GUI lets the engine ponder, so a move may take more of the clock"),
    Option("MultiPV", "spin", 1, "number of best lines to search and show", 1, 128),
    Option("Move Overhead", "spin", 10, "milliseconds a move that get lost between engine and clock", 0, 5000),
    Option("nodestime", "spin", 0, "nodes that count as a millisecond of the clock; 0 for real time", 0, 10000),
    Option("UCI_ShowWDL", "check", False, "show expected wins, draws and losses per thousand games"),
    Option("EvalFile", "string", "", "network file, zstd or plain; empty for the one that comes with the engine"),
    Option("UCI_Variant", "combo", "xiangqi", "the game", choices=("xiangqi",)),
    Option("UCI_AnalyseMode", "check", False, "accepted, since some GUIs insist on it; changes nothing"),
    Option(
        "Backend",
        "combo",
        "auto",
        "what evaluates positions: `numba`, every thread by itself; `jax`, `jax:cpu`, `jax:gpu`, `jax:gpu:1`, …, in "
        "batches; `auto` takes what plays best",
        choices=("auto", "numba", "jax", "jax:cpu", "jax:gpu", "jax:tpu"),
        is_open=True,
    ),
    Option("BatchSize", "spin", 0, "positions in a batch at most; 0 for what suits the device", 0, 65536),
    Option(
        "Searchers",
        "spin",
        0,
        "trees that are searched at once with batches; 0 for what suits the device",
        0,
        MAX_SEARCHERS,
    ),
    Option(
        "Survive Errors",
        "check",
        False,
        "after a command that cannot be carried out, say so and go on instead of ending with status 1",
    ),
    # Hosts set these without asking whether there are any, and nothing depends on them.
    *(
        Option(name, "string", "", "accepted in silence; changes nothing", is_listed=False)
        for name in ("usemillisec", "SyzygyPath", "UCI_Chess960", "UCI_Opponent", "UCI_EngineAbout")
    ),
)

_BY_NAME = {option.name.lower(): option for option in OPTIONS}


def find_option(name: str) -> Option:
    """The option of this name, in any case; OptionError if there is none."""
    option = _BY_NAME.get(name.lower())
    if option is None:
        raise OptionError(f"No such option: {name}")
    return option


def split_assignment(words: list[str]) -> tuple[str, str]:
    """(name, value) from `NAME VALUE` without the words `name` and `value`: the longest option name that fits."""
    for count in range(len(words), 0, -1):
        name = " ".join(words[:count])
        if name.lower() in _BY_NAME:
            return name, " ".join(words[count:])
    return " ".join(words[:1]), " ".join(words[1:])


def option_table() -> list[str]:
    """The options as a Markdown table."""
    rows = [
        f"| {option.name} | {'' if option.kind == 'button' else f'`{option.default_text()}`'} | {option.description} |"
        for option in OPTIONS
        if option.is_listed
    ]
    return ["| option | default | meaning |", "|---|---|---|", *rows]
