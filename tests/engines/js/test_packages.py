"""Packages from npm, installed by our npm from a registry that the test serves: scripts say with them what they say to Node."""
# ruff: noqa: E501 - other people's programs are not wrapped

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar import Network, Sandbox
from belljar.engines.owner.js_build_host import node
from tests.engines.js.tarballs import PACKAGES, publish
from tests.net.servers import Registry

WANTED = [stem for stem in PACKAGES if not stem.startswith(("bufferutil-", "node-gyp-build-"))]  # those are native
NAMES = "ajv chalk commander csv-parse date-fns dayjs immer js-yaml lodash marked semver uuid zod"

SCRIPTS: dict[str, str] = {
    "lodash.js": """
        const _ = require('lodash'), fp = require('lodash/fp')
        const people = [{ n: 'a', age: 3, tags: ['x'] }, { n: 'b', age: 5, tags: ['x', 'y'] }, { n: 'c', age: 3, tags: [] }]
        console.log(_.groupBy(people, 'age'), _.orderBy(people, ['age', 'n'], ['desc', 'asc']).map((p) => p.n), _.uniq(_.flatMap(people, 'tags')))
        console.log(_.merge({ a: [1, { b: 2 }] }, { a: [, { c: 3 }] }), _.template('hi <%- name %>!')({ name: '<x>' }), _.get(people, '[1].tags[1]'), _.isEqual(new Map([[1, { a: 2 }]]), new Map([[1, { a: 2 }]])))
        console.log(fp.flow(fp.map('age'), fp.sum)(people), _.camelCase('Foo bar-baz'), _.chunk(_.range(7), 3), _(people).keyBy('n').mapValues('age').value(), _.VERSION)
    """,
    "lodash.mjs": "import _ from 'lodash'; import zip from 'lodash/zip.js'; console.log(_.chunk([1, 2, 3], 2), _.sum([1, 2]), zip([1], [2]))",
    "zod.mjs": """
        import { z } from 'zod'
        const User = z.object({ name: z.string().min(2), mail: z.string().email(), age: z.number().int().positive().optional(), roles: z.array(z.enum(['admin', 'user'])).default(['user']) }).strict()
        console.log(User.parse({ name: 'Ada', mail: 'ada@example.com' })); const bad = User.safeParse({ name: 'A', mail: 'nope', age: -1, extra: 1 }); console.log(bad.success, bad.error.issues, bad.error.flatten())
        const Shape = z.discriminatedUnion('kind', [z.object({ kind: z.literal('c'), r: z.number() }), z.object({ kind: z.literal('s'), a: z.coerce.number() })]); console.log(Shape.parse({ kind: 's', a: '4' }), z.string().transform((s) => s.length).parse('four'))
    """,
    "zod.mts": """
        import { z } from 'zod'; const Config = z.object({ port: z.number(), hosts: z.record(z.string()) }); type Config = z.infer<typeof Config>
        function load(text: string): Config { return Config.parse(JSON.parse(text)) }
        console.log(load('{"port": 80, "hosts": {"a": "b"}}')); try { load('{"port": "x"}') } catch (e) { console.log((e as z.ZodError).issues.map((i) => `${i.path.join('.')}: ${i.message}`)) }
    """,
    "dates.mjs": """
        import { addMonths, differenceInCalendarDays, format, formatDistance, isWeekend, parseISO, eachDayOfInterval } from 'date-fns'; import { de } from 'date-fns/locale/de'
        const day = parseISO('2024-01-31T10:20:30'); console.log(format(addMonths(day, 1), "yyyy-MM-dd'T'HH:mm EEEE"), format(day, 'PPPP', { locale: de }), differenceInCalendarDays(parseISO('2024-03-01'), day), isWeekend(day))
        console.log(formatDistance(new Date(0), new Date(86400000 * 40)), eachDayOfInterval({ start: day, end: addMonths(day, 0) }).length)
    """,
    "dayjs.js": """
        const dayjs = require('dayjs'); dayjs.extend(require('dayjs/plugin/utc')); dayjs.extend(require('dayjs/plugin/duration')); dayjs.extend(require('dayjs/plugin/customParseFormat'))
        console.log(dayjs.utc('2024-02-28').add(2, 'day').format('dddd, MMMM D, YYYY'), dayjs.duration(90, 'minutes').format('H:mm'), dayjs('12-25-1995', 'MM-DD-YYYY').isValid(), dayjs.utc(0).toISOString())
    """,
    "commander.js": """
        const { Command, Option } = require('commander'); const program = new Command('tool').version('1.0.0').description('does things').exitOverride()
        program.command('build <src>').option('-o, --out <dir>', 'where to', 'dist').addOption(new Option('--mode <m>').choices(['dev', 'prod'])).action((src, options) => console.log('build', src, options))
        program.parse(['node', 'tool', 'build', 'a.js', '-o', 'x', '--mode', 'prod']); console.log(program.commands[0].helpInformation())
        try { program.parse(['node', 'tool', 'build', 'a', '--mode', 'bad']) } catch (e) { console.log(e.code) }
    """,
    "chalk.mjs": "import { Chalk } from 'chalk'; const c = new Chalk({ level: 1 }); console.log(JSON.stringify(c.red.bold('x') + c.hex('#fff').bgBlue`y ${c.underline('z')}`)); import plain from 'chalk'; console.log(plain.level, plain.green('no colour here'))",
    "yaml.js": """
        const yaml = require('js-yaml'); const doc = yaml.load('a: &x [1, 2.5, ~]\\nb: {c: *x, d: 2024-01-01}\\ns: |\\n  one\\n  two\\n'); console.log(doc, yaml.dump(doc, { noRefs: true }))
        try { yaml.load('a: [') } catch (e) { console.log(e.name, e.reason, e.mark.line) }
    """,
    "ajv.js": """
        const Ajv = require('ajv'); const validate = new Ajv({ allErrors: true }).compile({ type: 'object', properties: { id: { type: 'integer', minimum: 1 }, tags: { type: 'array', items: { type: 'string' }, uniqueItems: true } }, required: ['id'], additionalProperties: false })
        for (const value of [{ id: 1, tags: ['a'] }, { id: 0, tags: ['a', 'a'], x: 1 }, {}]) console.log(validate(value), (validate.errors ?? []).map((e) => `${e.instancePath} ${e.message}`))
    """,
    "semver.js": "const semver = require('semver'); console.log(semver.maxSatisfying(['1.2.3', '1.9.0', '2.0.0-rc.1'], '^1.2'), semver.inc('1.2.3', 'prerelease', 'beta'), ['1.10.0', '1.9.0'].sort(semver.compare), semver.coerce('v3.4 beta').version)",
    "markdown.js": "const { marked } = require('marked'); console.log(marked.parse('# T\\n\\n- a\\n- **b** `c`\\n\\n| x | y |\\n|--|--|\\n| 1 | 2 |\\n\\n```js\\nlet a = 1 < 2\\n```\\n'))",
    "uuid.js": "const { v4, v5, validate, version, parse, stringify, NIL } = require('uuid'); const id = v4(); console.log(validate(id), version(id), v5('a', v5.URL), stringify(parse(NIL)), new Set(Array.from({ length: 100 }, () => v4())).size)",
    "immer.mjs": "import { produce, enablePatches, produceWithPatches } from 'immer'; enablePatches(); const base = { a: [1, 2], b: { c: 1 } }; const next = produce(base, (d) => { d.a.push(3); delete d.b.c }); console.log(next, base, next.b === base.b, Object.isFrozen(next), produceWithPatches(base, (d) => { d.b.c = 2 })[1])",
    "csv.js": r'''
        const { parse } = require('csv-parse/sync'); console.log(parse('id,name\n1,"a, b"\n2,"say ""hi"""\n', { columns: true, cast: true }))
        const stream = require('csv-parse').parse({ delimiter: ';' }); let n = 0; stream.on('readable', () => { let r; while ((r = stream.read())) n += r.length }).on('end', () => console.log(n)).on('error', (e) => console.log(e.code)); for (let i = 0; i < 500; i++) stream.write(`${i};x;y\n`); stream.end()
    ''',
    "together.mjs": """
        import { createRequire } from 'node:module'; import { readFileSync, readdirSync } from 'node:fs'; import { fileURLToPath } from 'node:url'; const require = createRequire(import.meta.url)
        const sizes = {}; for (const name of readdirSync(new URL('./node_modules', import.meta.url)).filter((n) => !n.startsWith('.'))) { const about = JSON.parse(readFileSync(fileURLToPath(new URL(`./node_modules/${name}/package.json`, import.meta.url)), 'utf8')); sizes[name] = [about.version, typeof about.exports, about.type ?? 'commonjs'] }
        console.log(sizes, require('lodash') === (await import('lodash')).default, import.meta.resolve('zod').split('/').slice(-2))
    """,
}


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sandbox, Path]]:
    """A sandbox in which npm installed the packages, and a directory with the very files for Node."""
    folder = tmp_path_factory.mktemp("packages")
    with Registry() as registry:
        for stem in WANTED:
            publish(registry, stem)
        network = Network.allow(f"127.0.0.1:{registry.port}")
        with Sandbox(network=network, env={"npm_config_registry": registry.url}) as sandbox:
            done = sandbox.exec(f"npm init -y && npm install {NAMES}", timeout=120)
            assert done.exit_code == 0, done.stderr
            assert f"added {len(WANTED)} packages in " in done.stdout
            sandbox.exec("tar cf /tmp/all.tar package.json node_modules").check()
            with tarfile.open(fileobj=io.BytesIO(sandbox.files.read_bytes("/tmp/all.tar"))) as archive:
                if hasattr(tarfile, "data_filter"):  # since Python 3.11.4
                    archive.extraction_filter = tarfile.data_filter
                archive.extractall(folder)  # noqa: S202 - made above, by our own npm
            yield sandbox, folder


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_with_packages_says_what_it_says_to_node(name: str, places: tuple[Sandbox, Path]) -> None:
    sandbox, folder = places
    sandbox.files.write(f"/workspace/{name}", SCRIPTS[name])
    (folder / name).write_text(SCRIPTS[name])
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/root", "TZ": "UTC"}
    command = [str(node()), name]
    real = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert real.returncode == 0, real.stderr
    ours = sandbox.exec(["node", name], timeout=120)
    assert (ours.stdout, ours.exit_code) == (real.stdout, 0), ours.stderr
