import type { ChildProcess } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { problemsOf, valueOf } from '../support/exposition.ts'
import { startEdge, type EdgeProgram } from '../support/edge-program.ts'
import { compiledFolder } from '../support/programs.ts'
import { statusInHttp10 } from '../support/raw-http.ts'

const children = new Set<ChildProcess>()
let folder: string

beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'larder-edge-'))))
afterEach(() => {
  for (const child of children) child.kill('SIGKILL')
  children.clear()
  rmSync(folder, { recursive: true, force: true })
})

function run(environment: Record<string, string> = {}): EdgeProgram {
  const program = startEdge(folder, environment)
  children.add(program.child)
  return program
}

// Real programs, on machines that may be busy.
describe("the hub's program", { timeout: 60_000 }, () => {
  test('the hub reports liveness and readiness, and its metrics on a separate port', async () => {
    const { url, output } = run({ METRICS_PORT: '0' })
    const at = await url
    for (const path of ['/healthz', '/readyz'])
      expect([path, (await fetch(at + path)).status]).toEqual([path, 200])
    expect((await fetch(`${at}/metrics`)).status).not.toBe(200)
    const apart = /"metrics":"([^"]+)"/.exec(output())![1]!
    expect((await fetch(`${apart}/readyz`)).status).toBe(200)
    expect((await fetch(`${apart}/`)).status).toBe(404)
    expect(await statusInHttp10(Number(new URL(apart).port), '/metrics')).toBe(200)
    expect(await statusInHttp10(Number(new URL(at).port), '/readyz')).toBe(200)
    const text = await (await fetch(`${apart}/metrics`)).text()
    expect(problemsOf(text)).toEqual([])
    expect(valueOf(text, 'larder_hub_link_up', { hub: '1', controller: 'bins' })).toBe(0)
    expect(valueOf(text, 'larder_hub_journal_commits_total')).toBeGreaterThan(0)
    expect(valueOf(text, 'larder_hub_outbox_entries', { stream: 'ledger' })).toBeGreaterThanOrEqual(0)
    expect(valueOf(text, 'larder_hub_cloud_connected')).toBe(0)
  })

  test('the hub runs and serves its page without the cloud, and ends on SIGTERM', async () => {
    const { child, url, exited } = run({ LOCAL_TOKEN: 'a-token-of-this-test' })
    const health = await fetch(`${await url}/health`)
    expect(await health.json()).toMatchObject({ status: 'ok', hub_id: 1 })
    const headers = { authorization: 'Bearer a-token-of-this-test' }
    const state = await fetch(`${await url}/api/state`, { headers })
    expect(await state.json()).toMatchObject({ health: { bins: [{ bin_number: 1, status: 'offline' }] } })
    expect((await fetch(`${await url}/api/state`)).status).toBe(401)
    // A tree without built pages has none; a tree in which the demo ran has them.
    const isBuilt = existsSync(join(compiledFolder(), 'edge/local-api/assets/index.html'))
    expect(await (await fetch(await url)).text()).toEqual(
      isBuilt
        ? expect.stringContaining('<title>Larder hub</title>')
        : 'This build is without its pages: run npm run build.\n',
    )
    child.kill('SIGTERM')
    expect(await exited).toBe(0)
  })

  test('the hub’s files are unreadable for other users, with any umask', async () => {
    const before = process.umask(0o022)
    try {
      const { child, url, exited } = run()
      await url
      const modes = [
        '.',
        'hub.sqlite',
        'hub.sqlite-wal',
        'hub.sqlite-shm',
        'hub.sqlite.ballast',
        'hub.sqlite.token',
      ].map((name) => [name, (statSync(join(folder, 'data', name)).mode & 0o777).toString(8)])
      expect(modes).toEqual([
        ['.', '700'],
        ['hub.sqlite', '600'],
        ['hub.sqlite-wal', '600'],
        ['hub.sqlite-shm', '600'],
        ['hub.sqlite.ballast', '600'],
        ['hub.sqlite.token', '600'],
      ])
      child.kill('SIGTERM')
      await exited
    } finally {
      process.umask(before)
    }
  })

  test('the hub ends with the program that holds its channel', async () => {
    const { child, url, exited } = run()
    await url
    child.disconnect()
    expect(await exited).toBe(0)
  })

  test('a port in use ends the hub’s start with its setting', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve))
    const { port } = other.address() as { port: number }
    const { exited, output } = run({ PORT: String(port) })
    expect(await exited).toBe(1)
    expect(output()).toBe(`larder edge: port ${port} of 127.0.0.1 is in use: set PORT to another one\n`)
    other.close()
  })

  test('the hub runs while the network with the address of its page and metrics is down, and with damaged PEM files', async () => {
    const damaged = join(folder, 'damaged.pem')
    writeFileSync(damaged, '-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n')
    for (const environment of [
      { HOST: '192.0.2.77', METRICS_HOST: '192.0.2.77', METRICS_PORT: '0', ALLOW_INSECURE: 'plain-http' },
      { LOCAL_CERT: damaged, LOCAL_KEY: damaged },
      { MQTT_CA: damaged, MQTT_URL: 'mqtts://127.0.0.1:9' },
    ] satisfies Record<string, string>[]) {
      const { child, exited, output } = run(environment)
      await expect.poll(output, { timeout: 20_000 }).toContain('no connection to the cloud')
      await expect.poll(output).toContain('the hub runs')
      expect(child.exitCode).toBe(null)
      child.kill('SIGKILL')
      await exited
    }
  })

  test('a second hub on the same journal names the first one, and does not disturb it', async () => {
    const { child, url } = run()
    await url
    const { exited, output } = run()
    expect(await exited).toBe(1)
    expect(output()).toMatch(
      new RegExp(
        `^larder edge: the journal \\S+ is in use by process ${child.pid}, since \\S+: a hub has one service\n$`,
      ),
    )
    child.kill('SIGKILL')
    const after = run()
    expect(await after.url).toContain('http://')
  })

  test('every wrong setting of the hub’s program is named', async () => {
    const { exited, output } = run({ PORT: '80x', GPIO: 'wires' })
    expect(await exited).toBe(1)
    const names = output()
      .trimEnd()
      .split('\n')
      .map((line) => /^larder edge: (\w+) /.exec(line)?.[1])
    expect(new Set(names)).toEqual(new Set(['GPIO', 'PORT']))
  })
})
