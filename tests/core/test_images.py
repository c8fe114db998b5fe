"""Models of pictures against the reference library's own numbers, and what is true of any of them.

Bounds and measured distances (largest over 24 models and all points):

    float64   bound 1e-10; measured 3e-14 (the library's softmax, which ViT, DeiT and CLIP take in
              float32, is patched, see make_golden_images.py)
    float32   bound 1e-5 of the largest value of that point, or 1e-5; measured 1.6e-6
    pictures made ready: 50 by four processors, equal bit for bit
"""

import json
import struct
import sys
import zlib

import numpy as np
import pictures
import pytest
import tiny
from safetensors.numpy import load_file

import minitx
from minitx import images
from minitx.config import Picture
from minitx.loading.families import from_hf

GOLDEN = tiny.GOLDEN / "images"
VARIANTS = sorted(path.parent.name for path in GOLDEN.glob("*/config.json"))
WITH_PICTURES = [name for name in VARIANTS if name != "clip-texts"]
INPUTS = "pixels", "similarity", "ids", "valid"
OTHERS = "float32", "resized"


def reference(variant):
    return load_file(GOLDEN / variant / "reference.safetensors")


def sides(variant, dtype):
    """(how its names begin, the library's points, model, tokens, valid) of each side."""
    model, stored = minitx.load(GOLDEN / variant, dtype=dtype), reference(variant)
    of_text = {k.removeprefix("text."): x for k, x in stored.items() if k.startswith("text.")}
    rest = {k: x for k, x in stored.items() if "text." not in k}
    if "pixels" in stored:
        yield rest, model, images.rows_of(stored["pixels"], model.config.picture), None
    if of_text:
        yield of_text, model.text or model, of_text["ids"], of_text["valid"].astype(bool)


def by_name(trace):
    return {x if isinstance(x, str) else f"{x[0]}.{x[1]}": trace[x] for x in trace}


def counted(x, valid):
    """The rows of valid tokens."""
    if valid is None or valid.shape[1] not in x.shape[1:3]:
        return x
    tokens = x.swapaxes(1, 2) if x.ndim == 4 else x
    return tokens[valid]


def comparable(name, x, y, valid):
    """A point of both, without padding, and without what a causal mask hides."""
    if y.ndim < x.ndim:  # CLIP norms the class token alone
        x = x[:, 0]
    x, y = counted(x, valid), counted(y, valid)
    if name.startswith("scores"):
        seen = np.isfinite(x)
        return x[seen], y[seen]
    return x, y


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_point_is_the_librarys(variant, dtype):
    for stored, model, tokens, valid in sides(variant, dtype):
        points = by_name(minitx.run(model, tokens, valid=valid))
        twice = {f"resid_pre.{i}" for i in range(1, model.config.n_layers)}
        given = {k for k in stored if k not in INPUTS and not k.startswith(OTHERS)}
        assert given == {*points} - twice
        for name in given:
            x, y = comparable(name, points[name], stored[name], valid)
            assert x.shape == y.shape and x.dtype == dtype, name
            bound = 1e-10 if dtype is np.float64 else 1e-5 * max(1, abs(y).max())
            assert abs(x - y).max() <= bound, name


