import { sql } from 'kysely'
import { beforeEach, expect, test, vi } from 'vitest'
import { noteRestored } from '../../cloud/commerce/orders/restored.ts'
import { losePayment } from './lose-payment.ts'
import { countStock } from '../../cloud/commerce/catalogue/shelf-stock.ts'
import { openDispute } from '../cloud/support/dashboard.ts'
import { refundOrder } from '../../cloud/commerce/refunds/refund-requests.ts'
import { addEndpoint, replaceEndpoint } from '../../cloud/events/webhooks/endpoints.ts'
import { enqueue } from '../../cloud/gateway/outbox.ts'
import type { Alarm } from '../../protocol/contract/owner-alarms.ts'
import { alarmKindNames, alarmKinds, type AlarmKindName } from '../../protocol/model/alarms.ts'
import { OrderStatus } from '../../protocol/model/order-status.ts'
import { PLANTED } from '../invariants/ledgers.ts'
import { People } from './people.ts'
import { Plant } from '../world/plant.ts'
import {
  backupsStop,
  breakFridgeStates,
  crashHub,
  intentOf,
  leaveVersion,
  moveInVain,
  processorAway,
} from './faults-for-alarms.ts'

/** From a fault in the room, or in an external service, to the people who can act, and back. */

const [SECOND, MINUTE, DAY] = [1000, 60_000, 86_400_000]
const ofStorage = { subject: null, withinMs: MINUTE, holdsMs: MINUTE, endsWithinMs: 20 * MINUTE }
vi.setConfig({ testTimeout: 60_000 })

let plant: Plant
let people: People
beforeEach(async () => {
  plant = await Plant.open()
  people = await People.of(plant)
})

interface Case {
  /** Subject of the alarm. */
  subject: string | RegExp | null
  /** Causes the problem. Returns a function that resolves it, if time alone does not. */
  begin: () => Promise<(alarm: Alarm) => unknown>
  /** Time until people are notified. */
  withinMs?: number
  /** Duration of the problem. A repeated detection during this time causes no second notice. */
  holdsMs?: number
  /** Time until people are notified of the end. */
  endsWithinMs?: number
}

const raise = (type: Parameters<Plant['fault']>[0], target: string, for_ms?: number): (() => void) => {
  const { id } = plant.room.hub.faults.raise({ type, target, ...(for_ms !== undefined && { for_ms }) })
  return () => void plant.room.hub.faults.clear(id)
}
const hand = (action: 'open_door' | 'close_door' | 'take_items', target: string): void => {
  expect(plant.room.hub.act({ action, target })).toMatchObject({ ok: true })
}
const acknowledge = ({ id }: Alarm): Promise<unknown> => plant.call('POST', `alarms/${id}/acknowledge`)

/** A customer buys a unit that a cabinet fails to dispense. The fault is cleared afterwards. */
async function buyInVain(type: Parameters<Plant['fault']>[0], productId: number, target: string) {
  const end = raise(type, target)
  const order = await plant.order({ [productId]: 1 })
  await plant.until(order, OrderStatus.READY)
  end()
}

const setStock = (productId: number, quantity: number): Promise<unknown> => {
  const { context } = plant.services
  const counted = { hubId: 1, productId, location: null, quantity }
  return plant.wait(context.db.transact((tx) => countStock(tx, context, counted)))
}

