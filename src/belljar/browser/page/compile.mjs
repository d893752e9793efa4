// Compiles Python modules by Pyodide's own Python: node compile.mjs PYODIDE_DIR SOURCES.zip COMPILED.zip LEVEL [PREFIX]
// LEVEL is python's of -O; PREFIX is put before names in tracebacks.
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [directory, sources, compiled, level, prefix = ""] = process.argv.slice(2);
const { loadPyodide } = await import(pathToFileURL(`${directory}/pyodide.mjs`));
const py = await loadPyodide({ indexURL: directory });
py.FS.mkdirTree("/src");
py.unpackArchive(new Uint8Array(readFileSync(sources)), "zip", { extractDir: "/src" });
py.runPython(`
import pathlib, py_compile, warnings, zipfile
warnings.simplefilter("ignore")
mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
with zipfile.ZipFile("/compiled.zip", "w") as archive:
    for path in sorted(pathlib.Path("/src").rglob("*")):
        name = str(path.relative_to("/src"))
        if path.suffix == ".py":
            made = py_compile.compile(
                str(path), cfile="/one.pyc", dfile="${prefix}" + name, doraise=True, optimize=${Number(level)}, invalidation_mode=mode
            )
            path, name = pathlib.Path(made), name + "c"
        if path.is_file():
            archive.writestr(zipfile.ZipInfo(name), path.read_bytes())
`);
writeFileSync(compiled, py.FS.readFile("/compiled.zip"));
