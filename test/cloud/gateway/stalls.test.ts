import { describe, expect, test } from 'vitest'
import type { HubDomain } from '../../../cloud/gateway/domain.ts'
import { hubState } from '../../../cloud/gateway/hub-state.ts'
import { enqueue } from '../../../cloud/gateway/outbox.ts'
import { alarm, type ScriptedHub } from '../../world/scripted-hub.ts'
import { World, type CloudProcess } from '../../world/gateway.ts'

const MINUTE = 60_000
const BEAT_MS = 15_000

/** A welcomed hub, and the cloud's findings about its streams. */
async function watched(domain: Partial<HubDomain> = {}) {
  const told: [part: string, error: string | undefined][] = []
  const parts = await World.connected({
    domain: {
      ...domain,
      streamStalled: (_tx, _context, _hubId, part, error) => {
        told.push([part, error])
        return Promise.resolve()
      },
    },
  })
  await parts.world.db.kysely.updateTable('hubs').set({ hub_status: 'active' }).execute()
  return { ...parts, told }
}

/** The hub is online: it sends heartbeats, and the messages of `each`. */
async function beat(world: World, hub: ScriptedHub, forMs: number, each = (): void => {}): Promise<void> {
  for (let passed = 0; passed < forMs; passed += BEAT_MS) {
    hub.heartbeat()
    each()
    await world.pass(BEAT_MS)
  }
}

const sells = async ({ context }: CloudProcess): Promise<boolean[]> => {
  const { acceptingOrders, isStalled } = await hubState(context.db.kysely, 1, context.runtime.clock.now())
  return [acceptingOrders, isStalled]
}

const withCode = (code: string) => Object.assign(new Error(`no such column (${code})`), { code })

describe('a stalled stream of an online hub', () => {
  test.each(['SQLITE_ERROR', '42703'])(
    'a stream stalled by a failing cloud (%s) is reported after three attempts, stops sales, and recovers with progress',
    async (code) => {
      let error: Error | undefined = withCode(code)
      const { world, cloud, hub, told } = await watched({
        applyAlarmEntries: () => (error ? Promise.reject(error) : Promise.resolve()),
      })
      hub.heartbeat()
      await world.pass(100)
      expect(await sells(cloud)).toEqual([true, false])
      hub.append(alarm('door main'))
      for (let attempt = 1; attempt <= 6; attempt += 1) {
        hub.sendEntries()
        await world.pass(1000)
        expect(told.length).toBe(attempt < 3 ? 0 : 1)
      }
      expect(told).toEqual([['ledger', error.message]])
      expect(await sells(cloud)).toEqual([false, true])
      // The hub asks for the cloud's position, which is no progress.
      hub.hello()
      await world.pass(1000)
      expect(told).toHaveLength(1)
      error = undefined
      hub.sendEntries()
      await world.pass(1000)
      expect(told.slice(1)).toEqual([['ledger', undefined]])
      hub.heartbeat()
      await world.pass(100)
      expect(await sells(cloud)).toEqual([true, false])
    },
  )

  test('a stall is not reported while the database is down, which concerns every hub', async () => {
    const { world, hub, told } = await watched({
      applyAlarmEntries: () => Promise.reject(withCode('ECONNREFUSED')),
    })
    hub.append(alarm('door main'))
    for (let attempt = 0; attempt < 10; attempt += 1) {
      hub.sendEntries()
      await world.pass(1000)
    }
    expect(told).toEqual([])
  })

  test('another process detects a stall too, and ends it', async () => {
    let error: Error | undefined = withCode('SQLITE_ERROR')
    const { world, cloud, hub, told } = await watched({
      applyAlarmEntries: () => (error ? Promise.reject(error) : Promise.resolve()),
    })
    hub.append(alarm('door main'))
    for (let attempt = 0; attempt < 3; attempt += 1) {
      hub.sendEntries()
      await world.pass(1000)
    }
    expect(told).toHaveLength(1)
    world.kill(cloud)
    error = undefined
    const next = world.startCloud('next', {
      domain: {
        streamStalled: (_tx, _context, _hubId, part, why) => {
          told.push([part, why])
          return Promise.resolve()
        },
      },
    })
    await world.pass(MINUTE)
    hub.hello()
    await world.pass(2000)
    hub.sendEntries()
    await world.pass(2000)
    expect(told.slice(1)).toEqual([['ledger', undefined]])
    expect((await sells(next))[1]).toBe(false)
  })

  test('a stall of a ledger that does not arrive is reported after three minutes, across connections', async () => {
    const { world, cloud, hub, told } = await watched()
    hub.append(alarm('door main'))
    hub.hello()
    await beat(world, hub, 2 * MINUTE)
    expect(told).toEqual([])
    hub.connect()
    await world.pass(1000)
    await beat(world, hub, 2 * MINUTE)
    expect(told).toEqual([['ledger', expect.stringMatching(/nothing of it arrives/)]])
    expect(await sells(cloud)).toEqual([false, true])
    hub.sendEntries()
    await world.pass(1000)
    expect(told.slice(1)).toEqual([['ledger', undefined]])
  })

  test('a stall is not counted while the hub is offline, or while its ledger advances slowly', async () => {
    const { world, hub, told } = await watched()
    hub.append(...Array.from({ length: 40 }, (_, n) => alarm(`door ${n}`)))
    hub.hello()
    await world.pass(1000)
    await world.pass(60 * MINUTE)
    hub.connect()
    await world.pass(1000)
    let sent = 0
    await beat(world, hub, 8 * MINUTE, () => {
      sent += 1
      if (sent % 4 === 0) hub.sendEntries(sent / 4, sent / 4)
    })
    expect(told).toEqual([])
  })

  test('a stall of a hub that acknowledges nothing is reported, and entries are then sent one at a time', async () => {
    const { world, cloud, hub, told } = await watched()
    hub.deaf = true
    const order = (n: number) => ({ kind: 'order.cancel', order_id: `o-${n}` }) as never
    await cloud.context.db.transact(async (tx) => {
      for (let n = 0; n < 20; n += 1) await enqueue(tx, 1, order(n))
    })
    await beat(world, hub, 2 * MINUTE)
    expect(told).toEqual([])
    await beat(world, hub, 2 * MINUTE)
    expect(told).toEqual([['outbox', expect.stringMatching(/acknowledges nothing that the cloud sends/)]])
    expect(await sells(cloud)).toEqual([false, true])
    hub.connect()
    await beat(world, hub, MINUTE)
    hub.connect()
    await world.pass(1000)
    hub.batches.length = 0
    hub.connect()
    await world.pass(5000)
    expect(hub.batches.map(({ entries }) => entries.length)).toEqual([1])
    hub.deaf = false
    hub.connect()
    await beat(world, hub, MINUTE)
    expect(hub.applied.filter(({ kind }) => kind === 'order.cancel')).toHaveLength(20)
    expect(told.slice(1)).toEqual([['outbox', undefined]])
  })
})
