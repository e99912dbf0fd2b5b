import { spawn } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { request } from 'node:https'
import { join, resolve } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { sleep } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { seedHubs } from '../world/seeds.ts'
import { programFolder, startCloud, type CloudProgram } from '../cloud/support/program.ts'
import { makeCertificate } from '../support/certificate.ts'
import { onPath } from '../support/on-path.ts'
import { freePorts } from '../support/ports.ts'
import { missing, service } from '../support/services.ts'
import { startMosquitto } from '../support/mosquitto.ts'
import { createPostgresDatabase } from './chaos/postgres.ts'

const runtime = systemRuntime()
const { clock } = runtime
const WAIT = { timeout: 60_000, interval: 200 }

/** The files that operators copy from the package's examples. */
const proxies = resolve(import.meta.dirname, '../../cloud/packaging/proxies')

/** A cloud behind a proxy, and one of its API keys. */
async function cloudBehindProxy() {
  const folder = programFolder()
  const db = openDatabase({ url: `sqlite:${join(folder, 'larder.sqlite')}` })
  await db.migrate()
  await seedHubs(db)
  const grant = { name: 'test', ownerId: 1, scopes: ['events:read'], hubs: '*', expiresAt: null } as const
  const { key } = await issueApiKey(db.kysely, systemRuntime(), grant)
  await db.close()
  const cloud = startCloud({ DATA_DIR: folder, TRUSTED_PROXIES: '1', DRAIN_MS: '3000' })
  return { cloud, key, port: await cloud.ready() }
}

interface Answer {
  status: number
  text: string
}

/** Calls the proxy from an address of this machine. `firstBytes`: returns before the end of the answer. */
function call(
  port: number,
  path: string,
  {
    from = '127.0.0.1',
    headers = {},
    firstBytes = false,
    method = 'GET',
    body,
  }: {
    from?: string
    headers?: Record<string, string>
    firstBytes?: boolean
    method?: string
    body?: object
  } = {},
): Promise<Answer> {
  return new Promise((done) => {
    const sent = request({
      host: '127.0.0.1',
      port,
      method,
      path,
      headers: { ...headers, ...(body && { 'Content-Type': 'application/json' }) },
      localAddress: from,
      agent: false,
      rejectUnauthorized: false,
    })
    let text = ''
    sent.on('error', () => done({ status: 0, text }))
    sent.on('response', (answer) => {
      const end = (): void => {
        done({ status: answer.statusCode!, text })
        sent.destroy()
      }
      answer.on('data', (chunk: Buffer) => {
        text += chunk.toString()
        if (firstBytes) end()
      })
      answer.on('end', end)
    })
    sent.end(body && JSON.stringify(body))
  })
}

/** Starts a proxy with its packaged file; only addresses and paths differ, and each process has its line. */
async function startProxy(program: 'nginx' | 'haproxy', cloudPorts: readonly number[]): Promise<number> {
  const folder = programFolder()
  const certificate = makeCertificate()
  onTestFinished(() => certificate.remove())
  const [port] = (await freePorts(1)) as [number]
  const [file, listening] =
    program === 'nginx'
      ? (['nginx.conf', 'listen 443 ssl'] as const)
      : (['haproxy.cfg', 'bind :443'] as const)
  const tls = join(folder, 'tls.pem')
  writeFileSync(tls, certificate.cert + certificate.key)
  const written = readFileSync(join(proxies, file), 'utf8')
  for (const part of [listening, '127.0.0.1:8080', '/etc/larder/tls.pem']) expect(written).toContain(part)
  const text = written
    .replace(listening, program === 'nginx' ? `listen 127.0.0.1:${port} ssl` : `bind 127.0.0.1:${port}`)
    .replace(/^.*127\.0\.0\.1:8080.*$/m, (line) =>
      cloudPorts
        .map((each, n) => line.replace('8080', `${each}`).replace('cloud1', `cloud${n + 1}`))
        .join('\n'),
    )
    .replace('/etc/larder/tls.pem', tls)
    .replace('/etc/larder/tls.key', certificate.keyPath)
    .replace('/run/nginx.pid', join(folder, 'nginx.pid'))
  const path = join(folder, file)
  writeFileSync(path, text)
  const options = program === 'nginx' ? ['-e', 'stderr', '-g', 'daemon off;', '-c', path] : ['-f', path]
  const child = spawn(onPath(program)!, options, { stdio: 'inherit' })
  const exited = new Promise((done) => child.once('exit', done))
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await exited
  })
  await expect.poll(async () => (await call(port, '/healthz')).status, { timeout: 30_000 }).toBe(200)
  return port
}

