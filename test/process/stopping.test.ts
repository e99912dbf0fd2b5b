import { expect, onTestFinished, test } from 'vitest'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { sleep } from '../../protocol/model/runtime.ts'
import { settingsIn } from '../../protocol/model/program-settings.ts'
import { edgeSettings } from '../../protocol/settings/hub.ts'
import { managementSettings } from '../../edge/management/config.ts'
import { simulatorSettings } from '../../simulator/settings.ts'
import { demoTable } from '../../simulator/demo/settings.ts'
import { cloudSettings } from '../../cloud/platform/settings/config.ts'
import { issueApiKey } from '../../cloud/platform/credentials/api-keys.ts'
import { openDatabase, type CloudDatabase } from '../../cloud/platform/store/database.ts'
import { programFolder, startCloud, type CloudProgram } from '../cloud/support/program.ts'
import { openShop } from '../world/shop.ts'
import { problemsOf, valueOf } from '../support/exposition.ts'
import { relayTo } from '../support/relay.ts'
import { service } from '../support/services.ts'
import { createPostgresDatabase } from './chaos/postgres.ts'

const runtime = systemRuntime()
const { clock } = runtime
const LONGEST_MS = 10_000

/** Sends SIGTERM; returns the exit of the program and the time in milliseconds. */
async function terminate({ child, exited }: CloudProgram): Promise<{ code: number | null; ms: number }> {
  const toldAt = clock.monotonic()
  child.kill('SIGTERM')
  return { code: await exited, ms: clock.monotonic() - toldAt }
}

/** A hub that was online just now, and a key with all its scopes. */
async function fill(db: CloudDatabase): Promise<string> {
  await openShop(db, { products: [{ price: 100, quantity: 1000 }] })
  await db.kysely.updateTable('hub_sessions').set({ last_heard_at: clock.now() }).execute()
  const scopes = ['hubs:read', 'events:read', 'controls:write'] as const
  const request = { name: 'test', ownerId: 1, scopes, hubs: '*', expiresAt: null } as const
  return (await issueApiKey(db.kysely, runtime, request)).key
}

async function customerOf(baseUrl: string): Promise<string> {
  const headers = { 'Content-Type': 'application/json' }
  const body = JSON.stringify({ sub: 'a-customer', anonymous: true })
  const issued = await fetch(`${baseUrl}/demo/identity/token`, { method: 'POST', headers, body })
  const { access_token: token } = (await issued.json()) as { access_token: string }
  await fetch(`${baseUrl}/users/user/bootstrap/guest`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${token}` },
  })
  return token
}

const rename = (baseUrl: string, token: string, name: string): Promise<Response> =>
  fetch(`${baseUrl}/users/user/profile`, {
    method: 'PATCH',
    headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
    body: JSON.stringify({ first_name: name }),
  })

test('after SIGTERM with open streams and writing customers the cloud ends gracefully and keeps all acknowledged data', async () => {
  const folder = programFolder()
  const open = () => openDatabase({ url: `sqlite:${folder}/larder.sqlite` })
  const db = open()
  await db.migrate()
  const key = await fill(db)
  await db.close()
  const cloud = startCloud({ DATA_DIR: folder, NODE_ENV: 'test', METRICS_PORT: '0' })
  const baseUrl = `http://127.0.0.1:${await cloud.ready()}`
  const [, metricsPort] = /"metricsPort":(\d+)/.exec(cloud.output())!
  // The port for callers does not serve metrics.
  expect((await fetch(`${baseUrl}/metrics`)).status).toBe(404)
  const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
  expect(problemsOf(metrics)).toEqual([])
  expect(valueOf(metrics, 'larder_http_requests_total', { route: 'none', status: '404' })).toBe(1)
  const token = await customerOf(baseUrl)
  const stream = await fetch(`${baseUrl}/api/v1/owners/events/stream`, { headers: { 'X-API-Key': key } })
  expect(stream.status).toBe(200)
  const streamEnded = stream.text().then(
    () => true,
    () => true,
  )
  let acknowledged = 0
  const writing = (async () => {
    for (let name = 1; ; name += 1) {
      const answer = await rename(baseUrl, token, String(name)).catch(() => undefined)
      if (answer?.status !== 200) return
      acknowledged = name
    }
  })()
  await sleep(clock, 1000)
  const { code, ms } = await terminate(cloud)
  expect([code, ms < LONGEST_MS]).toEqual([0, true])
  expect(await streamEnded).toBe(true)
  await writing

  const after = open()
  const { first_name: kept } = await after.kysely
    .selectFrom('users')
    .select('first_name')
    .where('first_name', 'is not', null)
    .orderBy('id', 'desc')
    .executeTakeFirstOrThrow()
  await after.close()
  expect(acknowledged).toBeGreaterThan(0)
  expect(Number(kept)).toBeGreaterThanOrEqual(acknowledged)
}, 90_000)

