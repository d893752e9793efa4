// The shortest way from one list of lines to another (Myers), within bounds.

export interface Line {
  kind: "same" | "added" | "removed";
  text: string;
  before: number | undefined;
  after: number | undefined;
}

const MOST_STEPS = 1000;

/** Lines of both texts in order. Where they differ too much to be compared, all of one and then all of the other. */
export function diff(before: string, after: string): Line[] {
  const a = lines(before);
  const b = lines(after);
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const keep = middle(a.slice(start, a.length - end), b.slice(start, b.length - end));
  const found: Line[] = [];
  let x = 0;
  let y = 0;
  const take = (kind: Line["kind"]) => {
    const text = kind === "added" ? b[y]! : a[x]!;
    found.push({ kind, text, before: kind === "added" ? undefined : x + 1, after: kind === "removed" ? undefined : y + 1 });
    if (kind !== "added") x += 1;
    if (kind !== "removed") y += 1;
  };
  for (let n = 0; n < start; n++) take("same");
  keep.forEach(take);
  for (let n = 0; n < end; n++) take("same");
  return found;
}

function lines(text: string): string[] {
  const found = text.split("\n");
  if (found.at(-1) === "") found.pop();
  return found;
}

function middle(a: string[], b: string[]): Line["kind"][] {
  const whole = () => [...a.map(() => "removed" as const), ...b.map(() => "added" as const)];
  const reach = new Map<number, number>([[1, 0]]);
  const steps: Map<number, number>[] = [];
  for (let d = 0; d <= a.length + b.length; d++) {
    if (d > MOST_STEPS) return whole();
    steps.push(new Map(reach));
    for (let k = -d; k <= d; k += 2) {
      const down = k === -d || (k !== d && reach.get(k - 1)! < reach.get(k + 1)!);
      let x = down ? reach.get(k + 1)! : reach.get(k - 1)! + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      reach.set(k, x);
      if (x >= a.length && x - k >= b.length) return walkBack(steps, a.length, b.length);
    }
  }
  return whole();
}

function walkBack(steps: Map<number, number>[], x: number, y: number): Line["kind"][] {
  const found: Line["kind"][] = [];
  for (let d = steps.length - 1; d >= 0; d--) {
    const reach = steps[d]!;
    const k = x - y;
    const down = k === -d || (k !== d && reach.get(k - 1)! < reach.get(k + 1)!);
    const from = down ? k + 1 : k - 1;
    const fromX = reach.get(from)!;
    const fromY = fromX - from;
    while (x > fromX && y > fromY) {
      found.push("same");
      x -= 1;
      y -= 1;
    }
    if (d > 0) found.push(down ? "added" : "removed");
    x = fromX;
    y = fromY;
  }
  return found.reverse();
}

const CONTEXT = 3;

/** Runs of lines around what changed; what lies between them is left out. */
export function hunks(all: Line[]): Line[][] {
  const found: Line[][] = [];
  let last = -Infinity;
  all.forEach((line, place) => {
    if (line.kind === "same") return;
    const from = Math.max(0, place - CONTEXT, last + 1);
    const until = Math.min(all.length - 1, place + CONTEXT);
    if (from > last + 1 || found.length === 0) found.push([]);
    found.at(-1)!.push(...all.slice(from, until + 1));
    last = until;
  });
  return found;
}
