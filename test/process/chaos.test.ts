import { spawn, type ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { afterEach, expect, test } from 'vitest'
import { missing, service } from '../support/services.ts'
import { commandOf } from '../support/programs.ts'

let running: ChildProcess | undefined
// Its programs die with it.
afterEach(() => void running?.kill('SIGKILL'))

/** Runs `npm run chaos` ; resolves with what it says. */
async function chaos(...args: string[]): Promise<{ status: number | null; text: string }> {
  const [node, ...main] = commandOf('test/process/chaos/main')
  const child = spawn(node, [...main, ...args], {
    cwd: join(import.meta.dirname, '../..'),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  running = child
  let text = ''
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  const status = await new Promise<number | null>((resolve) => child.once('exit', resolve))
  return { status, text }
}

const title = 'whatever is killed, what was paid is delivered or refunded, and nothing moves twice'

const atScale = missing('postgres') === undefined ? service('mosquitto') : service('postgres')
atScale(
  `${title}: two cloud processes, PostgreSQL, Mosquitto`,
  async () => {
    const { status, text } = await chaos('--kills', '12', '--seed', '3', '--pace', '2200', '--shoppers', '5')
    expect(text, text).toContain('no violation')
    expect(text).toContain('COMPLETED')
    expect(status).toBe(0)
  },
  300_000,
)

test(`${title}: on a bare machine`, async () => {
  const { status, text } = await chaos('--bare', '--kills', '6', '--seed', '4', '--shoppers', '4')
  expect(text, text).toContain('no violation')
  expect(text).toContain('COMPLETED')
  expect(status).toBe(0)
}, 300_000)
