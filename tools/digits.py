#!/usr/bin/env python3
"""Writes scikit-learn's digits, 1,797 pictures of 8 x 8 (UCI, CC BY 4.0), as PNG files: FOLDER/train/DIGIT/NUMBER.png and FOLDER/test/...

The last fifth of them, which other people wrote, is the test. Debian: apt-get install python3-sklearn.
usage: tools/digits.py FOLDER
"""
import pathlib
import struct
import sys
import zlib

import sklearn.datasets


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(picture):
    """The file of a picture of rows of bytes, in grey."""
    header = struct.pack(">IIBBBBB", len(picture[0]), len(picture), 8, 0, 0, 0, 0)
    rows = b"".join(b"\0" + bytes(row) for row in picture)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    digits = sklearn.datasets.load_digits()
    for number, (picture, digit) in enumerate(zip(digits.images, digits.target)):
        folder = pathlib.Path(sys.argv[1]) / ("train" if number < 1438 else "test") / str(digit)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:04}.png").write_bytes(png([[round(v * 255 / 16) for v in row] for row in picture]))


if __name__ == "__main__":
    main()
