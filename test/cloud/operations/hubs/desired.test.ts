import { expect, test } from 'vitest'
import { changeDesired } from '../../../../cloud/gateway/desired-state.ts'
import { appliedState } from '../../../../cloud/operations/hubs/desired.ts'
import { World } from '../../../world/gateway.ts'

/** A hub that reports the versions that it uses and has left, and the state that the cloud shows. */
async function reporting(desired: {
  applied: number | null
  failed: { version: number; error: string } | null
}) {
  const { world, hub } = await World.connected()
  hub.hello({ desired })
  await world.pass(2000)
  const q = world.db.kysely
  const version = async () =>
    (await q.selectFrom('hubs').select('desired_version').where('id', '=', 1).executeTakeFirstOrThrow())
      .desired_version
  return {
    change: () => world.db.transact((tx) => changeDesired(tx, 1, { settings: { LOG_LEVEL: 'debug' } })),
    version,
    shown: async () => appliedState(q, 1, await version()),
  }
}

test('a version that a hub has left is shown as rolled back, also if the hub reports its number as applied', async () => {
  const { shown } = await reporting({ applied: 1, failed: { version: 1, error: 'why' } })
  expect(await shown()).toEqual({ applied_version: 1, apply_state: 'rolled_back', apply_error: 'why' })
})

test('a restored cloud issues no version that a hub has reported already, so the version is not shown as applied', async () => {
  const { change, version, shown } = await reporting({ applied: 7, failed: { version: 8, error: 'why' } })
  await change()
  expect(await version()).toBe(9)
  expect(await shown()).toMatchObject({ apply_state: 'pending' })
})

test('a version that no hub can have reached does not change the numbers', async () => {
  const { change, version } = await reporting({ applied: 9_000_000_000_000_000, failed: null })
  await change()
  expect(await version()).toBe(2)
})
