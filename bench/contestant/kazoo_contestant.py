"""kazoo as a contestant of the benchmark; docs/benchmarks.md says what it is asked."""

import json
import resource
import sys
import threading
import time

from kazoo.client import KazooClient

# In per mille; the driver has the same list.
QUANTILES = (0, 10, 50, 100, 200, 250, 300, 400, 500,
             600, 700, 750, 800, 900, 950, 990, 999, 1000)

# While all warm up: measured sections are empty, and two at a time would hardly ever meet.
SECTION_S = 200e-6


def parse(words: list[str]) -> dict[str, str]:
    return {name[2:]: value for name, value in zip(words[::2], words[1::2])}


def processor_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def resident_kb() -> int:
    with open("/proc/self/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


class Section:
    """Readers count one each, a writer, or the holder of a mutex, a million."""

    WRITER = 1_000_000

    def __init__(self):
        self.mutex = threading.Lock()
        self.inside = 0
        self.violations = 0

    def enter(self, writing: bool):
        with self.mutex:
            if self.inside != 0 if writing else self.inside >= self.WRITER:
                self.violations += 1
            self.inside += self.WRITER if writing else 1

    def leave(self, writing: bool):
        with self.mutex:
            self.inside -= self.WRITER if writing else 1


class Worker(threading.Thread):
    """Locks and unlocks until told otherwise; for "rw" one of ten turns is a writer's."""

    phase = "warm-up"

    def __init__(self, client, path: str, rw: bool, section: Section, turn: int):
        super().__init__()
        self.exclusive = client.WriteLock(path) if rw else client.Lock(path)
        self.shared = client.ReadLock(path) if rw else None
        self.section = section
        self.turn = turn
        self.latencies: list[float] = []
        self.error: Exception | None = None

    def run(self):
        try:
            while Worker.phase != "over":
                measured = Worker.phase == "measured"
                start = time.perf_counter()
                self.pair(stays=not measured)
                if measured:
                    self.latencies.append(time.perf_counter() - start)
        except Exception as error:  # pylint: disable=broad-except
            self.error = error

    def pair(self, stays: bool):
        self.turn += 1
        writing = self.shared is None or self.turn % 10 == 0
        lock = self.exclusive if writing else self.shared
        lock.acquire()
        self.section.enter(writing)
        if stays:
            time.sleep(SECTION_S)
        self.section.leave(writing)
        lock.release()


def pairs(options: dict[str, str]) -> dict:
    each = int(options.get("workers", "1"))
    rw = options["workload"] == "rw"
    one = rw or options.get("locks", "own") == "one"
    shared = Section()
    workers = []
    for session in range(int(options.get("sessions", "1"))):
        client = KazooClient(hosts=options["connect"], timeout=30.0)
        client.start(timeout=60)
        for _ in range(each):
            number = len(workers)
            path = f"{options['path']}/{0 if one else number}"
            section = shared if one else Section()
            workers.append(Worker(client, path, rw, section, number * 3))
    for worker in workers:
        worker.start()
    time.sleep(float(options.get("warmup", "1")))
    print("begin", flush=True)
    processor = processor_s()
    start = time.perf_counter()
    Worker.phase = "measured"
    time.sleep(float(options.get("seconds", "1")))
    Worker.phase = "over"
    seconds = time.perf_counter() - start
    processor = processor_s() - processor
    for worker in workers:
        worker.join()
        if worker.error:
            raise worker.error
    latencies = sorted(each for worker in workers for each in worker.latencies)
    last = len(latencies) - 1
    counts = [len(worker.latencies) for worker in workers]
    return {
        "ops": len(latencies), "samples": len(latencies), "seconds": seconds, "cpu_s": processor,
        "rss_kb": resident_kb(), "fewest": min(counts), "most": max(counts),
        "quantiles_us": [latencies[last * point // 1000] * 1e6 for point in QUANTILES]
        if latencies else [],
        "violations": sum(section.violations for section in {w.section for w in workers}),
    }


def main():
    options = parse(sys.argv[1:])
    if options["workload"] not in ("pairs", "rw"):
        raise SystemExit(f"no workload {options['workload']}")
    print(json.dumps(pairs(options)), flush=True)


if __name__ == "__main__":
    main()
