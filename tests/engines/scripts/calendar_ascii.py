import calendar, time

print(calendar.month(2024, 2), end="")
print(calendar.isleap(2100), calendar.monthrange(2023, 2), list(calendar.day_abbr)[:2])
print(time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(1_700_000_000)), time.gmtime(0).tm_yday)
t = time.monotonic()
time.sleep(0.01)
print(time.monotonic() - t >= 0.009, time.perf_counter_ns() > 0, time.process_time() >= 0)
