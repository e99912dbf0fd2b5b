import { connect, type Socket } from 'node:net'
import { MqttClient } from 'mqtt'
import { expect, onTestFinished, test, vi } from 'vitest'
import { startEmbeddedBroker } from '../../../cloud/gateway/broker-embedded.ts'
import { digestOf } from '../../../cloud/platform/credentials/secrets.ts'
import { cloudRefusals } from '../../../cloud/platform/refusals.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { Budget } from '../../../protocol/model/budget.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { emptySqlite } from '../../world/database.ts'
import { seedHub } from '../../world/seeds.ts'

async function openBroker(unsigned?: Budget) {
  const runtime = systemRuntime()
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  for (const id of [1, 2, 3]) await seedHub(db, id, digestOf('secret'))
  const broker = await startEmbeddedBroker({
    db,
    databaseUrl: 'sqlite:x',
    log: silentLog,
    refusals: cloudRefusals({ log: silentLog, runtime }),
    clock: runtime.clock,
    port: 0,
    ...(unsigned && { unsigned }),
  })
  onTestFinished(() => broker.close())
  return broker
}

/** Connections that send nothing. */
async function silent(port: number, count: number, localAddress = '127.0.0.1'): Promise<Socket[]> {
  const sockets = Array.from({ length: count }, () => connect({ port, host: '127.0.0.1', localAddress }))
  for (const socket of sockets) socket.on('error', () => {}).resume()
  await Promise.all(sockets.map((socket) => new Promise((done) => socket.once('connect', done))))
  onTestFinished(() => sockets.forEach((socket) => void socket.destroy()))
  return sockets
}

async function signIn(port: number, hub: number, localAddress = '127.0.0.1'): Promise<MqttClient> {
  const stream = () => connect({ port, host: '127.0.0.1', localAddress })
  const options = {
    protocolVersion: 4,
    reconnectPeriod: 0,
    clientId: `hub-${hub}`,
    username: `hub-${hub}`,
    password: 'secret',
  } as const
  const client = new MqttClient(stream, options)
  onTestFinished(() => void client.end(true))
  await new Promise((resolve, reject) =>
    client
      .once('connect', resolve)
      .once('error', reject)
      .once('close', () => reject(new Error('closed'))),
  )
  return client
}

test('twenty of a thousand silent connections of one address stay, and hubs sign in from this and another address', async () => {
  const { port } = await openBroker()
  const sockets = await silent(port, 1000)
  await vi.waitFor(() => expect(sockets.filter(({ closed }) => !closed)).toHaveLength(20), 10_000)
  await signIn(port, 1, '127.0.0.2')
  await signIn(port, 2)
  // Hubs that have signed in do not count with unauthenticated connections, and are never closed for them.
  const hub = await signIn(port, 3)
  await silent(port, 50)
  expect(hub.connected).toBe(true)
})

test('silent connections of many networks that use up the total leave a hub served', async () => {
  const unsigned = new Budget({ total: 4, shares: { network: 3 }, atShare: 'replace' })
  const { port } = await openBroker(unsigned)
  await silent(port, 3, '127.0.0.2')
  await silent(port, 3, '127.0.0.3')
  await signIn(port, 1)
  expect(unsigned.used).toBeLessThanOrEqual(4)
})
