import { expect, test } from 'vitest'
import { countedCloud } from '../../world/gateway.ts'
import type { ProcessOptions } from '../../world/gateway.ts'

/**
 * Hubs, and one process of the cloud that counts its transactions and records which hubs it welcomed
 * together.
 */
async function setUp(count: number, options: ProcessOptions = {}) {
  const { world, cloud, hubs, commits } = await countedCloud(count, options)
  /** All hubs send a hello while the database is busy. */
  async function connectAtOnce(): Promise<void> {
    let release = (): void => {}
    const busy = cloud.context.db.transact(() => new Promise<void>((resolve) => (release = resolve)))
    for (const hub of hubs) hub.connect()
    await world.pass(50)
    release()
    await busy
    await world.pass(1000)
  }
  return { cloud, hubs, connectAtOnce, commits }
}

/** Groups of hubs in one request to the database. */
function failingFor(fails: (hubIds: readonly number[]) => Error | undefined) {
  const asked: number[][] = []
  const domain: ProcessOptions['domain'] = {
    hubsHeard(_tx, _context, hubs) {
      const hubIds = hubs.map(({ hubId }) => hubId)
      asked.push(hubIds)
      const error = fails(hubIds)
      return error ? Promise.reject(error) : Promise.resolve()
    },
  }
  return { asked, domain }
}

const withCode = (code: string): Error => Object.assign(new Error(code), { code })

test('simultaneous hellos are answered in few transactions, each with its own session', async () => {
  const { hubs, connectAtOnce, commits } = await setUp(60)
  const before = commits()
  await connectAtOnce()
  expect(hubs.map(({ welcomes }) => welcomes.map(({ session }) => session))).toEqual(
    hubs.map(({ session }) => [session]),
  )
  // In addition each hub acknowledges its snapshot.
  expect(commits() - before).toBeLessThan(60 + 20)
})

test('a hello that fails does not delay simultaneous ones', async () => {
  const { asked, domain } = failingFor((hubIds) => (hubIds.includes(3) ? new Error('hub 3') : undefined))
  const { cloud, hubs, connectAtOnce } = await setUp(4, { domain })
  await connectAtOnce()
  expect(asked.some((hubIds) => hubIds.length > 1)).toBe(true)
  expect(hubs.map(({ welcomes }) => welcomes.length)).toEqual([1, 1, 0, 1])
  expect(cloud.faults.map(String)).toContain('Error: hub 3')
})

test('a hub with locked rows does not delay simultaneous ones', async () => {
  const { domain } = failingFor((hubIds) => (hubIds.includes(3) ? withCode('55P03') : undefined))
  const { hubs, connectAtOnce } = await setUp(4, { domain })
  await connectAtOnce()
  expect(hubs.map(({ welcomes }) => welcomes.length)).toEqual([1, 1, 0, 1])
})

test('a request that fails because the database is down is made once, not for each hub', async () => {
  const { asked, domain } = failingFor(() => withCode('ECONNREFUSED'))
  const { hubs, connectAtOnce } = await setUp(40, { domain })
  await connectAtOnce()
  expect(hubs.every(({ welcomes }) => welcomes.length === 0)).toBe(true)
  expect(asked.some((hubIds) => hubIds.length > 1)).toBe(true)
  const times = asked.flat().length
  expect(times).toBe(new Set(asked.flat()).size)
})
