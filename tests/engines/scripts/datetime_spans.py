from datetime import UTC, date, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

start = datetime(2024, 2, 28, 23, 30, tzinfo=UTC)
for days in (0, 1, 2):
    moment = start + timedelta(days=days, minutes=45)
    print(moment.isoformat(), moment.strftime("%a %d %b %Y %H:%M"), moment.isocalendar().week)
print(datetime.strptime("2024-03-10 01:30", "%Y-%m-%d %H:%M").replace(tzinfo=ZoneInfo("America/New_York")).utcoffset())
print(datetime(2024, 7, 1, 12, tzinfo=ZoneInfo("Europe/Kyiv")).astimezone(timezone(timedelta(hours=-7))))
print((date(2024, 12, 25) - date(2024, 2, 29)).days, date.fromisoformat("2024-W09-4"))
print(datetime.fromtimestamp(0, UTC), timedelta(seconds=93784), datetime.fromisoformat("2024-01-01T00:00:00Z"))
