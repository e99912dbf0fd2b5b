import { describe, expect, it } from 'vitest'
import {
  extendTimeouts,
  failingProbes,
  restoreTimeouts,
  superviseBy,
  watchdogMsOf,
} from '../../edge/supervision.ts'
import { silentLog } from '../../protocol/model/log.ts'
import { virtualRuntime } from '../world/clock.ts'

describe('supervision', () => {
  it('the check of a large journal gets extra time from the watchdog at the start, and none afterwards', () => {
    const told: string[] = []
    const notify = (state: string): void => void told.push(state)
    extendTimeouts(notify, 1000, 30_000)
    restoreTimeouts(notify, 1000, 30_000)
    expect(told).toEqual([])
    extendTimeouts(notify, 600_000, 30_000)
    expect(told.splice(0)).toEqual(['EXTEND_TIMEOUT_USEC=660000000', 'WATCHDOG_USEC=630000000'])
    restoreTimeouts(notify, 600_000, 30_000)
    expect(told.splice(0)).toEqual(['WATCHDOG_USEC=30000000', 'WATCHDOG=1'])
    extendTimeouts(notify, 600_000, undefined)
    expect(told).toEqual(['EXTEND_TIMEOUT_USEC=660000000'])
  })

  it('the hub reports that it is ready once, and that it is alive three times per watchdog period', () => {
    const runtime = virtualRuntime()
    const told: string[] = []
    const stop = superviseBy({
      clock: runtime.clock,
      log: silentLog,
      notify: (state) => void told.push(state),
      watchdogMs: 30_000,
      probes: { journal: () => true },
    })
    expect(told).toEqual(['READY=1'])
    runtime.clock.advance(30_000)
    expect(told).toEqual(['READY=1', 'WATCHDOG=1', 'WATCHDOG=1', 'WATCHDOG=1'])
    stop()
    runtime.clock.advance(60_000)
    expect(told.at(-1)).toBe('STOPPING=1')
    expect(told).toHaveLength(5)
  })

  it('the hub sends no heartbeat to the watchdog while the journal or the core does not answer', () => {
    const runtime = virtualRuntime()
    const told: string[] = []
    let journal = true
    const probes = {
      journal: () => {
        if (!journal) throw new Error('database is locked')
        return true
      },
      core: () => true,
    }
    superviseBy({
      clock: runtime.clock,
      log: silentLog,
      notify: (state) => void told.push(state),
      watchdogMs: 30_000,
      probes,
    })
    journal = false
    runtime.clock.advance(60_000)
    expect(told).toEqual(['READY=1'])
    expect(failingProbes(probes)).toEqual(['journal (Error: database is locked)'])
    journal = true
    runtime.clock.advance(10_000)
    expect(told).toEqual(['READY=1', 'WATCHDOG=1'])
  })

  it('the hub has a watchdog only if the manager sets one for this process', () => {
    expect(watchdogMsOf({}, 10)).toBeUndefined()
    expect(watchdogMsOf({ WATCHDOG_USEC: '30000000' }, 10)).toBe(30_000)
    expect(watchdogMsOf({ WATCHDOG_USEC: '30000000', WATCHDOG_PID: '10' }, 10)).toBe(30_000)
    expect(watchdogMsOf({ WATCHDOG_USEC: '30000000', WATCHDOG_PID: '11' }, 10)).toBeUndefined()
    expect(watchdogMsOf({ WATCHDOG_USEC: 'soon' }, 10)).toBeUndefined()
  })
})
