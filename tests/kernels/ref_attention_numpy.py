"""Attention of the reference kernels against NumPy: whole matrices of scores, in long double."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import script

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import ref_numpy

numpy = harness.import_numpy()
FLOATS = ref_numpy.FLOATS
WIDE = "longdouble"


def philox_uniform(seed, offset, count):
    """The numbers of tn_random_fill_uniform, with whole arrays of blocks at once."""
    low = numpy.uint64(0xFFFFFFFF)
    half = numpy.uint64(32)
    blocks = numpy.arange((count + 3) // 4, dtype="uint64") + numpy.uint64(offset)
    x = [blocks & low, blocks >> half, numpy.zeros_like(blocks), numpy.zeros_like(blocks)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first, second = x[0] * numpy.uint64(0xD2511F53), x[2] * numpy.uint64(0xCD9E8D57)
        x = [(second >> half) ^ x[1] ^ numpy.uint64(key[0]), second & low,
             (first >> half) ^ x[3] ^ numpy.uint64(key[1]), first & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    words = numpy.stack(x, -1).reshape(-1)[:count]
    return (words >> numpy.uint64(8)).astype("float64") / 2**24


class Case(ref_numpy.Case):
    def options(self, batch, heads, groups, queries, keys, size, value_size):
        pick = self.dice.choice
        return {"batch": batch, "heads": heads, "groups": groups, "queries": queries, "keys": keys,
                "size": size, "value_size": value_size, "left": pick((-1, -1, 0, 3)),
                "right": pick((-1, 0, 2)), "corner": pick((0, 1)), "shift": pick((0, 0, 2, -3)),
                "scale": pick((size**-0.5, 1, -0.25)), "softcap": pick((0, 0, 2.5)),
                "dropout": pick((0, 0, 0.3)), "seed": self.dice.getrandbits(64),
                "offset": self.dice.getrandbits(30)}

    def sizes(self):
        groups = self.dice.randint(1, 3)
        size = self.dice.randint(1, 20)
        return (self.dice.randint(1, 3), groups * self.dice.randint(1, 3), groups,
                self.dice.randint(1, 40), self.dice.randint(0, 70), size,
                self.dice.choice((size, self.dice.randint(1, 30))))

    def mask(self, name, o):
        """None, or bools or numbers in which some are -infinity, broadcast in some dimensions."""
        shape = (o["batch"], o["heads"], o["queries"], o["keys"])
        own = [self.dice.choice((n, n, 1)) for n in shape]
        kind = self.dice.choice((None, "bool", name, "float32"))
        if kind is None:
            return None
        mask = self.random("bool", own) | self.random("bool", own)
        if kind != "bool":
            mask = numpy.where(mask, self.random(kind, own), -numpy.inf).astype(kind)
        return numpy.broadcast_to(mask, shape)

    def scores(self, q, k, mask, o):
        """Scores, -infinity for what is not seen, and the slope of the softcap."""
        rows, columns = q.shape[2], k.shape[2]
        group = numpy.arange(o["heads"]) // (o["heads"] // o["groups"])
        scores = o["scale"] * (q.astype(WIDE) @ k.astype(WIDE)[:, group].swapaxes(2, 3))
        bend = numpy.ones_like(scores)
        if o["softcap"]:
            bend = 1 - numpy.tanh(scores / o["softcap"])**2
            scores = o["softcap"] * numpy.tanh(scores / o["softcap"])
        i, j = numpy.ogrid[:rows, :columns]
        place = i + o["shift"] + (columns - rows if o["corner"] else 0)
        seen = numpy.ones((rows, columns), bool)
        if o["left"] >= 0:
            seen &= j >= place - o["left"]
        if o["right"] >= 0:
            seen &= j <= place + o["right"]
        if mask is not None:
            scores = scores + (numpy.where(mask, 0, -numpy.inf) if mask.dtype == bool else mask)
        return numpy.where(seen, scores, -numpy.inf), bend

    def kept(self, o):
        shape = (o["batch"], o["heads"], o["queries"], o["keys"])
        if not o["dropout"]:
            return numpy.ones(shape)
        numbers = philox_uniform(o["seed"], o["offset"], int(numpy.prod(shape)))
        return (numbers >= o["dropout"]).reshape(shape) / (1 - numpy.dtype(WIDE).type(o["dropout"]))

    def softmax(self, scores, sinks=None):
        """Weights and lse."""
        most = scores.max(-1, keepdims=True, initial=-numpy.inf)
        if sinks is not None:
            most = numpy.maximum(most, sinks[:, None, None])
        most = numpy.where(numpy.isinf(most), 0, most)
        weights = numpy.exp(scores - most)
        total = weights.sum(-1, keepdims=True)
        if sinks is not None:
            total = total + numpy.exp(sinks[:, None, None] - most)
        with numpy.errstate(divide="ignore"):
            lse = (most + numpy.log(total))[..., 0]
        return weights / numpy.where(total == 0, 1, total), lse

    def values(self, weights, v, o):
        group = numpy.arange(o["heads"]) // (o["heads"] // o["groups"])
        return weights @ v.astype(WIDE)[:, group]

    def assert_lse(self, got, want):
        numpy.testing.assert_array_equal(numpy.isinf(got), numpy.isinf(want))
        self.assert_close(numpy.where(numpy.isinf(got), 0, got),
                          numpy.where(numpy.isinf(want), 0, want), got.dtype)


class Forward(Case):
    def test_attention(self):
        for turn in range(150):
            name = FLOATS[turn % 3]
            o = self.options(*self.sizes())
            b, h, g, queries, keys = (o[n] for n in ("batch", "heads", "groups", "queries", "keys"))
            q, k = self.window(name, (b, h, queries, o["size"])), self.window(name, (b, g, keys, o["size"]))
            v, out = (self.window(name, (b, *rows, o["value_size"])) for rows in ((g, keys), (h, queries)))
            mask, sinks = self.mask(name, o), self.dice.choice((None, self.window(name, (h,))))
            lse = self.window("float64" if name == "float64" else "float32", (b, h, queries))
            self.run_op(ref_numpy.ATTENTION, [q, k, v, out, lse, mask, sinks] + [None] * 4, **o)
            scores, _ = self.scores(q, k, mask, o)
            weights, want = self.softmax(scores, None if sinks is None else sinks.astype(WIDE))
            self.assert_close(out, self.values(weights * self.kept(o), v, o), name)
            self.assert_lse(lse, want)

    def test_sequences(self):
        """Packed and in pages, with lengths, against one sequence at a time."""
        for turn in range(60):
            name, page = FLOATS[turn % 3], self.dice.randint(1, 9)
            paged = turn % 2
            o = {**self.options(3, 4, 2, 0, 0, 8, 8), "dropout": 0}
            starts = numpy.cumsum([0] + [self.dice.randint(0, 20) for _ in range(3)]).astype("int32")
            owned = numpy.array([self.dice.randint(0, 30) for _ in range(3)], "int32")
            starts_k = numpy.concatenate([[0], numpy.cumsum(owned)]).astype("int32")
            lengths = numpy.array([self.dice.randint(0, n) for n in owned], "int32")
            each = int(owned.max()) // page + 1
            pages = numpy.array(self.dice.sample(range(3 * each), 3 * each), "int32").reshape(3, each)
            o["queries"] = max(int(numpy.diff(starts).max()), 1)
            o["keys"] = each * page if paged else max(int(owned.max()), 1)
            o["page"] = page if paged else 0
            total = int(starts[-1]) + 1
            q, out = self.window(name, (1, 4, total, 8)), self.window(name, (1, 4, total, 8))
            shape = (3 * each, 2, page, 8) if paged else (1, 2, int(starts_k[-1]) + 1, 8)
            k, v = self.window(name, shape), self.window(name, shape)
            self.run_op(ref_numpy.ATTENTION, [q, k, v, out, None, None, None, starts,
                                              None if paged else starts_k, lengths,
                                              pages if paged else None], **o)
            for b in range(3):
                rows = slice(starts[b], starts[b + 1])
                if paged:
                    own_k, own_v = (x[pages[b]].swapaxes(0, 1).reshape(1, 2, -1, 8) for x in (k, v))
                else:
                    own_k, own_v = (x[:, :, starts_k[b]:] for x in (k, v))
                own_k, own_v = own_k[:, :, :lengths[b]], own_v[:, :, :lengths[b]]
                weights, _ = self.softmax(self.scores(q[:, :, rows], own_k, None, o)[0])
                self.assert_close(out[:, :, rows], self.values(weights, own_v, o), name)


class Backward(Case):
    def test_attention_backward(self):
        for turn in range(90):
            name = FLOATS[turn % 3]
            o = self.options(*self.sizes())
            b, h, g, queries, keys = (o[n] for n in ("batch", "heads", "groups", "queries", "keys"))
            q, k = self.window(name, (b, h, queries, o["size"])), self.window(name, (b, g, keys, o["size"]))
            v = self.window(name, (b, g, keys, o["value_size"]))
            dout = self.window(name, (b, h, queries, o["value_size"]))
            dq, dk, dv = (self.window(name, x.shape) for x in (q, k, v))
            mask, kept = self.mask(name, o), self.kept(o)
            scores, bend = self.scores(q, k, mask, o)
            weights, lse = self.softmax(scores)
            out = self.values(weights * kept, v, o).astype(name)
            lse = lse.astype("float64" if name == "float64" else "float32")
            absent = [None] * 6  # from the sinks to the seed
            self.run_op(ref_numpy.ATTENTION_BACKWARD, [q, k, v, out, lse, mask, *absent, dout, dq, dk, dv], **o)
            with numpy.errstate(invalid="ignore"):
                weights = numpy.exp(scores - lse[..., None])  # from lse as it was rounded
            weights = numpy.where(numpy.isnan(weights), 0, weights)
            group = numpy.arange(h) // (h // g)
            wide = dout.astype(WIDE)
            along = kept * (wide @ v.astype(WIDE)[:, group].swapaxes(2, 3))
            delta = (wide * out.astype(WIDE)).sum(-1, keepdims=True)
            slope = o["scale"] * bend * weights * (along - delta)
            # Of numbers that nearly cancel out, what sums were rounded to.
            noise = (abs(along) + abs(delta)).max(initial=0) * (queries + keys) * h * 8
            noise = noise * (2**-62 if name == "float64" else 2**-50)
            self.assert_close(dq, slope @ k.astype(WIDE)[:, group], name, noise)
            shared = (b, g, h // g, keys)
            want = (slope.swapaxes(2, 3) @ q.astype(WIDE)).reshape(*shared, o["size"]).sum(2)
            self.assert_close(dk, want, name, noise)
            want = (weights * kept).swapaxes(2, 3) @ wide
            self.assert_close(dv, want.reshape(*shared, o["value_size"]).sum(2), name, noise)


class Merge(Case):
    def test_attention_merge(self):
        for turn in range(60):
            name = FLOATS[turn % 3]
            shape = [self.dice.randint(1, 5) for _ in range(3)]
            size = self.dice.randint(1, 600)
            one, other, out = (self.window(name, (*shape, size)) for _ in range(3))
            sums = "float64" if name == "float64" else "float32"
            lse = [self.window(sums, shape) for _ in range(3)]
            self.run_op(ref_numpy.ATTENTION_MERGE, [one, lse[0], other, lse[1], out, lse[2]])
            weights = numpy.exp(numpy.stack(lse[:2]).astype(WIDE))
            total = weights.sum(0)
            want = (weights[0][..., None] * one + weights[1][..., None] * other) / total[..., None]
            self.assert_close(out, want, name)
            self.assert_close(lse[2], numpy.log(total), sums)


if __name__ == "__main__":
    script.main()
