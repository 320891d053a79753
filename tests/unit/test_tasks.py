"""Task code in CPython: pictures in, answers out."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from PIL import Image

from py_runtime.errors import InputDtypeError, InputShapeError, ProgramError, UnsupportedError
from py_runtime.tasks.detect import Postprocessing, on_picture, overlap, postprocess, suppress
from py_runtime.tasks.picture import Placement, Preprocessing, preprocess, resize_bilinear
from py_runtime.tasks.upscale import Canvas, starts, tiles


def spec(**changes: object) -> Preprocessing:
    raw = {"resize": "stretch", "size": [4, 6], "channels": "RGB", "scale": 1.0, "mean": [0, 0, 0], "std": [1, 1, 1]}
    return Preprocessing.from_manifest({"preprocessing": raw | changes})


def picture(height: int, width: int) -> np.ndarray:
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 4), dtype=np.uint8)
    pixels[..., 3] = 255
    return pixels


def test_resize_agrees_with_pillow_when_it_enlarges() -> None:
    """Without shrinking, Pillow's bilinear has no antialiasing either."""
    rgb = picture(13, 17)[..., :3]
    ours = resize_bilinear(rgb.astype(np.float32), (29, 40))
    theirs = np.asarray(Image.fromarray(rgb).resize((40, 29), Image.Resampling.BILINEAR), np.float32)
    assert np.abs(ours - theirs).max() <= 1.0


def test_stretch() -> None:
    out, placement = preprocess(picture(8, 12), spec(mean=[10, 20, 30], std=[2, 4, 5]))
    assert out.shape == (1, 3, 4, 6) and out.dtype == np.float32
    assert placement == Placement((8, 12), (0.5, 0.5))
    mean = picture(8, 12)[:2, :2, 0].mean()
    np.testing.assert_allclose(out[0, 0, 0, 0], (mean - 10) / 2, rtol=1e-5)


def test_letterbox_keeps_aspect_and_pads() -> None:
    out, placement = preprocess(picture(4, 12), spec(resize="letterbox", size=[6, 6], pad=114, channels="BGR"))
    assert placement.scale == (0.5, 0.5)
    assert (out[0, :, 2:] == 114).all()
    assert not (out[0, :, :2] == 114).all()


def test_channels_are_swapped() -> None:
    rgb, _ = preprocess(picture(4, 6), spec())
    bgr, _ = preprocess(picture(4, 6), spec(channels="BGR"))
    np.testing.assert_array_equal(rgb[:, ::-1], bgr)


def test_transparent_is_white() -> None:
    pixels = picture(4, 6)
    pixels[0, 0, 3] = 0
    out, _ = preprocess(pixels, spec())
    assert (out[0, :, 0, 0] == 255).all()


@pytest.mark.parametrize(
    ("pixels", "error"),
    [
        (np.zeros((4, 6, 3), np.uint8), InputShapeError),
        (np.zeros((0, 6, 4), np.uint8), InputShapeError),
        (np.zeros((4, 6, 4), np.float32), InputDtypeError),
    ],
)
def test_bad_pictures(pixels: np.ndarray, error: type[Exception]) -> None:
    with pytest.raises(error):
        preprocess(pixels, spec())


def test_bad_manifests() -> None:
    with pytest.raises(ProgramError, match="mean"):
        Preprocessing.from_manifest({"preprocessing": {"size": [1, 1]}})
    with pytest.raises(UnsupportedError, match="squash"):
        spec(resize="squash")
    with pytest.raises(UnsupportedError, match="polar"):
        Postprocessing.from_manifest({"postprocessing": {"boxes": "polar"}, "labels": []})


def test_overlap_by_hand() -> None:
    box = np.array([0, 0, 2, 2], np.float32)
    others = np.array([[1, 1, 3, 3], [0, 0, 2, 2], [5, 5, 6, 6], [0, 0, 1, 2]], np.float32)
    np.testing.assert_allclose(overlap(box, others), [1 / 7, 1, 0, 0.5])


def naive_suppress(edges: np.ndarray, scores: np.ndarray, classes: np.ndarray, limit: float) -> list[int]:
    kept: list[int] = []
    for i in sorted(range(len(scores)), key=lambda i: -scores[i]):
        if all(classes[i] != classes[j] or overlap(edges[j], edges[i : i + 1])[0] <= limit for j in kept):
            kept.append(i)
    return kept


def test_suppression_equals_the_naive_one() -> None:
    rng = np.random.default_rng(1)
    low = rng.uniform(0, 50, (60, 2))
    edges = np.concatenate([low, low + rng.uniform(5, 30, (60, 2))], 1).astype(np.float32)
    scores, classes = rng.random(60).astype(np.float32), rng.integers(0, 3, 60)
    kept = suppress(edges, scores, classes, 0.4)
    assert list(kept) == naive_suppress(edges, scores, classes, 0.4)
    assert 3 < len(kept) < 60


def test_boxes_go_back_to_the_picture() -> None:
    placement = Placement((100, 200), (0.5, 0.25))
    boxes = np.array([[10, 20, 30, 60]], np.float32)
    np.testing.assert_allclose(on_picture(boxes, placement, "xyxy"), [[40, 40, 120, 100]])
    centred = np.array([[20, 40, 20, 40]], np.float32)
    np.testing.assert_allclose(on_picture(centred, placement, "cxcywh"), [[40, 40, 120, 100]])


def test_postprocess() -> None:
    reading = Postprocessing("xyxy", 0.5, 0.5, ("cat", "dog"))
    boxes = np.array([[[0, 0, 10, 10], [1, 0, 10, 10], [0, 0, 10, 10], [50, 50, 60, 60]]], np.float32)
    scores = np.array([[[0.9, 0.1], [0.8, 0.2], [0.1, 0.7], [0.3, 0.2]]], np.float32)
    placement = Placement((100, 100), (1.0, 1.0))
    found = postprocess(boxes, scores, placement, reading)
    assert [(d.label, round(d.score, 3)) for d in found] == [("cat", 0.9), ("dog", 0.7)]
    assert len(postprocess(boxes, scores, placement, reading, 0.25)) == 3
    with pytest.raises(InputShapeError, match="P, 2"):
        postprocess(boxes, scores[..., :1], placement, reading)


@pytest.mark.parametrize("length", [5, 128, 129, 200, 240, 241, 1000])
def test_tiles_cover(length: int) -> None:
    at = starts(length, 128)
    covered = np.zeros(max(length, 128), bool)
    for start in at:
        covered[start : start + 128] = True
    assert covered.all()
    assert all(b - a <= 112 for a, b in itertools.pairwise(at))


def test_upscaling_by_repetition_is_exact() -> None:
    """Tiles of a model that repeats pixels give the picture back, each pixel four by four."""
    pixels = picture(150, 70)
    tile = spec(size=[64, 64], scale=1 / 255)
    canvas = Canvas((150, 70), 4)
    for at, image in tiles(pixels, tile):
        canvas.add(at, image.repeat(4, 2).repeat(4, 3))
    want = pixels.repeat(4, 0).repeat(4, 1)
    assert np.abs(canvas.pixels().astype(int) - want).max() <= 1
