import io, logging, sys

stream = io.StringIO()
handler = logging.StreamHandler(stream)
handler.setFormatter(logging.Formatter("%(levelname)-8s %(name)s: %(message)s"))
log = logging.getLogger("app.db")
log.setLevel(logging.INFO)
log.addHandler(handler)
log.propagate = False
log.debug("hidden")
log.info("connected to %s", "db")
try:
    1 / 0
except ZeroDivisionError:
    log.exception("failed")
lines = stream.getvalue().splitlines()
print(lines[0], lines[1], lines[-1], sep="\n")
logging.basicConfig(level=logging.WARNING, format="%(levelname)s:%(message)s", stream=sys.stdout)
logging.warning("to stdout")
logging.info("not shown")
