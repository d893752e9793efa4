// Tables out of HTML that a guest wrote: their text, and nothing else of it. It is parsed into a document that runs
// nothing, loads nothing and is never shown.

export interface TableData {
  head: string[][];
  rows: { text: string; head: boolean }[][];
  cut: boolean;
}

interface Policy {
  createHTML(html: string): string;
}

declare global {
  interface Window {
    trustedTypes?: { createPolicy(name: string, rules: { createHTML: (html: string) => string }): Policy };
  }
}

const ROWS_MAX = 500;
const CELLS_MAX = 100;
const policy: Policy = window.trustedTypes?.createPolicy("belljar", { createHTML: (html) => html }) ?? {
  createHTML: (html) => html,
};

export function readTables(html: string): TableData[] {
  const parsed = new DOMParser().parseFromString(policy.createHTML(html), "text/html");
  return [...parsed.querySelectorAll("table")].slice(0, 10).map((table) => {
    const rows = [...table.rows];
    const head = rows.filter((row) => row.parentElement?.localName === "thead");
    const body = rows.filter((row) => !head.includes(row));
    const cells = (row: HTMLTableRowElement) => [...row.cells].slice(0, CELLS_MAX);
    const text = (cell: Element) => (cell.textContent ?? "").trim();
    return {
      head: head.map((row) => cells(row).map(text)),
      rows: body.slice(0, ROWS_MAX).map((row) => cells(row).map((cell) => ({ text: text(cell), head: cell.localName === "th" }))),
      cut: body.length > ROWS_MAX,
    };
  });
}
