"""Sound files become windows of speech; encoders are found by name."""

from __future__ import annotations

import builtins
import sys
from types import ModuleType

import numpy as np
import pytest
import soundfile

from linkstream.adapters.sound import (
    RATE,
    load_encoder,
    read_sound,
    resemblyzer,
    speech_windows,
)
from linkstream.errors import ArgumentError, InputFileError, MissingExtraError
from sounds import spectrum, tones, write

SINE = 0.5 * np.sin(np.arange(1600) / 9)


@pytest.fixture
def without(monkeypatch):
    """Return a function that makes the import of a module fail."""

    def forbid(module):
        plain = builtins.__import__

        def refuse(name, *more):
            if name.partition(".")[0] == module:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            return plain(name, *more)

        monkeypatch.setattr(builtins, "__import__", refuse)

    return forbid


def test_channels_are_averaged(tmp_path):
    write(tmp_path / "one.wav", SINE)
    write(tmp_path / "two.wav", np.column_stack([SINE, np.zeros(1600)]).ravel(), channels=2)
    one, two = (read_sound(tmp_path / f"{name}.wav") for name in ("one", "two"))
    assert one.dtype == np.float32
    np.testing.assert_allclose(one, SINE, atol=1e-4)
    np.testing.assert_allclose(2 * two, one, atol=1e-6)


def test_a_plain_wav_needs_no_other_package(tmp_path, without):
    without("soundfile")
    write(tmp_path / "plain.wav", SINE)
    assert len(read_sound(tmp_path / "plain.wav")) == 1600


def test_flac_holds_the_same_sound(tmp_path):
    write(tmp_path / "a.wav", SINE)
    soundfile.write(tmp_path / "a.flac", np.round(SINE * 32767).astype(np.int16), RATE)
    np.testing.assert_allclose(
        read_sound(tmp_path / "a.flac"), read_sound(tmp_path / "a.wav"), atol=1e-4
    )


def test_another_rate_is_made_16_kilohertz(tmp_path):
    rng = np.random.default_rng(1)
    soundfile.write(tmp_path / "a.wav", tones(120, 2, rng, rate=44_100), 44_100)
    slow = read_sound(tmp_path / "a.wav")
    assert (len(slow), slow.dtype) == (2 * RATE, np.float32)
    loudest = np.abs(np.fft.rfft(slow)).argmax() / 2
    assert loudest == pytest.approx(120, abs=4)


@pytest.mark.parametrize(("name", "content"), [("a.wav", b"RIFF"), ("a.flac", b"x" * 99)])
def test_a_damaged_file_is_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputFileError, match=f"{name}: .*expected a sound file"):
        read_sound(tmp_path / name)


def test_a_wav_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path):
    write(tmp_path / "a.wav", np.repeat(SINE, 2), channels=2)
    whole = (tmp_path / "a.wav").read_bytes()
    (tmp_path / "a.wav").write_bytes(whole[:-1001])
    assert len(read_sound(tmp_path / "a.wav")) == 1600 - 251


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputFileError, match=r"a\.flac"):
        read_sound(tmp_path / "a.flac")


def test_samples_that_are_no_numbers_are_refused(tmp_path):
    sound = np.where(np.arange(1600) == 7, np.nan, SINE)
    soundfile.write(tmp_path / "a.wav", sound, RATE, subtype="FLOAT")
    with pytest.raises(InputFileError, match="not finite"):
        read_sound(tmp_path / "a.wav")


def test_without_soundfile_the_message_says_what_to_install(tmp_path, without):
    (tmp_path / "talk.flac").write_bytes(b"fLaC")
    without("soundfile")
    with pytest.raises(MissingExtraError, match=r'pip install "linkstream\[sound\]"'):
        read_sound(tmp_path / "talk.flac")


def test_silence_and_sounds_too_short_have_no_windows():
    for n in (0, 100, 80_000):
        assert speech_windows(np.zeros(n, dtype=np.float32)) == []


def test_windows_are_of_one_length_and_skip_what_is_quiet():
    loud = np.sin(np.arange(4 * RATE, dtype=np.float32) / 9)
    sound = np.concatenate([loud, np.float32(0.001) * loud, loud])
    windows = speech_windows(sound, length=1.0, step=0.5)
    starts = [window.start for window in windows]
    assert starts == [0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 7.5, 8, 8.5, 9, 9.5, 10, 10.5, 11]
    assert all(window.end - window.start == 1 for window in windows)
    np.testing.assert_array_equal(windows[1].sound, sound[RATE // 2 : RATE * 3 // 2])


# Encoders


def test_an_encoder_is_found_by_module_and_function():
    assert load_encoder("sounds:spectrum")(np.ones(1600)).shape == spectrum(np.ones(1600)).shape


def test_an_encoder_may_be_in_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "my_encoder.py").write_text("class Model:\n    encode = staticmethod(len)\n")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    assert load_encoder("my_encoder:Model.encode") is len
    assert sys.path == before


@pytest.mark.parametrize(
    "name", ["nowhere:encode", "sounds:nothing", "sounds", ":f", "sounds:TALK"]
)
def test_an_encoder_that_does_not_exist_is_refused(name):
    with pytest.raises(ArgumentError, match=f"the encoder '{name}'.*module:function"):
        load_encoder(name)


def test_resemblyzer_is_called_with_the_samples_of_a_window(monkeypatch):
    class VoiceEncoder:
        def __init__(self, device, *, verbose):
            self.device, self.verbose = device, verbose

        def embed_utterance(self, wav):
            return [len(wav), self.device, self.verbose]

    module = ModuleType("resemblyzer")
    module.VoiceEncoder = VoiceEncoder
    monkeypatch.setitem(sys.modules, "resemblyzer", module)
    assert load_encoder("resemblyzer")(np.ones(25_600)) == [25_600, "cpu", False]


@pytest.mark.parametrize("missing", ["resemblyzer", "pkg_resources"])
def test_without_resemblyzer_the_message_says_what_to_install(monkeypatch, tmp_path, missing):
    (tmp_path / "resemblyzer.py").write_text(f"raise ModuleNotFoundError('no', name='{missing}')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "resemblyzer", raising=False)
    with pytest.raises(MissingExtraError, match=rf"'{missing}'.*\"linkstream\[resemblyzer\]\""):
        resemblyzer()
