#!/usr/bin/env python3
"""Many trainings of four processes under mpirun, of which some are killed at any moment.

    started_ranks.py --heddle build/dev/bin/heddle [--starts N] [--seed S]

Needs Open MPI (openmpi-bin), Redis (redis-server) and several minutes, so no test runs it; `tools/soak.sh --ranks` does. Ends with 1 when
something is other than it has to be.

Each training is that of lenet, started by `mpirun --enable-recovery -n 4` with tools/restart_training.sh below it. One or two of its ranks are
killed within two seconds, so that they die while ranks meet, compare, train, save or end. They meet

* in a folder, in which all trainings of the hunt meet one after another, so that each finds what killed ones have left;
* or, every fourth one, by Redis, whose server is killed and started again while they train, without what it knew;
* and every third one has a second training of another name beside it, in the same folder or server, which must never meet the first.

The file of -o with its weights is that of one undisturbed training, each time, and the log has each step once.
"""
import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

RANKS = 4
STEPS = 60
WAIT = 300  # seconds that one training may take
SCRIPT = pathlib.Path(__file__).resolve().parents[3] / "tools" / "restart_training.sh"


class Redis:
    """A server that has no memory of the one before it."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.folder = folder
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self.folder)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(500):
            answer = subprocess.run(["redis-cli", "-p", str(self.port), "ping"], capture_output=True, text=True, check=False)
            if answer.stdout == "PONG\n":
                return
            time.sleep(0.01)
        raise RuntimeError("redis-server does not answer")

    def kill(self):
        self.process.kill()
        self.process.wait()


def processes_of(marker):
    """The `heddle train` processes that write to this run: mpirun and the script have other first words."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
        except OSError:
            continue
        if len(words) > 2 and words[1] == b"train" and words[0].endswith(b"heddle") and marker.encode() in words:
            found.append(int(entry.name))
    return found


class Training:
    """Training number `name` of a folder, by 4 processes or by one."""

    def __init__(self, heddle, folder, name, seed):
        self.heddle, self.folder, self.name, self.seed = heddle, folder, name, seed
        self.output = str(folder / f"{name}.heddle")
        self.killed = 0

    def words(self):
        return [self.heddle, "train", str(self.folder / "lenet.heddle"), "--steps", str(STEPS), "--batch", "24", "--data", "synthetic", "--samples", "120",
                "--threads", "1", "--seed", str(self.seed), "--learning-rate", "0.001", "--log", str(self.folder / f"{self.name}.jsonl"), "-o", self.output,
                "--checkpoint-dir", str(self.folder / self.name), "--checkpoint-every", "7", "--resume"]

    def start(self, rendezvous):
        words = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--enable-recovery", "-n", str(RANKS), str(SCRIPT), "3", *self.words()]
        words += ["--rendezvous", rendezvous, "--timeout", "15"]
        self.process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)

    def kill_some(self, dice):
        """Kills one or two of the ranks that are alive, at moments of the first two seconds."""
        moments = sorted(dice.uniform(0.3, 1.8) for _ in range(dice.choice([1, 1, 2])))
        begun = time.monotonic()
        for moment in moments:
            time.sleep(max(0, begun + moment - time.monotonic()))
            alive = processes_of(self.output)
            if alive:
                try:
                    os.kill(dice.choice(alive), signal.SIGKILL)
                    self.killed += 1
                except ProcessLookupError:
                    pass

    def end(self):
        try:
            out, _ = self.process.communicate(timeout=WAIT)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            out, _ = self.process.communicate()
            return out + f"\n{self.name} did not end within {WAIT} s"
        return out

    def learned(self):
        """What -o has, and the losses of the log."""
        weights = pathlib.Path(self.output.replace(".heddle", ".safetensors"))
        if not weights.exists():
            return None
        lines = [json.loads(line) for line in (self.folder / f"{self.name}.jsonl").read_text().splitlines()]
        return weights.read_bytes(), [(line["step"], line["loss"]) for line in lines if "loss" in line]

    def forget(self):
        for path in self.folder.glob(f"{self.name}*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()


class Hunt:
    def __init__(self, heddle, folder, seed):
        self.heddle, self.folder, self.dice = heddle, folder, random.Random(seed)
        subprocess.run([heddle, "model", "lenet", "--loss", "--seed", "2", "-o", str(folder / "lenet.heddle")], check=True, stdout=subprocess.DEVNULL)
        self.redis = Redis(folder)
        self.expected = [self.undisturbed(seed) for seed in (3, 4)]
        self.killed = self.again = self.servers = self.pairs = self.bad = 0

    def undisturbed(self, seed):
        training = Training(self.heddle, self.folder, f"undisturbed{seed}", seed)
        training.start(f"file:{self.folder / 'first'}")
        out = training.end()
        learned = training.learned()
        if not learned or len(learned[1]) != STEPS:
            raise RuntimeError(f"a training that was not disturbed has failed:\n{out}")
        return learned

    def begin(self, number):
        by_redis, pair = number % 4 == 3, number % 3 == 2
        trainings = [Training(self.heddle, self.folder, f"run{number}{'ab'[i]}", 3 + i) for i in range(2 if pair else 1)]
        for training, name in zip(trainings, ("job", "other")):
            training.start(f"redis:127.0.0.1:{self.redis.port}/{name}" if by_redis else f"file:{self.folder / name}")
        kills = [threading.Thread(target=training.kill_some, args=(random.Random(self.dice.random()),)) for training in trainings]
        for thread in kills:
            thread.start()
        if by_redis:
            time.sleep(self.dice.uniform(0, 1.8))
            self.redis.kill()
            self.redis.start()
            self.servers += 1
        self.pairs += pair
        for thread in kills:
            thread.join()
        return trainings

    def one(self, number):
        trainings = self.begin(number)
        for training, expected in zip(trainings, self.expected):
            out = training.end()
            self.killed += training.killed
            self.again += out.count("runs again")
            if training.learned() != expected:
                self.bad += 1
                print(f"{training.name}: is other than the undisturbed training\n{out}", flush=True)
            else:
                training.forget()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", required=True)
    parser.add_argument("--starts", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        hunt = Hunt(str(pathlib.Path(arguments.heddle).resolve()), pathlib.Path(name), arguments.seed)
        try:
            for number in range(arguments.starts):
                hunt.one(number)
                if number % 20 == 19:
                    print(f"{number + 1} starts, {hunt.pairs} of them of two jobs, {hunt.killed} ranks killed, {hunt.servers} servers killed, "
                          f"{hunt.again} ranks run again, bad {hunt.bad}", flush=True)
        finally:
            hunt.redis.kill()
    return 1 if hunt.bad else 0


if __name__ == "__main__":
    sys.exit(main())