test('after SIGTERM during a pending hub command the cloud ends within ten seconds', async () => {
  const folder = programFolder()
  const db = openDatabase({ url: `sqlite:${folder}/larder.sqlite` })
  await db.migrate()
  const key = await fill(db)
  await db.close()
  const cloud = startCloud({
    DATA_DIR: folder,
    NODE_ENV: 'test',
    GATEWAY_HAIL_TIMEOUT_MS: '60000',
    COMMAND_TIMEOUT_MS: '60000',
    ONLINE_WITHIN_MS: '600000',
  })
  const baseUrl = `http://127.0.0.1:${await cloud.ready()}`
  let isAnswered = false
  const command = fetch(`${baseUrl}/api/v1/owners/controls/open_bin?bin=1&hub=1`, {
    method: 'POST',
    headers: { 'X-API-Key': key },
  }).then(
    () => void (isAnswered = true),
    () => {},
  )
  await sleep(clock, 1000)
  expect(isAnswered).toBe(false)
  expect((await terminate(cloud)).ms).toBeLessThan(LONGEST_MS)
  await command
}, 90_000)

service('postgres')(
  'after SIGTERM with a hanging database the cloud ends within ten seconds, and after a second SIGTERM at once',
  async () => {
    const database = await createPostgresDatabase(process.env['TEST_POSTGRES_URL']!, runtime)
    onTestFinished(() => database.remove())
    const relay = await relayTo(database.url)
    onTestFinished(() => relay.close())
    const db = openDatabase({ url: database.url })
    await db.migrate()
    await fill(db)
    await db.close()
    // Both starts find the same secret beside the database.
    const folder = programFolder()
    const start = () => startCloud({ DATABASE_URL: relay.url, DATA_DIR: folder, NODE_ENV: 'test' })
    for (const again of [false, true]) {
      relay.isSilent = false
      const cloud = start()
      const baseUrl = `http://127.0.0.1:${await cloud.ready()}`
      const token = await customerOf(baseUrl)
      relay.isSilent = true
      const calls = Array.from({ length: 20 }, (_, n) => rename(baseUrl, token, String(n)).catch(() => {}))
      await sleep(clock, 1000)
      if (again) setTimeout(() => cloud.child.kill('SIGTERM'), 1000)
      const { ms } = await terminate(cloud)
      expect(ms).toBeLessThan(again ? 3000 : LONGEST_MS)
      await Promise.all(calls)
    }
  },
  120_000,
)

test.each([
  ['the cloud', cloudSettings],
  ['the hub', edgeSettings],
  ['the management service', managementSettings],
  ['the simulator', simulatorSettings],
  ['the demo', demoTable],
])('a setting bounds the stop time of %s to at most ten seconds', (_program, table) => {
  const setting = settingsIn(table).get('SHUTDOWN_TIMEOUT_MS')
  expect(Number(setting?.standard)).toBeLessThan(LONGEST_MS)
})
