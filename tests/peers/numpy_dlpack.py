"""DLPack with NumPy on the other side, in both directions and in both forms, without copies."""

import ctypes
import gc
import os
import random
import sys
import weakref

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness
import script

numpy = harness.import_numpy()

WORDS = {
    "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "u8": "uint8", "u16": "uint16", "u32": "uint32", "u64": "uint64",
    "f16": "float16", "f32": "float32", "f64": "float64",
    "c64": "complex64", "c128": "complex128", "bool": "bool",
}


def knows_versions():
    """NumPy does since 2.1; before, it has the form without one only."""
    try:
        numpy.zeros(1).__dlpack__(max_version=(1, 0))
    except TypeError:
        return False
    return True


def knows_bool():
    try:
        numpy.zeros(1, "bool").__dlpack__()
    except (BufferError, TypeError, RuntimeError):
        return False
    return True


class Case(script.Case):
    def setUp(self):
        super().setUp()
        if numpy is None:
            self.skipTest("NumPy is not here (Debian: python3-numpy)")
        if script.build.sanitizers:
            self.skipTest("a library with a sanitizer cannot be opened by a Python without")
        self.tenon = harness.Library(script.build.folder)
        self.ends = 0

    def end(self):
        self.ends += 1

    def forms(self):
        """Those that both sides know: True for the versioned one."""
        return (False, True) if knows_versions() else (False,)

    def words(self):
        return [word for word in WORDS if word != "bool" or knows_bool()]

    def wrap(self, array, **options):
        """A tensor over an array's memory that tells of its end; made without DLPack."""
        word = next(w for w, name in WORDS.items() if numpy.dtype(name) == array.dtype)
        strides = [stride // array.itemsize for stride in array.strides]
        return self.tenon.wrap(array.ctypes.data, word, array.shape, strides, released=self.end,
                               **options)


class Forms(Case):
    def test_versioned(self):
        if not knows_versions():
            self.skipTest(f"NumPy {numpy.__version__} has only the form without a version, 2.1 has "
                          "both: the versioned one is tested by unit.dlpack alone")
        self.assertEqual(self.forms(), (False, True))


class Legacy:
    """What NumPy sees of a tensor when there is only the form without a version."""

    def __init__(self, tensor):
        self.tensor = tensor

    def __dlpack__(self, stream=None):
        return self.tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self):
        return self.tensor.__dlpack_device__()


def arrays():
    """Layouts of every sort."""
    base = numpy.arange(60, dtype="float32").reshape(3, 4, 5)
    yield base
    yield base.T
    yield base[::-1, ::2, 1:4]
    yield base[1]
    yield base[:, 2, ::-1]
    yield base[0:0]
    yield numpy.zeros((3, 0, 2), "float32")
    yield base[:, :1]
    yield numpy.array(7, "float32")
    yield numpy.broadcast_to(base[0, 0], (4, 5))


class Out(Case):
    """Tenon gives, NumPy takes."""

    def take(self, tensor, versioned):
        return numpy.from_dlpack(tensor if versioned else Legacy(tensor))

    def test_every_dtype(self):
        for versioned in self.forms():
            for word in self.words():
                tensor = self.tenon.tensor(word, (2, 3))
                size = 6 * harness.dtype_bytes(word)
                ctypes.memmove(tensor.address, bytes(i % 2 for i in range(size)), size)
                array = self.take(tensor, versioned)
                self.assertEqual((array.dtype, array.shape), (numpy.dtype(WORDS[word]), (2, 3)))
                self.assertEqual(array.ctypes.data, tensor.address)
                self.assertEqual(array.tobytes(), bytes(i % 2 for i in range(size)))
                tensor.release()
                self.assertEqual(array.tobytes(), bytes(i % 2 for i in range(size)))

    def test_every_layout(self):
        for versioned in self.forms():
            for source in arrays():
                with self.wrap(source) as tensor:
                    array = self.take(tensor, versioned)
                self.assertEqual(array.shape, source.shape)
                if array.size:
                    self.assertEqual(array.ctypes.data, source.ctypes.data)
                    steps = [(n, s) for n, s in zip(array.shape, array.strides) if n > 1]
                    self.assertEqual(steps, [(n, s) for n, s in zip(source.shape, source.strides)
                                             if n > 1])
                numpy.testing.assert_array_equal(array, source)

    def test_memory_is_shared(self):
        for versioned in self.forms():
            tensor = self.tenon.tensor("f64", (4,))
            memory = (ctypes.c_double * 4).from_address(tensor.address)
            array = self.take(tensor, versioned)
            memory[:] = [1, 2, 3, 4]
            self.assertEqual(list(array), [1, 2, 3, 4])
            if array.flags.writeable:  # with the form without a version NumPy cannot know
                array[:] = [5, 6, 7, 8]
                self.assertEqual(list(memory), [5, 6, 7, 8])
            self.assertTrue(array.flags.writeable or not versioned)

    def test_read_only(self):
        source = numpy.arange(4.0)
        tensor = self.wrap(source)
        tensor.read_only = True
        with self.assertRaisesRegex(BufferError, "read-only, which the unversioned form cannot express"):
            self.take(tensor, versioned=False)
        if knows_versions():
            self.assertFalse(self.take(tensor, versioned=True).flags.writeable)
            tensor.read_only = False
            self.assertTrue(self.take(tensor, versioned=True).flags.writeable)
        tensor.release()
        gc.collect()
        self.assertEqual(self.ends, 1)

    def test_ends_once(self):
        source = numpy.arange(4.0)
        for versioned in self.forms():
            self.ends = 0
            tensor = self.wrap(source)
            first, second = self.take(tensor, versioned), self.take(tensor, versioned)
            tensor.release()
            tensor.release()
            part = first[1:]
            del first
            gc.collect()
            self.assertEqual((self.ends, list(part)), (0, [1, 2, 3]))
            del part
            gc.collect()
            self.assertEqual((self.ends, list(second)), (0, [0, 1, 2, 3]))
            del second
            gc.collect()
            self.assertEqual(self.ends, 1)

    def test_capsule_that_no_one_takes_ends_too(self):
        source = numpy.arange(4.0)
        for version in (None, (1, 1)):
            self.ends = 0
            tensor = self.wrap(source)
            capsule = tensor.__dlpack__(max_version=version)
            tensor.release()
            self.assertEqual(self.ends, 0)
            del capsule
            self.assertEqual(self.ends, 1)


