import { beforeEach, describe, expect, test } from 'vitest'
import { createManagement, type Management } from '../../../edge/management/management.ts'
import type { ServiceManager } from '../../../edge/management/service-manager.ts'
import { StoreError } from '../../../edge/management/stored-config.ts'
import type { ServiceAction } from '../../../protocol/management/command.ts'
import { silentLog } from '../../../protocol/model/log.ts'
import { virtualRuntime } from '../../world/clock.ts'

const done = (output: string): ServiceAction => ({ exit_code: 0, duration_ms: 1, output })
const failed: ServiceAction = { exit_code: 1, duration_ms: 1, output: 'no' }
const waits = () => true

/** Events at a hub's service, in order. */
let deeds: string[]
let disabled: number[]
let marked: boolean
let answers: { stop: ServiceAction; start: ServiceAction }
/** The stop of the service waits for this promise. */
let gate: Promise<void> | undefined
let storeFails: Error | undefined
let markFails: Error | undefined
let runtime: ReturnType<typeof virtualRuntime>
let management: Management

beforeEach(() => {
  deeds = []
  disabled = [4]
  marked = false
  answers = { stop: done('stopped'), start: done('started') }
  gate = undefined
  storeFails = undefined
  markFails = undefined
  runtime = virtualRuntime(1)
  management = build()
})

function build(): Management {
  const manager: ServiceManager = {
    async stop() {
      deeds.push('stop')
      await gate
      return answers.stop
    },
    start() {
      deeds.push('start')
      return Promise.resolve(answers.start)
    },
    state: () => Promise.resolve({ state: 'running', pid: 7 }),
  }
  return createManagement({
    hubId: 1,
    bins: [1, 2, 3, 4],
    config: {
      disabledBins: () => disabled,
      setEnabled(bin, enabled) {
        deeds.push(`${enabled ? 'enable' : 'disable'} ${bin}`)
        if (storeFails) throw storeFails
        disabled = [...disabled.filter((each) => each !== bin), ...(enabled ? [] : [bin])]
        return disabled
      },
    },
    manager,
    mark: {
      set() {
        deeds.push('mark')
        if (markFails) throw markFails
        marked = true
      },
      clear: () => void (marked = false),
      isSet: () => marked,
    },
    runtime,
    log: silentLog,
    stopTimeoutMs: 100,
    startTimeoutMs: 100,
  })
}

