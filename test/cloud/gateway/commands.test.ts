import { describe, expect, test } from 'vitest'
import type { CommandOutcome } from '../../../cloud/gateway/commands.ts'
import { crashAt, SETTLED, World, type CloudProcess } from './support/world.ts'

const body = { name: 'open_bin', bin: 2 } as const
const request = { hubId: 1, body, actor: 'key:test' }
const rows = (world: World) =>
  world.db.kysely.selectFrom('commands').selectAll().orderBy('created_at').orderBy('id').execute()

/** Longer than an outcome waits for its ledger. */
const RECORDED = 200

async function connected() {
  const { world, cloud, hub } = await World.connected()
  /** Sends a command, lets `ms` pass, and tells what came of it by then. */
  const send = async (ms: number, by: CloudProcess = cloud): Promise<CommandOutcome | undefined> => {
    let outcome: CommandOutcome | undefined
    // Who asked dies with its process.
    by.gateway.commands.send(request).then(
      (result) => (outcome = result),
      () => {},
    )
    await world.pass(ms)
    return outcome
  }
  return { world, cloud, hub, send }
}

describe('a request that is repeated under its key', () => {
  const named = { ...request, requestName: 'a request of key:test' }
  const ask = async (world: World, cloud: CloudProcess, asked: typeof named, ms = 50) => {
    let outcome: CommandOutcome | undefined
    cloud.gateway.commands.send(asked).then(
      (result) => (outcome = result),
      () => {},
    )
    await world.pass(ms)
    return outcome
  }

  test('is sent under the id of the first, whatever came of that; another one under its own', async () => {
    const { world, cloud, hub } = await connected()
    hub.onCommand = () => undefined
    expect(await ask(world, cloud, named, 15_000)).toMatchObject({ kind: 'timeout' })
    hub.onCommand = () => ({ data: { door: 'open', duration_ms: 1200 } })
    expect(await ask(world, cloud, named)).toMatchObject({ kind: 'executed' })
    await ask(world, cloud, { ...named, requestName: 'another' })
    const [first, again, other] = hub.commands.map(({ command_id }) => command_id)
    expect([again === first, other === first]).toEqual([true, false])
    expect(first).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  })

  test('is answered from the books where they know the end, and is sent no more', async () => {
    const { world, cloud, hub } = await connected()
    hub.onCommand = () => ({ outcome: 'failed', reason: 'fault', data: null })
    const failed = { kind: 'failed', reason: 'fault' }
    expect(await ask(world, cloud, named, RECORDED)).toMatchObject(failed)
    expect(await ask(world, cloud, named, RECORDED)).toMatchObject(failed)
    expect(hub.commands).toHaveLength(1)
  })

  test('is a new try where the hub refused, and moved nothing', async () => {
    const { world, cloud, hub } = await connected()
    hub.onCommand = () => ({ outcome: 'refused', reason: 'interlock', data: null })
    await ask(world, cloud, named, RECORDED)
    hub.onCommand = () => ({ data: { door: 'open', duration_ms: 1200 } })
    expect(await ask(world, cloud, named, RECORDED)).toMatchObject({ kind: 'executed' })
    expect(new Set(hub.commands.map(({ command_id }) => command_id)).size).toBe(2)
  })

  test('keeps its id where the first may have moved something, and the broker was away when it was repeated', async () => {
    const { world, cloud, hub } = await connected()
    hub.onCommand = () => undefined
    expect(await ask(world, cloud, named, 15_000)).toMatchObject({ kind: 'timeout' })
    world.network.killBroker()
    await world.pass(50)
    expect(await ask(world, cloud, named, 15_000)).toEqual({ kind: 'offline' })
    expect(await rows(world)).toMatchObject([{ state: 'unknown' }])
    world.network.startBroker()
    await world.pass(30_000)
    hub.connect()
    await world.pass(SETTLED)
    hub.onCommand = () => ({ data: { door: 'open', duration_ms: 1200 } })
    expect(await ask(world, cloud, named)).toMatchObject({ kind: 'executed' })
    expect(hub.commands).toHaveLength(2)
    expect(new Set(hub.commands.map(({ command_id }) => command_id)).size).toBe(1)
  })

  test.each(['stale_session', 'expired'] as const)(
    'keeps its id where the first may have moved something, and the fence refused the repetition: %s',
    async (reason) => {
      const { world, cloud, hub } = await connected()
      hub.onCommand = () => undefined
      expect(await ask(world, cloud, named, 15_000)).toMatchObject({ kind: 'timeout' })
      hub.onCommand = () => ({ outcome: 'refused', reason, data: null })
      expect(await ask(world, cloud, named, RECORDED)).toMatchObject({ kind: 'refused', reason })
      expect(await rows(world)).toMatchObject([{ state: 'unknown', reason }])
      hub.onCommand = () => ({ data: { door: 'open', duration_ms: 1200 } })
      expect(await ask(world, cloud, named, RECORDED)).toMatchObject({ kind: 'executed' })
      expect(hub.commands).toHaveLength(3)
      expect(new Set(hub.commands.map(({ command_id }) => command_id)).size).toBe(1)
      expect(await rows(world)).toMatchObject([{ state: 'executed' }])
    },
  )

  test('keeps its id where the process died in between, and where the database forgot it', async () => {
    const { world, cloud, hub } = await connected()
    hub.onCommand = () => undefined
    await ask(world, cloud, named)
    await world.db.kysely.deleteFrom('commands').execute()
    await ask(world, cloud, named)
    expect(new Set(hub.commands.map(({ command_id }) => command_id)).size).toBe(1)
  })
})