class In(Case):
    """NumPy gives, Tenon takes."""

    def test_every_dtype(self):
        for versioned in self.forms():
            for word in self.words():
                array = numpy.arange(6).reshape(2, 3).astype(WORDS[word])
                with self.tenon.from_dlpack(array, versioned) as tensor:
                    self.assertEqual((tensor.dtype, tensor.shape), (word, (2, 3)))
                    self.assertEqual((tensor.address, tensor.device), (array.ctypes.data, "cpu:0"))
                    self.assertTrue(tensor.is_dense)

    def test_every_layout(self):
        for versioned in self.forms():
            for array in arrays():
                if not array.flags.writeable and not versioned:
                    continue
                with self.tenon.from_dlpack(array, versioned) as tensor:
                    self.assertEqual((tensor.shape, tensor.elements), (array.shape, array.size))
                    if array.size:
                        self.assertEqual(tensor.address, array.ctypes.data)
                    self.assertEqual(tensor.is_dense,
                                     array.flags.c_contiguous or array.size == 0)
                    copy = self.tenon.tensor("f32", array.shape)
                    tensor.copy_to(copy)
                    numpy.testing.assert_array_equal(
                        numpy.from_dlpack(copy if versioned else Legacy(copy)), array)

    def test_read_only(self):
        array = numpy.arange(4.0)
        array.flags.writeable = False
        with self.assertRaises((BufferError, TypeError)):  # as NumPy refuses it
            self.tenon.from_dlpack(array, versioned=False)
        if not knows_versions():
            return
        with self.tenon.from_dlpack(array, versioned=True) as tensor:
            self.assertTrue(tensor.read_only)
            with self.tenon.tensor("f64", (4,)) as other:
                tensor.copy_to(other)
                with self.assertRaises(harness.Error) as caught:
                    other.copy_to(tensor)
        self.assertEqual(caught.exception.status, "refused")
        self.assertIn("to: the tensor is read-only", caught.exception.message)

    def test_ends_once(self):
        for versioned in self.forms():
            array = numpy.arange(4.0)
            gone = weakref.ref(array)
            tensor = self.tenon.from_dlpack(array, versioned)
            view = tensor.view()
            del array
            tensor.release()
            tensor.release()
            gc.collect()
            self.assertIsNotNone(gone())
            view.release()
            gc.collect()
            self.assertIsNone(gone())

    def test_refused_ends_at_once(self):
        blocks = self.tenon.tn_allocator_blocks()
        for versioned in self.forms():
            array = numpy.zeros(3)
            gone = weakref.ref(array)
            capsule = array.__dlpack__(**({"max_version": (1, 1)} if versioned else {}))
            harness.managed_of(capsule).tensor.dtype += 1 << 16  # another lane
            with self.assertRaises(harness.Error) as caught:
                self.tenon.from_capsule(capsule)
            self.assertEqual(caught.exception.status, "invalid-argument")
            self.assertEqual(caught.exception.message, "managed: lanes: expected 1, got 2")
            with self.assertRaises(ValueError):  # used up
                self.tenon.from_capsule(capsule)
            del array
            gc.collect()
            self.assertIsNone(gone())
        self.assertEqual(self.tenon.tn_allocator_blocks(), blocks)

    def test_there_and_back(self):
        for versioned in self.forms():
            array = numpy.arange(24.0).reshape(2, 3, 4)[:, ::-1]
            tensor = self.tenon.from_dlpack(array, versioned)
            back = numpy.from_dlpack(tensor if versioned else Legacy(tensor))
            tensor.release()
            self.assertTrue(numpy.shares_memory(back, array))
            numpy.testing.assert_array_equal(back, array)


class Copies(Case):
    def test_as_numpy_copies(self):
        """Random windows of random arrays."""
        dice = random.Random(1)
        for _ in range(300):
            shape = [dice.randint(1, 5) for _ in range(dice.randint(1, 4))]
            sides = []
            for _ in range(2):
                steps = [dice.choice((1, 2, -1, -3)) for _ in shape]
                whole = numpy.random.default_rng(dice.randint(0, 99)).random(
                    [n * abs(step) for n, step in zip(shape, steps)])
                order = dice.sample(range(len(shape)), len(shape))
                whole = whole.transpose(order).copy().transpose(
                    [order.index(i) for i in range(len(order))])
                sides.append(whole[tuple(slice(None, None, step) for step in steps)])
            source, target = sides
            expected = target.copy()
            expected[...] = source
            with self.wrap(source) as a, self.wrap(target) as b:
                a.copy_to(b)
            numpy.testing.assert_array_equal(target, expected)


if __name__ == "__main__":
    script.main()
