"""Fifty pictures of odd sizes and modes that a program draws, and settings of processors for them.

They are drawn again wherever they are needed, by Pillow and a seed.
"""

import numpy as np

SIZES = [(1, 1), (1, 40), (40, 1), (2, 3), (7, 5), (16, 16), (17, 31), (64, 3), (33, 48), (90, 61)]
MODES = ["RGB", "L", "RGBA", "P", "CMYK", "1", "LA", "I;16", "YCbCr", "RGB"]
PROCESSORS = {
    "vit": {"image_processor_type": "ViTImageProcessor", "size": {"height": 8, "width": 12}},
    "deit": {
        "image_processor_type": "DeiTImageProcessor",
        "size": {"height": 10, "width": 10},
        "crop_size": {"height": 8, "width": 8},
    },
    "clip": {
        "image_processor_type": "CLIPImageProcessor",
        "size": {"shortest_edge": 9},
        "crop_size": {"height": 8, "width": 8},
    },
    "dinov2": {
        "image_processor_type": "BitImageProcessor",
        "size": {"shortest_edge": 7},
        "crop_size": {"height": 8, "width": 8},
    },
}
SIZE = {"vit": (8, 12), "deit": (8, 8), "clip": (8, 8), "dinov2": (8, 8)}  # when it is ready
PIL_CLASSES = {
    "dinov2": ("transformers.models.bit.image_processing_pil_bit", "BitImageProcessorPil")
}


def drawn():
    """The fifty pictures, as Pillow's."""
    from PIL import Image

    images = []
    for number in range(50):
        width, height = SIZES[number % 10]
        mode = MODES[(number + number // 10) % 10]
        rng = np.random.default_rng(number)
        pixels = rng.integers(0, 256, (height, width, 4), dtype=np.uint8)
        if mode == "I;16":
            deep = rng.integers(0, 65536, (height, width), dtype=np.uint16)
            images.append(Image.fromarray(deep))
            continue
        image = Image.fromarray(pixels)
        if mode not in ("RGBA", "LA"):
            image = image.convert("RGB")
        images.append(image.convert(mode))
    return images
