"""The README says what is so: its tables are those that the engine itself goes by."""

from pathlib import Path

import pytest

from uci import analyse, evaluate
from uci.file_command import flag_table
from uci.help import COMMANDS, FILE_COMMANDS, command_table, help_lines
from uci.options import OPTIONS, option_table

README = (Path(__file__).parent.parent / "README.md").read_text()


TABLES = {
    "commands": command_table(),
    "options": option_table(),
    "evaluate": flag_table(evaluate.FLAGS),
    "analyse": flag_table(analyse.FLAGS),
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_tables_are_generated_from_the_engines_own(table):
    assert "\n".join(table) in README, f"the README needs this table:\n{chr(10).join(table)}"


def test_help_names_every_option():
    lines = [line.strip() for line in help_lines()]
    for option in OPTIONS:
        assert any(line == option.name or line.startswith(f"{option.name} (") for line in lines) == option.is_listed


def test_help_names_every_command():
    lines = [line.strip() for line in help_lines()]
    for name in (*(usage for usage, _ in COMMANDS), *FILE_COMMANDS):
        assert name in lines
