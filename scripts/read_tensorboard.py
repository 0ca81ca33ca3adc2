#!/usr/bin/env python3
"""Reads an event file as TensorBoard does, and checks what it says: steps once and rising, rows of maps that sum to 1, settings.

scripts/read_tensorboard.py FOLDER     (needs tensorboard and pillow)
"""

import io
import sys

from PIL import Image
from tensorboard.backend.event_processing import event_accumulator
from tensorboard.plugins.hparams import plugin_data_pb2

events = event_accumulator.EventAccumulator(sys.argv[1], size_guidance={event_accumulator.SCALARS: 0, event_accumulator.IMAGES: 0})
events.Reload()
tags = events.Tags()
for tag in tags["scalars"]:
    steps = [event.step for event in events.Scalars(tag)]
    assert steps == sorted(set(steps)), (tag, steps)
for tag in tags["images"]:
    for event in events.Images(tag):
        image = Image.open(io.BytesIO(event.encoded_image_string))
        image.load()
        last = [image.getpixel((x, image.height - 1)) for x in range(image.width)]
        assert abs(sum(last) / 255 - 1) < 0.5 * image.width / 255 + 1e-6 or sum(last) == 0, (tag, event.step, last)
settings = {}
for content in events.PluginTagToContent("hparams").values() if tags["images"] else []:
    settings.update(plugin_data_pb2.HParamsPluginData.FromString(content).session_start_info.hparams)
print(f"{len(tags['scalars'])} curves, {len(tags['images'])} maps, {len(settings)} settings")
for tag in tags["scalars"]:
    last = events.Scalars(tag)[-1]
    print(f"{tag} {last.step} {last.value:.6f}")
