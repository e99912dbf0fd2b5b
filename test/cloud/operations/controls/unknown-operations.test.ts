import { beforeEach, describe, expect, test } from 'vitest'
import { operationHandlers } from '../../../../cloud/operations/controls/unknown-operations.ts'
import { alarmUnknownOperations } from '../../../../cloud/operations/alarms/hub-alarms.ts'
import type { CommandOutcome, CommandRequest } from '../../../../cloud/gateway/commands.ts'
import type { Operation } from '../../../../protocol/contract/owner-operations.ts'
import type { Runtime } from '../../../../protocol/model/runtime.ts'
import type { VirtualRuntime } from '../../../world/clock.ts'
import { errorOf, openCloud } from '../../../world/cloud.ts'
import { onEachDatabase } from '../../../world/database.ts'
import { openShop, type Shop } from '../../../world/shop.ts'
import { uuid } from '../../../support/uuid.ts'

const scopes = ['controls:read', 'controls:write'] as const
const command_id = uuid(4711)
const executed: CommandOutcome = { kind: 'executed', commandId: command_id, data: {}, durationMs: 5 }
const refused = (reason: string): CommandOutcome => ({
  kind: 'refused',
  commandId: command_id,
  reason,
  data: null,
})

/** A clock on which every wait ends at once. */
const hurried = (runtime: VirtualRuntime): Runtime => ({
  ...runtime,
  clock: {
    ...runtime.clock,
    after(ms, task) {
      runtime.clock.advance(ms)
      const timer = setImmediate(task)
      return () => clearImmediate(timer)
    },
  },
})

