// Bundles the console into static files: `node build.mjs DIRECTORY`.
import { build } from "esbuild";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";

const out = process.argv[2] ?? "dist";
await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
const done = await build({
  entryPoints: ["src/main.tsx"],
  outdir: out,
  entryNames: "console-[hash]",
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  minify: true,
  metafile: true,
  legalComments: "none", // all licences are in one file
  jsx: "automatic",
  jsxImportSource: "preact",
  loader: { ".woff2": "file" },
  logLevel: "warning",
});
const made = Object.entries(done.metafile.outputs);
const script = made.find(([, output]) => output.entryPoint === "src/main.tsx");
const page = await readFile("src/index.html", "utf8");
await writeFile(
  join(out, "index.html"),
  page
    .replace("{script}", `/console/assets/${basename(script[0])}`)
    .replace("{style}", `/console/assets/${basename(script[1].cssBundle)}`),
);

// The licences of everything that was bundled.
const packages = new Set(Object.keys(done.metafile.inputs).flatMap((path) => /^node_modules\/(@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []));
const licences = await Promise.all(
  [...packages].sort().map(async (place) => {
    const file = (await readdir(place)).find((name) => /^licen[cs]e/i.test(name));
    return `${place.slice("node_modules/".length)}\n\n${file ? await readFile(join(place, file), "utf8") : ""}`;
  }),
);
await writeFile(join(out, "LICENSES.txt"), licences.join(`\n${"-".repeat(72)}\n`));
