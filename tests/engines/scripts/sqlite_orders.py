import sqlite3

db = sqlite3.connect("shop.db")
db.row_factory = sqlite3.Row
db.executescript("""
create table customer(id integer primary key, name text not null unique);
create table orders(id integer primary key, customer_id int references customer(id), amount real, day text);
""")
db.executemany("insert into customer(name) values (?)", [("ann",), ("bob",), ("cy",)])
db.executemany("insert into orders(customer_id, amount, day) values (?, ?, ?)",
               [(1, 10.5, "2024-01-01"), (1, 4.5, "2024-01-03"), (2, 99.0, "2024-01-02")])
db.commit()
query = """select c.name, count(o.id) n, coalesce(sum(o.amount), 0) total,
  rank() over (order by coalesce(sum(o.amount), 0) desc) place
  from customer c left join orders o on o.customer_id = c.id group by c.id order by place"""
for row in db.execute(query):
    print(dict(row))
try:
    with db:
        db.execute("update orders set amount = 0")
        db.execute("insert into customer(name) values ('ann')")
except sqlite3.IntegrityError as error:
    print(error)
print(db.execute("select sum(amount) from orders").fetchone()[0])
db.create_function("shout", 1, lambda s: s.upper() + "!")
print([tuple(r) for r in db.execute("select shout(name) from customer where name glob '[ab]*' order by 1")])
print(db.execute("select json_extract('{\"a\": [1, 2]}', '$.a[1]')").fetchone()[0])
db.close()
print(sqlite3.connect("shop.db").execute("select count(*) from orders").fetchone())