describe('commands', () => {
  test('a command goes to the hub’s session with a time to live on its clock, and its result comes back', async () => {
    const { world, hub, send } = await connected()
    const sentAt = hub.monotonic
    hub.onCommand = () => ({ data: { door: 'open', duration_ms: 1200 } })
    const outcome = await send(50)
    const [command] = hub.commands
    expect(command).toMatchObject({ session: hub.session, body })
    expect(command!.expires_monotonic).toBeGreaterThan(sentAt + 4_900)
    // Never later than 5 s after it was sent, however long the clock's last reading took to arrive (SPEC §6).
    expect(command!.expires_monotonic).toBeLessThanOrEqual(sentAt + 5_000)
    expect(outcome).toEqual({
      kind: 'executed',
      commandId: command!.command_id,
      data: { door: 'open', duration_ms: 1200 },
      durationMs: 1200,
    })
    await world.pass(RECORDED)
    expect(await rows(world)).toMatchObject([
      { id: command!.command_id, session: hub.session, state: 'executed', actor: 'key:test' },
    ])
  })

  test.each([
    { outcome: 'refused', reason: 'interlock', kind: 'refused' },
    { outcome: 'refused', reason: 'stale_session', kind: 'refused' },
    { outcome: 'failed', reason: 'nack', kind: 'failed' },
  ] as const)('$outcome with $reason is told as it is', async ({ outcome, reason, kind }) => {
    const { world, hub, send } = await connected()
    hub.onCommand = () => ({ outcome, reason, data: null })
    expect(await send(50)).toMatchObject({ kind, reason, data: null })
    await world.pass(RECORDED)
    expect(await rows(world)).toMatchObject([{ state: outcome, reason }])
  })

  test('a refusal by the hub’s fence, of which no ledger speaks, survives an error of the database', async () => {
    const { world, cloud, hub, send } = await connected()
    hub.onCommand = () => ({ outcome: 'refused', reason: 'stale_session', data: null })
    await send(50)
    const { db } = cloud.context
    cloud.context.db = { ...db, transact: () => Promise.reject(new Error('the database is away')) }
    await world.pass(RECORDED)
    expect(cloud.faults).toMatchObject([{ message: 'the database is away' }])
    cloud.context.db = db
    await world.pass(1100)
    expect(await rows(world)).toMatchObject([{ state: 'refused', reason: 'stale_session' }])
  })

  test('I2: for a hub that is offline nothing is sent, nothing recorded, and nothing comes later', async () => {
    const world = await World.create()
    const cloud = world.startCloud('cloud')
    await world.pass(100)
    expect(await cloud.gateway.commands.send(request)).toEqual({ kind: 'offline' })
    const hub = world.hub()
    hub.connect()
    await world.pass(SETTLED)
    world.network.severe('hub-1', true)
    await world.pass(100)
    expect(await cloud.gateway.commands.send(request)).toEqual({ kind: 'offline' })
    world.network.severe('hub-1', false)
    hub.connect()
    await world.pass(60_000)
    expect(hub.commands).toEqual([])
    expect(await rows(world)).toEqual([])
  })

  test('I2: without a broker a command fails at once', async () => {
    const { world, hub, send } = await connected()
    world.network.killBroker()
    await world.pass(50)
    expect(await send(10)).toEqual({ kind: 'offline' })
    expect((await rows(world)).map((row) => row.state)).not.toContain('sent')
    world.network.startBroker()
    hub.connect()
    await world.pass(30_000)
    expect(hub.commands).toEqual([])
  })

  test('a silent hub: unknown after the deadline; a late result still corrects the record', async () => {
    const { world, hub, send } = await connected()
    expect(await send(9_000)).toBeUndefined()
    await world.pass(2_000)
    expect(await rows(world)).toMatchObject([{ state: 'unknown', reason: 'timeout' }])
    hub.result(hub.commands[0]!, { data: { door: 'open' } })
    await world.pass(RECORDED)
    expect(await rows(world)).toMatchObject([{ state: 'executed', data: '{"door":"open"}' }])
    hub.result(hub.commands[0]!, { outcome: 'failed', reason: 'fault' })
    await world.pass(RECORDED)
    expect(await rows(world)).toMatchObject([{ state: 'executed' }])
  })

  test('a result that is lost comes with the ledger', async () => {
    const { world, hub, cloud } = await connected()
    let outcome: CommandOutcome | undefined
    void cloud.gateway.commands.send(request).then((result) => (outcome = result))
    await world.pass(50)
    const [command] = hub.commands
    const entry = { kind: 'command.finished', at: 1, command_id: command!.command_id }
    hub.append({ ...entry, outcome: 'executed', reason: null, data: { door: 'open' } })
    hub.sendEntries()
    await world.pass(50)
    expect(outcome).toMatchObject({ kind: 'executed', data: { door: 'open' } })
    expect(await rows(world)).toMatchObject([{ state: 'executed' }])
  })

  test('a hub finishes its own commands only', async () => {
    const world = await World.create([1, 2])
    const cloud = world.startCloud('cloud')
    const [one, two] = [world.hub(1), world.hub(2)]
    await world.pass(100)
    one.connect()
    two.connect()
    await world.pass(SETTLED)
    let outcome: CommandOutcome | undefined
    void cloud.gateway.commands.send(request).then((result) => (outcome = result))
    await world.pass(50)
    two.result(one.commands[0]!)
    await world.pass(RECORDED)
    expect(outcome).toBeUndefined()
    expect(await rows(world)).toMatchObject([{ state: 'sent' }])
  })

  test('a repeated result changes nothing', async () => {
    const { world, hub, send } = await connected()
    hub.onCommand = (command) => {
      hub.result(command)
      return {}
    }
    expect(await send(50)).toMatchObject({ kind: 'executed' })
    expect(await rows(world)).toHaveLength(1)
  })

  test('the row is committed before the command leaves', async () => {
    const world = await World.create()
    const cloud: CloudProcess = world.startCloud('cloud', {
      checkpoint: (point) => armed && crashAt('db.before-commit', () => cloud.life)(point),
    })
    let armed = false
    const hub = world.hub()
    await world.pass(100)
    hub.connect()
    await world.pass(SETTLED)
    armed = true
    await expect(cloud.gateway.commands.send(request)).rejects.toThrow('crashed')
    await world.pass(1_000)
    expect(hub.commands).toEqual([])
  })

  test('whoever waits is told before the store has it; the row follows, with the ledger or without it', async () => {
    const { world, hub, send } = await connected()
    hub.onCommand = () => ({})
    expect(await send(20)).toMatchObject({ kind: 'executed' })
    expect(await rows(world)).toMatchObject([{ state: 'sent' }])
    await world.pass(RECORDED)
    expect(await rows(world)).toMatchObject([{ state: 'executed' }])
  })

  describe('the audit log has what became of a command', () => {
    const audit = async ({ db }: World) =>
      db.kysely.selectFrom('audit_log').select(['actor', 'action', 'hub_id', 'object', 'result']).execute()
    const results = async (world: World) => (await audit(world)).map(({ result }) => result)
    const finished = (commandId: string) =>
      ({
        kind: 'command.finished',
        at: 1,
        command_id: commandId,
        outcome: 'executed',
        reason: null,
        data: {},
      }) as const

    test('once, however often its result comes', async () => {
      const { world, hub, send } = await connected()
      hub.onCommand = (command) => {
        hub.result(command)
        return {}
      }
      await send(RECORDED)
      hub.append(finished(hub.commands[0]!.command_id))
      hub.sendEntries()
      await world.pass(RECORDED)
      expect(await audit(world)).toEqual([
        { actor: 'key:test', action: 'controls.open_bin', hub_id: 1, object: 'bin-2', result: 'executed' },
      ])
    })

    test('where the ledger is first to tell', async () => {
      const { world, hub, send } = await connected()
      await send(50)
      hub.append(finished(hub.commands[0]!.command_id))
      hub.sendEntries()
      await world.pass(50)
      expect(await results(world)).toEqual(['executed'])
    })

    test('where nobody answers in time, and again when the answer comes after all', async () => {
      const { world, hub, send } = await connected()
      await send(11_000)
      expect(await results(world)).toEqual(['unknown'])
      hub.result(hub.commands[0]!)
      await world.pass(RECORDED)
      expect(await results(world)).toEqual(['unknown', 'executed'])
    })

    test('where the hub is not there', async () => {
      const { world, hub, send } = await connected()
      world.network.severe('hub-1', true)
      await world.pass(100)
      expect(await send(10)).toEqual({ kind: 'offline' })
      expect(hub.commands).toEqual([])
      expect(await results(world)).toEqual(['offline'])
    })

    test('although the process that told it died before it was recorded: by the ledger, with the row', async () => {
      const { world, cloud, hub, send } = await connected()
      hub.onCommand = () => ({})
      expect(await send(20)).toMatchObject({ kind: 'executed' })
      world.kill(cloud)
      expect(await rows(world)).toMatchObject([{ state: 'sent' }])
      expect(await results(world)).toEqual([])
      world.startCloud('cloud')
      hub.append(finished(hub.commands[0]!.command_id))
      await world.pass(100)
      hub.connect()
      await world.pass(SETTLED)
      hub.sendEntries()
      await world.pass(SETTLED)
      expect(await rows(world)).toMatchObject([{ state: 'executed' }])
      expect(await results(world)).toEqual(['executed'])
    })
  })

  test('rows that a dead process left open are closed as unknown', async () => {
    const { world, cloud, send } = await connected()
    await send(50)
    world.kill(cloud)
    world.startCloud('cloud')
    await world.pass(100_000)
    expect(await rows(world)).toMatchObject([{ state: 'sent' }])
    await world.pass(200_000)
    expect(await rows(world)).toMatchObject([{ state: 'unknown', reason: 'interrupted' }])
  })
})
