"""What is in a csv file: rows, and for each column its kind, gaps, range and most frequent values."""

import csv
import sys
from collections import Counter
from collections.abc import Iterator

MOST = 200_000  # rows that are looked at


def number(text: str) -> float | None:
    comma = text.count(",") == 1 and "." not in text
    try:
        return float(text.replace(",", ".") if comma else text)
    except ValueError:
        return None


def described(path: str) -> Iterator[str]:
    with open(path, newline="", encoding="utf-8-sig", errors="replace") as file:
        separator = max(",;\t|", key=file.readline().count)
        file.seek(0)
        rows = csv.reader(file, delimiter=separator)
        names = next(rows, [])
        columns: list[Counter[str]] = [Counter() for _ in names]
        count = odd = 0
        for row in rows:
            if count == MOST:
                yield f"only the first {MOST:,} rows are looked at"
                break
            count += 1
            odd += len(row) != len(names)
            for column, cell in zip(columns, row, strict=False):
                column[cell.strip()] += 1
    yield f"{path}: {count:,} rows, {len(names)} columns, separator {separator!r}"
    if odd:
        yield f"{odd:,} rows have more or fewer cells than the first line"
    for name, column in zip(names, columns, strict=True):
        yield column_described(name, column)


def column_described(name: str, column: "Counter[str]") -> str:
    gaps = column.pop("", 0)
    numbers = [value for value in map(number, column) if value is not None]
    if column and len(numbers) == len(column):
        told = f"number, {min(numbers):g} to {max(numbers):g}"
    else:
        told = f"text, {min(column, default='')[:30]!r} to {max(column, default='')[:30]!r}"
    often = ", ".join(f"{value[:30]!r} {times}x" for value, times in column.most_common(3))
    return f"- {name}: {told}; {len(column):,} different, {gaps:,} empty; {often}"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("say which csv file")
    for line in described(sys.argv[1]):
        sys.stdout.write(f"{line}\n")