const cases: Record<AlarmKindName, Case> = {
  backup_overdue: { subject: null, begin: () => backupsStop(plant) },
  hub_silent: {
    subject: null,
    async begin() {
      await plant.cutHub(true)
      return () => plant.cutHub(false)
    },
  },
  stream_stalled: {
    subject: null,
    async begin() {
      const mend = await breakFridgeStates(plant)
      raise('warm_fridge', 'fridge-1', 60 * MINUTE)
      return mend
    },
    withinMs: 60 * MINUTE,
  },
  hub_restarting: { subject: null, begin: () => crashHub(plant, 3), endsWithinMs: 20 * MINUTE },
  certificate_expiring: {
    subject: 'certificate MQTT_CA',
    begin() {
      plant.hub.certificates = [{ name: 'MQTT_CA', endsAt: plant.services.context.runtime.clock.now() + DAY }]
      return Promise.resolve(() => (plant.hub.certificates = []))
    },
  },
  update_failed: { subject: 'settings 4', begin: () => leaveVersion(plant, 4) },
  move_failed: { subject: null, begin: () => moveInVain(plant).then(() => acknowledge) },
  identity_conflict: {
    subject: null,
    async begin() {
      const copy = plant.startCopy()
      await plant.run(0)
      return () => {
        copy.heldDown = true
        copy.kill('switched off')
      }
    },
    endsWithinMs: 30 * MINUTE,
  },
  controller_silent: {
    subject: 'controller vending',
    begin: () => Promise.resolve(raise('silent_port', 'vending')),
  },
  controller_foreign: {
    subject: /^controller (bins|vending)$/,
    async begin() {
      const { room } = plant
      room.plug('bins', { room, path: 'vending' })
      room.plug('vending', { room, path: 'bins' })
      await plant.run(0)
      return () => ['bins', 'vending'].forEach((path) => room.plug(path))
    },
  },
  controller_replaced: {
    subject: 'controller vending',
    async begin() {
      raise('memory_loss', 'vending')
      await plant.run(0)
      return acknowledge
    },
  },
  bin_fault: {
    subject: 'bin 1',
    async begin() {
      const end = raise('jam', 'bin-1')
      await plant.control('open_bin', 'bin=1')
      return end
    },
    endsWithinMs: 5 * MINUTE,
  },
  no_bin_available: {
    subject: null,
    async begin() {
      for (const bin of [1, 2, 3, 4]) await plant.control('disable_bin', `bin=${bin}`)
      return () => plant.control('enable_bin', 'bin=2')
    },
  },
  bin_blocked: {
    subject: 'bin 1',
    async begin() {
      await buyInVain('missed_drop', 3, 'cabinet-1')
      return async () => {
        await plant.control('open_bin', 'bin=1')
        hand('take_items', 'bin-1')
      }
    },
  },
  row_blocked: {
    subject: 'row 1/1/3',
    async begin() {
      await buyInVain('jam_without_motion', 3, 'cabinet-1')
      const body = { hub_id: 1, cabinet: 1, shelf: 1, row: 3, quantity: 6 }
      return () => plant.call('PUT', 'hubs/facings', { body })
    },
  },
  unknown_operation: {
    subject: 'row 2/2/1',
    async begin() {
      await buyInVain('missed_drop', 5, 'cabinet-2')
      return ({ details }) =>
        plant.call('POST', `operations/${String(details['operation_id'])}/settle`, {
          body: { happened: true },
        })
    },
  },
  door_forced: {
    subject: 'door main',
    async begin() {
      raise('door_forced', 'main')
      await plant.run(0)
      return () => hand('close_door', 'main')
    },
  },
  door_left_open: {
    subject: 'door main',
    async begin() {
      await plant.call('POST', 'request_door_open/?hub_id=1')
      hand('open_door', 'main')
      return () => hand('close_door', 'main')
    },
  },
  fridge_warm: {
    subject: 'fridge 1',
    begin: () => Promise.resolve(raise('warm_fridge', 'fridge-1')),
    withinMs: 25 * MINUTE,
    endsWithinMs: 60 * MINUTE,
  },
  fridge_unreadable: {
    subject: 'fridge 1',
    begin: () => Promise.resolve(raise('broken_probe', 'fridge-1')),
  },
  health_shutoff: {
    subject: 'fridge 1',
    begin() {
      const end = raise('warm_fridge', 'fridge-1')
      return Promise.resolve(() => {
        end()
        return plant.control('enable_fridge', 'fridge=1')
      })
    },
    withinMs: 45 * MINUTE,
  },
  store_full: {
    subject: null,
    async begin() {
      plant.hub.fillDisk(true)
      for (let time = 0; time < 5; time += 1) await plant.control('cycle_bin', 'bin=1&num_cycles=10')
      return () => plant.hub.fillDisk(false)
    },
    holdsMs: 5 * SECOND,
  },
  storage_failed: { ...ofStorage, begin: () => Promise.resolve(plant.hub.failStorage('read_only')) },
  foreign_journal: { ...ofStorage, begin: () => Promise.resolve(plant.hub.swapJournal()) },
  journal_lost: {
    subject: null,
    async begin() {
      await plant.until(await plant.order({ 6: 1 }), OrderStatus.READY)
      plant.hub.loseStore()
      return acknowledge
    },
  },
  journal_restored: {
    subject: null,
    async begin() {
      plant.hub.backUp()
      await plant.until(await plant.order({ 6: 1 }), OrderStatus.READY)
      plant.hub.restore()
      return acknowledge
    },
  },
  clock_wrong: {
    subject: null,
    async begin() {
      plant.hub.shiftWall(60 * MINUTE)
      await plant.run(0)
      return () => plant.hub.shiftWall(0)
    },
  },
  order_overdue: {
    subject: /^order \d+$/,
    async begin() {
      await plant.cutHub(true)
      await plant.order({ 6: 1 })
      return () => plant.cutHub(false)
    },
    withinMs: 40 * MINUTE,
    // The order ends, and its money is refunded.
    holdsMs: 5 * SECOND,
    endsWithinMs: 10 * MINUTE,
  },
  payment_stuck: {
    subject: /^order \d+$/,
    async begin() {
      const end = processorAway(plant)
      await expect(plant.order({ 6: 1 })).rejects.toMatchObject({ code: 'processor_unavailable' })
      return end
    },
    withinMs: 60 * MINUTE,
    endsWithinMs: 120 * MINUTE,
  },
  refund_failed: {
    subject: /^order \d+$/,
    async begin() {
      const order = await plant.order({ 6: 1 }, 'pm_card_refundFail')
      const refund = () =>
        refundOrder(plant.services, {
          orderId: order,
          mayTouch: () => Promise.resolve(true),
          actor: 'owner',
        })
      await expect(plant.wait(refund())).rejects.toMatchObject({ code: 'refund_failed' })
      // The card was replaced meanwhile, and accepts the refund.
      return async () => {
        await sql`update sandbox_intents set method = 'pm_card_visa'`.execute(plant.db.kysely)
        await plant.wait(refund())
      }
    },
  },
  payment_disputed: {
    subject: /^order \d+$/,
    async begin() {
      const order = await plant.order({ 6: 1 })
      const { context } = plant.services
      await plant.wait(openDispute(context, await intentOf(plant, order)))
      return acknowledge
    },
  },
  payment_orphaned: { subject: /^payment pi_/, begin: () => losePayment(plant) },
  database_restored: {
    subject: null,
    async begin() {
      const { context } = plant.services
      await plant.wait(context.db.transact((tx) => noteRestored(tx, context, [])))
      return acknowledge
    },
  },
  dead_letter: {
    subject: null,
    async begin() {
      await plant.wait(plant.db.transact((tx) => enqueue(tx, 1, { kind: PLANTED } as never)))
      return () => {
        const { core } = plant.hub.hub!
        for (const { id } of core.deadLetters()) core.dropDeadLetter(id)
      }
    },
  },
  webhook_disabled: {
    subject: /^we_/,
    async begin() {
      const { context } = plant.services
      people.poster.answer = () => ({ status: 410 })
      const fields = {
        url: 'https://receiver.example/',
        description: null,
        event_types: ['order.paid' as const],
        hub_ids: [],
      }
      await plant.wait(context.db.transact((tx) => addEndpoint(tx, context, 1, fields)))
      await plant.order({ 6: 1 })
      return ({ subject }) =>
        plant.wait(context.db.transact((tx) => replaceEndpoint(tx, context, subject!, fields, 'enabled')))
    },
  },
  stock_low: {
    subject: 'product 6',
    async begin() {
      await setStock(6, 2)
      return () => setStock(6, 8)
    },
  },
  work_exhausted: {
    subject: /^money\/payment \d+$/,
    async begin() {
      const end = processorAway(plant)
      await expect(plant.order({ 6: 1 })).rejects.toMatchObject({ code: 'processor_unavailable' })
      return end
    },
    withinMs: 180 * MINUTE,
    endsWithinMs: 120 * MINUTE,
  },
}

