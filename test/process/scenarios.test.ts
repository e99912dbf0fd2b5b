import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { commandOf } from '../support/programs.ts'

const root = resolve(import.meta.dirname, '../..')
const library = join(root, 'simulator/scenarios/library')
let folder: string
const children = new Set<ChildProcess>()

beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'larder-scenarios-'))))
afterEach(() => {
  for (const child of children) child.kill('SIGTERM')
  children.clear()
  rmSync(folder, { recursive: true, force: true })
})

/** `npm run simulator -- …` */
function simulator(args: readonly string[], environment: Record<string, string> = {}) {
  const [node, ...main] = commandOf('simulator/main')
  const child = spawn(node, [...main, ...args], {
    cwd: root,
    env: { ...process.env, ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  children.add(child)
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  const ended = new Promise<number | null>((done) =>
    child.once('close', (status) => {
      children.delete(child)
      done(status)
    }),
  )
  return { child, output: () => text, ended }
}

async function command(args: readonly string[]): Promise<{ status: number | null; output: string }> {
  const { ended, output } = simulator(args)
  return { status: await ended, output: output() }
}

test('every scenario of the library passes with the real programs, and the report names each', async () => {
  const names = readdirSync(library)
  const hasSettings = (name: string): boolean =>
    readFileSync(join(library, name), 'utf8').includes('\nsettings:')
  // Rooms mostly wait, so two run in parallel. Each start of a demo takes as long as two scenarios, and only scenarios
  // with the same settings share one.
  const ordered = names.toSorted((one, other) => Number(hasSettings(one)) - Number(hasSettings(other)))
  const middle = Math.ceil(names.length / 2) + 1
  const reported = await Promise.all(
    [ordered.slice(0, middle), ordered.slice(middle)].map(async (part, half) => {
      const files = part.map((name) => join(library, name))
      const report = join(folder, `junit-${half}.xml`)
      const { status, output } = await command(['scenario', 'run', ...files, '--report', report])
      expect([status, output]).toEqual([
        0,
        expect.stringContaining(`${files.length} of ${files.length} scenarios passed`),
      ])
      const xml = readFileSync(report, 'utf8')
      expect(xml).toMatch(new RegExp(`<testsuite name="scenarios" tests="${files.length}" failures="0"`))
      const cases = xml.matchAll(/<testcase classname="scenarios" name="([^"]+)"/g)
      return [...cases].map(([, name]) => `${name}.yaml`)
    }),
  )
  expect(reported.flat().sort()).toEqual(names.sort())
}, 900_000)

/** A simulator without a demo. */
async function hardwareAlone(): Promise<string> {
  const environment = { DATA_DIR: folder, SIMULATOR_PORT: '0', LOG_LEVEL: 'warn' }
  const { child, output, ended } = simulator([], environment)
  return new Promise((found, failed) => {
    child.stdout.on('data', () => {
      const url = /simulator ready: (\S+)/.exec(output())?.[1]
      if (url !== undefined) found(url)
    })
    void ended.then(() => failed(new Error(output())))
  })
}

test('a failed expectation is shown on the screen, in the report, and by the exit status', async () => {
  const url = await hardwareAlone()
  const right = join(folder, 'right.yaml')
  const wrong = join(folder, 'wrong.yaml')
  const text = (name: string, open: boolean): string => `name: ${name}
description: The main door is forced.
steps:
  - fault: { type: door_forced, target: main }
  - expect: { device: { name: main, is: { open: ${open} } } }
`
  writeFileSync(right, text('right', true))
  writeFileSync(wrong, text('wrong', false))
  const report = join(folder, 'junit.xml')
  const { status, output } = await command([
    'scenario',
    'run',
    right,
    wrong,
    '--attach',
    url,
    '--report',
    report,
  ])
  expect(status).toBe(1)
  expect(output).toContain('1 of 2 scenarios passed')
  const sentence = 'main: open is true, not false'
  expect(output).toContain(sentence)
  const xml = readFileSync(report, 'utf8')
  expect(xml).toContain('tests="2" failures="1"')
  expect(xml).toMatch(new RegExp(`name="wrong"[^]*<failure message="step 2 \\(line 5\\), .*${sentence}"`))
}, 60_000)

test('a terminal can be attached to a running simulator, with the same commands', async () => {
  const { child, output, ended } = simulator(['--attach', await hardwareAlone()])
  child.stdin.end('fault door_forced main\nlog 1\nscenario\nexit\n')
  expect(await ended).toBe(0)
  expect(output()).toMatch(/hub 1> [^]*fault-1 [^]*main {2}force_open[^]*first-sale/)
}, 60_000)

test.each([
  [['scenario', 'run'], /needs the name of a file/],
  [['scenario', 'dance', 'x.yaml'], /scenario run FILE/],
  [['scenario', 'run', '/nowhere/x.yaml'], /\/nowhere\/x\.yaml: ENOENT/],
  [
    ['scenario', 'check', 'package.json'],
    /package\.json: line 1: steps: is missing\npackage\.json: line \d+: version: there is no such field/,
  ],
  [['scenario', 'run', 'x.yaml', '--attach', 'there'], /--attach: there is no address/],
  [['scenario', 'run', 'x.yaml', '--set', 'units'], /--set units: must be name=value/],
  [['--attach', 'there'], /--attach: there is no address/],
])('the arguments %j are refused with the reason', async (args, message) => {
  const { status, output } = await command(args)
  expect([status === 0, output]).toEqual([false, expect.stringMatching(message)])
})

test('an attach without a running simulator is refused with a sentence', async () => {
  const { status, output } = await command([
    'scenario',
    'run',
    join(library, 'jam.yaml'),
    '--attach',
    'http://127.0.0.1:2',
  ])
  expect(status).toBe(2)
  expect(output).toMatch(/the simulator at http:\/\/127\.0\.0\.1:2 does not answer \(\w+\)/)
  expect(output).not.toContain('    at ')
})
