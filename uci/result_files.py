"""Writing evaluations as CSV, JSON lines or Parquet.

`encode` makes of one block's results what goes into the file, and may run on any thread; `write` takes these
in order. What is written depends on the results and on how they are split into blocks, and on nothing else.
"""

import json
import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from uci.position_files import FEN_COLUMN, import_pyarrow

# All but the first two are unknown for a side to move that is in check; all are for a FEN that was refused.
OUTPUT_COLUMNS = ("psqt", "positional")
OUTCOME_COLUMNS = ("value", "cp", "win", "draw", "loss")
NUMBER_COLUMNS = OUTPUT_COLUMNS + OUTCOME_COLUMNS
ERROR_COLUMN = "error"


class OutputError(ValueError):
    """An output that cannot be written; the message is a sentence that says why."""


@dataclass(frozen=True)
class Results:
    """Evaluations of the n positions of a block.

    offsets       [n + 1] int32, where each FEN begins in `text`, and the last ends
    text          [.] uint8, UTF-8
    numbers       [n] int32 for each of NUMBER_COLUMNS
    is_refused    [n] bool, whether the FEN was refused
    is_unknown    [n] bool, whether there are no OUTCOME_COLUMNS
    errors        sentence for each number of a refused FEN
    """

    offsets: np.ndarray
    text: np.ndarray
    numbers: dict[str, np.ndarray]
    is_refused: np.ndarray
    is_unknown: np.ndarray
    errors: dict[int, str]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def fens(self) -> list[str]:
        data = self.text.tobytes()
        offsets = self.offsets.tolist()
        if data.isascii():
            text = data.decode()
            return [text[start:end] for start, end in pairwise(offsets)]
        return [data[start:end].decode() for start, end in pairwise(offsets)]

    def rows(self) -> Iterator[tuple]:
        """(refused, unknown, the NUMBER_COLUMNS) of each position."""
        columns = [self.is_refused, self.is_unknown, *(self.numbers[name] for name in NUMBER_COLUMNS)]
        return zip(*(column.tolist() for column in columns), strict=True)

    def mask_of(self, name: str) -> np.ndarray:
        """[n] bool: where a column holds nothing."""
        return self.is_refused if name in OUTPUT_COLUMNS else self.is_unknown


class ResultWriter(ABC):
    """Writes one file. has_errors: whether there is a column for the sentences about refused FENs."""

    def __init__(self, file: BinaryIO, has_errors: bool):
        self._file = file
        self._has_errors = has_errors

    @abstractmethod
    def begin(self) -> None:
        """Write what stands before the first block."""

    @abstractmethod
    def encode(self, results: Results) -> Any:
        """What `write` takes for these results."""

    @abstractmethod
    def write(self, encoded: Any) -> None:
        """Append one block."""

    def finish(self) -> None:
        """Write what stands behind the last block."""
        self._file.flush()


class _LineWriter(ResultWriter):
    """Writes one line a position."""

    def write(self, encoded: bytes) -> None:
        self._file.write(encoded)

    def encode(self, results: Results) -> bytes:
        fens = results.fens()
        if self._needs_quotes(results.text):
            fens = [self._quoted(fen) for fen in fens]
        full, partial, empty = self._templates()
        lines = []
        for number, (fen, (refused, unknown, *numbers)) in enumerate(zip(fens, results.rows(), strict=True)):
            if refused:
                error = self._quoted(results.errors[number])
                lines.append(f"{empty % fen}{self._error(error)}")
            elif unknown:
                lines.append(partial % (fen, *numbers[: len(OUTPUT_COLUMNS)]))
            else:
                lines.append(full % (fen, *numbers))
        return "".join(lines).encode()

    @abstractmethod
    def _templates(self) -> tuple[str, str, str]:
        """Lines for (fen, all numbers), for (fen, outputs), and the beginning of the line of a refused fen."""

    @abstractmethod
    def _error(self, error: str) -> str:
        """The rest of such a line."""

    @abstractmethod
    def _needs_quotes(self, text: np.ndarray) -> bool:
        """Whether any of the bytes is one that may not stand in a line as it is."""

    @abstractmethod
    def _quoted(self, text: str) -> str: ...


