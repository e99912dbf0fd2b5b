import { describe, expect, test, vi } from 'vitest'
import { alarm, type ScriptedHub } from '../../world/scripted-hub.ts'
import { healthy } from '../../world/health.ts'
import { countedCloud } from '../../world/gateway.ts'
import type { ProcessOptions } from '../../world/gateway.ts'

/** Connected, welcomed hubs and one process of the cloud. */
async function connected(count: number, options: ProcessOptions = {}) {
  const { world, cloud, hubs, commits } = await countedCloud(count, options)
  for (const hub of hubs) hub.connect()
  await world.pass(5000)
  const heard = async (): Promise<(string | null)[]> => {
    const rows = await world.db.kysely.selectFrom('hub_sessions').select('health').orderBy('hub_id').execute()
    return rows.map(({ health }) => health)
  }
  return { world, cloud, hubs, heard, commits }
}

const beat = (hubs: readonly ScriptedHub[], accepting_orders = true): void => {
  for (const hub of hubs) hub.heartbeat({ ...healthy, accepting_orders })
}

describe('heartbeats', () => {
  test('heartbeats of all hubs within a second are written by one transaction, and the first one at once', async () => {
    const { world, hubs, heard, commits } = await connected(50)
    const before = commits()
    beat(hubs)
    await world.pass(20)
    expect((await heard()).filter((health) => health !== null).length).toBeGreaterThan(0)
    await world.pass(2000)
    expect((await heard()).filter((health) => health !== null)).toHaveLength(50)
    expect(commits() - before).toBe(2)
  })

  test('a heartbeat without news is written only after two fifths of the time for which it counts', async () => {
    const { world, cloud, hubs, heard, commits } = await connected(5)
    const lastHeard = async () => {
      const rows = await world.db.kysely.selectFrom('hub_sessions').select('last_heard_at').execute()
      return new Set(rows.map((row) => row.last_heard_at))
    }
    beat(hubs)
    await world.pass(2000)
    const before = { commits: commits(), heard: await lastHeard() }
    beat(hubs)
    await world.pass(15_000)
    expect(commits()).toBe(before.commits)
    expect(await lastHeard()).toEqual(before.heard)
    beat(hubs, false)
    await world.pass(2000)
    expect((await heard()).every((health) => !JSON.parse(health!).accepting_orders)).toBe(true)
    const { onlineWithinMs } = cloud.context.settings
    await world.pass(onlineWithinMs / 3)
    const changed = await lastHeard()
    beat(hubs, false)
    await world.pass(2000)
    expect(Math.min(...(await lastHeard()))).toBeGreaterThan(Math.max(...changed))
  })

  test.each([15_000, 20_000, 24_500, 30_000, 35_000, 50_000])(
    'with a heartbeat every %d ms, a tenth more or less, the lease of the hub never ends',
    async (heartbeatMs) => {
      const { world, cloud, hubs } = await connected(1)
      for (let n = 0; n < 8; n += 1) {
        beat(hubs)
        await world.pass(heartbeatMs * (n % 2 === 0 ? 0.9 : 1.1))
        const { lease_until } = await world.db.kysely
          .selectFrom('hub_sessions')
          .select('lease_until')
          .executeTakeFirstOrThrow()
        expect(lease_until).toBeGreaterThan(cloud.context.runtime.clock.now())
      }
    },
  )

  test('the lease of a hub outlives a lost heartbeat', async () => {
    const { world, cloud, hubs } = await connected(1)
    for (let n = 0; n < 12; n += 1) {
      if (n % 3 !== 2) beat(hubs)
      await world.pass(15_000 * 1.1)
      const { lease_until } = await world.db.kysely
        .selectFrom('hub_sessions')
        .select('lease_until')
        .executeTakeFirstOrThrow()
      expect(lease_until).toBeGreaterThan(cloud.context.runtime.clock.now())
    }
  })

  test('the latest heartbeat of a hub is stored', async () => {
    const { world, hubs, heard } = await connected(1)
    beat(hubs)
    await world.pass(100)
    beat(hubs, false)
    await world.pass(20)
    beat(hubs)
    await world.pass(20)
    beat(hubs, false)
    await world.pass(2000)
    expect(JSON.parse((await heard())[0]!)).toMatchObject({ accepting_orders: false })
  })

  test('a failed heartbeat of one hub does not affect the others', async () => {
    const { world, cloud, hubs, heard } = await connected(3, {
      domain: {
        hubsHeard: (_tx, _context, hubs) =>
          hubs.some(({ hubId }) => hubId === 2) ? Promise.reject(new Error('hub 2')) : Promise.resolve(),
      },
    })
    beat(hubs)
    await world.pass(3000)
    expect((await heard()).length).toBe(2)
    expect((await heard()).every((health) => health !== null)).toBe(true)
    expect(cloud.faults.map(String)).toContain('Error: hub 2')
  })

  test('heartbeats that fail because the database is down are not tried again one hub at a time', async () => {
    const asked: number[][] = []
    const { world, hubs } = await connected(40, {
      domain: {
        hubsHeard(_tx, _context, hubs) {
          if (hubs.some(({ health }) => health === null)) return Promise.resolve()
          asked.push(hubs.map(({ hubId }) => hubId))
          return Promise.reject(Object.assign(new Error('away'), { code: 'ECONNREFUSED' }))
        },
      },
    })
    beat(hubs)
    await world.pass(3000)
    expect(asked.flat().toSorted((a, b) => a - b)).toEqual(hubs.map((_, index) => index + 1))
  })

  test('a heartbeat of a session does not make its hub connected again after the will', async () => {
    const { world, hubs } = await connected(1)
    beat(hubs)
    await world.pass(100)
    beat(hubs)
    await world.pass(10)
    world.network.cut((life) => life.name === 'hub-1', 'cut')
    await world.pass(3000)
    const row = await world.db.kysely
      .selectFrom('hub_sessions')
      .select('is_connected')
      .executeTakeFirstOrThrow()
    expect(row.is_connected).toBe(0)
  })

  test('a heartbeat of a session that a hello has replaced causes no request for a hello', async () => {
    const { world, hubs } = await connected(1)
    const [hub] = hubs as [ScriptedHub]
    hub.ignoresHails = true
    hub.heartbeat()
    await world.pass(100)
    hub.heartbeat()
    await world.pass(10)
    hub.connect()
    await world.pass(3000)
    expect(hub.welcomes.at(-1)?.session).toBe(hub.session)
    expect(hub.hails).toEqual([])
  })
})

