import { digestOf } from '../../cloud/platform/credentials/secrets.ts'
import { startEmbeddedBroker } from '../../cloud/gateway/broker-embedded.ts'
import { hubDomain } from '../../cloud/hub-domain.ts'
import { defaultLimits } from '../../cloud/platform/settings/limits.ts'
import { Gateway } from '../../cloud/gateway/gateway.ts'
import { externalBroker } from '../../cloud/gateway/broker-external.ts'
import { cloudRefusals } from '../../cloud/platform/refusals.ts'
import { openDatabase } from '../../cloud/platform/store/database.ts'
import { silentLog } from '../../protocol/model/log.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { openShop } from '../cloud/support/shop.ts'
import { PRODUCTS } from './stream-entries.ts'
import { testContext } from '../cloud/support/context.ts'

/**
 * The cloud's process of `stream.ts`: the gateway on a database in a file, with the embedded broker or an
 * external one. Arguments: the database's URL, the hub's password, optionally the broker's URL.
 */
const [databaseUrl = '', password, brokerUrl] = process.argv.slice(2)
const runtime = systemRuntime()
const { clock } = runtime
const log = { ...silentLog, warn: console.warn, error: console.error }
const db = openDatabase({ url: databaseUrl })
await db.migrate()
await openShop(db, { products: Array.from({ length: PRODUCTS }, () => ({ price: 100, quantity: 100 })) })
await db.kysely
  .updateTable('hubs')
  .set({ mqtt_password_digest: digestOf(password!) })
  .execute()
const refusals = cloudRefusals({ log, runtime })
const broker =
  brokerUrl === undefined
    ? await startEmbeddedBroker({ db, databaseUrl, log, refusals, clock, port: 0 })
    : undefined
const gateway = new Gateway({
  domain: hubDomain,
  context: testContext(db, runtime, { log }),
  broker: broker
    ? { kind: 'own', open: broker.openTransport }
    : {
        kind: 'shared',
        open: externalBroker({ urls: [brokerUrl!], clientId: 'cloud-bench', runtime }),
      },
  processId: 'bench',
  // The stream is measured, not the rate limit of a hub.
  settings: { ...defaultLimits.gateway, entriesAtOnce: 100_000_000 },
})
gateway.start()
const cpu = process.cpuUsage()
process.send!({ url: broker ? `mqtt://127.0.0.1:${broker.port}` : brokerUrl })

process.once('message', () => {
  void (async () => {
    const { user, system } = process.cpuUsage(cpu)
    const { rows } = await db.kysely
      .selectFrom('stock_ledger')
      .select((eb) => eb.fn.countAll<number>().as('rows'))
      .executeTakeFirstOrThrow()
    const { dead } = await db.kysely
      .selectFrom('dead_letters')
      .select((eb) => eb.fn.countAll<number>().as('dead'))
      .executeTakeFirstOrThrow()
    process.send!({ rows, dead, cpuMs: (user + system) / 1000 })
    await gateway.stop()
    await broker?.close()
    await db.close()
    process.disconnect()
  })()
})
