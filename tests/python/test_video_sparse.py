"""Attentions that choose blocks for each video (SLA, NABLA, BSA, VMoBA, packed video sparse attention) against their
definitions: loops that choose, and dense attention in float64 over what was chosen."""

import functools

import numpy
import pytest

import tenon
from tenon import _video_vmoba, video
from test_video import attend, libraries, normal, tiles_of

GEOMETRIES = [((4, 6, 5), (2, 2, 2)), ((3, 5, 7), (2, 3, 4)), ((1, 1, 1), (4, 4, 4)), ((2, 2, 9), (1, 2, 3))]
Q_HEADS, K_HEADS, SIZE = 4, 2, 8


@pytest.fixture
def random():
    return numpy.random.default_rng(20)


def operands(random, length, dtype="float64", batch=2):
    """Queries, and keys and values of fewer heads."""
    return [normal(random, batch, length, heads, SIZE, dtype=dtype) for heads in (Q_HEADS, K_HEADS, K_HEADS)]


def spread(x):
    """A head of keys for each head of queries, in float64."""
    return numpy.repeat(x.astype("float64"), Q_HEADS // x.shape[2], 2)


def rows_of(scores):
    """Each (batch, head, row)."""
    return numpy.ndindex(scores.shape[:-1])


def first_best(row, count):
    """The numbers of the `count` greatest; of equal ones the first."""
    return sorted(range(len(row)), key=lambda n: (-row[n], n))[:count]


def softmax(x):
    e = numpy.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def scores_of(q, k, block_q, block_k, scale):
    """scale times the product of the means of the tokens of each block."""
    means = [numpy.stack([x[:, of == n].mean(1) for n in range(of.max() + 1)], 1) for x, of in ((q, block_q), (k, block_k))]
    return numpy.einsum("bqhd,bkhd->bhqk", *means) * scale


def tokens_of(kept, block_q, block_k):
    """Which tokens see which, of a choice of blocks."""
    return kept[:, :, block_q][:, :, :, block_k]


def expect(call, wanted, given, near=1e-10):
    """The same of each library's arrays, contiguous or not."""
    for make in libraries():
        for strided in (False, True):
            out = call(*(make(x if not strided else x.transpose(1, 0, 2, 3).copy().transpose(1, 0, 2, 3)) for x in given))
            assert type(out) is type(make(given[0]))
            numpy.testing.assert_allclose(numpy.asarray(out), wanted, near, near)


# Sparse plus linear attention

FEATURES = {"softmax": softmax, "relu": lambda x: numpy.maximum(x, 0),
            "elu": lambda x: numpy.where(x > 0, x, numpy.expm1(x)) + 1}


def sla(q, k, v, ratio, block, feature, scale, weight, bias):
    k, v = spread(k), spread(v)
    of_q, of_k = (numpy.arange(q.shape[1]) // size for size in block)
    scores = scores_of(q, k - k.mean(1, keepdims=True), of_q, of_k, scale)
    kept = numpy.zeros(scores.shape, bool)
    count = min(max(int(numpy.floor(ratio * scores.shape[-1] + 1e-9)), 1), scores.shape[-1])
    for row in rows_of(scores):
        kept[row][first_best(scores[row], count)] = True
    weights = numpy.einsum("bqhd,bkhd->bhqk", FEATURES[feature](q), FEATURES[feature](k))
    linear = numpy.einsum("bhqk,bkhd->bqhd", weights / (weights.sum(-1, keepdims=True) + 1e-5), v)
    return attend(q, k, v, tokens_of(kept, of_q, of_k), scale) + (linear if weight is None else linear @ weight.T + bias)


@pytest.mark.parametrize("length, block", [(1, (128, 64)), (70, (16, 8)), (64, (8, 16)), (50, (7, 9))])
@pytest.mark.parametrize("ratio", [0, 0.29, 0.5, 1])
def test_sparse_linear(random, length, block, ratio):
    q, k, v = operands(random, length)
    k += 3  # smoothing has something to subtract
    weight, bias = normal(random, SIZE, SIZE, dtype="float64"), normal(random, SIZE, dtype="float64")
    for feature in FEATURES:
        for layer in (None, (weight, bias)):
            wanted = sla(q, k, v, ratio, block, feature, 0.3, *(layer or (None, None)))
            for make in libraries():
                out = video.sla_attention(*map(make, (q, k, v)), ratio, block=block, feature_map=feature, scale=0.3,
                                          projection=layer and tuple(map(make, layer)))
                numpy.testing.assert_allclose(numpy.asarray(out), wanted, 1e-9, 1e-10)


def test_sparse_linear_keeps_at_least_one_block(random):
    """Of few blocks a small ratio is none by upstream's rule; nothing would be seen."""
    q, k, v = operands(random, 40)
    out = video.sla_attention(q, k, v, 0.1, block=(20, 20), projection=(numpy.zeros((SIZE, SIZE)), None))
    assert numpy.isfinite(out).all() and abs(out).max() > 0.1


# NABLA


def nabla(q, k, v, mass, blocks, extra, scale):
    k, v = spread(k), spread(v)
    weights = softmax(scores_of(q, k, blocks, blocks, scale))
    kept = numpy.broadcast_to(extra, weights.shape).copy()
    for row in rows_of(weights):
        total = 0.0
        for n in reversed(first_best(weights[row], weights.shape[-1])):  # from the least probable on
            total += weights[row][n]
            kept[row][n] |= total >= 1 - mass
        kept[row][first_best(weights[row], 1)] = True
    return attend(q, k, v, tokens_of(kept, blocks, blocks), scale)


@pytest.mark.parametrize("canvas, tile", GEOMETRIES)
@pytest.mark.parametrize("mass", [0, 0.3, 0.9, 1])
def test_nabla(random, canvas, tile, mass):
    at, counts = tiles_of(canvas, tile)
    q, k, v = operands(random, len(at))
    blocks = (at[:, 0] * counts[1] + at[:, 1]) * counts[2] + at[:, 2]
    places = numpy.array(list(numpy.ndindex(*counts)))
    window = (1, 3, 2)
    near = (abs(places[:, None] - places) <= numpy.array(window) // 2).all(-1)
    mask = random.random((Q_HEADS, 1, len(places))) < 0.2
    call = functools.partial(video.nabla_attention, mass=mass, canvas=canvas, tile=tile, scale=0.4)
    for options, extra in (({}, False), ({"window": window}, near), ({"window": window, "mask": mask}, near | mask)):
        expect(functools.partial(call, **options), nabla(q, k, v, mass, blocks, extra, 0.4), (q, k, v))


@pytest.mark.parametrize("length", [1, 64, 200])
def test_nabla_of_blocks_in_order(random, length):
    q, k, v = operands(random, length)
    blocks = numpy.arange(length) // 64
    expect(lambda *x: video.nabla_attention(*x, 0.4), nabla(q, k, v, 0.4, blocks, False, SIZE**-0.5), (q, k, v))


def test_nabla_keeps_the_greatest(random):
    """Without any mass; by rounding, all of a row's probabilities may add up to less than 1."""
    q, k, v = operands(random, 64 * 7)
    out = video.nabla_attention(q, k, v, 0)
    assert (abs(out).max(-1) > 0).all()


# BSA


def bsa(q, k, v, canvas, tile, keep, mass, least, scale):
    at, counts = tiles_of(canvas, tile)
    blocks = (at[:, 0] * counts[1] + at[:, 1]) * counts[2] + at[:, 2]
    k, v = spread(k), spread(v)
    out = numpy.empty((*q.shape[:3], v.shape[3]))
    tiles = [numpy.flatnonzero(blocks == n) for n in range(blocks.max() + 1)]
    for b, h in numpy.ndindex(q.shape[0], q.shape[2]):
        means = numpy.stack([k[b, tile, h].mean(0) for tile in tiles])
        for tile in tiles:
            x = q[b, tile, h]
            norms = numpy.maximum(numpy.linalg.norm(x, axis=1), 1e-12)
            alike = (x @ x[len(x) // 2]) / norms / norms[len(x) // 2]
            alike = alike.round(12)  # equal queries are equally like the middle one, in whatever order products are added
            kept = sorted(first_best(-alike, max(int(len(x) * keep + 1e-9), 1)))
            weights = softmax(x[kept].mean(0) @ means.T * scale)
            seen, before = [], 0.0
            for rank, n in enumerate(first_best(weights, len(weights))):
                if rank < max(least, 1) or before < mass:
                    seen.extend(tiles[n])
                before += weights[n]
            found = softmax(x[kept] @ k[b, seen, h].T * scale) @ v[b, seen, h]
            nearest = [min(range(len(kept)), key=lambda n: (abs(kept[n] - slot), n)) for slot in range(len(x))]
            out[b, tile, h] = found[nearest]
    return out


@pytest.mark.parametrize("canvas, tile", [*GEOMETRIES, ((2, 4, 8), (1, 2, 4))])
@pytest.mark.parametrize("keep, mass, least", [(0.5, 0.9, 4), (0, 0, 0), (0.3, 0.5, 1), (1, 1, 2)])
def test_bsa(random, canvas, tile, keep, mass, least):
    q, k, v = operands(random, int(numpy.prod(canvas)))
    call = functools.partial(video.bsa_attention, canvas=canvas, tile=tile, keep=keep, mass=mass, least=least, scale=0.5)
    expect(call, bsa(q, k, v, canvas, tile, keep, mass, least, 0.5), (q, k, v))


def test_bsa_of_equal_queries(random):
    """The first ones are kept, and queries of zeros are like nothing."""
    q, k, v = operands(random, 4 * 4 * 8)
    q[:] = q[:, :1]
    q[:, 70:80] = 0
    call = functools.partial(video.bsa_attention, canvas=(4, 4, 8), keep=0.1, mass=0.4, least=1)
    expect(call, bsa(q, k, v, (4, 4, 8), (4, 4, 4), 0.1, 0.4, 1, SIZE**-0.5), (q, k, v))


# VMoBA


def vmoba(q, k, v, canvas, tile, select, count, threshold, scope, scale):
    at, counts = tiles_of(canvas, tile)
    chunks = (at[:, 0] * counts[1] + at[:, 1]) * counts[2] + at[:, 2]
    k, v = spread(k), spread(v)
    means = numpy.stack([k[:, chunks == n].mean(1) for n in range(chunks.max() + 1)], 1)
    gates = numpy.einsum("bchd,blhd->bchl", means, q)
    seen = numpy.zeros(gates.shape, bool)
    groups = {}
    for entry in numpy.ndindex(gates.shape):  # in the order chunk, head, query
        b, c, h, query = entry
        group = {"query_head": (b, h, query), "block": (b, c), "head_global": (b, h), "overall": (b,)}[scope]
        groups.setdefault(group, []).append(entry)
        seen[entry] = chunks[query] == c
    for group, entries in groups.items():
        others = sorted((entry for entry in entries if not seen[entry]), key=lambda entry: -gates[entry])  # stable
        if select == "top":
            chosen = others[:max(count * len({(h, query) for _, _, h, query in entries}) - len(entries) + len(others), 0)]
        else:
            low, high = (f(gates[entry] for entry in entries) for f in (min, max))
            weight = {entry: (gates[entry] - low) / (high - low) if high - low > 1e-6 else 0 for entry in entries}
            total, share = sum(weight.values()), sum(weight[entry] for entry in entries if seen[entry])
            chosen = []
            for entry in others:
                if chosen and share >= threshold * total and high - low > 1e-6:
                    break
                chosen.append(entry)
                share += weight[entry]
        for entry in chosen:
            seen[entry] = True
    return attend(q, k, v, seen[:, chunks].transpose(0, 2, 3, 1), scale)


CHUNKS = [((4, 3, 4), 1, (1, 3, 4)), ((5, 3, 2), 2, (2, 3, 2)), ((2, 4, 6), (2, 3), (2, 2, 3)), ((4, 4, 3), (2, 3, 2), (2, 3, 2)),
          ((2, 1, 3), 9, (2, 1, 3))]


@pytest.mark.parametrize("canvas, chunk, tile", CHUNKS)
@pytest.mark.parametrize("scope", ["query_head", "block", "overall", "head_global"])
def test_vmoba(random, canvas, chunk, tile, scope):
    q, k, v = operands(random, int(numpy.prod(canvas)))
    ways = [("threshold", 1, 0.25), ("threshold", 1, 0), ("threshold", 1, 0.7)]
    ways += [("top", 1, 0.25), ("top", 2, 0.25), ("top", 99, 0.25)] if scope != "block" else []
    for select, count, threshold in ways:
        call = functools.partial(video.vmoba_attention, canvas=canvas, chunk=chunk, select=select, count=count, threshold=threshold,
                                 scope=scope, scale=0.6)
        box = tuple(min(size, most) for size, most in zip(tile, canvas))
        expect(call, vmoba(q, k, v, canvas, box, select, count, threshold, scope, 0.6), (q, k, v))


def test_vmoba_of_equal_gates(random):
    """Without an order all chunks are selected, and by number the first."""
    q, k, v = operands(random, 2 * 3 * 6)
    k[:] = k[:, :1]
    whole = attend(q, spread(k), spread(v), True)
    expect(lambda *x: video.vmoba_attention(*x, (2, 3, 6), (1, 3, 2)), whole, (q, k, v), 1e-9)
    for scope in ("query_head", "overall", "head_global"):
        wanted = vmoba(q, numpy.zeros_like(k), v, (2, 3, 6), (1, 3, 2), "top", 2, 0, scope, 0.5)
        expect(functools.partial(video.vmoba_attention, canvas=(2, 3, 6), chunk=(1, 3, 2), select="top", count=2, scope=scope,
                                 scale=0.5), wanted, (q, numpy.zeros_like(k), v))


def test_vmoba_without_other_chunks_sees_its_own(random):
    """Upstream then silently computes dense attention."""
    q, k, v = operands(random, 2 * 3 * 6)
    own = vmoba(q, k, v, (2, 3, 6), (1, 3, 6), "top", 1, 0, "query_head", SIZE**-0.5)
    expect(lambda *x: video.vmoba_attention(*x, (2, 3, 6), 1, select="top"), own, (q, k, v))


def test_chunks_of_layers_fit_the_canvas():
    for chunk, wanted in ((3, (3, 6, 8)), ((2, 4), (4, 2, 4)), ((9, 9, 9), (4, 6, 8)), (numpy.int64(1), (1, 6, 8))):
        assert _video_vmoba.chunk_box((4, 6, 8), chunk) == wanted


# Packed video sparse attention


def packed(q, k, v, canvas, tile, prefix, sparsity, mode, gate, scale):
    at, counts = tiles_of(canvas, tile)
    slots, blocks, first = int(numpy.prod(tile)), [], 0
    for segment in prefix:
        blocks.extend(first + n // slots for n in range(segment))
        first += -(-segment // slots)
    blocks = numpy.concatenate([numpy.array(blocks, int), first + (at[:, 0] * counts[1] + at[:, 1]) * counts[2] + at[:, 2]])
    k, v = spread(k), spread(v)
    scores = scores_of(q, k, blocks, blocks, scale)
    tiles = scores.shape[-1]
    count = min(max(int(numpy.ceil((1 - sparsity) * (tiles - first) - 1e-9)), 1), tiles - first)
    kept = numpy.zeros(scores.shape, bool)
    for row in rows_of(scores):
        if mode == "compete":
            kept[row][first_best(scores[row], count + first)] = True
        else:
            kept[row][:first] = True
            kept[row][[first + n for n in first_best(scores[row][first:], count)]] = True
        if row[2] < first:
            kept[row] = True
    out = attend(q, k, v, tokens_of(kept, blocks, blocks), scale)
    if gate is None:
        return out
    means = numpy.stack([v[:, blocks == n].mean(1) for n in range(tiles)], 1)
    return out + gate * numpy.einsum("bhqk,bkhd->bqhd", softmax(scores), means)[:, blocks]


@pytest.mark.parametrize("canvas, tile", GEOMETRIES)
@pytest.mark.parametrize("prefix", [(), (3,), (9, 0, 1, 30)])
@pytest.mark.parametrize("mode", ["exempt", "compete"])
def test_packed(random, canvas, tile, prefix, mode):
    q, k, v = operands(random, int(numpy.prod(canvas)) + sum(prefix))
    gate = normal(random, *q.shape, dtype="float64")
    for sparsity in (0, 0.6, 1):
        for given in (None, gate):
            call = functools.partial(video.video_sparse_h3_attention, canvas=canvas, sparsity=sparsity, prefix=prefix, mode=mode,
                                     tile=tile, scale=0.4)
            wanted = packed(q, k, v, canvas, tile, prefix, sparsity, mode, given, 0.4)
            if given is None:
                expect(call, wanted, (q, k, v))
            else:
                expect(lambda q, k, v, gate, call=call: call(q, k, v, gate=gate), wanted, (q, k, v, gate))


def test_packed_without_sparsity_is_dense(random):
    q, k, v = operands(random, 70 + 4 * 5 * 6)
    dense = attend(q, spread(k), spread(v), True)
    expect(lambda *x: video.video_sparse_h3_attention(*x, (4, 5, 6), 0, prefix=70), dense, (q, k, v))


# All of them

EVERY = {
    "sla": lambda *x: video.sla_attention(*x, 0.5, block=(16, 8)),
    "nabla": lambda *x: video.nabla_attention(*x, 0.4, canvas=(3, 5, 7), tile=(2, 3, 4), window=(1, 3, 1)),
    "bsa": lambda *x: video.bsa_attention(*x, (3, 5, 7), tile=(2, 3, 4), mass=0.5, least=1),
    "vmoba": lambda *x: video.vmoba_attention(*x, (3, 5, 7), 1),
    "packed": lambda *x: video.video_sparse_h3_attention(*x, (3, 4, 7), 0.5, prefix=21, tile=(2, 3, 4)),
}


@pytest.mark.parametrize("name", EVERY)
def test_dtypes(random, name):
    """Narrow results are those of f64 rounded; scores of 80 and more overflow nothing."""
    for times in (1, 12):
        q, k, v = (x.astype("float32") * (times if n < 2 else 1) for n, x in enumerate(operands(random, 105)))
        wanted = EVERY[name](*(x.astype("float64") for x in (q, k, v)))
        out = EVERY[name](q, k, v)
        assert out.dtype == "float32"
        numpy.testing.assert_allclose(out, wanted, 1e-3 * times, 1e-5 * times)


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_narrow_dtypes(random, name, dtype):
    torch = pytest.importorskip("torch")
    q, k, v = (torch.from_numpy(x).to(getattr(torch, dtype)) for x in operands(random, 105))
    out = EVERY[name](q, k, v)
    assert out.dtype == q.dtype
    wanted = EVERY[name](*(x.double() for x in (q, k, v)))
    torch.testing.assert_close(out.double(), wanted, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("name", EVERY)
def test_same_bits_again(random, name):
    given = operands(random, 105, "float32")
    numpy.testing.assert_array_equal(EVERY[name](*given), EVERY[name](*given))


WRONG = [
    (lambda q: video.sla_attention(q, q, q, 1.5), "ratio: expected 0 to 1, got 1.5"),
    (lambda q: video.sla_attention(q, q, q, feature_map="gelu"), "feature_map: expected softmax, elu, relu; got 'gelu'"),
    (lambda q: video.sla_attention(q, q, q, block=(8,)), r"block: expected two numbers, \(queries, keys\), got 1"),
    (lambda q: video.sla_attention(q, q, q, block=(8, 0)), "block: expected 1 to"),
    (lambda q: video.sla_attention(q[0], q, q), "q: expected the dimensions batch, length, heads and size"),
    (lambda q: video.sla_attention(q, q[:, :5], q), r"k: expected the batch and length of q, \(1, 24\), got \(1, 5\)"),
    (lambda q: video.sla_attention(q, q, q[:, :, :1]), "v: expected as many heads as k has, 2; got 1"),
    (lambda q: video.sla_attention(q[:, :, :1], q, q), "k: expected as many heads as divide those of q, 1; got 2"),
    (lambda q: video.sla_attention(q, q[..., :4], q), "k: expected heads of size 8, as q has; got 4"),
    (lambda q: video.nabla_attention(q, q, q, -1), "mass: expected 0 to 1"),
    (lambda q: video.nabla_attention(q, q, q, window=(1, 1, 1)), "window: expected None without a canvas"),
    (lambda q: video.nabla_attention(q, q, q, canvas=(2, 3, 5)), "canvas: expected 30 tokens in dimension 1"),
    (lambda q: video.nabla_attention(q, q, q, canvas=(2, 3, 4), mask=numpy.ones((3, 3), bool)),
     "mask: expected one that broadcasts"),
    (lambda q: video.nabla_attention(q, q, q, canvas=(2, 3, 4), window=(1, 1)), "window: expected three numbers"),
    (lambda q: video.bsa_attention(q, q, q, (2, 3, 4), keep=2), "keep: expected 0 to 1"),
    (lambda q: video.bsa_attention(q, q, q, (2, 3, 4), least=-1), "least: expected 0 to"),
    (lambda q: video.bsa_attention(q, q, q, (2, 3, 3)), "canvas: expected 18 tokens in dimension 1"),
    (lambda q: video.vmoba_attention(q, q, q, (2, 3, 4), (1, 2, 3, 4)), "chunk: expected a number of frames, .* got 4 numbers"),
    (lambda q: video.vmoba_attention(q, q, q, (2, 3, 4), 0), "chunk: expected 1 to"),
    (lambda q: video.vmoba_attention(q, q, q, (2, 3, 4), 1, select="topk"), "select: expected threshold or top, got 'topk'"),
    (lambda q: video.vmoba_attention(q, q, q, (2, 3, 4), 1, scope="head"),
     "scope: expected query_head, block, overall, head_global"),
    (lambda q: video.vmoba_attention(q, q, q, (2, 3, 4), 1, select="top", scope="block"), "as no number of queries is defined"),
    (lambda q: video.vmoba_attention(q, q, q, (2, 3, 4), 1, select="top", count=0), "count: expected 1 to"),
    (lambda q: video.vmoba_attention(q, q, q, (2, 3, 4), 1, threshold=2), "threshold: expected 0 to 1"),
    (lambda q: video.vmoba_attention(q, q, q, (2, 3, 5), 1), "canvas: expected 30 tokens in dimension 1"),
    (lambda q: video.video_sparse_h3_attention(q, q, q, (2, 3, 4), 0.5, prefix=1),
     "prefix: expected 25 tokens in dimension 1, those of 1 tokens and of a canvas"),
    (lambda q: video.video_sparse_h3_attention(q, q, q, (2, 3, 4), 0.5, mode="both"),
     "mode: expected exempt or compete, got 'both'"),
    (lambda q: video.video_sparse_h3_attention(q, q, q, (2, 3, 4), 2), "sparsity: expected 0 to 1"),
    (lambda q: video.video_sparse_h3_attention(q, q, q, (2, 3, 4), 0.5, gate=q[:, :5]), "gate: expected the shape of q"),
]


@pytest.mark.parametrize("call, told", WRONG)
def test_what_is_refused(random, call, told):
    with pytest.raises(tenon.errors.InvalidArgumentError, match=told):
        call(normal(random, 1, 24, 2, 8))


def test_types_that_are_refused(random):
    q = normal(random, 1, 24, 2, 8)
    for call, told in ((lambda: video.nabla_attention(q, q, q, canvas="234"), "canvas: expected three whole numbers"),
                       (lambda: video.sla_attention(q, q, q, "all"), "ratio: expected a number"),
                       (lambda: video.bsa_attention(q, q, q, (2, 3, 4), scale="x"), "scale: expected a number")):
        with pytest.raises(TypeError, match=told):
            call()
