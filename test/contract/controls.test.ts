import { beforeEach, describe, expect, test } from 'vitest'
import { errorOf } from '../world/cloud.ts'
import { codeOf, dataOf, short, UUID } from './control-answers.ts'
import { Plant } from '../world/plant.ts'

/**
 * O §4.6 and §4.1 down to the simulated motion, through the real gateway, streams, hub core, serial links and
 * firmware. Each answer is compared with the simulator's own log.
 */

const MS = expect.any(Number) as number

let plant: Plant
beforeEach(async () => {
  plant = await Plant.open()
})

const sessions = (): Record<string, number> =>
  Object.fromEntries(plant.room.hub.state().controllers.map((each) => [each.controller, each.sessions]))
interface Actuation {
  name: string
  query: string
  /** Commands that must succeed before. */
  before?: string[]
  data: object
  acts: string[]
  action: string
  object: string
}

const actuations: Actuation[] = [
  motion('open_bin', { door: 'open' }, ['open_door bin-2']),
  motion('close_bin', { door: 'closed' }, ['close_door bin-2'], ['open_bin']),
  motion('raise_bin', { lift: 'up' }, ['raise_lift bin-2']),
  motion('lower_bin', { lift: 'down' }, ['lower_lift bin-2'], ['raise_bin']),
  {
    name: 'cycle_bin',
    query: 'bin=2&num_cycles=3',
    data: { cycles_completed: 3 },
    acts: Array.from({ length: 3 }, () => ['open_door bin-2', 'close_door bin-2']).flat(),
    action: 'controls.cycle_bin',
    object: 'bin-2',
  },
  {
    name: 'test_dispense',
    query: 'cabinet=1&shelf=1&row=1&bin=2',
    data: { command_id: UUID, duration_ms: MS, drops: 1, bin: 2 },
    acts: ['dispense cabinet-1'],
    action: 'controls.test_dispense',
    object: 'row-1-1-1',
  },
  ...(['block_row', 'unblock_row'] as const).map((name) => ({
    name,
    query: 'cabinet=1&shelf=1&row=1',
    before: name === 'unblock_row' ? ['block_row?cabinet=1&shelf=1&row=1'] : [],
    data: { command_id: UUID, duration_ms: MS, blocked: name === 'block_row' },
    acts: [],
    action: `controls.${name}`,
    object: 'row-1-1-1',
  })),
  fridge('open_fridge_left', { door: 'unlocked' }, ['unlock fridge_1_left']),
  fridge('open_fridge_middle', { door: 'unlocked' }, ['unlock fridge_1_middle']),
  fridge('open_fridge_right', { door: 'unlocked' }, ['unlock fridge_1_right']),
  {
    ...fridge('close_fridge', { door: 'locked' }, ['lock fridge_1_left', 'lock fridge_1_right']),
    before: ['open_fridge_left?fridge=1', 'open_fridge_right?fridge=1'],
  },
]

function motion(name: string, goal: object, acts: string[], before: string[] = []): Actuation {
  return {
    name,
    query: 'bin=2',
    before: before.map((each) => `${each}?bin=2`),
    data: { command_id: UUID, duration_ms: MS, ...goal },
    acts,
    action: `controls.${name}`,
    object: 'bin-2',
  }
}

function fridge(name: string, goal: object, acts: string[]): Actuation {
  return {
    name,
    query: 'fridge=1',
    data: { command_id: UUID, duration_ms: MS, ...goal },
    acts,
    action: `controls.${name}`,
    object: 'fridge-1',
  }
}

/** Calls the commands in `before` of a case. */
async function prepare({ before = [] }: Actuation): Promise<void> {
  for (const each of before) {
    const [name = '', query] = each.split('?')
    expect((await plant.control(name, query)).status).toBe(200)
  }
}

