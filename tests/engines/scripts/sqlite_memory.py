import sqlite3
from contextlib import closing

with closing(sqlite3.connect(":memory:")) as db:
    db.execute("create table kv(k text primary key, v blob)")
    db.execute("insert into kv values (:k, :v)", {"k": "a", "v": b"\x00\xff"})
    db.execute("insert into kv values (?, ?) on conflict(k) do update set v = excluded.v", ("a", b"new"))
    print(db.execute("select * from kv").fetchall(), db.total_changes)
    print("".join(line + "\n" for line in db.iterdump()), end="")
    try:
        db.execute("select * from nothing")
    except sqlite3.OperationalError as error:
        print(error)
    db.executescript("create virtual table notes using fts5(body); insert into notes values ('bell jar'), ('glass jar');")
    print(db.execute("select body from notes where notes match 'glass'").fetchall())
