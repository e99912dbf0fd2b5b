import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { desiredFile, DesiredStates } from '../../../edge/desired/desired-states.ts'
import { updateFiles } from '../../../edge/update/files.ts'
import type { DesiredState } from '../../../protocol/mqtt/cloud-entries.ts'
import { demoHub } from '../../support/demo-hub.ts'

const ROLLOUT = '019a0000-0000-7000-8000-000000000001'

function card() {
  const folder = mkdtempSync(join(tmpdir(), 'larder-desired-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const store = join(folder, 'hub.sqlite')
  return {
    store,
    /** The service starts, as after an orderly end, a crash or a power failure. */
    start: (software?: string) => {
      const states = new DesiredStates(store, software)
      states.start()
      return states
    },
  }
}

const version = (number: number, settings: Record<string, string> = {}): DesiredState => ({
  version: number,
  settings: { HEARTBEAT_MS: String(number * 1000), ...settings },
  hardware: demoHub,
})

test('the first version without settings is in use at once, and the hub keeps its own hardware description', () => {
  const { start } = card()
  const states = start()
  expect([states.isMissing(), states.report()]).toEqual([true, undefined])
  states.offer({ version: 1, settings: {}, hardware: demoHub })
  expect(states.report()).toEqual({ applied: 1, failed: null })
  expect(start().overrides()).toEqual({ version: 1, settings: {}, hardware: null })
})

test('a version is tried by the next process, and stays when it is confirmed', () => {
  const { start } = card()
  start().offer({ version: 1, settings: {}, hardware: demoHub })
  const states = start()
  states.offer(version(2))
  expect([states.isWaiting(), states.overrides().version]).toEqual([true, 1])
  states.begin(['bins'])
  const tried = start()
  expect(tried.overrides()).toEqual(version(2))
  expect(tried.trial()).toMatchObject({ absent: ['bins'] })
  tried.confirm()
  expect(start().overrides()).toEqual(version(2))
  expect(tried.report()).toEqual({ applied: 2, failed: null })
})

test('a version that failed is not tried again, but the next one is', () => {
  const { start } = card()
  start().offer(version(1))
  start().begin([])
  const states = start()
  states.fail('the cloud is not reached')
  expect(states.report()).toEqual({
    applied: null,
    failed: { version: 1, error: 'the cloud is not reached' },
  })
  states.offer(version(1))
  expect(states.isWaiting()).toBe(false)
  // A restored cloud uses the number again.
  states.offer(version(1, { LOG_LEVEL: 'debug' }))
  expect(states.isWaiting()).toBe(true)
})

test('a damaged file makes the hub ask for the desired state, and settings that this version of the service does not know are left out', () => {
  const { store, start } = card()
  writeFileSync(desiredFile(store), '{"applied": ')
  expect(start().isMissing()).toBe(true)
  const applied = { ...version(3, { NO_SUCH: '1', LOG_LEVEL: 'loud' }), hardware: { hubId: 'one' } }
  writeFileSync(desiredFile(store), JSON.stringify({ applied }))
  expect(start().overrides()).toEqual({ version: 3, settings: { HEARTBEAT_MS: '3000' }, hardware: null })
  // So the hub does not use the version.
  expect(start().report()).toEqual({ applied: null, failed: null })
})

test.each([1, 2])(
  'a hub whose file was damaged tries the description of the cloud, and then reports version %i again',
  (number) => {
    const { store, start } = card()
    const controllers = demoHub.controllers.map((each) => ({ ...each, port: `${each.port}-next` }))
    const hardware = { ...demoHub, controllers }
    const sent = { version: number, settings: {}, hardware }
    start().offer({ version: 1, settings: {}, hardware: demoHub })
    writeFileSync(desiredFile(store), '\0\0\0')
    const damaged = start()
    expect([damaged.isMissing(), damaged.report()]).toEqual([true, undefined])
    damaged.offer(sent)
    expect([damaged.isWaiting(), damaged.report()]).toEqual([true, { applied: null, failed: null }])
    damaged.begin([])
    start().confirm()
    expect(start().report()).toEqual({ applied: number, failed: null })
    expect(start().overrides()).toEqual(sent)
  },
)

test('a new card with a former hardware description tries a later description of the cloud', () => {
  const states = card().start()
  const former = { ...demoHub, controllers: demoHub.controllers.slice(1) }
  states.offer({ version: 2, settings: {}, hardware: demoHub }, former)
  expect([states.isWaiting(), states.report()]).toEqual([true, { applied: null, failed: null }])
})

test('a new hub keeps its own hardware description at any version if only its serial ports differ', () => {
  const states = card().start()
  const controllers = demoHub.controllers.map((each) => ({ ...each, port: `${each.port}-here` }))
  states.offer({ version: 2, settings: {}, hardware: demoHub }, { ...demoHub, controllers })
  expect([states.isWaiting(), states.report()]).toEqual([false, { applied: 2, failed: null }])
})

test('a hub reports no version as applied while another content of a restored cloud has its number', () => {
  const { start } = card()
  start().offer({ version: 6, settings: {}, hardware: null })
  start().offer(version(7))
  start().begin([])
  start().confirm()
  const states = start()
  expect(states.report()).toEqual({ applied: 7, failed: null })
  states.offer(version(7, { HEARTBEAT_MS: '9000' }))
  expect(states.report()).toEqual({ applied: null, failed: null })
  states.begin([])
  const failed = { version: 7, error: 'the cloud is not reached' }
  start().fail(failed.error)
  expect(start().report()).toEqual({ applied: null, failed })
  expect(start().overrides()).toEqual(version(7))
})

test('after a crash or a power failure at any step a hub uses its confirmed version, or tries a version once', () => {
  const step = fc.constantFrom('offer', 'begin', 'start', 'confirm', 'fail')
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const { start } = card()
      let states = start()
      let latest = 0
      let confirmed: number | null = null
      const tried = new Set<number>()
      for (const each of steps) {
        if (each === 'start') {
          const before = states.trial()
          states = start()
          const trial = states.trial()?.desired.version
          if (trial !== undefined && before?.isStarted !== true) {
            expect(tried.has(trial)).toBe(false)
            tried.add(trial)
          }
        } else if (each === 'offer') states.offer(version((latest += 1)))
        else if (each === 'begin' && states.isWaiting() && !states.trial()) states.begin([])
        else if (each === 'confirm' && states.trial()?.isStarted === true) {
          confirmed = states.trial()!.desired.version
          states.confirm()
        } else if (each === 'fail' && states.trial()?.isStarted === true) states.fail('why')
      }
      // Two starts without a confirmation end every trial.
      start()
      expect(start().overrides().version).toBe(confirmed)
    }),
    { numRuns: 100 },
  )
})

