import { connect } from 'node:net'
import type { KyselyPlugin } from 'kysely'
import { generate } from 'mqtt-packet'
import { expect, onTestFinished, test } from 'vitest'
import { startEmbeddedBroker } from '../../../cloud/gateway/broker-embedded.ts'
import { digestOf } from '../../../cloud/platform/credentials/secrets.ts'
import { cloudRefusals } from '../../../cloud/platform/refusals.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { emptySqlite } from '../../world/database.ts'
import { seedHub } from '../../world/seeds.ts'

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))

test('a sign-in that ends before a slow database has checked it leaves no login that is checked again', async () => {
  const runtime = systemRuntime()
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  await seedHub(db, 1, digestOf('secret'))
  let queries = 0
  const counting: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    transformResult({ result }) {
      queries += 1
      return Promise.resolve(result)
    },
  }
  const broker = await startEmbeddedBroker({
    db: { ...db, kysely: db.kysely.withPlugin(counting) },
    databaseUrl: 'sqlite:x',
    log: silentLog,
    refusals: cloudRefusals({ log: silentLog, runtime }),
    clock: runtime.clock,
    port: 0,
    limits: { passwordCheckMs: 20 },
  })
  onTestFinished(() => broker.close())
  let release = (): void => {}
  const busy = db.transact(() => new Promise<void>((resolve) => (release = resolve)))
  const login = { clientId: 'hub-1', username: 'hub-1', password: Buffer.from('secret') }
  const packet = generate({ cmd: 'connect', protocolId: 'MQTT', protocolVersion: 4, ...login })
  for (let turn = 0; turn < 5; turn += 1) {
    const socket = connect({ port: broker.port, host: '127.0.0.1' }).on('error', () => {})
    await new Promise((resolve) => void socket.once('connect', resolve))
    socket.write(packet)
    await wait(20)
    socket.destroy()
  }
  await wait(50)
  release()
  await busy
  await wait(100)
  expect(broker.clientCount()).toBe(0)
  const after = queries
  expect(after).toBeGreaterThan(0)
  await wait(200)
  expect(queries).toBe(after)
})
