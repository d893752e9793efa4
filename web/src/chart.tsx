// Charts of numbers over time, drawn as SVG.

export interface Point {
  at: number;
  value: number;
}

interface ChartProps {
  title: string;
  points: Point[];
  format: (value: number) => string;
  /** A limit that the values stay below: drawn as a line once they come near. */
  limit?: number;
  /** Text beside the newest value. */
  note?: string;
}

const WIDTH = 320;
const HEIGHT = 96;
const LONGEST = 180;
const SHORTEST = 30;

/** The last three minutes of a value, or as much as there is. */
export function Chart({ title, points, format, limit, note }: ChartProps) {
  const end = points.at(-1)?.at ?? 0;
  const shown = points.filter((point) => point.at >= end - LONGEST);
  const seconds = Math.max(SHORTEST, end - (shown[0]?.at ?? end));
  const most = Math.max(...shown.map((point) => point.value), 1e-9);
  const near = limit !== undefined && most > limit / 3;
  const top = near ? limit * 1.08 : most * 1.25;
  const x = (point: Point) => WIDTH - ((end - point.at) / seconds) * WIDTH;
  const y = (value: number) => HEIGHT - 2 - (value / top) * (HEIGHT - 6);
  const line = shown.map((point) => `${x(point).toFixed(1)},${y(point.value).toFixed(1)}`).join(" ");
  const last = shown.at(-1);
  const first = shown[0];
  return (
    <figure class="chart card">
      <figcaption>
        <span>{title}</span>
        <strong>{last ? format(last.value) : "–"}</strong>
        {note && <small>{note}</small>}
      </figcaption>
      <svg viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" role="img" aria-label={`${title}: ${last ? format(last.value) : "no value yet"}`}>
        {[0.25, 0.5, 0.75].map((part) => (
          <line key={part} class="grid" x1="0" x2={WIDTH} y1={HEIGHT * part} y2={HEIGHT * part} />
        ))}
        {near && <line class="limit" x1="0" x2={WIDTH} y1={y(limit)} y2={y(limit)} />}
        {first && last && (
          <>
            <polygon class="area" points={`${x(first)},${HEIGHT} ${line} ${x(last)},${HEIGHT}`} />
            <polyline class="line" points={line} />
          </>
        )}
      </svg>
    </figure>
  );
}

/** A small line without axes. */
export function Spark({ values, label }: { values: number[]; label: string }) {
  const most = Math.max(...values, 1);
  const step = 60 / Math.max(1, values.length - 1);
  const line = values.map((value, place) => `${(place * step).toFixed(1)},${(17 - (value / most) * 15).toFixed(1)}`).join(" ");
  return (
    <svg class="spark" viewBox="0 0 60 18" role="img" aria-label={label}>
      <polyline points={line} />
    </svg>
  );
}

interface Bar {
  label: string;
  value: number;
}

/** Amounts by the hour. */
export function Bars({ title, bars, format }: { title: string; bars: Bar[]; format: (value: number) => string }) {
  const most = Math.max(...bars.map((bar) => bar.value), 1e-9);
  const total = bars.reduce((sum, bar) => sum + bar.value, 0);
  const width = 100 / bars.length;
  return (
    <figure class="chart bars card">
      <figcaption>
        <span>{title}</span>
        <strong>{format(total)}</strong>
        <small>last {bars.length} hours</small>
      </figcaption>
      <svg viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label={`${title}: ${format(total)}`}>
        {bars.map((bar, place) => (
          <rect
            key={bar.label}
            x={place * width + width * 0.12}
            width={width * 0.76}
            y={40 - (bar.value / most) * 38}
            height={Math.max((bar.value / most) * 38, bar.value > 0 ? 1 : 0.4)}
          >
            <title>{`${bar.label}: ${format(bar.value)}`}</title>
          </rect>
        ))}
      </svg>
    </figure>
  );
}