onEachDatabase('operations with unknown outcome', (open) => {
  let shop: Shop
  let app: Awaited<ReturnType<typeof openCloud>>
  let key: string
  let sent: CommandRequest[]
  /** The hub's answer to a command. */
  let hub: (request: CommandRequest) => CommandOutcome | Promise<CommandOutcome>

  beforeEach(async () => {
    const db = await open()
    sent = []
    hub = () => executed
    app = await openCloud({
      db,
      handlersOf: (context) =>
        operationHandlers({
          context: { ...context, runtime: hurried(context.runtime as VirtualRuntime) },
          commands: {
            send: async (request) => {
              sent.push(request)
              return hub(request)
            },
          },
        }),
    })
    shop = await openShop(db, { products: [{ price: 100, quantity: 9 }] })
    key = await app.key([...scopes])
  })

  const report = (number: number, startedAt = number): Promise<void> =>
    shop.report({
      kind: 'operation.unknown',
      operation_id: uuid(number),
      device: 'cabinet-1',
      action: 'dispense',
      reason: 'no_drop',
      started_at: startedAt,
      location: { cabinet: 1, shelf: 1, row: 1 },
      order_id: null,
      line_id: null,
      product_id: 1,
    })
  const list = async (query = '', as = key) => {
    const answer = await app.call('GET', `/api/v1/owners/operations${query}`, { key: as })
    return answer.json as { data: Operation[]; next_cursor: string | null; has_more: boolean }
  }
  const ids = async (query = '', as = key) => (await list(query, as)).data.map(({ id }) => id)
  const settle = (number: number, happened: boolean, as = key) =>
    app.call('POST', `/api/v1/owners/operations/${uuid(number)}/settle`, { key: as, body: { happened } })
  const states = async () =>
    (await list()).data.map(({ state, settled_by }) => [state, settled_by]).toReversed()

  describe('listing unknown operations', () => {
    test('unknown operations are listed newest first, by page, with all their data', async () => {
      for (const number of [1, 3, 2]) await report(number, 1_800_000_000_000 + number)
      expect(await list('?limit=2')).toEqual({
        data: [3, 2].map((number) => ({
          id: uuid(number),
          hub_id: 1,
          device: 'cabinet-1',
          action: 'dispense',
          state: 'unknown',
          order_id: null,
          started_at: new Date(1_800_000_000_000 + number).toISOString(),
          ended_at: null,
          settled_by: null,
        })),
        next_cursor: uuid(2),
        has_more: true,
      })
      expect(await list(`?limit=2&cursor=${uuid(2)}`)).toMatchObject({
        data: [{ id: uuid(1) }],
        next_cursor: null,
        has_more: false,
      })
    })

    test('operations that started at the same moment are each on one page', async () => {
      for (const number of [1, 2, 3]) await report(number, 5)
      const seen: string[] = []
      for (let cursor = ''; ;) {
        const page = await list(`?limit=1${cursor && `&cursor=${cursor}`}`)
        seen.push(...page.data.map(({ id }) => id))
        if (!page.has_more) break
        cursor = page.next_cursor!
      }
      expect(seen).toEqual([uuid(3), uuid(2), uuid(1)])
    })

    test('operations can be filtered by state, and show how they were resolved', async () => {
      for (const number of [1, 2, 3]) await report(number)
      await shop.report({ kind: 'operation.settled', operation_id: uuid(1), by: 'count', happened: true })
      await shop.report({ kind: 'operation.settled', operation_id: uuid(2), by: 'sensor', happened: false })
      expect(await ids('?state=unknown')).toEqual([uuid(3)])
      expect(await ids('?state=happened')).toEqual([uuid(1)])
      expect(await ids('?state=not_happened')).toEqual([uuid(2)])
      expect(await ids('?state=settled')).toEqual([])
      expect(await states()).toEqual([
        ['happened', 'count'],
        ['not_happened', 'sensor'],
        ['unknown', null],
      ])
    })

    test('unknown operations are visible to the owner of the hub, and to a key for this hub', async () => {
      await report(1)
      expect(await ids('?hub_id=1')).toEqual([uuid(1)])
      const other = await app.key([...scopes], { hubs: [2] })
      expect(await ids('', other)).toEqual([])
      expect(errorOf(await settle(1, true, other)).error.code).toBe('operation_not_found')
      expect(errorOf(await settle(9, true)).error.code).toBe('operation_not_found')
      expect(sent).toEqual([])
    })
  })

  describe('resolving unknown operations', () => {
    test('a resolution is executed by the hub, and the next read shows it at once', async () => {
      await report(1)
      const answer = await settle(1, true)
      expect(answer).toMatchObject({
        status: 200,
        json: {
          id: uuid(1),
          state: 'happened',
          settled_by: 'person',
          ended_at: expect.any(String) as string,
        },
      })
      expect((await list()).data).toEqual([answer.json])
      expect(sent).toMatchObject([
        { hubId: 1, body: { name: 'settle_operation', operation_id: uuid(1), happened: true } },
      ])
      // The later report in the ledger changes nothing.
      await shop.report({ kind: 'operation.settled', operation_id: uuid(1), by: 'person', happened: true })
      expect((await list()).data).toEqual([answer.json])
    })

    test('a repeated resolution is 200 without a command to the hub, and a contradicting one is 409', async () => {
      await report(1)
      const first = await settle(1, false)
      expect(await settle(1, false)).toMatchObject({ status: 200, json: first.json as object })
      expect(errorOf(await settle(1, true))).toMatchObject({ error: { code: 'operation_settled' } })
      expect(sent).toHaveLength(1)
    })

    test('an operation that the hub has resolved itself is not resolved again, and the ledger later reports how', async () => {
      for (const number of [1, 2, 3]) await report(number)
      hub = async ({ body }) => {
        if (body.name === 'settle_operation' && body.operation_id !== uuid(3))
          await shop.report({
            kind: 'operation.settled',
            operation_id: body.operation_id,
            by: 'count',
            happened: true,
          })
        return refused('too_late')
      }
      expect(await settle(1, true)).toMatchObject({ status: 200, json: { settled_by: 'count' } })
      expect(await settle(2, false)).toMatchObject({ status: 409 })
      // The ledger has not reported it yet.
      expect(await settle(3, true)).toMatchObject({ status: 409 })
      expect(await states()).toEqual([
        ['happened', 'count'],
        ['happened', 'count'],
        ['unknown', null],
      ])
    })

    test('an operation that the hub no longer knows is resolved at the cloud, audited, and its alarm ends', async () => {
      await report(1)
      const alarms = () =>
        shop.context.db.kysely.selectFrom('alarms').select(['kind', 'cleared_at']).execute()
      await shop.context.db.transact((tx) => Promise.resolve(alarmUnknownOperations(tx, shop.context, 1)))
      expect(await alarms()).toEqual([{ kind: 'unknown_operation', cleared_at: null }])
      hub = () => refused('not_found')
      expect(await settle(1, true)).toMatchObject({ status: 200, json: { state: 'happened' } })
      expect(await alarms()).toEqual([
        { kind: 'unknown_operation', cleared_at: expect.any(Number) as number },
      ])
      const [row] = await shop.context.db.kysely
        .selectFrom('audit_log')
        .selectAll()
        .where('action', '=', 'controls.settle_operation')
        .execute()
      expect(row).toMatchObject({
        actor: expect.stringMatching(/^key:/) as string,
        object: `operation-${uuid(1)}`,
        result: 'executed',
        detail: JSON.stringify({ happened: true, by: 'cloud' }),
      })
    })

    test.each<[CommandOutcome, number, object]>([
      [{ kind: 'offline' }, 502, { reason: 'offline' }],
      [
        { kind: 'timeout', commandId: command_id },
        504,
        { reason: 'timeout', command_id, outcome: 'unknown' },
      ],
      [refused('stale_session'), 502, { reason: 'offline', command_id, outcome: 'refused' }],
      [refused('fault'), 502, { reason: 'fault', command_id, outcome: 'refused' }],
    ])(
      'an operation is not resolved if the hub does not execute it: %j',
      async (outcome, status, details) => {
        await report(1)
        hub = () => outcome
        const answer = await settle(1, true)
        expect([answer.status, errorOf(answer).error]).toMatchObject([
          status,
          { code: 'hardware_error', details },
        ])
        expect(await states()).toEqual([['unknown', null]])
      },
    )
  })

  describe('a snapshot of the hub', () => {
    const snapshot = (unknown_operations?: string[]) =>
      shop.report({
        kind: 'snapshot',
        stock: [],
        states: [],
        alarms: [],
        ...(unknown_operations && { unknown_operations }),
      })

    test('a snapshot resolves operations that it does not list, and their result stays open until the hub reports it', async () => {
      for (const number of [1, 2]) await report(number)
      await snapshot([uuid(2)])
      expect(await states()).toEqual([
        ['settled', 'hub'],
        ['unknown', null],
      ])
      expect(await ids('?state=settled')).toEqual([uuid(1)])
      await shop.report({ kind: 'operation.settled', operation_id: uuid(1), by: 'sensor', happened: false })
      expect((await states())[0]).toEqual(['not_happened', 'sensor'])
      await snapshot([])
      expect(await states()).toEqual([
        ['not_happened', 'sensor'],
        ['settled', 'hub'],
      ])
    })

    test('a snapshot lists operations as unknown whatever the cloud recorded', async () => {
      await report(1)
      await settle(1, true)
      await snapshot([uuid(1)])
      expect(await states()).toEqual([['unknown', null]])
    })

    test('the snapshots of a new store do not resolve operations that the store has never known', async () => {
      for (const number of [1, 2, 3]) await report(number)
      await snapshot()
      expect(await states()).toEqual([1, 2, 3].map(() => ['unknown', null]))
      // The store finds two operations in its controllers, reports one, and lists the other.
      await report(2)
      await snapshot([uuid(2), uuid(3)])
      await snapshot([])
      expect(await states()).toEqual([
        ['unknown', null],
        ['settled', 'hub'],
        ['settled', 'hub'],
      ])
      await report(4)
      await snapshot([])
      expect((await states()).slice(2)).toEqual([
        ['settled', 'hub'],
        ['settled', 'hub'],
      ])
    })
  })
})
