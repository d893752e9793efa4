"""A matplotlib backend for sessions: `plt.show()` gives the figures to the owner as PNG and closes them."""

import builtins
import io

from matplotlib._pylab_helpers import Gcf
from matplotlib.backend_bases import FigureManagerBase
from matplotlib.backends.backend_agg import FigureCanvasAgg

FigureCanvas = FigureCanvasAgg
FigureManager = FigureManagerBase


def show(*args, **kwargs):
    """Called by plt.show()."""
    session = builtins.display.__self__
    for manager in Gcf.get_all_fig_managers():
        out = io.BytesIO()
        manager.canvas.figure.savefig(out, format="png", bbox_inches="tight")
        session.send(op="output", mime="image/png", data=out.getvalue())
    Gcf.destroy_all()
