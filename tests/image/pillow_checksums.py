#!/usr/bin/env python3
"""Prints the tables of pixels_test.cc: checksums of what Pillow makes of the pictures that the test makes."""
from PIL import Image, ImageEnhance


def picture(height, width, channels):
    """Bytes of a linear congruential generator."""
    state, numbers = 1, bytearray()
    for _ in range(height * width * channels):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        numbers.append(state >> 56)
    return Image.frombytes("RGB" if channels == 3 else "L", (width, height), bytes(numbers))


def checksum(image):
    """FNV-1a of 64 bits."""
    value = 0xCBF29CE484222325
    for byte in image.tobytes():
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return f"0x{value:016x}"


for height, width, channels, to_height, to_width, box in [
    (37, 53, 3, 16, 16, None), (37, 53, 3, 37, 20, None), (37, 53, 3, 12, 53, None), (37, 53, 3, 90, 131, None), (37, 53, 3, 37, 53, None),
    (64, 64, 1, 7, 5, None), (5, 3, 1, 1, 1, None), (1, 1, 3, 4, 4, None), (300, 200, 3, 224, 224, None),
    (37, 53, 3, 16, 16, (10, 5, 41, 33)), (300, 200, 3, 224, 224, (3, 17, 180, 299)), (37, 53, 3, 20, 20, (10, 5, 30, 25)),
]:
    box = box or (0, 0, width, height)
    made = picture(height, width, channels).resize((to_width, to_height), Image.BILINEAR, box)
    print(f"    {{{height}, {width}, {channels}, {{{box[1]}, {box[0]}, {box[3] - box[1]}, {box[2] - box[0]}}}, {to_height}, {to_width}, {checksum(made)}}},")
print()
for brightness, contrast, saturation in [(1.4, 1, 1), (0.3, 1, 1), (1, 1.7, 1), (1, 0.25, 1), (1, 1, 1.5), (1, 1, 0), (0.8, 1.3, 0.6)]:
    made = picture(37, 53, 3)
    for enhance, factor in ((ImageEnhance.Brightness, brightness), (ImageEnhance.Contrast, contrast), (ImageEnhance.Color, saturation)):
        if factor != 1:
            made = enhance(made).enhance(factor)
    print(f"    {{{{{float(brightness)}f, {float(contrast)}f, {float(saturation)}f}}, {checksum(made)}}},")