for (const program of ['nginx', 'haproxy'] as const)
  service(program)(
    `behind ${program} with the packaged file each caller has its own limits, streams arrive at once, and a drained process loses no call`,
    async () => {
      const { cloud, key, port: cloudPort } = await cloudBehindProxy()
      const port = await startProxy(program, [cloudPort])

      // Each address may look up ten times a minute; a header that a caller writes does not count.
      const look = (from: string, n: number) =>
        call(port, `/users/user/exists/phone?phone_number=%2B1202555${1000 + n}`, {
          from,
          headers: { 'X-Forwarded-For': `198.51.100.${n}` },
        })
      const statuses: number[] = []
      for (let n = 0; n < 12; n += 1) statuses.push((await look('127.0.0.1', n)).status)
      expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 429, 429])
      expect((await look('127.0.0.2', 99)).status).toBe(200)

      const stream = call(port, '/api/v1/owners/events/stream', {
        headers: { 'X-API-Key': key },
        firstBytes: true,
      })
      expect(await stream).toEqual({ status: 200, text: ': ok\n\n' })
      expect(cloud.output()).not.toContain('TRUSTED_PROXIES')

      // HAProxy sees that the process is not ready and has no other process; nginx serves until the process
      // is gone. No answer is cut off.
      cloud.child.kill('SIGTERM')
      const seen = new Set<number>()
      for (let n = 0; n < 30; n += 1) {
        seen.add((await call(port, '/')).status)
        await new Promise((done) => setTimeout(done, 50))
      }
      expect([...seen].filter((status) => status !== 200 && status !== 503)).toEqual([])
      if (program === 'nginx') expect([...seen]).toEqual([200])
    },
    120_000,
  )

/** A customer at an address of its own, with calls that read and write the profile until the returned function is called. */
async function customerAt(port: number, number: number) {
  const from = `127.0.1.${number}`
  const token = await call(port, '/demo/identity/token', {
    from,
    method: 'POST',
    body: { sub: `customer-${number}`, anonymous: true },
  })
  const { access_token } = JSON.parse(token.text) as { access_token: string }
  const headers = { Authorization: `Bearer ${access_token}` }
  const guest = await call(port, '/users/user/bootstrap/guest', { from, headers, method: 'POST' })
  expect(guest.status).toBe(201)
  const failed: Answer[] = []
  let calls = 0
  const stopped = new AbortController()
  async function run(): Promise<void> {
    while (!stopped.signal.aborted) {
      const isRead = calls % 2 === 0
      const change = { method: 'PATCH', body: { first_name: `Name ${calls}` } }
      const path = isRead ? '/users/user' : '/users/user/profile'
      const answer = await call(port, path, { from, headers, ...(!isRead && change) })
      if (answer.status !== 200) failed.push(answer)
      calls += 1
      await sleep(clock, 800)
    }
  }
  const running = run()
  return async () => {
    stopped.abort()
    await running
    return { calls, failed }
  }
}

for (const program of ['nginx', 'haproxy'] as const)
  service((['postgres', 'mosquitto'] as const).find((each) => missing(each) !== undefined) ?? program)(
    `behind ${program} with the packaged file a rolling restart of three processes fails no call`,
    async () => {
      const database = await createPostgresDatabase(process.env['TEST_POSTGRES_URL']!, runtime)
      onTestFinished(() => database.remove())
      const broker = await startMosquitto(['hub-1'])
      onTestFinished(() => broker.remove())
      const ports = await freePorts(3)
      const folder = programFolder()
      const start = (port: number) =>
        startCloud({
          DATA_DIR: folder,
          PUBLIC_URL: `http://127.0.0.1:${ports[0]}`,
          DATABASE_URL: database.url,
          MQTT_URL: broker.cloudUrl,
          PORT: String(port),
          TRUSTED_PROXIES: '1',
          DRAIN_MS: '5000',
          STORE_SECRET: 'a secret of the store for this test',
          MEDIA_SECRET: 'a secret of the media for this test',
        })
      const isReady = (port: number) =>
        expect
          .poll(() => fetch(`http://127.0.0.1:${port}/readyz`).then(({ status }) => status, String), WAIT)
          .toBe(200)
      const clouds = new Map<number, CloudProgram>()
      for (const port of ports) {
        clouds.set(port, start(port))
        await isReady(port)
      }
      const proxy = await startProxy(program, ports)
      const customers = await Promise.all(Array.from({ length: 12 }, (_, n) => customerAt(proxy, n + 1)))
      for (const [port, cloud] of clouds) {
        cloud.child.kill('SIGTERM')
        expect(await cloud.exited).toBe(0)
        start(port)
        await isReady(port)
        // HAProxy needs two checks of a second.
        await sleep(clock, 2500)
      }
      const results = await Promise.all(customers.map((stop) => stop()))
      expect(results.flatMap(({ failed }) => failed)).toEqual([])
      expect(results.reduce((sum, { calls }) => sum + calls, 0)).toBeGreaterThan(100)
    },
    240_000,
  )
