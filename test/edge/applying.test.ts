import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { startApplying } from '../../edge/applying.ts'
import { DesiredStates } from '../../edge/desired/desired-states.ts'
import { updateFiles } from '../../edge/update/files.ts'
import { silentLog } from '../../protocol/model/log.ts'
import { virtualClock } from '../world/clock.ts'
import { Suspension } from '../world/suspension.ts'

/** A hub with a waiting version, whose parts the test sets. */
function world() {
  const folder = mkdtempSync(join(tmpdir(), 'larder-applying-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const clock = virtualClock()
  const suspension = new Suspension()
  const hub = { isIdle: true, phase: 'welcomed', up: { bins: true, vending: true } }
  let restarts = 0
  let desired: DesiredStates
  let end = (): void => {}
  const start = (): void => {
    end()
    desired = new DesiredStates(join(folder, 'hub.sqlite'))
    desired.start()
    end = startApplying({
      desired,
      clock: suspension.clockOf(clock, () => true),
      log: silentLog,
      confirmMs: 120_000,
      hub: () =>
        ({
          core: { reasonToWait: () => (hub.isIdle ? undefined : 'something moves'), noteDesired() {} },
          sync: { state: () => ({ phase: hub.phase }) },
          controllers: {
            links: () => Object.entries(hub.up).map(([controller, up]) => ({ controller, up })),
          },
        }) as unknown as ReturnType<Parameters<typeof startApplying>[0]['hub']>,
      isReady: () => true,
      restart: () => (restarts += 1),
    })
  }
  start()
  desired!.offer({ version: 1, settings: {}, hardware: null })
  return {
    clock,
    store: join(folder, 'hub.sqlite'),
    /** The process does not run for this time. */
    suspend: (ms: number): void => {
      suspension.begin()
      clock.advance(ms)
      suspension.end(clock)
    },
    hub,
    start,
    restarts: () => restarts,
    report: () => desired.report(),
    offer: (version: number) => desired.offer({ version, settings: { LOG_LEVEL: 'debug' }, hardware: null }),
  }
}

test('a version waits until no order is in progress, and is confirmed by a hub that works', () => {
  const { clock, hub, start, restarts, report, offer } = world()
  hub.isIdle = false
  offer(2)
  clock.advance(600_000)
  expect(restarts()).toBe(0)
  hub.isIdle = true
  clock.advance(1000)
  expect(restarts()).toBe(1)
  hub.phase = 'connecting'
  start()
  clock.advance(60_000)
  expect(report()).toEqual({ applied: 1, failed: null })
  hub.phase = 'welcomed'
  clock.advance(1000)
  expect(report()).toEqual({ applied: 2, failed: null })
  clock.advance(600_000)
  expect(restarts()).toBe(1)
})

test('a version waits while an update tries its release', () => {
  const { clock, store, restarts, offer } = world()
  const to = {
    version: '2026.4.1+1',
    url: 'https://larder.example',
    rollout: '019a0000-0000-7000-8000-000000000001',
  }
  const now = { step: 'confirming', to, from: null, starts: 0, absent: [] }
  writeFileSync(updateFiles(store).state, JSON.stringify({ now, last: null }))
  offer(2)
  clock.advance(600_000)
  expect(restarts()).toBe(0)
  writeFileSync(updateFiles(store).state, JSON.stringify({ now: { step: 'idle' }, last: null }))
  clock.advance(1000)
  expect(restarts()).toBe(1)
})

test('a suspension of the process is no time of a trial: the version that works afterwards is confirmed', () => {
  const { clock, suspend, hub, start, restarts, report, offer } = world()
  offer(2)
  clock.advance(1000)
  hub.phase = 'connecting'
  start()
  clock.advance(10_000)
  suspend(600_000)
  clock.advance(10_000)
  expect(restarts()).toBe(1)
  hub.phase = 'welcomed'
  clock.advance(1000)
  expect(report()).toEqual({ applied: 2, failed: null })
})

test.each([
  [
    'the cloud',
    (hub: ReturnType<typeof world>['hub']) => (hub.phase = 'connecting'),
    'the cloud is not reached',
  ],
  [
    'a controller',
    (hub: ReturnType<typeof world>['hub']) => (hub.up.bins = false),
    'no answer of controller bins',
  ],
])('a hub that loses %s returns to the former version within two minutes', (_, lose, error) => {
  const { clock, hub, start, restarts, report, offer } = world()
  offer(2)
  clock.advance(1000)
  start()
  lose(hub)
  clock.advance(119_000)
  expect(restarts()).toBe(1)
  clock.advance(2000)
  expect(restarts()).toBe(2)
  start()
  expect(report()).toMatchObject({
    applied: 1,
    failed: { version: 2, error: expect.stringContaining(error) as string },
  })
})

test('a controller that was silent before may stay silent', () => {
  const { clock, hub, start, report, offer } = world()
  hub.up.vending = false
  offer(2)
  clock.advance(31_000)
  start()
  clock.advance(1000)
  expect(report()).toEqual({ applied: 2, failed: null })
})

test('a controller that connects some seconds after the start must connect with the tried version, too', () => {
  const { clock, hub, start, restarts, report, offer } = world()
  hub.up = { bins: false, vending: false }
  start()
  offer(2)
  clock.advance(5000)
  expect(restarts()).toBe(0)
  hub.up = { bins: true, vending: true }
  clock.advance(1000)
  expect(restarts()).toBe(1)
  // With the tried version no controller answers.
  hub.up = { bins: false, vending: false }
  start()
  clock.advance(121_000)
  start()
  expect(report()).toMatchObject({ applied: 1, failed: { version: 2 } })
})