/** Lets time pass, and the work that it causes run. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 500) {
    runtime.clock.advance(500)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

describe('management commands', () => {
  test('a command that changes a bin stops the service, stores the change, and restarts the service', async () => {
    const answer = await management.execute({ name: 'disable-bin', bin: 2 }, waits)
    expect(deeds).toEqual(['mark', 'stop', 'disable 2', 'start'])
    expect(marked).toBe(false)
    expect(answer).toEqual({
      ok: true,
      hub_id: 1,
      disabled_bins: [4, 2],
      service: { state: 'running', pid: 7 },
      stop_result: done('stopped'),
      start_result: done('started'),
    })
  })

  test('the command restart changes no configuration, and the command status changes nothing', async () => {
    expect(await management.execute({ name: 'restart' }, waits)).toMatchObject({
      ok: true,
      disabled_bins: [4],
    })
    expect(deeds).toEqual(['mark', 'stop', 'start'])
    deeds = []
    expect(await management.execute({ name: 'status' }, waits)).toEqual({
      ok: true,
      hub_id: 1,
      disabled_bins: [4],
      service: { state: 'running', pid: 7 },
      stop_result: null,
      start_result: null,
    })
    expect(deeds).toEqual([])
  })

  test.each([0, 5, 99])('a command on bin %i, which the hub does not have, changes nothing', async (bin) => {
    expect(await management.execute({ name: 'enable-bin', bin }, waits)).toMatchObject({
      ok: false,
      error_type: 'validation_error',
      stored: false,
    })
    expect(deeds).toEqual([])
  })

  test('a command stores nothing if its service does not stop, and the service is started', async () => {
    answers.stop = failed
    const answer = await management.execute({ name: 'disable-bin', bin: 2 }, waits)
    expect(answer).toMatchObject({
      ok: false,
      error_type: 'command_failed',
      stored: false,
      stop_result: failed,
      start_result: done('started'),
    })
    expect(deeds).toEqual(['mark', 'stop', 'start'])
  })

  test.each([new StoreError('the disk is full'), new TypeError('a defect')])(
    'a change that cannot be stored (%s) fails, and the service runs again',
    async (error) => {
      storeFails = error
      const answer = await management.execute({ name: 'disable-bin', bin: 2 }, waits)
      expect(answer).toMatchObject({ ok: false, error_type: 'command_failed', stored: false })
      expect(deeds.at(-1)).toBe('start')
      expect(marked).toBe(false)
    },
  )
})

describe('a service that does not start', () => {
  test('a service that does not start is reported with the stored change, and is started again until it runs', async () => {
    answers.start = failed
    const answer = await management.execute({ name: 'disable-bin', bin: 2 }, waits)
    expect(answer).toMatchObject({
      ok: false,
      error_type: 'command_failed',
      stored: true,
      start_result: failed,
    })
    expect(marked).toBe(true)
    deeds = []
    await pass(5000)
    expect(deeds.length).toBeGreaterThanOrEqual(2)
    expect(new Set(deeds)).toEqual(new Set(['start']))
    answers.start = done('started')
    await pass(60_000)
    expect(marked).toBe(false)
    deeds = []
    await pass(600_000)
    expect(deeds).toEqual([])
  })

  test('a card that takes no new file prevents no restart, and the service is started again until it runs', async () => {
    markFails = new Error('EROFS: read-only file system')
    expect(await management.execute({ name: 'restart' }, waits)).toMatchObject({ ok: true })
    expect(deeds).toEqual(['mark', 'stop', 'start'])
    answers.start = failed
    expect(await management.execute({ name: 'restart' }, waits)).toMatchObject({ ok: false })
    answers.start = done('started')
    deeds = []
    await pass(60_000)
    expect(deeds).toEqual(['start'])
  })

  test('a failed start after the command restart reports no stored change', async () => {
    answers.start = failed
    expect(await management.execute({ name: 'restart' }, waits)).toMatchObject({ ok: false, stored: false })
  })

  test('the next life of the management service starts a stopped service, because of its marker file', async () => {
    marked = true
    management = build()
    management.recover()
    await management.stop()
    expect(deeds).toEqual(['start'])
    expect(marked).toBe(false)
  })
})

describe('simultaneous management commands', () => {
  test('management commands run one after the other', async () => {
    const both = await Promise.all([
      management.execute({ name: 'disable-bin', bin: 1 }, waits),
      management.execute({ name: 'disable-bin', bin: 2 }, waits),
    ])
    expect(deeds).toEqual(['mark', 'stop', 'disable 1', 'start', 'mark', 'stop', 'disable 2', 'start'])
    expect(both.map((answer) => answer.ok)).toEqual([true, true])
  })

  test('management commands without a waiting caller are dropped at their turn', async () => {
    let open = (): void => {}
    gate = new Promise((resolve) => (open = resolve))
    let isWaiting = true
    const first = management.execute({ name: 'restart' }, waits)
    const second = management.execute({ name: 'disable-bin', bin: 2 }, () => isWaiting)
    isWaiting = false
    open()
    expect(await first).toMatchObject({ ok: true })
    expect(await second).toMatchObject({ ok: false, stored: false })
    expect(deeds).toEqual(['mark', 'stop', 'start'])
  })

  test('management commands are refused if too many wait, and status is still answered', async () => {
    let open = (): void => {}
    gate = new Promise((resolve) => (open = resolve))
    const all = Array.from({ length: 5 }, () => management.execute({ name: 'restart' }, waits))
    expect(await management.execute({ name: 'status' }, waits)).toMatchObject({ ok: true })
    open()
    const answers = await Promise.all(all)
    expect(answers.filter((answer) => answer.ok)).toHaveLength(3)
    expect(answers.filter((answer) => !answer.ok && /busy/.test(answer.error))).toHaveLength(2)
  })
})
