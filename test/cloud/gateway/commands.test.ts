import { describe, expect, test } from 'vitest'
import type { CommandOutcome } from '../../../cloud/gateway/commands.ts'
import { crashAt, SETTLED, World, type CloudProcess } from '../../world/gateway.ts'

const body = { name: 'open_bin', bin: 2 } as const
const request = { hubId: 1, body, actor: 'key:test' }
const rows = (world: World) =>
  world.db.kysely.selectFrom('commands').selectAll().orderBy('created_at').orderBy('id').execute()

/** Longer than an outcome waits for its ledger entry. */
const RECORDED = 200

async function connected() {
  const { world, cloud, hub } = await World.connected()
  /** Sends a command, lets `ms` pass, and returns its outcome so far. */
  const send = async (ms: number, by: CloudProcess = cloud): Promise<CommandOutcome | undefined> => {
    let outcome: CommandOutcome | undefined
    // The caller ends with its process.
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

  test('a repeated request is sent under the id of the first one for any outcome, and another request under its own id', async () => {
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

  test('a repeated request is answered from the books if they know its outcome, and is not sent again', async () => {
    const { world, cloud, hub } = await connected()
    hub.onCommand = () => ({ outcome: 'failed', reason: 'fault', data: null })
    const failed = { kind: 'failed', reason: 'fault' }
    expect(await ask(world, cloud, named, RECORDED)).toMatchObject(failed)
    expect(await ask(world, cloud, named, RECORDED)).toMatchObject(failed)
    expect(hub.commands).toHaveLength(1)
  })

  test('a repeated request that the hub refused without a motion is a new attempt', async () => {
    const { world, cloud, hub } = await connected()
    hub.onCommand = () => ({ outcome: 'refused', reason: 'interlock', data: null })
    await ask(world, cloud, named, RECORDED)
    hub.onCommand = () => ({ data: { door: 'open', duration_ms: 1200 } })
    expect(await ask(world, cloud, named, RECORDED)).toMatchObject({ kind: 'executed' })
    expect(new Set(hub.commands.map(({ command_id }) => command_id)).size).toBe(2)
  })

  test('a repeated request keeps its id if the first may have moved something and the broker was down at the repetition', async () => {
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
    'a repeated request keeps its id if the first may have moved something and the fence refused the repetition: %s',
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

  test('a repeated request keeps its id if its process died, or if the database lost it', async () => {
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
    // At most 5 s after it was sent, for any delay of the clock's last reading (SPEC §6).
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
  ] as const)(
    'an outcome $outcome with the reason $reason is reported unchanged',
    async ({ outcome, reason, kind }) => {
      const { world, hub, send } = await connected()
      hub.onCommand = () => ({ outcome, reason, data: null })
      expect(await send(50)).toMatchObject({ kind, reason, data: null })
      await world.pass(RECORDED)
      expect(await rows(world)).toMatchObject([{ state: outcome, reason }])
    },
  )

  test('a refusal by the hub’s fence, which no ledger reports, survives an error of the database', async () => {
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

  test('I2: a command to an offline hub is not sent, not recorded, and not sent later', async () => {
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

  test('a command to a silent hub is unknown after its deadline, and a late result corrects the record', async () => {
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

  test('the ledger reports a result that was lost', async () => {
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

  test('a repeated result changes nothing', async () => {
    const { world, hub, send } = await connected()
    hub.onCommand = (command) => {
      hub.result(command)
      return {}
    }
    expect(await send(50)).toMatchObject({ kind: 'executed' })
    expect(await rows(world)).toHaveLength(1)
  })

  test('the row of a command is committed before the command is sent', async () => {
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

  test('a waiting caller gets the result before the store has it; the row follows, with or without the ledger', async () => {
    const { world, hub, send } = await connected()
    hub.onCommand = () => ({})
    expect(await send(20)).toMatchObject({ kind: 'executed' })
    expect(await rows(world)).toMatchObject([{ state: 'sent' }])
    await world.pass(RECORDED)
    expect(await rows(world)).toMatchObject([{ state: 'executed' }])
  })

  describe('audit records of commands', () => {
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

    test('the outcome of a command is audited once, for any number of results', async () => {
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

    test('the outcome of a command is audited if the ledger reports it first', async () => {
      const { world, hub, send } = await connected()
      await send(50)
      hub.append(finished(hub.commands[0]!.command_id))
      hub.sendEntries()
      await world.pass(50)
      expect(await results(world)).toEqual(['executed'])
    })

    test('a command without an answer is audited at its time-out, and again at its late answer', async () => {
      const { world, hub, send } = await connected()
      await send(11_000)
      expect(await results(world)).toEqual(['unknown'])
      hub.result(hub.commands[0]!)
      await world.pass(RECORDED)
      expect(await results(world)).toEqual(['unknown', 'executed'])
    })

    test('a command to an offline hub is audited', async () => {
      const { world, hub, send } = await connected()
      world.network.severe('hub-1', true)
      await world.pass(100)
      expect(await send(10)).toEqual({ kind: 'offline' })
      expect(hub.commands).toEqual([])
      expect(await results(world)).toEqual(['offline'])
    })

    test('the ledger completes the audit of a command if the process died before the record', async () => {
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

  test('open rows of a dead process are closed as unknown', async () => {
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