@pytest.mark.parametrize("variant", VARIANTS)
def test_logits_in_float32_are_those_of_the_library_as_it_is(variant):
    stored = reference(variant)
    for _, model, tokens, valid in sides(variant, np.float32):
        if model.config.task_head is None:
            continue
        key = "float32.logits" if model.config.picture is not None else "float32.text.logits"
        y = minitx.run(model, tokens, "logits", valid=valid)["logits"]
        np.testing.assert_allclose(y, stored[key], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("variant", ["clip-both", "clip-gelu", "clip-deep", "clip-old-end"])
def test_similarities_are_the_librarys(variant):
    model, stored = minitx.load(GOLDEN / variant, dtype="float64"), reference(variant)
    tokens = images.rows_of(stored["pixels"], model.config.picture)
    valid = stored["text.valid"].astype(bool)
    rows = [row[is_token] for row, is_token in zip(stored["text.ids"], valid)]
    each = [minitx.similarity(model, tokens, row)[:, 0] for row in rows]
    np.testing.assert_allclose(np.transpose(each), stored["similarity"], rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match=r"\(vit\) does not compare pictures with texts"):
        minitx.similarity(minitx.load(GOLDEN / "vit-image"), tokens, rows[0])


# --- a picture is a sentence of patches


@pytest.mark.parametrize("variant", WITH_PICTURES)
def test_rows_of_a_picture_are_its_patches(variant):
    picture = minitx.load(GOLDEN / variant).config.picture
    pixels = np.random.default_rng(0).random((2, picture.channels, *picture.size))
    tokens = images.rows_of(pixels, picture)
    assert tokens.shape == (2, images.n_tokens(picture), images.row_length(picture))
    assert (images.pixels_of(tokens, picture) == pixels).all()
    names = images.names(picture)
    last = names.index(f"{picture.rows - 1},{picture.columns - 1}")
    corner = pixels[1, :, -picture.height :, -picture.width :]
    assert last == len(names) - 1 and (tokens[1, last, -corner.size :] == corner.ravel()).all()


def test_pictures_come_alone_or_in_a_batch():
    model = minitx.load(GOLDEN / "vit-image", dtype="float64")
    given = np.random.default_rng(1).integers(0, 256, (3, 8, 8, 3), np.uint8)
    batch = model.encode(images=list(given))
    assert batch.valid.all() and batch.types is None and batch.tokens.dtype == np.float32
    alone = minitx.run(model, given[1], "logits")["logits"]
    together = minitx.run(model, batch.tokens, "logits")["logits"]
    np.testing.assert_allclose(together[1:2], alone, rtol=0, atol=1e-13)
    trace = minitx.run(model, given[0], "pattern")
    assert trace.labels.tolist() == [["cls", "0,0", "0,1", "1,0", "1,1"]]
    assert "1 × 5 tokens" in repr(trace)
    assert minitx.cost(model, given[0], "pattern") == trace.nbytes
    assert "reads pictures: 1 special tokens, then 2 × 2 patches of 4 × 4 pixels" in repr(model)


def test_some_patches_may_be_left_out_and_keep_their_places():
    """A hidden key, and a token that is not there, change the others alike."""
    model = minitx.load(GOLDEN / "vit-deep", dtype="float64")
    gray = np.broadcast_to(np.arange(8)[:, None, None] / 8, (8, 8, 3))
    tokens = model.encode(images=gray).tokens
    kept = [0, 1, 2, 4]
    x = minitx.forward(model, tokens[:, kept], positions=kept)
    mask = np.isin(np.arange(5), [3], invert=True)
    whole = minitx.forward(model, tokens, mask=mask)
    np.testing.assert_allclose(x, whole[:, kept], rtol=0, atol=1e-13)


def test_bytes_and_floats_of_the_same_picture_are_alike():
    model = minitx.load(GOLDEN / "vit-image")
    given = np.random.default_rng(2).integers(0, 256, (8, 8, 3), np.uint8)
    of_bytes, of_floats = (model.encode(images=x).tokens for x in (given, given / 255))
    np.testing.assert_allclose(of_bytes, of_floats, rtol=0, atol=2e-7)


@pytest.mark.parametrize("variant", ["vit-image", "deit-taught", "dinov2-gated", "vit-wide"])
def test_gradients_are_slopes(variant):
    """By finite differences of float64: measured at most 1e-9 of the largest, bound 1e-7."""
    model = minitx.load(GOLDEN / variant, dtype="float64")
    tokens = images.rows_of(reference(variant)["pixels"], model.config.picture)
    if variant == "deit-taught":
        with pytest.raises(ValueError, match="the loss of a 'taught' head of 3"):
            minitx.gradients(model, tokens, [1])
        return
    grads = minitx.gradients(model, tokens, [1], ["W_E", "W_pos", "W_U", ("W_Q", 0)])
    rng = np.random.default_rng(0)
    for name in ("W_E", "W_pos", "W_U"):
        x = getattr(model.weights, name)
        for index in zip(*(rng.integers(0, n, 4) for n in x.shape)):
            losses = []
            for step in (1e-5, -1e-5):
                moved = x.copy()
                moved[index] += step
                other = tiny.with_weights(model, **{name: moved})
                losses.append(minitx.gradients(other, tokens, [1], []).loss)
            slope = (losses[0] - losses[1]) / 2e-5
            assert abs(slope - grads[name][index]) < 1e-7 * max(1, abs(grads[name]).max())


@pytest.mark.parametrize("variant, size", [("vit-image", (12, 20)), ("dinov2-bare", (12, 4))])
def test_a_model_for_pictures_of_another_size_is_the_librarys(variant, size):
    """Its interpolation in float64: measured 1e-14, bound 1e-12; DINOv2's, in float32: 1e-6."""
    stored = reference(variant)
    model = minitx.resized(minitx.load(GOLDEN / variant, dtype="float64"), *size)
    tokens = images.rows_of(stored["resized.pixels"], model.config.picture)
    x = minitx.forward(model, tokens)
    bound = 1e-12 if variant == "vit-image" else 1e-5
    np.testing.assert_allclose(x, stored["resized.ln_final"], rtol=0, atol=bound)
    same = minitx.resized(model, *size)
    np.testing.assert_allclose(same.weights.W_pos, model.weights.W_pos, rtol=0, atol=1e-15)


def test_a_size_that_is_no_whole_number_of_patches_is_refused():
    with pytest.raises(ValueError, match="9 × 8 pixels are not a whole number of patches of 4 × 4"):
        minitx.resized(minitx.load(GOLDEN / "vit-image"), 9, 8)
    with pytest.raises(ValueError, match="-8 × -8 pixels are not a whole number of patches"):
        minitx.resized(minitx.load(GOLDEN / "vit-image"), -8, -8)
    with pytest.raises(ValueError, match="a bert reads no pictures"):
        minitx.resized(minitx.load("tiny-bert"), 8, 8)


# --- how pictures are made ready


@pytest.mark.parametrize("name", pictures.PROCESSORS)
def test_fifty_pictures_are_made_ready_as_by_the_library(tmp_path, name):
    """Odd sizes and modes, by resize, crop, rescale and normalise: equal bit for bit.

    One difference, by choice: every picture becomes RGB first, as the library does where a
    preprocessor_config.json says do_convert_rgb; its ViT and DeiT stop at gray ones elsewhere.
    """
    image_module = pytest.importorskip("PIL.Image")
    stored = np.load(GOLDEN / "preprocessing.npz")
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(pictures.PROCESSORS[name]))
    ready = images.Preprocessor(tmp_path)
    picture = Picture(*pictures.SIZE[name], 3, 1, 1)
    for number, image in enumerate(pictures.drawn()):
        array = images.pixels_in(image_module, image, "RGB")
        assert (ready.pixels(array, picture) == stored[f"{name}.{number}"]).all(), number


