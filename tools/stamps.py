#!/usr/bin/env python3
"""Writes lists of the stamps of Tux Paint, pictures that the Debian package tuxpaint-stamps-default ships (GPL-2), for heddle train.

FOLDER/train.csv and FOLDER/test.csv have the columns file and kind: the eight kinds of which there are most, in the order of their names,
of which every fifth picture is for the test.
usage: tools/stamps.py FOLDER
"""
import csv
import pathlib
import sys

KINDS = ["animals", "food", "household", "plants", "seasonal", "symbols", "town", "vehicles"]
STAMPS = pathlib.Path("/usr/share/tuxpaint/stamps")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    if not STAMPS.is_dir():
        sys.exit("there are no stamps: apt-get install tuxpaint-stamps-default")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    rows = [(str(path), kind) for kind in KINDS for path in sorted((STAMPS / kind).rglob("*.png"))]
    for name, is_test in (("train", False), ("test", True)):
        with open(folder / f"{name}.csv", "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["file", "kind"])
            writer.writerows(row for number, row in enumerate(rows) if (number % 5 == 4) == is_test)


if __name__ == "__main__":
    main()
