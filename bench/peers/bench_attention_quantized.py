"""tn_attention_quantized beside tn_attention of f32, on the processor, and its error. TENON_CPU_THREADS says how many threads.

    python3 bench/peers/bench_attention_quantized.py BUILD [LENGTH]...

Without a length: 8192. One batch element, four heads of size 128; quantization counts. Processor time of all threads. The
errors are those of the first 256 queries beside attention of f64, of normal random numbers, and of the same with outliers:
every sixteenth column of Q and K is 8 times as large, every eighth of V, and a constant of deviation 100 is added to each
column of K.
"""

import sys
import time

import package  # noqa: F401  # finds the others
import pairs

import numpy
import tenon

HEADS, SIZE, COMPARED, ROUNDS = 4, 128, 256, 5
AIMS = {"f32": 1.35, "f16": None, "f8_e4m3fn": None, "u8": 1.9, "i8": 1.9}


def inputs(length, outliers):
    """q, k and v, and the scale."""
    random = numpy.random.default_rng(7)
    q, k, v = (random.standard_normal((1, HEADS, length, SIZE), "float32") for _ in range(3))
    if not outliers:
        return q, k, v, SIZE**-0.5
    q[..., 3::16] *= 8
    k[..., 3::16] *= 8
    v[..., 3::8] *= 8
    k += 100 * random.standard_normal(SIZE, "float32")
    return q, k, v, (SIZE * (15 + 8**4) / 16)**-0.5


def errors(length, weights, outliers):
    """Cosine and relative L1."""
    q, k, v, scale = inputs(length, outliers)
    exact = tenon.attention(*(x.astype("float64") for x in (q[:, :, :COMPARED], k, v)), scale=scale)
    out = tenon.attention_quantized(q, k, v, weights=weights, scale=scale)[:, :, :COMPARED].astype("float64")
    cosine = (out * exact).sum() / numpy.sqrt((out**2).sum() * (exact**2).sum())
    return cosine, abs(out - exact).sum() / abs(exact).sum()


def processor_time(call):
    """An operation that returns the seconds of all threads."""
    def operation():
        start = time.process_time_ns()
        call()
        return (time.process_time_ns() - start) / 1e9
    return operation


def main():
    print("| length | weights | GFLOP/s | beside f32 attention | spread | normal: cosine, relative L1 | outliers |")
    print("|---|---|---|---|---|---|---|")
    for length in [int(x) for x in sys.argv[2:]] or [8192]:
        q, k, v, scale = inputs(length, False)
        out = numpy.empty_like(q)
        dense = processor_time(lambda: tenon.attention(q, k, v, scale=scale, out=out))
        for weights, aim in AIMS.items():
            ours = processor_time(lambda: tenon.attention_quantized(q, k, v, weights=weights, scale=scale, out=out))
            seconds, _, ratio, spread, verdict = pairs.judge(ours, dense, aim or 0, rounds=ROUNDS, repeats=1)
            near, far = (errors(length, weights, outliers) for outliers in (False, True))
            print(f"| {length} | {weights} | {4e-9 * HEADS * length**2 * SIZE / seconds:.0f} | {ratio:.2f} x"
                  f"{f', aim {aim}: {verdict}' if aim else ''} | {100 * spread:.0f} % | {near[0]:.5f}, {near[1]:.4f} | "
                  f"{far[0]:.5f}, {far[1]:.4f} |", flush=True)


if __name__ == "__main__":
    main()
