import { X509Certificate } from 'node:crypto'
import { expect, test } from 'vitest'
import { certificatePort } from '../../../cloud/broker.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { openCloud } from '../../world/cloud.ts'
import { emptySqlite } from '../../world/database.ts'

const DAY = 86_400_000

test('the embedded broker renews its own server certificate without a restart, when a third of its time is left', async () => {
  const db = openDatabase({ url: 'sqlite::memory:', sqlite: await emptySqlite() })
  const { context, runtime } = await openCloud({ db, handlersOf: () => ({}) })
  const config = {
    HOST: '127.0.0.1',
    MQTT_TLS_PORT: 8883,
    MQTT_URL: undefined,
    MQTT_HOST: undefined,
    MQTT_PUBLIC_URL: undefined,
    PUBLIC_URL: undefined,
  }
  const { port, follow } = await certificatePort(config, context, {})
  const certs = [port!.certificates.cert]
  const broker = { renewPort: ({ cert }: { cert: string }) => void certs.push(cert) }
  const endOfLast = () => Date.parse(new X509Certificate(certs.at(-1)!).validTo)
  const renewals: number[] = []
  const start = runtime.clock.now()
  for (let day = 0; day <= 1650; day += 25) {
    runtime.clock.shiftWall(start + day * DAY - runtime.clock.now())
    await follow(broker)
    if (certs.length > renewals.length + 1) renewals.push(day)
    expect(endOfLast() - runtime.clock.now()).toBeGreaterThan(200 * DAY)
  }
  expect(renewals).toEqual([550, 1100, 1650])
})
