"""The modules a template preloads: those that programs import most."""

import os
import sys

from _belljar import immortal

COMMON = (
    "abc argparse ast asyncio base64 bisect calendar code codeop collections collections.abc contextlib copy csv "
    "dataclasses datetime decimal difflib enum errno fileinput fnmatch fractions functools getopt glob gzip hashlib "
    "heapq hmac html importlib.metadata importlib.resources inspect io itertools json keyword linecache locale logging "
    "math mimetypes numbers operator os os.path pathlib pickle platform pprint queue random re runpy secrets select "
    "selectors shlex shutil signal site sqlite3 stat statistics string struct tarfile tempfile textwrap threading time "
    "timeit tokenize traceback types typing unicodedata unittest urllib.parse urllib.request uuid warnings weakref "
    "xml.etree.ElementTree zipfile zlib zoneinfo"
)
DATA = "numpy pandas matplotlib matplotlib.pyplot"
MATPLOTLIB = {"MPLBACKEND": "agg", "MPLCONFIGDIR": "/tmp/matplotlib"}
"""There is no display; and its settings are looked for once, here, where there is no home."""


def load(kind):
    os.environ.update(MATPLOTLIB)
    for name in COMMON.split() + (DATA.split() if kind == "python-data" else []):
        try:
            __import__(name)
        except ImportError:
            pass
    if kind == "python-data":
        multiply()


def multiply():
    """Have the library under numpy make its buffers, which it fills with zeros: tens of megabytes in each program."""
    import numpy

    square = numpy.ones((64, 64))
    numpy.matmul(square, square)


def hand_to_template():
    """Make what is there now the template's: immortal, and ignored by collections."""
    sys.path_importer_cache.pop("", None)
    immortal.freeze_all()
