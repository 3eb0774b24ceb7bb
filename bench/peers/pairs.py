"""How a speed is measured beside a rival that lives in Python: as bench/harness.h says it.

Ours, the rival and ours again (the A/A pair) run in turn, ROUNDS times, in one process; each round
begins with another. What is reported is the median of the ratios, and the spread is how far ours is
from itself. A figure is reached at its aim less the spread. A spread above 5 % is measured again, at
most REPEATS times; then the figure is "not measurable here".
"""

import itertools
import statistics
import time

ROUNDS, REPEATS, WIDEST = 31, 5, 0.05


def seconds(operation, pause=0):
    """How long it takes, after a pause: by its own word, if it gives a number."""
    if pause:
        time.sleep(pause)
    start = time.perf_counter_ns()
    told = operation()
    return told if isinstance(told, float) else (time.perf_counter_ns() - start) / 1e9


def repeated(call, times, clock=time.perf_counter_ns):
    """An operation of so many calls that returns the seconds of one. With time.thread_time_ns these are processor time of
    this thread, which other work on the machine disturbs little."""
    def operation():
        start = clock()
        for _ in itertools.repeat(None, times):
            call()
        return (clock() - start) / 1e9 / times
    return operation


def sampled(call, sample, clock=time.perf_counter_ns):
    """The same, of as many calls as take about so many seconds."""
    times = 1
    while (taken := times * repeated(call, times, clock)()) < sample / 2:
        times = max(2 * times, min(int(times * sample / max(taken, 1e-9)), 64 * times))
    return repeated(call, times, clock)


def measure(ours, rival, pause=0, rounds=ROUNDS):
    """Seconds of each side, round by round; (ours, rival, ours again)."""
    sides, taken = (ours, rival, ours), ([], [], [])
    for side in sides:
        side()  # warm
    for turn in range(rounds):
        for i in range(len(sides)):
            which = (i + turn) % len(sides)
            taken[which].append(seconds(sides[which], pause))
    return taken


def spread_of(ours, again):
    """Half the distance between the quartiles of ours over ours again, or how far their middle is
    from one if that is more."""
    ratios = [a / b for a, b in zip(ours, again)]
    low, middle, high = statistics.quantiles(ratios, n=4)
    return max((high - low) / 2, abs(middle - 1))


def verdict(ratio, spread, aim):
    if spread > WIDEST:
        return "not measurable here"
    return "reached" if ratio >= aim * (1 - spread) else "not reached"


def judge(ours, rival, aim, pause=0, rounds=ROUNDS, repeats=REPEATS):
    """Median seconds of ours and of the rival, the ratio, the spread, and the verdict. Measured again where the spread is
    too wide, at most so many times."""
    for _ in range(repeats):
        taken = measure(ours, rival, pause, rounds)
        spread = spread_of(taken[0], taken[2])
        if spread <= WIDEST:
            break
    ratio = statistics.median(b / a for a, b in zip(taken[0], taken[1]))
    return statistics.median(taken[0]), statistics.median(taken[1]), ratio, spread, verdict(ratio, spread, aim)


def compare(name, work, ours, rival_name, rival, aim, unit="GB/s", pause=0,
            rounds=ROUNDS):
    """Prints one row. `work` is what an operation does, in billionths of the unit; `rival` is None where it is
    lacking. Before each operation there is a pause of so many seconds."""
    if rival is None:
        print(f"{name:<52} lacking: {rival_name}  aim ratio >= {aim:g}  "
              "not reached: the rival is lacking", flush=True)
        return
    mine, its, ratio, spread, words = judge(ours, rival, aim, pause, rounds)
    print(f"{name:<52} ours {work / mine / 1e9:6.2f} {unit}  {rival_name} {work / its / 1e9:6.2f} {unit}  "
          f"ratio {ratio:.2f}  A/A spread {100 * spread:4.1f} %  aim ratio >= {aim:g}  {words}", flush=True)