describe('an actuation', () => {
  test.each(actuations)('the actuation $name moves what its answer reports', async (actuation) => {
    await prepare(actuation)
    const { value, acts } = await plant.observe(() => plant.control(actuation.name, actuation.query))
    expect(dataOf(value)).toEqual(actuation.data)
    expect(codeOf(value)).toBe(200)
    expect(acts.map(short)).toEqual(actuation.acts)
    // The world's log reports the completed motion too.
    for (const { detail, operation_id } of acts)
      if (operation_id !== undefined) expect(detail).toMatchObject({ completed: true })
    expect(await plant.lastAudit()).toMatchObject({
      action: actuation.action,
      hub_id: 1,
      object: actuation.object,
      result: 'executed',
      actor: expect.stringMatching(/^key:/) as string,
      detail: { command_id: UUID },
    })
  })

  test.each([
    { name: 'reconnect_bin', query: 'bin=1', controller: 'bins', object: 'bin-1' },
    { name: 'reconnect_fridge', query: 'fridge=1', controller: 'cold', object: 'fridge-1' },
  ])(
    'the command $name closes the serial line and completes a handshake on a new one',
    async ({ name, query, controller, object }) => {
      const before = sessions()
      const answer = await plant.control(name, query)
      expect(dataOf(answer)).toEqual({ command_id: UUID, connected: true, duration_ms: MS })
      expect(sessions()).toEqual({ ...before, [controller]: before[controller]! + 1 })
      expect(await plant.lastAudit()).toMatchObject({
        action: `controls.${name}`,
        object,
        result: 'executed',
      })
      // A reconnect is useful only if the line carries commands again.
      expect((await plant.control('open_bin', 'bin=1')).status).toBe(200)
    },
  )

  test('request_door_open unlocks the main door, which locks itself again', async () => {
    const { value, acts } = await plant.observe(() => plant.call('POST', 'request_door_open/?hub_id=1'))
    expect([value.status, value.json]).toEqual([
      200,
      { success: true, data: null, message: expect.any(String) as string },
    ])
    expect(acts.map(short)).toEqual(['unlock main'])
    await plant.run(700)
    expect((await plant.call('GET', 'get_door_status/?hub_id=1')).json).toMatchObject({
      door_status: [{ door: 'main', status: 'unlocked' }, {}, {}, {}],
      order_status: { has_pending_orders: false },
    })
    const later = await plant.observe(() => plant.run(12_000))
    expect(later.acts.map(short)).toEqual(['lock main'])
    expect((await plant.call('GET', 'get_door_status/?hub_id=1')).json).toMatchObject({
      door_status: [{ door: 'main', status: 'locked' }, {}, {}, {}],
    })
    expect(await plant.lastAudit()).toMatchObject({
      action: 'hubs.request_door_open',
      object: 'main-door',
      result: 'executed',
    })
  })

  test('an opened fridge locks itself again', async () => {
    await plant.control('open_fridge_middle', 'fridge=1')
    const { acts } = await plant.observe(() => plant.run(35_000))
    expect(acts.map(short)).toEqual(['lock fridge_1_middle'])
  })

  test('an actuation with an idempotency key moves once, for any number of requests', async () => {
    const again = () =>
      plant.call('POST', 'controls/cycle_bin?hub=1&bin=1&num_cycles=2', {
        headers: { 'Idempotency-Key': 'k1' },
      })
    const { value, acts } = await plant.observe(async () => [await again(), await again()])
    expect(acts.map(short)).toEqual([
      'open_door bin-1',
      'close_door bin-1',
      'open_door bin-1',
      'close_door bin-1',
    ])
    expect(value[1]!.json).toEqual(value[0]!.json)
    expect(value[1]!.headers.get('Idempotent-Replayed')).toBe('true')
  })
})

const everyActuation = [
  ...actuations.map(({ name, query }) => `controls/${name}?hub=1&${query}`),
  'controls/reconnect_bin?hub=1&bin=2',
  'controls/reconnect_fridge?hub=1&fridge=1',
  'request_door_open/?hub_id=1',
]

describe('an offline hub', () => {
  test('every command to an offline hub fails at once, and never moves anything later', async () => {
    await plant.cutHub(true)
    const before = sessions()
    const { acts } = await plant.observe(async () => {
      for (const path of everyActuation) {
        const began = plant.time
        const answer = await plant.call('POST', path)
        expect([path, answer.status, plant.time - began < 1000]).toEqual([path, 502, true])
        const { code, details } = errorOf(answer).error
        expect([path, code, details]).toMatchObject([path, 'hardware_error', { reason: 'offline' }])
        expect(await plant.lastAudit()).toMatchObject({ result: 'offline' })
      }
      await plant.cutHub(false)
    })
    expect(acts).toEqual([])
    expect(sessions()).toEqual(before)
    const { total } = await plant.db.kysely
      .selectFrom('audit_log')
      .select((row) => row.fn.countAll<number>().as('total'))
      .where('result', '=', 'offline')
      .executeTakeFirstOrThrow()
    expect(total).toBe(everyActuation.length)
  })
})