test('an orderly end of the service repeats a trial once', () => {
  const { start } = card()
  start().offer(version(1))
  const states = start()
  states.offer(version(2))
  states.begin([])
  start().interrupt()
  const second = start()
  expect([second.trial()?.desired.version, second.failed()]).toEqual([2, null])
  second.interrupt()
  expect(start().failed()).toMatchObject({ version: 2 })
})

test('a hub without a trusted root of releases stores the root of its first release, and no later one', () => {
  const { start, store } = card()
  const files = updateFiles(store)
  const release = (root: string) => ({
    version: '2026.3.1+1',
    url: 'https://larder.example/releases',
    rollout: ROLLOUT,
    root,
  })
  start().offer({ ...version(1), software: release('first') })
  start().offer({ ...version(1), software: release('of a stolen cloud') })
  expect(readFileSync(files.root, 'utf8')).toBe('first')
  expect(JSON.parse(readFileSync(files.desired, 'utf8'))).not.toHaveProperty('root')
})

test('a release has succeeded after its program has stored something and its controllers run its firmware', () => {
  const { start, store } = card()
  start().offer(version(1))
  const NEXT = ROLLOUT.replace(/1$/, '2')
  const release = { version: '2026.3.1+1', url: 'https://larder.example', rollout: ROLLOUT }
  const succeed = (rollout: string) => {
    const succeeded = { now: { step: 'idle' }, last: { release: { ...release, rollout }, error: null } }
    writeFileSync(updateFiles(store).state, JSON.stringify(succeeded))
  }
  succeed(ROLLOUT)
  const states = start(release.version)
  let reports = 0
  states.onReport = () => (reports += 1)
  const update = () => states.report()?.update
  const about = { version: release.version, rollout: ROLLOUT }
  // The core notes the firmware after its first commit.
  expect([update(), states.rollout()]).toEqual([{ ...about, state: 'confirming' }, ROLLOUT])
  states.noteFirmware(ROLLOUT, 'pending')
  expect([update(), reports]).toEqual([{ ...about, state: 'confirming' }, 0])
  states.noteFirmware(ROLLOUT, { error: 'controller bins: why' })
  expect([update(), reports]).toEqual([{ ...about, state: 'failed', error: 'controller bins: why' }, 1])
  expect(states.failedUpdate()).toBeNull()
  states.noteFirmware(ROLLOUT, 'done')
  expect([update(), reports]).toEqual([{ ...about, state: 'succeeded' }, 2])
  // The next rollout gives the hub the version that it runs.
  succeed(NEXT)
  states.checkUpdate()
  expect(update()).toEqual({ ...about, rollout: NEXT, state: 'confirming' })
  states.noteFirmware(NEXT, 'done')
  expect(update()).toEqual({ ...about, rollout: NEXT, state: 'succeeded' })
  // The release of the report does not run, so its firmware is not meant.
  const other = start('2026.4.1+1')
  expect([other.report()?.update, other.rollout()]).toEqual([
    { ...about, rollout: NEXT, state: 'succeeded' },
    null,
  ])
})
