"""Heddle as it is asked: heddle_differential_driver in a process of its own, started again when it dies or hangs (wire.h)."""
import os
import select
import struct
import subprocess
import time

import numpy as np

from cases import NAMES, TYPES, name_of


class Failure(Exception):
    """stage: import, open, run, crash or hang."""

    def __init__(self, stage, code, text):
        super().__init__(f"{stage}: {text}")
        self.stage, self.code, self.text = stage, code, text


class Driver:
    def __init__(self, program, seconds=20):
        self.program, self.seconds, self.process = program, seconds, None

    def read(self, count):
        parts = bytearray()
        while len(parts) < count:
            left = self.until - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.process.kill()
                self.process.wait()
                self.process = None
                raise Failure("hang", "hang", f"no answer after {self.seconds} s")
            got = os.read(self.process.stdout.fileno(), count - len(parts))
            if not got:
                code = self.process.wait()
                self.process = None
                raise Failure("crash", "crash", f"the process ended with {code}")
            parts += got
        return bytes(parts)

    def number(self, form="I"):
        return struct.unpack("<" + form, self.read(struct.calcsize("<" + form)))[0]

    def text(self):
        return self.read(self.number()).decode("utf-8", "replace")

    def run(self, model, inputs):
        """The outputs of serialised `model` on a list of arrays; raises Failure."""
        if not self.process:
            self.process = subprocess.Popen([self.program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.until = time.monotonic() + self.seconds
        request = bytearray(struct.pack("<I", len(model)) + model + struct.pack("<I", len(inputs)))
        for array in inputs:
            request += struct.pack("<ii", NAMES.index(name_of(array.dtype)), array.ndim) + struct.pack(f"<{array.ndim}q", *array.shape)
            request += np.ascontiguousarray(array).tobytes()
        try:
            self.process.stdin.write(request)
        except BrokenPipeError:
            pass
        if self.number() == 1:
            stage, code, text = self.text(), self.text(), self.text()
            raise Failure(stage, code, text)
        outputs = []
        for _ in range(self.number()):
            dtype, rank = TYPES[NAMES[self.number("i")]], self.number("i")
            shape = tuple(self.number("q") for _ in range(rank))
            content = self.read(int(np.prod(shape, dtype=np.int64)) * dtype.itemsize)
            outputs.append(np.frombuffer(content, dtype).reshape(shape))
        return outputs
