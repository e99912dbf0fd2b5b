import { spawn, type ChildProcess } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'

const root = resolve(import.meta.dirname, '../..')

/** The real program, in a folder of its own, at free ports where nothing else is said. */
function start(environment: Record<string, string>, ...args: string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'larder-cloud-'))
  const child: ChildProcess = spawn(process.execPath, ['--import', 'tsx', 'cloud/main.ts', ...args], {
    cwd: root,
    env: { PATH: process.env['PATH'], DATA_DIR: folder, PORT: '0', MQTT_PORT: '0', ...environment },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream!.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const exited = new Promise<number | null>((done) => child.once('exit', done))
  onTestFinished(async () => {
    child.kill('SIGKILL')
    await exited
    rmSync(folder, { recursive: true })
  })
  return { child, exited, output: () => output }
}

async function takenPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  onTestFinished(() => void server.close())
  return (server.address() as AddressInfo).port
}

test('it serves, and ends in good order when told to', { timeout: 60_000 }, async () => {
  const { child, exited, output } = start({})
  await expect.poll(output, { timeout: 45_000 }).toContain('cloud is ready')
  const { port } = JSON.parse(
    output()
      .split('\n')
      .find((line) => line.includes('cloud is ready'))!,
  ) as { port: number }
  const answer = await fetch(`http://127.0.0.1:${port}/`)
  expect(await answer.json()).toMatchObject({ service: 'larder', status: 'ok' })
  child.kill('SIGTERM')
  expect(await exited).toBe(0)
})

test('a port in use is told with the setting that changes it', { timeout: 60_000 }, async () => {
  const port = await takenPort()
  const settings = ['PORT', 'MQTT_PORT']
  const starts = settings.map((setting) => start({ [setting]: String(port) }))
  for (const [index, { exited, output }] of starts.entries()) {
    expect(await exited).toBe(1)
    expect(output()).toBe(
      `larder cloud: port ${port} of 127.0.0.1 is in use: set ${settings[index]} to another one\n`,
    )
  }
})

test('what is wrong with the configuration is told, and it does not start', { timeout: 60_000 }, async () => {
  const wrong = start({ PORT: 'http' })
  const production = start({ NODE_ENV: 'production' })
  const absent = start({}, '--config', '/nowhere.json')
  for (const { exited } of [wrong, production, absent]) expect(await exited).toBe(1)
  expect(wrong.output()).toContain('larder cloud: PORT (environment): must be a whole number')
  expect(production.output()).toMatch(/PAYMENTS_URL: .*refused[^]*IDENTITY_ISSUER: .*refused/)
  expect(absent.output()).toContain('/nowhere.json')
})