describe('a silent port', () => {
  const cases = [
    { name: 'open_bin', query: 'bin=1', deadlineMs: 10_000 },
    { name: 'close_bin', query: 'bin=1', deadlineMs: 10_000 },
    { name: 'raise_bin', query: 'bin=1', deadlineMs: 20_000 },
    { name: 'lower_bin', query: 'bin=1', deadlineMs: 20_000 },
    { name: 'cycle_bin', query: 'bin=1&num_cycles=5', deadlineMs: 30_000 },
  ]
  test.each(cases)(
    'the command $name to a silent port is 504 after its deadline with unknown outcome, and the late result is recorded',
    async (row) => {
      plant.fault('silent_port', 'bins')
      const began = plant.time
      const { value, acts } = await plant.observe(() => plant.control(row.name, row.query))
      expect(plant.time - began).toBeGreaterThanOrEqual(row.deadlineMs)
      expect(plant.time - began).toBeLessThan(row.deadlineMs + 500)
      expect(value.status).toBe(504)
      const { error } = errorOf(value)
      expect(error).toMatchObject({
        code: 'hardware_error',
        details: { reason: 'timeout', outcome: 'unknown', command_id: UUID },
      })
      expect(acts).toEqual([])
      expect(await commandState(error.details)).toMatchObject({ state: 'unknown', reason: 'timeout' })
      plant.room.hub.faults.clearAll()
      // The controller proves that it never received the command.
      const later = await plant.observe(() => plant.run(30_000))
      expect(later.acts).toEqual([])
      expect(await commandState(error.details)).toMatchObject({ state: 'refused', reason: 'offline' })
    },
  )

  test('an actuation with a lost answer is 504, and is executed once its result is known', async () => {
    plant.fault('lost_replies', 'bins')
    const { value, acts } = await plant.observe(() => plant.control('open_bin', 'bin=1'))
    expect(value.status).toBe(504)
    expect(acts.map(short)).toEqual(['open_door bin-1'])
    plant.room.hub.faults.clearAll()
    await plant.run(30_000)
    expect(await commandState(errorOf(value).error.details)).toMatchObject({ state: 'executed' })
    expect(await plant.lastAudit()).toMatchObject({ action: 'controls.open_bin', result: 'executed' })
  })

  test.each([
    { name: 'reconnect_bin', query: 'bin=1', controller: 'bins' },
    { name: 'reconnect_fridge', query: 'fridge=1', controller: 'cold' },
  ])(
    'the command $name to a silent port is 504, because no handshake comes',
    async ({ name, query, controller }) => {
      plant.fault('silent_port', controller)
      const before = sessions()
      const answer = await plant.control(name, query)
      expect(answer.status).toBe(504)
      expect(errorOf(answer).error.details).toMatchObject({ reason: 'timeout', outcome: 'failed' })
      expect(sessions()).toEqual(before)
    },
  )

  test('a silent port does not affect fridges and the main door on other lines', async () => {
    for (const controller of ['bins', 'vending', 'cold']) plant.fault('silent_port', controller)
    await plant.run(10_000)
    expect((await plant.control('open_fridge_left', 'fridge=1')).status).toBe(200)
    expect((await plant.call('POST', 'request_door_open/?hub_id=1')).status).toBe(200)
  })
})

describe('an unknown device', () => {
  const commands = [
    ...actuations
      .filter(({ query }) => /\b(bin|fridge)=/.test(query))
      .map(({ name, query }) => [name, query.replace(/(bin|fridge)=\d/, '$1=3')] as const),
    ...['reconnect_bin', 'enable_bin', 'disable_bin', 'toggle_bin'].map((name) => [name, 'bin=3'] as const),
    ...['reconnect_fridge', 'enable_fridge', 'disable_fridge'].map((name) => [name, 'fridge=3'] as const),
  ]
  test('every command for a device that the hub does not have is 404', async () => {
    const { acts } = await plant.observe(async () => {
      for (const [name, query] of commands) {
        const answer = await plant.control(name, query)
        const code = name.includes('fridge') ? 'fridge_not_found' : 'bin_not_found'
        expect([name, answer.status, errorOf(answer).error.code]).toEqual([name, 404, code])
      }
    })
    expect(acts).toEqual([])
  })

  test('a bin cycles 1 to 10 times: another number is 422', async () => {
    const { acts } = await plant.observe(async () => {
      for (const query of ['', 'num_cycles=0', 'num_cycles=11', 'num_cycles=1.5'])
        expect([query, (await plant.control('cycle_bin', `bin=1&${query}`)).status]).toEqual([query, 422])
    })
    expect(acts).toEqual([])
  })
})

async function commandState(details: unknown) {
  const { command_id } = details as { command_id: string }
  return plant.db.kysely
    .selectFrom('commands')
    .select(['state', 'reason'])
    .where('id', '=', command_id)
    .executeTakeFirstOrThrow()
}
