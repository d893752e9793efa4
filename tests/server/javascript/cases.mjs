// The stock JavaScript SDK against a server: each case prints one line of JSON when it is done.
import assert from 'node:assert/strict'
import { Sandbox as CodeSandbox } from '@e2b/code-interpreter'
import { CommandExitError, NotFoundError, Sandbox, Template, TimeoutError, InvalidArgumentError } from 'e2b'

const sleep = (ms) => new Promise((done) => setTimeout(done, ms))

const cases = {
  async 'a command has output and an exit code'(sandbox) {
    const result = await sandbox.commands.run('echo out; echo err >&2')
    assert.deepEqual([result.stdout, result.stderr, result.exitCode], ['out\n', 'err\n', 0])
  },
  async 'a command that fails throws'(sandbox) {
    await assert.rejects(sandbox.commands.run('echo a; exit 7'), (error) => {
      assert(error instanceof CommandExitError)
      assert.deepEqual([error.exitCode, error.stdout], [7, 'a\n'])
      return true
    })
  },
  async 'output comes as it is made'(sandbox) {
    const heard = []
    await sandbox.commands.run('for i in 1 2 3; do echo $i; sleep 0.1; done', { onStdout: (text) => heard.push(text) })
    assert.equal(heard.join(''), '1\n2\n3\n')
  },
  async 'much output is whole'(sandbox) {
    const result = await sandbox.commands.run('seq 100000')
    assert.equal(result.stdout.length, 588895)
  },
  async 'a timeout ends the command'(sandbox) {
    await assert.rejects(sandbox.commands.run('sleep 30', { timeoutMs: 500 }), TimeoutError)
  },
  async 'environment and directory'(sandbox) {
    const result = await sandbox.commands.run('echo $A; pwd', { envs: { A: '1' }, cwd: '/usr' })
    assert.equal(result.stdout, '1\n/usr\n')
  },
  async 'a directory that is not there'(sandbox) {
    await assert.rejects(sandbox.commands.run('pwd', { cwd: '/nowhere' }), InvalidArgumentError)
  },
  async 'a command as root'(sandbox) {
    assert.equal((await sandbox.commands.run('whoami', { user: 'root' })).stdout, 'root\n')
  },
  async 'a command in the background'(sandbox) {
    const handle = await sandbox.commands.run('echo begun; sleep 0.2; exit 3', { background: true })
    await assert.rejects(handle.wait(), (error) => error.exitCode === 3 && error.stdout === 'begun\n')
  },
  async 'a command is listed, connected to and killed'(sandbox) {
    const handle = await sandbox.commands.run('sleep 100', { background: true })
    assert((await sandbox.commands.list()).some((each) => each.pid === handle.pid))
    const again = await sandbox.commands.connect(handle.pid)
    assert.equal(await sandbox.commands.kill(handle.pid), true)
    await assert.rejects(again.wait(), CommandExitError)
    assert.equal(await sandbox.commands.kill(handle.pid), false)
  },
  async 'input for a command'(sandbox) {
    const handle = await sandbox.commands.run('cat', { background: true, stdin: true })
    await sandbox.commands.sendStdin(handle.pid, 'hello\n')
    while (!handle.stdout.includes('hello')) await sleep(20)
    await handle.kill()
  },
  async 'git keeps a password'(sandbox) {
    await sandbox.git.dangerouslyAuthenticate({ username: 'ann', password: 'a b', host: 'git.example', protocol: 'https' })
    assert.equal(await sandbox.git.getConfig('credential.helper', { scope: 'global' }), 'store')
    const result = await sandbox.commands.run("printf 'protocol=https\\nhost=git.example\\n' | git credential fill")
    assert.match(result.stdout, /^username=ann\npassword=a b$/m)
  },
  async 'files are written and read'(sandbox) {
    const info = await sandbox.files.write('a.txt', 'text')
    assert.equal(info.path, '/home/user/a.txt')
    assert.equal(await sandbox.files.read('a.txt'), 'text')
    assert.deepEqual([...(await sandbox.files.read('a.txt', { format: 'bytes' }))], [...Buffer.from('text')])
    assert.equal(await (await sandbox.files.read('a.txt', { format: 'blob' })).text(), 'text')
  },
  async 'several files at once'(sandbox) {
    const made = await sandbox.files.write([
      { path: 'm/one', data: '1' },
      { path: 'm/two', data: new Uint8Array([1, 2, 3]).buffer },
    ])
    assert.deepEqual(made.map((each) => each.path), ['/home/user/m/one', '/home/user/m/two'])
    assert.deepEqual((await sandbox.files.list('m')).map((each) => each.name).sort(), ['one', 'two'])
  },
  async 'a large file'(sandbox) {
    const data = new Uint8Array(3_000_000).map((_, at) => at % 251)
    await sandbox.files.write('big', data.buffer)
    assert(Buffer.from(data).equals(Buffer.from(await sandbox.files.read('big', { format: 'bytes' }))))
  },
  async 'a file that is not there'(sandbox) {
    await assert.rejects(sandbox.files.read('none'), NotFoundError)
    assert.equal(await sandbox.files.exists('none'), false)
  },
  async 'directories, renaming and removing'(sandbox) {
    assert.equal(await sandbox.files.makeDir('d/e'), true)
    assert.equal(await sandbox.files.makeDir('d/e'), false)
    await sandbox.files.write('d/f', 'x')
    await sandbox.files.rename('d/f', 'd/g')
    assert.equal((await sandbox.files.getInfo('d/g')).size, 1)
    await sandbox.files.remove('d')
    assert.equal(await sandbox.files.exists('d/g'), false)
  },
  async 'a directory is watched'(sandbox) {
    await sandbox.files.makeDir('w')
    const seen = []
    const watch = await sandbox.files.watchDir('w', (event) => seen.push(event.name))
    await sandbox.files.write('w/new', 'x')
    for (let round = 0; round < 500 && !seen.includes('new'); round++) await sleep(20)
    await watch.stop()
    assert(seen.includes('new'))
  },
  async 'signed links'(sandbox) {
    await sandbox.files.write('linked', 'by a link')
    const url = await sandbox.downloadUrl('linked', { useSignatureExpiration: 60 })
    assert.equal(await (await fetch(url)).text(), 'by a link')
    assert.equal((await fetch(url.replace('linked', 'other'))).status, 401)
  },
  async 'a terminal'(sandbox) {
    let text = ''
    const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData: (data) => (text += Buffer.from(data)) })
    await sandbox.pty.sendInput(terminal.pid, new TextEncoder().encode('echo $((6*7))\n'))
    for (let round = 0; round < 500 && !text.includes('42'); round++) await sleep(20)
    await sandbox.pty.resize(terminal.pid, { cols: 100, rows: 30 })
    await sandbox.pty.kill(terminal.pid)
    assert(text.includes('42'))
  },
  async 'what a sandbox is'(sandbox) {
    const info = await sandbox.getInfo()
    assert.deepEqual([info.sandboxId, info.state, info.metadata], [sandbox.sandboxId, 'running', { by: 'javascript' }])
    assert.equal(await sandbox.isRunning(), true)
    await sandbox.setTimeout(600_000)
    const paginator = Sandbox.list({ query: { metadata: { by: 'javascript' } } })
    assert((await paginator.nextItems()).some((each) => each.sandboxId === sandbox.sandboxId))
  },
  async 'pausing and going on'() {
    const sandbox = await Sandbox.create()
    await sandbox.files.write('kept', 'yes')
    await sandbox.pause()
    assert.equal((await Sandbox.getInfo(sandbox.sandboxId)).state, 'paused')
    const again = await Sandbox.connect(sandbox.sandboxId)
    assert.equal(await again.files.read('kept'), 'yes')
    assert.equal(await again.kill(), true)
    assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
  },
  async 'snapshots'(sandbox) {
    await sandbox.files.write('in-snapshot', 'yes')
    const taken = await sandbox.createSnapshot()
    const other = await Sandbox.create(taken.snapshotId)
    assert.equal(await other.files.read('in-snapshot'), 'yes')
    await other.kill()
    await Sandbox.deleteSnapshot(taken.snapshotId)
  },
  async 'metrics'(sandbox) {
    const found = await sandbox.getMetrics()
    assert(found.at(-1).memTotal > 0)
  },
  async 'a template'() {
    const name = `js-${Date.now()}`
    await Template.build(Template().fromBaseImage().runCmd('echo made > f').setEnvs({ A: 'b' }), name)
    const sandbox = await Sandbox.create(name)
    assert.equal((await sandbox.commands.run('cat f; echo $A')).stdout, 'made\nb\n')
    await sandbox.kill()
    assert.equal(await Template.exists(name), true)
  },
  async 'git'(sandbox) {
    await sandbox.git.init('/home/user/repo')
    await sandbox.files.write('repo/a', 'x')
    await sandbox.git.add('/home/user/repo')
    assert((await sandbox.git.status('/home/user/repo')).fileStatus.length > 0)
  },
  async 'code has variables, results and errors'() {
    const sandbox = await CodeSandbox.create()
    await sandbox.runCode('x = 41')
    assert.equal((await sandbox.runCode('x + 1')).text, '42')
    assert.equal((await sandbox.runCode('1/0')).error.name, 'ZeroDivisionError')
    const heard = []
    await sandbox.runCode('print("said")', { onStdout: (line) => heard.push(line.line) })
    assert.equal(heard.join(''), 'said\n')
    const context = await sandbox.createCodeContext({ language: 'javascript' })
    assert.equal((await sandbox.runCode('6 * 7', { context })).text, '42')
    await sandbox.kill()
  },
  async 'a wrong key'() {
    await assert.rejects(Sandbox.create({ apiKey: 'bj_' + '0'.repeat(42), validateApiKey: false }), /401|nvalid|Unauthorized/)
  },
}

if (process.argv.includes('--list')) {
  console.log(JSON.stringify(Object.keys(cases)))
} else {
  const sandbox = await Sandbox.create({ timeoutMs: 300_000, metadata: { by: 'javascript' } })
  for (const [name, run] of Object.entries(cases)) {
    try {
      await run(sandbox)
      console.log(JSON.stringify({ name, error: null }))
    } catch (error) {
      console.log(JSON.stringify({ name, error: `${error.stack ?? error}` }))
    }
  }
  await sandbox.kill()
  process.exit(0)
}
