"""The spectrum of a sound, as a plot of text. Needs NumPy.

    python3 spectrum.py [FILE.wav]

Without a file, of two tones of 440 and 1000 Hz in noise. Each line is a band of frequencies; its bar is the largest
amplitude in it, in decibels below the largest of all.
"""

import sys
import wave

import numpy
import tenon

LINES, WIDTH, FLOOR = 24, 48, 60  # lines and columns of the plot, decibels of its lower end


def tones(rate=8000):
    """A second of samples between -1 and 1, and their number."""
    seconds = numpy.arange(rate) / rate
    noise = numpy.random.default_rng(0).normal(0, 0.01, rate)
    return sum(size * numpy.sin(2 * numpy.pi * hertz * seconds) for hertz, size in ((440, 0.5), (1000, 0.1))) + noise, rate


def read(path):
    """The first channel of a file of 16-bit samples."""
    with wave.open(path) as file:
        if file.getsampwidth() != 2:
            raise SystemExit(f"{path}: expected samples of 16 bits, got {8 * file.getsampwidth()}")
        samples = numpy.frombuffer(file.readframes(file.getnframes()), "<i2")[::file.getnchannels()]
        return samples / 32768, file.getframerate()


def main(path=None):
    samples, rate = read(path) if path else tones()
    if not len(samples):
        raise SystemExit(f"{path}: expected samples, got none")
    windowed = (samples * 2 * numpy.sin(numpy.pi * numpy.arange(len(samples)) / len(samples)) ** 2).astype("float32")
    amplitudes = 2 * numpy.abs(tenon.fft.rfft(windowed, norm="forward"))
    levels = 20 * numpy.log10(amplitudes / max(amplitudes.max(), 1e-30) + 1e-30)
    frequencies = tenon.fft.rfftfreq(len(samples), 1 / rate)
    for band, hertz in zip(numpy.array_split(levels, LINES), numpy.array_split(frequencies, LINES)):
        if len(band):
            bar = "#" * round(WIDTH * max(0.0, 1 + band.max() / FLOOR))
            print(f"{hertz[0]:7.0f} Hz {bar:{WIDTH}} {band.max():6.1f} dB")


if __name__ == "__main__":
    main(*sys.argv[1:2])
