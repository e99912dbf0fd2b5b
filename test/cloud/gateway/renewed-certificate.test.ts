import { connect } from 'node:tls'
import { afterEach, expect } from 'vitest'
import { startEmbeddedBroker } from '../../../cloud/gateway/broker-embedded.ts'
import { digestOf } from '../../../cloud/platform/credentials/secrets.ts'
import { cloudRefusals } from '../../../cloud/platform/refusals.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { listen } from '../../../edge/local-api/front.ts'
import { mqttTransport } from '../../../edge/sync/mqtt-transport.ts'
import { serverBounds } from '../../../protocol/model/bound-server.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { defaultsOf } from '../../../protocol/model/program-settings.ts'
import { downFilter } from '../../../protocol/mqtt/topics.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { makeCertificate, type TestCertificate } from '../../support/certificate.ts'
import { service } from '../../support/services.ts'
import { emptySqlite } from '../../world/database.ts'
import { seedHub } from '../../world/seeds.ts'

const openssl = service('openssl')
const made: TestCertificate[] = []
const certificate = (): TestCertificate => {
  const one = makeCertificate()
  made.push(one)
  return one
}
afterEach(() => made.splice(0).forEach((one) => one.remove()))

/** The serial number of a server's certificate. */
const shown = (port: number): Promise<string> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().serialNumber)
      socket.destroy()
    })
    socket.on('error', reject)
  })

openssl('the embedded broker and a client take renewed certificates without a restart', async () => {
  const [first, second] = [certificate(), certificate()]
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  const runtime = systemRuntime()
  await seedHub(db, 1, digestOf('secret-1'))
  const broker = await startEmbeddedBroker({
    db,
    databaseUrl: 'sqlite::memory:',
    log: silentLog,
    refusals: cloudRefusals({ log: silentLog, runtime }),
    clock: runtime.clock,
    port: 0,
    tls: { cert: first.cert, key: first.key },
  })
  let ca = first.cert
  const open = mqttTransport({
    urls: [`mqtts://127.0.0.1:${broker.port}`],
    user: 'hub-1',
    password: 'secret-1',
    runtime,
    ca: () => ca,
  })
  const connected = (): Promise<string> =>
    new Promise((resolve) => {
      const transport = open(
        { subscribe: [downFilter(1)] },
        {
          onConnect() {
            transport.close()
            resolve('connected')
          },
          onDisconnect: resolve,
          onMessage() {},
        },
      )
    })
  try {
    expect(await connected()).toBe('connected')
    broker.renewTls({ cert: second.cert, key: second.key })
    expect(await connected()).not.toBe('connected')
    ca = second.cert
    expect(await connected()).toBe('connected')
  } finally {
    await broker.close()
    await db.close()
  }
})

openssl(
  'the hub’s page shows a renewed certificate without a restart, and keeps the old one if the new one is broken',
  async () => {
    const [first, second] = [certificate(), certificate()]
    const bounds = defaultsOf(
      serverBounds('LOCAL', { maxConnections: 10, connectionsPerNetwork: 10, requestTimeoutMs: 1000 }),
    )
    const { cert, key } = first
    const listener = await listen(
      { host: '127.0.0.1', port: 0, cert, key, bounds, runtime: systemRuntime() },
      (_, response) => void response.end(),
    )
    const port = Number(new URL(listener.url).port)
    const before = await shown(port)
    expect(() => listener.renew({ cert: second.cert, key: first.key })).toThrow()
    expect(await shown(port)).toBe(before)
    listener.renew({ cert: second.cert, key: second.key })
    expect(await shown(port)).not.toBe(before)
    void listener.close()
  },
)
