import { beforeEach, describe, expect, test } from 'vitest'
import { setDesired, withNumber } from '../../../../cloud/operations/controls/configuration.ts'
import { appendAudit } from '../../../../cloud/platform/audit/audit.ts'
import {
  type BinChange,
  changeBin,
  changeWork,
  SETTLED_MS,
} from '../../../../cloud/operations/ssh/bin-changes.ts'
import { WorkRunner } from '../../../../cloud/platform/work/runner.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop, type Shop } from '../../../world/shop.ts'
import { modelHub, register, type ModelHub } from './model-hub.ts'

const change: BinChange = { hubId: 1, bin: 2, enabled: false, actor: 'key-abc' }
const HOUR = 3_600_000

onEachDatabase('bins over SSH', (open) => {
  let shop: Shop
  let hub: ModelHub
  let crashAt: string | undefined

  beforeEach(async () => {
    crashAt = undefined
    const checkpoint = (point: string): void => {
      if (point === crashAt) throw new Error(`crash at ${point}`)
    }
    shop = await openShop(await open({ checkpoint }), { checkpoint })
    await shop.context.db.kysely.updateTable('hub_sessions').set({ is_connected: 0 }).execute()
    await register(shop.context.db)
    hub = modelHub()
  })

  const services = () => ({ context: shop.context, remote: hub.remote })
  const ask = (given: Partial<BinChange> = {}) => changeBin(services(), { ...change, ...given })
  const recover = () => new WorkRunner(shop.context, changeWork(services())).drain()
  const q = () => shop.context.db.kysely

  async function desired(): Promise<number[]> {
    const { disabled_bins } = await q()
      .selectFrom('hubs')
      .select('disabled_bins')
      .where('id', '=', 1)
      .executeTakeFirstOrThrow()
    return JSON.parse(disabled_bins) as number[]
  }
  const states = async () =>
    (await q().selectFrom('management_changes').select('state').orderBy('created_at').execute()).map(
      ({ state }) => state,
    )
  const audit = () =>
    q().selectFrom('audit_log').select(['actor', 'action', 'object', 'result']).orderBy('id').execute()
  /** Configuration entries in the hub's stream. */
  const entries = async () =>
    (await shop.outbox()).filter(({ kind }) => kind === 'config') as unknown as {
      config: { disabled_bins: number[] }
    }[]

  /** Waits until any work at the hub has ended and the due work runs. */
  async function later(ms = SETTLED_MS + HOUR): Promise<void> {
    shop.clock.advance(ms)
    await recover()
  }

  describe('a bin change that the hub executed', () => {
    test('the cloud adopts an executed bin change and sends it to the hub, in one commit with the audit record', async () => {
      expect(await ask()).toMatchObject({ ok: true, answer: { disabled_bins: [2] } })
      expect(await desired()).toEqual([2])
      expect((await entries()).map(({ config }) => config.disabled_bins)).toEqual([[2]])
      expect(await audit()).toEqual([
        { actor: 'key-abc', action: 'controls.disable_bin_ssh', object: 'bin-2', result: 'executed' },
      ])
      expect(await states()).toEqual(['done'])
      await ask({ enabled: true })
      expect(await desired()).toEqual([])
      expect((await entries()).at(-1)?.config.disabled_bins).toEqual([])
    })

    test('simultaneous bin changes each change only their bin', async () => {
      await Promise.all([ask({ bin: 1 }), ask({ bin: 4 }), ask({ bin: 3 })])
      expect(await desired()).toEqual([1, 3, 4])
      expect((await entries()).at(-1)?.config.disabled_bins).toEqual([1, 3, 4])
    })

    test('the cloud adopts a bin change also if the hub’s service did not restart, because the hub has stored it', async () => {
      hub.next('not started')
      expect(await ask()).toMatchObject({ ok: false, failure: 'command_failed' })
      expect(await desired()).toEqual([2])
      expect(await states()).toEqual(['done'])
    })
  })

  describe('a bin change that the hub did not execute', () => {
    test.each([
      ['unreachable', 'connection_error'],
      ['refused', 'validation_error'],
    ] as const)('the cloud does not adopt a bin change of a hub that is %s', async (how, failure) => {
      hub.next(how)
      expect(await ask()).toMatchObject({ ok: false, failure })
      expect(await desired()).toEqual([])
      expect(await entries()).toEqual([])
      expect(await states()).toEqual(['failed'])
      expect(await audit()).toMatchObject([{ result: 'failed' }])
    })

    test('a hub without a management service, and a bin that the hub does not have, are not called', async () => {
      expect(await ask({ bin: 9 })).toMatchObject({ ok: false, failure: 'validation_error' })
      await q().deleteFrom('hub_management').execute()
      expect(await ask()).toMatchObject({ ok: false, failure: 'connection_error' })
      expect(hub.calls).toEqual([])
      expect((await audit()).map(({ result }) => result)).toEqual(['failed', 'failed'])
    })
  })

  describe('a bin change with unknown outcome', () => {
    test.each([
      ['lost before', [], 'failed'],
      ['lost after', [2], 'done'],
    ] as const)(
      'a bin change with unknown outcome (%s) is checked after its time-out, and then adopted',
      async (how, wanted, state) => {
        hub.next(how)
        expect(await ask()).toMatchObject({ ok: false, failure: 'timeout' })
        expect(await desired()).toEqual([])
        await recover()
        expect(hub.calls.map(({ name }) => name)).toEqual(['disable-bin'])
        await later()
        expect(hub.calls.map(({ name }) => name)).toEqual(['disable-bin', 'status'])
        expect(await desired()).toEqual(wanted)
        expect(await states()).toEqual([state])
        await later()
        expect(hub.calls).toHaveLength(2)
      },
    )

    test('a bin change with unknown outcome is checked again while the hub is unreachable, and abandoned after a day', async () => {
      hub.next('lost after', 'unreachable', 'unreachable')
      await ask()
      await later()
      await later()
      expect(await states()).toEqual(['pending'])
      await later()
      expect(await states()).toEqual(['done'])

      hub.next('lost after', 'unreachable')
      await ask({ enabled: true })
      await later(25 * HOUR)
      expect(await states()).toEqual(['done', 'unknown'])
      expect(await desired()).toEqual([2])
    })

    test('a bin change with unknown outcome is dropped if another change comes during the check', async () => {
      hub.next('lost after')
      await ask()
      shop.clock.advance(SETTLED_MS + HOUR)
      const enableBin = async () => {
        const record = { actor: 'a', action: 'controls.enable_bin', hubId: 1, object: 'bin-2' }
        await shop.context.db.transact(async (tx) => {
          await setDesired(tx, shop.context, {
            hubId: 1,
            change: (before) => ({ ...before, disabledBins: withNumber(before.disabledBins, 2, false) }),
          })
          await appendAudit(tx.q, shop.context.runtime, { ...record, result: 'accepted' })
        })
      }
      const remote: ModelHub['remote'] = async (...asked) => {
        const answer = await hub.remote(...asked)
        await enableBin()
        return answer
      }
      await new WorkRunner(shop.context, changeWork({ context: shop.context, remote })).drain()
      expect(await desired()).toEqual([])
      expect(await states()).toEqual(['superseded'])
    })

    test('a bin change with unknown outcome is dropped after a later change', async () => {
      hub.next('lost after')
      await ask()
      shop.clock.advance(1000)
      await shop.context.db.transact(async (tx) => {
        await setDesired(tx, shop.context, {
          hubId: 1,
          change: (before) => ({ ...before, disabledBins: withNumber(before.disabledBins, 2, false) }),
        })
        const action = 'controls.enable_bin'
        const record = { actor: 'a', action, hubId: 1, object: 'bin-2', result: 'accepted' }
        await appendAudit(tx.q, shop.context.runtime, record)
      })
      await later()
      expect(await states()).toEqual(['superseded'])
      expect(await desired()).toEqual([])
    })

    test('a bin change with unknown outcome is checked by one of several processes', async () => {
      hub.next('lost after')
      await ask()
      shop.clock.advance(SETTLED_MS + HOUR)
      await Promise.all([recover(), recover(), recover()])
      expect(hub.calls.filter(({ name }) => name === 'status')).toHaveLength(1)
      expect(await desired()).toEqual([2])
    })
  })

  test.each(['management.intended', 'management.answered', 'management.settled', 'db.before-commit'])(
    'a cloud that dies at %s during a bin change agrees with the hub later',
    async (point) => {
      crashAt = point
      await expect(ask()).rejects.toThrow(`crash at ${point}`)
      crashAt = undefined
      await later()
      expect(await desired()).toEqual([...hub.disabled])
      expect(await states()).not.toContain('pending')
      const commands = hub.calls.filter(({ name }) => name === 'disable-bin')
      expect(commands.length).toBeLessThanOrEqual(1)
    },
  )
})
