import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { appendEvent } from '../../cloud/events/append-event.ts'
import { addEndpoint } from '../../cloud/events/webhooks/endpoints.ts'
import { openDatabase, type CloudDatabase } from '../../cloud/platform/store/database.ts'
import { sleep } from '../../protocol/model/runtime.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { seedHubs } from '../world/seeds.ts'
import { createPostgresDatabase, type TestDatabase } from './chaos/postgres.ts'
import { freePorts } from '../support/ports.ts'
import { mortalCloud, type MortalCloud } from './mortal-cloud.ts'
import { numbered } from '../cloud/events/support/numbered.ts'
import { testContext } from '../world/context.ts'

const runtime = systemRuntime()
const { clock } = runtime
/** More than all processes deliver before the last of them dies. */
const EVENTS = 4000
const BATCH = 100
/** Checkpoints at which the process dies: the name, and the number of its passings. */
const DEATHS = [
  'db.before-commit 2',
  'work.claimed 3',
  'webhook.before-send 5',
  'webhook.after-send 7',
  'work.handled 20',
  'db.after-commit 60',
  'webhook.after-send 150',
  'db.before-commit 400',
  'work.handled 600',
  'webhook.before-send 900',
]

let folder: string
let db: CloudDatabase
let server: TestDatabase | undefined
let cloud: MortalCloud
let receiver: Server
let secret: string
/** Number of deliveries of each event, and other errors. */
const times = new Map<string, number>()
const bodies = new Map<string, string>()
const wrong: string[] = []

// A second try has a database and a receiver of its own: a second webhook would receive the events of the first try too.
beforeEach(async () => {
  times.clear()
  bodies.clear()
  wrong.length = 0
  folder = mkdtempSync(join(tmpdir(), 'larder-webhook-kill-'))
  const url = process.env['TEST_POSTGRES_URL']
  server = url === undefined ? undefined : await createPostgresDatabase(url, runtime)
  const databaseUrl = server?.url ?? `sqlite:${join(folder, 'larder.sqlite')}`
  db = openDatabase({ url: databaseUrl })
  await db.migrate()
  await seedHubs(db)
  receiver = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk: Buffer) => (body += chunk.toString()))
    request.on('end', () => {
      const id = String(request.headers['webhook-id'])
      try {
        new Webhook(secret).verify(body, request.headers as Record<string, string>)
      } catch (error) {
        wrong.push(`${id}: ${String(error)}`)
      }
      if (bodies.has(id) && bodies.get(id) !== body) wrong.push(`${id} came with another body`)
      bodies.set(id, body)
      times.set(id, (times.get(id) ?? 0) + 1)
      response.end()
    })
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const [port, mqttPort] = (await freePorts(2)) as [number, number]
  cloud = mortalCloud({ folder, databaseUrl, port, mqttPort, clock })
}, 120_000)

afterEach(async () => {
  await cloud.stop()
  receiver.closeAllConnections()
  receiver.close()
  await db.close()
  await server?.remove()
  rmSync(folder, { recursive: true, force: true })
})

test(
  'after kills at every step of deliveries, each committed event is delivered under one id, and no other event',
  { timeout: 480_000 },
  async () => {
    const context = testContext(db, runtime)
    const { port } = receiver.address() as AddressInfo
    const endpoint = await db.transact((tx) =>
      addEndpoint(tx, context, 1, {
        url: `http://127.0.0.1:${port}/`,
        description: null,
        event_types: ['*'],
        hub_ids: [],
      }),
    )
    secret = endpoint.secret
    const committed = new Set<string>()
    const undone = new Set<string>()

    async function append(first: number): Promise<void> {
      const ids: string[] = []
      const isUndone = first % (10 * BATCH) === 0
      await db
        .transact(async (tx) => {
          ids.length = 0
          for (let number = first; number < first + BATCH; number += 1)
            ids.push(appendEvent(tx, context, { type: 'alarm.raised', hubId: 1, data: numbered(number) }))
          if (isUndone) tx.beforeCommit('undone', () => Promise.reject(new Error('undone')))
          await Promise.resolve()
        })
        .catch((error: Error) => expect(error.message).toBe('undone'))
      for (const id of ids) (isUndone ? undone : committed).add(id)
    }

    const writing = (async () => {
      for (let first = BATCH; committed.size < EVENTS; first += BATCH) {
        await append(first)
        await sleep(clock, 20)
      }
    })()
    const deaths: string[] = []
    for (const death of DEATHS) {
      await cloud.start({ DIE_AT: death, WEBHOOK_ALLOW_PRIVATE: 'true', WEBHOOK_CONCURRENCY: '20' })
      for (let waited = 0; cloud.diedAt() === undefined; waited += 50) {
        if (waited > 120_000) throw new Error(`it does not come to ${death}`)
        await sleep(clock, 50)
      }
      deaths.push(cloud.diedAt()!)
    }
    expect(deaths).toEqual(DEATHS.map((death) => death.split(' ')[0]))
    await writing
    await cloud.start({ WEBHOOK_ALLOW_PRIVATE: 'true', WEBHOOK_CONCURRENCY: '20' })
    for (let waited = 0; waited < 120_000 && times.size < committed.size; waited += 200)
      await sleep(clock, 200)

    expect(wrong).toEqual([])
    expect([...committed].filter((id) => !times.has(id))).toEqual([])
    expect([...times.keys()].filter((id) => !committed.has(id))).toEqual([])
    expect([...undone].filter((id) => times.has(id))).toEqual([])
    const repeated = [...times.values()].filter((count) => count > 1).length
    console.log(`${times.size} events, ${deaths.length} deaths, ${repeated} events came more than once`)
    // Only deliveries that were in progress at a kill are repeated.
    expect(repeated).toBeLessThanOrEqual(DEATHS.length * 40)
  },
)