test('a limited number of messages of one hub waits; further ones are dropped, and sent again later', async () => {
  const { world, cloud, hubs } = await connected(1, { settings: { mailbox: 3 } })
  const [hub] = hubs as [ScriptedHub]
  for (let n = 1; n <= 10; n += 1) hub.append(alarm(`a${n}`))
  // The database is busy.
  let release = (): void => {}
  const busy = cloud.context.db.transact(() => new Promise<void>((resolve) => (release = resolve)))
  for (let n = 1; n <= 10; n += 1) hub.sendEntries(n, n)
  await world.pass(100)
  release()
  await busy
  await world.pass(100)
  expect(hub.acks.length).toBeLessThanOrEqual(3)
  hub.sendEntries()
  await world.pass(100)
  expect(await world.db.kysely.selectFrom('alarms').select('subject').execute()).toHaveLength(10)
})

test('repeated heartbeats and disconnections of a hub during a busy database are written once', async () => {
  const { world, cloud, hubs, commits } = await connected(1, { settings: { mailbox: 1 } })
  const [hub] = hubs as [ScriptedHub]
  const statements = vi.spyOn(cloud.context.db.kysely, 'updateTable')
  let release = (): void => {}
  const busy = cloud.context.db.transact(() => new Promise<void>((resolve) => (release = resolve)))
  const before = commits()
  hub.append({ kind: 'alarm', at: 1, code: 'door_forced', subject: 'main', raised: true, detail: '' })
  hub.sendEntries()
  for (let n = 0; n < 50; n += 1) {
    hub.heartbeat()
    hub.publish('presence', { session: `0000${n}`.padStart(32, 'a'), online: false })
    hub.publish('presence', { session: hub.session, online: true })
    await world.pass(100)
  }
  for (let n = 0; n < 50; n += 1) hub.publish('presence', { session: hub.session, online: false })
  await world.pass(5000)
  release()
  await busy
  await world.pass(5000)
  // The work that kept it busy, the batch, the first heartbeat, and the last of all others.
  expect(commits() - before).toBeLessThanOrEqual(4)
  expect(statements.mock.calls.map(([table]) => table)).toEqual(['hub_sessions'])
  const { is_connected } = await world.db.kysely
    .selectFrom('hub_sessions')
    .select('is_connected')
    .executeTakeFirstOrThrow()
  expect(is_connected).toBe(0)
})

test('the end of another session leaves a hub connected, also after an early end of its own session', async () => {
  const { world, hubs } = await connected(1)
  const [hub] = hubs as [ScriptedHub]
  const isConnected = async (): Promise<number> =>
    (await world.db.kysely.selectFrom('hub_sessions').select('is_connected').executeTakeFirstOrThrow())
      .is_connected
  hub.publish('presence', { session: hub.session, online: false })
  await world.pass(2000)
  expect(await isConnected()).toBe(0)
  hub.heartbeat()
  await world.pass(2000)
  expect(await isConnected()).toBe(1)
  hub.publish('presence', { session: 'b'.repeat(32), online: false })
  await world.pass(2000)
  expect(await isConnected()).toBe(1)
})
