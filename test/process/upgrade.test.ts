import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { Sqlite } from '../../edge/journal/sqlite-driver.ts'
import { OrderStatus as S } from '../../protocol/model/order-status.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { violationsOf } from '../invariants/check.ts'
import { frozenCommit, installCommit, type Version } from '../support/former-versions.ts'
import { service } from '../support/services.ts'
import { createAuditor, untilQuiet } from './chaos/collect.ts'
import type { Customer } from './chaos/customer.ts'
import { collect, install, WAIT_MS, type Installation } from './chaos/installation.ts'
import type { ProgramName } from './chaos/plant-settings.ts'
import { emptyAllBins, resolveUnconfirmed } from './chaos/staff.ts'

const runtime = systemRuntime()
const { clock } = runtime

const frozen = frozenCommit()
const folder = mkdtempSync(join(tmpdir(), 'larder-upgrade-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const refundAll = ({ client, plant }: Installation, { orderId }: Customer) =>
  client.withRetries({
    name: 'refund',
    method: 'POST',
    path: `/api/v1/owners/orders/${orderId}/refund`,
    apiKey: plant.seed.owner.api_key,
    body: {},
  })

/** Pays an order, and kills the hub while it dispenses the units. */
async function interrupted(installation: Installation, units: number): Promise<Customer> {
  const { come, reaches, plant } = installation
  const customer = await come(units)
  await customer.pay()
  await reaches(customer, S.PREPARING)
  await plant.halt('hub')
  return customer
}

/** Starts an older program on a store of a newer version. Returns its exit status and its errors. */
function refusalOf(command: readonly string[], environment: Record<string, string>) {
  const env = { PATH: process.env['PATH'], ...environment }
  const { status, stderr } = spawnSync(command[0]!, command.slice(1), {
    env,
    encoding: 'utf8',
    timeout: 60_000,
  })
  return { status, stderr }
}

/** Copies a store's files, and adds the mark of a migration that no version knows. */
function newerCopy(store: string, mark: string): string {
  const [from, name] = [join(store, '..'), store.split('/').at(-1)!]
  const to = mkdtempSync(join(folder, 'newer-'))
  for (const file of readdirSync(from).filter((each) => each.startsWith(name)))
    copyFileSync(join(from, file), join(to, file))
  const db = new Sqlite(join(to, name))
  db.exec(mark)
  db.close()
  return join(to, name)
}

/** An old cloud and an old hub with orders in every state are upgraded; then a card, a controller and a cloud are lost. */
async function upgradeWithOrders(from: Version): Promise<void> {
  const commands = new Map<ProgramName, readonly string[]>([
    ['cloud-1', from.cloud],
    ['hub', from.hub],
  ])
  const installation = await install({ kind: { type: 'bare' }, seedCommand: from.seed, commands })
  const { plant, room, come, reaches, welcomed, serves, sells, failures, tally } = installation
  plant.start()
  await sells()
  const auditor = await createAuditor(plant, room)
  onTestFinished(() => auditor.close())
  const completed = await come(1)
  await completed.pay()
  await collect(installation, completed)
  const [cart, paying, ready, collecting] = [await come(1), await come(1), await come(1), await come(1)]
  const action = await paying.pay('pm_card_authenticationRequired')
  expect(action.status).toBe('requires_action')
  for (const customer of [ready, collecting]) {
    await customer.pay()
    await reaches(customer, S.READY)
  }
  expect(await collecting.open()).toBe(true)
  await reaches(collecting, S.COLLECTING)
  const preparing = await interrupted(installation, 3)
  const [queued, cancelled] = [await come(1), await come(1)]
  await queued.pay()
  await cancelled.pay().then(() => refundAll(installation, cancelled))
  const all = { cart, paying, queued, preparing, ready, collecting, completed, cancelled }
  const states = async () =>
    Object.fromEntries(
      await Promise.all(
        Object.entries(all).map(async ([name, each]) => [name, (await each.order()).processing_status]),
      ),
    ) as Record<keyof typeof all, S>
  const before = await states()
  expect(before).toEqual({
    cart: S.NEW,
    paying: S.PENDING_PAYMENT,
    queued: S.QUEUED,
    preparing: S.PREPARING,
    ready: S.READY,
    collecting: S.COLLECTING,
    completed: S.COMPLETED,
    cancelled: S.CANCELLED,
  })

  // First the cloud. It understands the old hub, and the old hub finishes its orders.
  await plant.halt('cloud-1')
  commands.delete('cloud-1')
  plant.start('cloud-1')
  await serves()
  expect(await states()).toEqual(before)
  plant.start('hub')
  await welcomed()
  await collect(installation, preparing)
  await collect(installation, collecting)
  // Then the hub, also in the midst of an order.
  const again = await interrupted(installation, 2)
  commands.delete('hub')
  plant.start('hub')
  await welcomed()
  for (const customer of [again, queued, ready]) await collect(installation, customer)
  await cart.pay()
  await collect(installation, cart)
  await installation.client.withRetries({
    name: 'confirm',
    method: 'POST',
    path: '/users/payments/confirm-payment',
    bearer: paying.bearer,
    body: { order_id: paying.orderId, payment_intent_id: action.payment_id },
  })
  await collect(installation, paying)

  // A lost card, a lost controller, and a cloud that is killed.
  const withoutCard = await interrupted(installation, 2)
  await auditor.evidence()
  for (const end of ['', '-wal', '-shm']) rmSync(`${plant.places.journal}${end}`, { force: true })
  plant.start('hub')
  await welcomed()
  const [cabinets] = (await room.state()).controllers.slice(-1)
  const fault = { type: 'memory_loss', target: cabinets!.controller }
  const faults = `${plant.simulatorUrl}/api/hubs/${plant.hubId}/faults`
  expect((await fetch(faults, { method: 'POST', body: JSON.stringify(fault) })).ok).toBe(true)
  await resolveUnconfirmed({ room, tally })
  await sells()
  const late = await come(1)
  await late.pay()
  plant.kill('cloud-1')
  await serves()
  for (const customer of [withoutCard, late]) await reaches(customer, S.READY)

  await untilQuiet(auditor, clock, 30_000)
  expect(await emptyAllBins({ room, clock })).toBe(true)
  await resolveUnconfirmed({ room, tally })
  expect(await untilQuiet(auditor, clock, WAIT_MS)).toBeUndefined()
  expect(violationsOf(await auditor.evidence())).toEqual([])
  expect(failures).toEqual([])

  await plant.close()
  const database = newerCopy(plant.places.database, "insert into kysely_migration values ('9999-later', '')")
  const cloud = refusalOf(from.cloud, { DATA_DIR: folder, DATABASE_URL: `sqlite:${database}`, PORT: '0' })
  expect(cloud).toMatchObject({
    status: 1,
    stderr: expect.stringMatching(/^larder cloud: .*newer/) as string,
  })
  const STORE = newerCopy(plant.places.journal, 'pragma user_version = 9999')
  const hub = refusalOf(from.hub, {
    STORE,
    HARDWARE: plant.places.hardwareFile,
    MQTT_URL: 'mqtt://127.0.0.1:1',
    MQTT_PASSWORD: 'none',
    GPIO: 'none',
  })
  expect(hub).toMatchObject({ status: 1, stderr: expect.stringMatching(/^larder edge: .*newer/) as string })
}

const title =
  'orders in every state of the packages of the frozen schema end right after an upgrade, and after the loss of a card, a controller and a cloud'
// A checkout without earlier commits skips the test with the reason: that is no missing service.
if ('missing' in frozen) test.skip(`${title} [${frozen.missing}]`, () => {})
else
  service('packages')(
    title,
    async () => {
      const place = join(folder, frozen.commit)
      mkdirSync(place)
      await upgradeWithOrders(await installCommit(frozen.commit, place))
    },
    1_800_000,
  )
