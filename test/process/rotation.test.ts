import { expect, onTestFinished } from 'vitest'
import { randomHex } from '../../protocol/model/ids.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { commandOf } from '../support/programs.ts'
import { missing, service } from '../support/services.ts'
import { balanced } from './chaos/balanced.ts'
import { collect, install } from './chaos/installation.ts'
import { operate } from './chaos/operator.ts'
import type { ProgramName } from './chaos/plant-settings.ts'
import { createPostgresDatabase } from './chaos/postgres.ts'

const runtime = systemRuntime()
const secrets = ['STORE_SECRET', 'MEDIA_SECRET', 'PAYMENTS_WEBHOOK_SECRET'] as const

const both = missing('postgres') === undefined ? service('mosquitto') : service('postgres')
both(
  'two clouds get new secrets for store, media, payments, a webhook and the management of hubs while customers buy, and no call fails but with 503 and Retry-After',
  async () => {
    const database = await createPostgresDatabase(process.env['TEST_POSTGRES_URL']!, runtime)
    onTestFinished(() => database.remove())
    const commands = new Map<ProgramName, readonly string[]>()
    const kind = { type: 'at-scale', databaseUrl: database.url } as const
    const installation = await install({ kind, commands })
    const { plant, come, sells, roll, failures } = installation
    const values = new Map<string, string>(secrets.map((name) => [name, randomHex(runtime.random, 16)]))
    const use = (valueOf: (name: string) => string) => (name: ProgramName) =>
      commands.set(name, [
        'env',
        ...secrets.map((secret) => `${secret}=${valueOf(secret)}`),
        ...commandOf('cloud/main'),
      ])
    const present = use((secret) => values.get(secret)!)
    for (const name of ['cloud-1', 'cloud-2'] as const) present(name)
    plant.start()
    await sells()
    const larder = (...words: string[]) => operate(plant, ...words)

    const calls = await balanced(installation, async () => {
      const former = new Map(values)
      for (const name of secrets) values.set(name, randomHex(runtime.random, 16))
      await roll(use((secret) => `${values.get(secret)},${former.get(secret)}`))
      await larder('hubs', 'key')
      await larder('hubs', 'rotate-key')
      const add = ['--owner', '1', '--url', 'https://receiver.example/', '--types', 'order.paid']
      const { id } = await larder('webhooks', 'add', ...add)
      await larder('webhooks', 'rotate', String(id), '--overlap', '1')
      await roll(present)
      await larder('hubs', 'end-key-rotation')
    })
    expect(calls.failed).toEqual([])
    expect(calls.sales).toBeGreaterThan(3)
    expect(failures).toEqual([])
    const customer = await come(1)
    await customer.pay()
    await collect(installation, customer)
  },
  300_000,
)
