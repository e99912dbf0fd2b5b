import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { commandOf } from '../support/programs.ts'

/** Runs `npm run abuse`; resolves with its status and what it prints. */
async function abuse(who: string, seconds: number): Promise<{ status: number | null; text: string }> {
  const [node, ...main] = commandOf('test/process/abuse/main')
  const args = ['--who', who, '--minutes', String(seconds / 60), '--pace', '500']
  const child = spawn(node, [...main, ...args], {
    cwd: join(import.meta.dirname, '../..'),
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  // Its programs die with it.
  onTestFinished(() => void child.kill('SIGKILL'))
  let text = ''
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  const status = await new Promise<number | null>((resolve) => child.once('exit', resolve))
  return { status, text }
}

test.each([
  ['a guest without money', 'guest'],
  ['a customer who wants goods for nothing', 'customer'],
] as const)(
  '%s takes neither money nor all bins: honest customers get their goods',
  async (_, who) => {
    const { status, text } = await abuse(who, 20)
    expect(text).toContain('money lost: 0 cents')
    expect(text).toMatch(/honest customers: (.*, )?COMPLETED \d/)
    expect(text).toContain('no violation')
    expect(status).toBe(0)
  },
  300_000,
)

test("a thief of the hub's card, who lies in its name, takes no money", async () => {
  const { status, text } = await abuse('thief', 20)
  expect(text).toContain('money lost: 0 cents')
  expect(status, text).toBe(0)
}, 300_000)