@pytest.mark.parametrize("ending", ["png", "jpg", "gif", "bmp", "webp", "tiff", "ppm"])
def test_files_are_read(tmp_path, ending):
    image_module = pytest.importorskip("PIL.Image")
    model = minitx.load(GOLDEN / "vit-image")
    path = tmp_path / f"picture.{ending}"
    smooth = np.indices((8, 8)).sum(axis=0)[..., None] * [9, 12, 15]
    image_module.fromarray(smooth.astype(np.uint8)).save(path)
    with image_module.open(path) as image:
        array = np.asarray(image.convert("RGB"))
    batch = model.encode(images=[path, str(path)])
    assert (batch.tokens == model.encode(images=[array] * 2).tokens).all()
    assert minitx.run(model, str(path), "logits")["logits"].shape == (1, 3)


def png(width, height):
    """A PNG that states a size and holds no pixels."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    bomb = zlib.compress(bytes(1 << 20))
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", bomb) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


HOSTILE = {
    "text": b"no picture at all",
    "empty": b"",
    "huge": png(1 << 16, 1 << 16),
    "wide": png(1 << 30, 1),
    "large": png(8200, 8200),
    "short": png(50, 900_000),
    "cut": png(8, 8)[:40],
    "program": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\nshowpage\n",
    "gif": b"GIF89a\xff\xff\xff\xff\x80\x00\x00",
    "jpeg": b"\xff\xd8\xff\xe0\x00\x10JFIF" + bytes(40),
    "tiff": b"II*\x00\x08\x00\x00\x00\xff\xff" + bytes(60),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_damaged_or_hostile_picture_ends_in_one_line(tmp_path, kind):
    pytest.importorskip("PIL.Image")
    path = tmp_path / "picture"
    path.write_bytes(HOSTILE[kind])
    with pytest.raises(ValueError, match="cannot read the picture .*picture: ") as error:
        minitx.load(GOLDEN / "vit-image").encode(images=path)
    assert "\n" not in str(error.value) and len(str(error.value)) < 400
    if kind == "large":
        assert "wanted at most 67108864" in str(error.value)


def test_a_picture_that_is_cut_off_anywhere_ends_in_one_line(tmp_path):
    image_module = pytest.importorskip("PIL.Image")
    model, path = minitx.load(GOLDEN / "vit-image"), tmp_path / "picture.png"
    noise = np.random.default_rng(0).integers(0, 256, (8, 8, 3), np.uint8)
    image_module.fromarray(noise).save(path)
    whole = path.read_bytes()
    for end in range(0, len(whole) - 16, 7):
        path.write_bytes(whole[:end])
        with pytest.raises(ValueError, match="cannot read the picture"):
            model.encode(images=path)


def preprocessor(folder, **settings):
    """A Preprocessor of a folder with these settings."""
    settings = {"image_processor_type": "CLIPImageProcessor"} | settings
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))
    return images.Preprocessor(folder)


@pytest.mark.parametrize(
    "shape, message",
    [
        ((1400, 1), "1400 × 1 pixels would be resized to 313600 × 224; wanted at most"),
        ((8, 8, 4), "picture 0 is uint8 .* wanted .height width 3. of uint8"),
        ((0, 8), "picture 0 is uint8"),
    ],
)
def test_a_picture_of_a_wrong_size_ends_in_one_line(tmp_path, shape, message):
    array = np.zeros(shape if len(shape) == 3 else (*shape, 3), np.uint8)
    with pytest.raises(ValueError, match=message):
        preprocessor(tmp_path).pixels(array, Picture(7, 7, 3, 32, 32))


def test_a_classifier_without_a_class_is_refused():
    """The library has none then, whatever the file holds; a body may say so."""
    raw = tiny.config("images/vit-image", id2label={})
    with pytest.raises(ValueError, match="id2label is empty; expected a label for each class"):
        from_hf(raw)
    assert from_hf(raw | {"architectures": ["ViTModel"]}).labels == ()


def test_a_number_alone_is_both_sides_or_the_shorter_one(tmp_path):
    """As the kind of the processor has it, unless its file says otherwise."""
    both, shorter = (0, (9, 9)), (9, None)
    for kind, said, expected in [
        ("ViT", {}, both),
        ("CLIP", {}, shorter),
        ("ViT", {"default_to_square": False}, shorter),
        ("CLIP", {"default_to_square": True}, both),
    ]:
        steps = preprocessor(tmp_path, image_processor_type=kind, size=9, **said).steps
        assert (steps.shortest, steps.size) == expected


@pytest.mark.parametrize(
    "settings, message",
    [
        (dict(image_processor_type="OwlViT"), "image_processor_type is 'OwlViT'; supported: ViT"),
        (dict(do_pad=True), "do_pad is True; only None is supported"),
        (dict(use_square_size=True), "use_square_size is True; only None is supported"),
        (dict(size={"shortest_edge": 9, "longest_edge": 12}), "longest_edge, which is not supp"),
        (dict(size={"shortest_edge": 10**9}), "a side is 1000000000; wanted 1 to 8192 pixels"),
        (dict(crop_size={"height": -3, "width": 2}), "a side is -3; wanted"),
        (dict(size="big"), "preprocessor_config.json: "),
        (dict(resample=77), "resample is 77; wanted one of Pillow's filters, 0 to 5"),
        (dict(image_mean=[float("nan")] * 3), "wanted finite numbers"),
    ],
)
def test_settings_that_are_not_computed_are_refused(tmp_path, settings, message):
    with pytest.raises(ValueError, match=message):
        preprocessor(tmp_path, **settings).pixels(np.zeros((1, 1, 3)), Picture(1, 1, 3, 1, 1))


@pytest.mark.parametrize(
    "given, message",
    [
        (dict(texts="a cat"), "reads images=…, and only these"),
        (dict(images=[]), "no picture; wanted a path"),
        (dict(images=np.full((8, 8, 3), 7.0)), "with numbers out of range"),
        (dict(images=np.full((8, 8, 3), 7)), "is int64"),
        (
            dict(images=np.zeros((9, 8, 3), np.uint8)),
            "is 9 × 8 pixels when .* reads 8 × 8; minitx.resized",
        ),
        (dict(images="no-such-file.png"), "cannot read the picture"),
    ],
)
def test_what_is_no_picture_is_refused(given, message):
    model = minitx.load(GOLDEN / "vit-image")
    with pytest.raises(ValueError, match=message):
        model.encode(**given)


def test_a_text_for_a_model_of_pictures_says_so():
    model = minitx.load(GOLDEN / "vit-image")
    with pytest.raises(FileNotFoundError, match="no tokenizer: its model reads pictures, not text"):
        model.tokenizer.encode("a cat")
    with pytest.raises(ValueError, match="cannot read the picture a cat"):
        minitx.run(model, "a cat")


def test_what_is_no_row_of_numbers_is_refused():
    model = minitx.load(GOLDEN / "vit-image")
    with pytest.raises(ValueError, match=r"\(bert\) reads texts, and only these"):
        minitx.load("tiny-bert").encode(images=np.zeros((8, 8, 3), np.uint8))
    with pytest.raises(ValueError, match=r"tokens are float64 \[5, 7\]; this model reads rows"):
        minitx.forward(model, np.zeros((5, 7)))
    tokens = model.encode(images=np.zeros((8, 8, 3))).tokens
    with pytest.raises(ValueError, match="types given, but vit has no token types"):
        minitx.forward(model, tokens, types=[[0] * 5])


def test_without_pillow_arrays_of_the_right_size_are_read(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "PIL", None)
    model = minitx.load(GOLDEN / "vit-image")
    assert model.encode(images=np.zeros((8, 8, 3), np.uint8)).tokens.shape == (1, 5, 50)
    with pytest.raises(ValueError, match=r"Pillow is needed to read .*pip install 'minitx\[images"):
        model.encode(images=tmp_path / "picture.png")
    with pytest.raises(ValueError, match="Pillow is needed to resize a picture of 9 × 9 pixels"):
        preprocessor(tmp_path).pixels(np.zeros((9, 9, 3), np.uint8), Picture(7, 7, 3, 32, 32))
    with pytest.raises(ValueError, match="floats of 9 × 9 pixels are not resized"):
        preprocessor(tmp_path).pixels(np.zeros((9, 9, 3)), Picture(7, 7, 3, 32, 32))


def test_a_folder_that_does_not_say_how_is_refused(tmp_path):
    text = "has no preprocessor_config.json"
    with pytest.raises(ValueError, match=text):
        images.Preprocessor(tmp_path).pixels(np.zeros((8, 8, 3), np.uint8), Picture(2, 2, 3, 4, 4))
    inner = json.dumps({"image_processor": pictures.PROCESSORS["clip"]})
    (tmp_path / "processor_config.json").write_text(inner)
    assert images.Preprocessor(tmp_path).steps.shortest == 9


# --- config.json


def test_register_tokens_are_refused_by_name():
    with pytest.raises(ValueError, match="dinov2_with_registers is not: .* register tokens"):
        from_hf(tiny.config("images/dinov2-bare", model_type="dinov2_with_registers"))


def test_layer_scale_is_in_what_writes():
    """The file's matrix and its scale, by hand."""
    stored = load_file(GOLDEN / "dinov2-image" / "model.safetensors")
    layer = "dinov2.encoder.layer.1."
    scale = stored[f"{layer}layer_scale2.lambda1"].astype(float)
    weight = stored[f"{layer}mlp.fc2.weight"].astype(float)
    w = minitx.load(GOLDEN / "dinov2-image", dtype="float64").layers[1]
    np.testing.assert_allclose(w.W_out, weight.T * scale, rtol=1e-15)
    assert not w.W_out.flags.writeable


def test_a_missing_part_is_named(tmp_path):
    tiny.make(tmp_path, "images/vit-image", tiny.edited(vit__embeddings__cls_token=None))
    with pytest.raises(ValueError, match="'embeddings.cls_token' is missing; "):
        minitx.load(tmp_path)
