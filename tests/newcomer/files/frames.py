"""Writes the middle frame of each video as PNG; a video that does not move, or is empty, is an error."""

import sys
from pathlib import Path

import av
import numpy as np
from PIL import Image

videos, target = Path(sys.argv[1]), Path(sys.argv[2])
target.mkdir(exist_ok=True)
for video in sorted([*videos.glob("*.mp4"), *videos.glob("*.gif")]):
    with av.open(str(video)) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    middle, skip = frames[len(frames) // 2], len(frames[0]) // 6  # return and step are written at the top
    first = frames[0][skip:].astype(int)
    assert middle[skip:].std() > 5, f"{video} is empty"
    assert any(np.abs(frame[skip:] - first).mean() > 0.05 for frame in frames), f"{video} does not move"
    Image.fromarray(middle).save(target / f"{video.stem}.png")
    print(f"{video}: {len(frames)} frames of {middle.shape[1]} x {middle.shape[0]}")
