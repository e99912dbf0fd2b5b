import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { Supervisor } from '../../../simulator/demo/supervisor.ts'
import { virtualRuntime } from '../../world/clock.ts'

let folder: string
let supervisor: Supervisor | undefined
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'larder-supervisor-'))))
afterEach(async () => {
  await supervisor?.stop()
  rmSync(folder, { recursive: true })
})

const isAlive = (pid: number): boolean => {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

function supervise(script: string, reportsPid = false, runtime: Runtime = systemRuntime()) {
  const pids: number[] = []
  const deaths: [string, number][] = []
  const logFile = join(folder, 'log')
  supervisor = new Supervisor({
    programs: [
      {
        name: 'only',
        command: [process.execPath, '-e', script],
        environment: { GREETING: 'hello' },
        logFile,
        reportsPid,
      },
    ],
    runtime,
    onStarted: (_name, pid) => pids.push(pid),
    onDied: (_name, how, starts) => deaths.push([how, starts]),
  })
  supervisor.start()
  return { pids, deaths, stop: () => supervisor!.stop(), log: () => readFileSync(logFile, 'utf8') }
}

test('the supervisor restarts a program that dies, and reports its new process id', async () => {
  const { pids, deaths } = supervise('setInterval(() => {}, 1000)')
  process.kill(pids[0]!, 'SIGKILL')
  await vi.waitUntil(() => pids.length === 2)
  expect(deaths).toEqual([['SIGKILL', 1]])
  expect(isAlive(pids[1]!)).toBe(true)
})

test('the supervisor retries a program that cannot run, and reports each exit', async () => {
  const { deaths } = supervise('process.exit(3)')
  await vi.waitUntil(() => deaths.length >= 3, { timeout: 5000 })
  expect(deaths.slice(0, 3)).toEqual([
    ['exit status 3', 1],
    ['exit status 3', 2],
    ['exit status 3', 3],
  ])
})

test('a program gets its settings, and its output is stored', async () => {
  const { log } = supervise('console.log(process.env.GREETING); setInterval(() => {}, 1000)')
  await vi.waitUntil(() => log() === 'hello\n')
})

test('stopping the supervisor ends every program and starts none', async () => {
  const { pids, deaths, stop } = supervise('setInterval(() => {}, 1000)')
  await stop()
  expect(isAlive(pids[0]!)).toBe(false)
  expect(deaths).toEqual([])
  expect(pids).toHaveLength(1)
})

test('the supervisor kills a program that ignores SIGTERM', async () => {
  const runtime = virtualRuntime()
  const deaf = 'process.on("SIGTERM", () => {}); console.log("deaf"); setInterval(() => {}, 1000)'
  const { pids, stop, log } = supervise(deaf, false, runtime)
  await vi.waitUntil(() => log() === 'deaf\n')
  const stopped = stop()
  await runtime.clock.pass(5000)
  await stopped
  expect(isAlive(pids[0]!)).toBe(false)
})

const quiet = 'setInterval(() => {}, 1000)'

test('a halted program stays ended until it is resumed, and its end does not count as a crash', async () => {
  const { pids, deaths } = supervise(quiet)
  expect(supervisor!.stateOf('only')).toEqual({ state: 'running', pid: pids[0] })
  expect(await supervisor!.halt('only', 5000)).toBe(false)
  expect(isAlive(pids[0]!)).toBe(false)
  expect(supervisor!.stateOf('only')).toEqual({ state: 'stopped', pid: null })
  expect(await supervisor!.halt('only', 5000)).toBe(false)
  supervisor!.resume('only')
  supervisor!.resume('only')
  expect(pids).toHaveLength(2)
  expect(supervisor!.stateOf('only')).toEqual({ state: 'running', pid: pids[1] })
  expect(deaths).toEqual([])
  process.kill(pids[1]!, 'SIGKILL')
  await vi.waitUntil(() => pids.length === 3)
  expect(deaths).toEqual([['SIGKILL', 1]])
})

test('a program stopped by SIGSTOP still ends gracefully', async () => {
  const { pids } = supervise(quiet)
  process.kill(pids[0]!, 'SIGSTOP')
  expect(await supervisor!.halt('only', 10_000)).toBe(false)
  expect(isAlive(pids[0]!)).toBe(false)
})

test('a halted program that ignores SIGTERM is killed after its time', async () => {
  const { pids, log } = supervise(
    'process.on("SIGTERM", () => {}); console.log("deaf"); setInterval(() => {}, 1000)',
  )
  await vi.waitUntil(() => log() === 'deaf\n')
  expect(await supervisor!.halt('only', 200)).toBe(true)
  expect(isAlive(pids[0]!)).toBe(false)
})

test('a halted program is not restarted, also if its restart was already pending', async () => {
  const runtime = virtualRuntime()
  const { pids, deaths } = supervise('process.exit(3)', false, runtime)
  await vi.waitUntil(() => deaths.length === 1, { timeout: 10_000 })
  await runtime.clock.pass(60_000)
  await vi.waitUntil(() => deaths.length === 2, { timeout: 10_000 })
  await supervisor!.halt('only', 100)
  await runtime.clock.pass(3_600_000)
  expect(pids).toHaveLength(2)
})

test('a wrapper program reports the process id of its child', async () => {
  const { pids } = supervise('process.send({ type: "started", pid: 42 }); setInterval(() => {}, 1000)', true)
  await vi.waitUntil(() => pids.length > 0)
  expect(pids).toEqual([42])
})