test.each(alarmKindNames)('people are notified once of the alarm %s, and once of its end', async (kind) => {
  const {
    subject,
    begin,
    withinMs = 10 * MINUTE,
    holdsMs = 2 * MINUTE,
    endsWithinMs = 3 * MINUTE,
  } = cases[kind]
  const end = await begin()
  const alarm = await people.raised(kind, withinMs)
  if (subject instanceof RegExp) expect(alarm.subject).toMatch(subject)
  else expect(alarm.subject).toBe(subject)
  const { severity, remedy } = alarmKinds[kind]
  expect(alarm).toMatchObject({ hub_id: alarm.hub_id === null ? null : 1, severity, remedy })
  await plant.run(holdsMs)
  const name = alarm.subject ?? 'hub'
  const begun = await people.told(kind)
  expect(new Set(begun.events).size).toBe(begun.events.length)
  expect(begun.events).toContain(`alarm.raised ${name}`)
  expect(begun.mails).toEqual(begun.events.map(() => 'raised'))
  await end(alarm)
  await people.cleared(kind, endsWithinMs)
  await plant.run(10 * MINUTE)
  const told = await people.told(kind)
  const ends = alarmKinds[kind].ends.endsWith('acknowledged') ? ['acknowledged', 'cleared'] : ['cleared']
  expect(told.events.toSorted()).toEqual(
    begun.events.flatMap((event) => [event, ...ends.map((each) => event.replace('raised', each))]).toSorted(),
  )
  expect(told.mails).toEqual([...begun.mails, ...begun.mails.map(() => 'over')])
})

test('a line that flaps for 10 minutes gives one alarm and one mail', async () => {
  for (let past = 0; past < 10 * MINUTE; past += 20 * SECOND) {
    raise('silent_port', 'vending', 12 * SECOND)
    await plant.run(20 * SECOND)
  }
  await plant.run(30 * MINUTE)
  expect(await people.told('controller_silent')).toEqual({
    events: ['alarm.raised controller vending', 'alarm.cleared controller vending'],
    mails: ['raised', 'over'],
  })
})