class CsvWriter(_LineWriter):
    """Lines end with a line feed; a field is quoted if it must be."""

    _SPECIAL = '",\r\n'

    def begin(self) -> None:
        names = [FEN_COLUMN, *NUMBER_COLUMNS, *([ERROR_COLUMN] if self._has_errors else [])]
        self._file.write((",".join(names) + "\n").encode())

    def _templates(self) -> tuple[str, str, str]:
        end = ",\n" if self._has_errors else "\n"
        full = "%s" + ",%d" * len(NUMBER_COLUMNS) + end
        partial = "%s" + ",%d" * len(OUTPUT_COLUMNS) + "," * len(OUTCOME_COLUMNS) + end
        return full, partial, "%s" + "," * len(NUMBER_COLUMNS)

    def _error(self, error: str) -> str:
        return f",{error}\n"

    def _needs_quotes(self, text: np.ndarray) -> bool:
        return any(letter in text.tobytes() for letter in map(str.encode, self._SPECIAL))

    def _quoted(self, text: str) -> str:
        if any(letter in text for letter in self._SPECIAL):
            return '"' + text.replace('"', '""') + '"'
        return text


class JsonWriter(_LineWriter):
    """One object a line."""

    def begin(self) -> None:
        pass

    def _templates(self) -> tuple[str, str, str]:
        end = f', "{ERROR_COLUMN}": null}}\n' if self._has_errors else "}\n"
        full = '{"fen": "%s"' + "".join(f', "{name}": %d' for name in NUMBER_COLUMNS) + end
        nulls = "".join(f', "{name}": null' for name in OUTCOME_COLUMNS)
        partial = '{"fen": "%s"' + "".join(f', "{name}": %d' for name in OUTPUT_COLUMNS) + nulls + end
        return full, partial, '{"fen": "%s"' + "".join(f', "{name}": null' for name in NUMBER_COLUMNS)

    def _error(self, error: str) -> str:
        return f', "{ERROR_COLUMN}": "{error}"}}\n'

    def _needs_quotes(self, text: np.ndarray) -> bool:
        return bool(((text < ord(" ")) | (text == ord('"')) | (text == ord("\\"))).any())

    def _quoted(self, text: str) -> str:
        return json.dumps(text, ensure_ascii=False)[1:-1]


class ParquetWriter(ResultWriter):
    """A row group a block; numbers are int32."""

    def begin(self) -> None:
        self._pa = pa = import_pyarrow()
        fields = [pa.field(FEN_COLUMN, pa.string()), *(pa.field(name, pa.int32()) for name in NUMBER_COLUMNS)]
        if self._has_errors:
            fields.append(pa.field(ERROR_COLUMN, pa.string()))
        self._schema = pa.schema(fields)
        # FENs seldom repeat, so a dictionary of them costs time and saves nothing.
        self._parquet = pa.parquet.ParquetWriter(self._file, self._schema, use_dictionary=False)

    def encode(self, results: Results) -> Any:
        pa = self._pa
        columns = [pa.StringArray.from_buffers(len(results), pa.py_buffer(results.offsets), pa.py_buffer(results.text))]
        for name in NUMBER_COLUMNS:
            columns.append(pa.array(results.numbers[name], pa.int32(), mask=results.mask_of(name)))
        if self._has_errors:
            errors = [results.errors.get(i) for i in range(len(results))] if results.errors else None
            columns.append(pa.nulls(len(results), pa.string()) if errors is None else pa.array(errors, pa.string()))
        return pa.Table.from_arrays(columns, schema=self._schema)

    def write(self, encoded: Any) -> None:
        if len(encoded):
            self._parquet.write_table(encoded, row_group_size=len(encoded))

    def finish(self) -> None:
        self._parquet.close()
        super().finish()


WRITERS: dict[str, type[ResultWriter]] = {".csv": CsvWriter, ".jsonl": JsonWriter, ".parquet": ParquetWriter}


def writer_class(path: Path) -> type[ResultWriter]:
    """The writer for files with this ending; OutputError if there is none."""
    try:
        return WRITERS[path.suffix.lower()]
    except KeyError:
        raise OutputError(f"The output '{path}' ends with none of {', '.join(WRITERS)}.") from None


class ResultFile:
    """An output that appears under its name only when it is complete; standard output for None."""

    def __init__(self, path: Path | None, has_errors: bool):
        self._path = path
        if path is None:
            self.writer: ResultWriter = CsvWriter(sys.stdout.buffer, has_errors)
            return
        create = writer_class(path)
        if create is ParquetWriter:
            import_pyarrow()
        self._unfinished = beside(path, ".part")
        try:
            self._file = self._unfinished.open("wb")
        except OSError as error:
            raise OutputError(f"The output '{self._unfinished}' cannot be written: {error.strerror}.") from error
        self.writer = create(self._file, has_errors)

    def complete(self) -> None:
        """Give the file its name."""
        if self._path is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._unfinished.replace(self._path)

    def discard(self) -> None:
        """Delete what was written."""
        if self._path is not None:
            self._file.close()
            self._unfinished.unlink(missing_ok=True)


def beside(path: Path, ending: str) -> Path:
    """The file whose name is longer by `ending`."""
    return path.with_name(path.name + ending)
