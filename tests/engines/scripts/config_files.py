import configparser, io, tomllib

ini = configparser.ConfigParser()
ini.read_string("""
[DEFAULT]
root = /srv
[web]
path = %(root)s/www
port = 8080
debug = yes
""")
print(ini.sections(), ini["web"]["path"], ini.getint("web", "port"), ini.getboolean("web", "debug"), ini.get("web", "none", fallback="-"))
out = io.StringIO()
ini["new"] = {"key": "value"}
ini.write(out)
print(out.getvalue().splitlines()[-3:])
toml = tomllib.loads("""
title = "x"
[tool.thing]
when = 2024-05-01T10:00:00Z
list = [1, 2.5, "three"]
[[tool.items]]
n = 1
[[tool.items]]
n = 2
""")
print(toml)
