import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeImage } from '../../simulator/firmware/image.ts'
import { rules } from '../../simulator/board-test/run.ts'
import { commandOf } from '../support/programs.ts'
import { service } from '../support/services.ts'
import { runExampleFirmware, type ExampleFirmware } from './example-firmware.ts'

const root = join(import.meta.dirname, '../..')
const all = {
  devices: [
    { kind: 'bin', number: 1 },
    { kind: 'cabinet', number: 1, shelves: [{ shelf: 1, rows: 6, depth: 10 }] },
    { kind: 'fridge', number: 1 },
  ],
}
const other = {
  devices: [
    { kind: 'bin', number: 2 },
    { kind: 'cabinet', number: 2, shelves: [{ shelf: 1, rows: 6, depth: 10 }] },
    { kind: 'fridge', number: 2 },
  ],
}

let folder: string
let url: string
let simulator: ChildProcess
let example: ExampleFirmware | undefined
let relays: Promise<void>[] = []

interface Done {
  status: number | null
  output: string
}

/** Runs the program until it ends. */
function run(args: readonly string[]): Promise<Done> {
  return new Promise((resolve) => {
    const [node, ...program] = commandOf('simulator/board-test/main')
    const child = spawn(node, [...program, ...args], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => void (output += chunk.toString()))
    child.once('exit', (status) => resolve({ status, output }))
  })
}

const kinds: Record<string, string> = { 'built-in': 'larder-sim', example: 'example-py' }
/** The newest image of each controller: a retried test needs a newer one than the board runs by then. */
const builds = new Map<string, number>()

function boardTest(controller: string, ...more: string[]): Promise<Done> {
  const image = join(folder, `${controller}.img`)
  const build = (builds.get(controller) ?? 1) + 1
  builds.set(controller, build)
  writeFileSync(image, makeImage({ kind: kinds[controller]!, build }, 'a program of five blocks '.repeat(20)))
  const { command, answer } = pipesOf(controller)
  const relay = `echo {} > ${command} && cat ${answer}`
  const port = join(folder, 'ports', controller)
  const hardware = join(folder, 'hardware.json')
  const where = ['--port', port, '--hardware', hardware, '--controller', controller, '--relay', relay]
  where.push('--firmware', image)
  return run([...where, ...more])
}

const pipesOf = (controller: string) => ({
  command: join(folder, `${controller}.relay`),
  answer: join(folder, `${controller}.relay-done`),
})

/**
 * The relay of a controller, until its command is `end`. The shell of the relay's command only writes to a pipe: on a
 * busy machine a program starts later than a door is open.
 */
async function runRelay(controller: string): Promise<void> {
  const { command, answer: done } = pipesOf(controller)
  for (;;) {
    const state = (await readFile(command, 'utf8')).trim()
    if (state === 'end') return
    const body = JSON.stringify({ state, controller })
    const answer = await fetch(`${url}/api/hubs/1/power`, { method: 'POST', body })
    if (!answer.ok) console.error(`power ${state}: ${answer.status} ${await answer.text()}`)
    await writeFile(done, '')
  }
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'larder-board-test-'))
  const controllers = [
    { id: 'built-in', port: 'ports/built-in', ...all },
    { id: 'example', port: 'ports/example', ...other },
  ]
  const gpio = { chipLabel: 'larder-sim', lines: [] }
  writeFileSync(join(folder, 'hardware.json'), JSON.stringify({ hubId: 1, controllers, gpio }))
  const boards = `example=unix:${join(folder, 'board-example.sock')}`
  const [node, ...program] = commandOf('simulator/main')
  simulator = spawn(node, program, {
    cwd: root,
    env: {
      PATH: process.env['PATH'],
      DATA_DIR: folder,
      HARDWARE_FILES: join(folder, 'hardware.json'),
      SIMULATOR_PORT: '0',
      SIMULATOR_SPEED: '1',
      LOG_LEVEL: 'warn',
      BOARDS: boards,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  url = await new Promise<string>((resolve) => {
    let text = ''
    simulator.stdout!.on('data', (chunk: Buffer) => {
      text += chunk.toString()
      const match = /simulator ready: (\S+)/.exec(text)
      if (match) resolve(match[1]!)
    })
  })
  for (const { id } of controllers) execFileSync('mkfifo', Object.values(pipesOf(id)))
  relays = controllers.map(({ id }) => runRelay(id))
}, 120_000)
afterAll(async () => {
  for (const id of Object.keys(kinds)) await writeFile(pipesOf(id).command, 'end')
  await Promise.all(relays)
  await example?.stop()
  simulator.kill('SIGKILL')
  await new Promise((resolve) => simulator.once('exit', resolve))
  rmSync(folder, { recursive: true, force: true })
})

/** Motions need seconds to fill the ring, a silence takes six, and each power cut adds more. */
const WHOLE_MS = 420_000

const brokenIn = (output: string): string[] => output.split('\n').filter((line) => line.startsWith('✗'))

// Each test waits in real time, for its own board.
describe.concurrent('every rule holds', () => {
  test(
    'the bundled firmware passes every rule over a pseudo-terminal and a relay command',
    async () => {
      // At a second try the board belongs to the hub of the first one.
      const again = builds.has('built-in') ? ['--wipe'] : []
      const { status, output } = await boardTest('built-in', '--junit', join(folder, 'junit.xml'), ...again)
      expect([brokenIn(output), status]).toEqual([[], 0])
      expect(output).toContain(`${rules.length} rules hold.`)
      const junit = readFileSync(join(folder, 'junit.xml'), 'utf8')
      expect(junit).toContain(`tests="${rules.length}" failures="0"`)
    },
    WHOLE_MS,
  )

  service('python3')(
    'the example controller, a separate program behind the board’s socket, passes every rule',
    async () => {
      await example?.stop()
      example = runExampleFirmware(folder, ['example'])
      const { status, output } = await boardTest('example', '--wipe')
      expect([example.complaints(), brokenIn(output), status]).toEqual(['', [], 0])
      expect(output).toContain(`${rules.length} rules hold.`)
      // The board has an owner now. Its memory is emptied only with --wipe.
      const again = await boardTest('example', '--rules', '12')
      expect([again.status, again.output]).toEqual([2, expect.stringContaining('--wipe')])
      // The first program has ended, and its port is free again.
      const wiped = await boardTest('example', '--rules', '12', '--wipe')
      expect([wiped.status, wiped.output]).toEqual([0, expect.stringContaining('1 rules hold')])
    },
    WHOLE_MS,
  )
})

test('the board test refuses a missing port, an unknown controller and an unknown rule', async () => {
  const hardware = join(folder, 'hardware.json')
  const cases = [
    [[], '--port and --hardware are needed'],
    [['--port', '/dev/null', '--hardware', '/nowhere'], '--hardware: /nowhere'],
    [['--port', '/dev/null', '--hardware', hardware], '--controller: say which: built-in, example'],
    [['--port', '/dev/null', '--hardware', hardware, '--rules', '99'], '--rules: 99'],
    [['--relay', 'x', '--operator', '--port', '/dev/null', '--hardware', hardware], '--relay and --operator'],
  ] as const
  for (const [args, complaint] of cases) {
    const { status, output } = await run(args)
    expect([output, status]).toEqual([expect.stringContaining(complaint), 2])
    expect(output).not.toContain('    at ')
  }
  const help = await run(['--help'])
  expect([help.status, help.output]).toEqual([0, expect.stringContaining('--relay COMMAND')])
}, 60_000)
