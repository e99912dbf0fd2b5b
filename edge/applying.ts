import type { Log } from '../protocol/model/log.ts'
import { RunningTime } from '../protocol/model/running-time.ts'
import { every, type Cancel, type Clock } from '../protocol/model/runtime.ts'
import type { Hub } from './hub.ts'
import { StorageError } from './journal/storage-error.ts'
import type { DesiredStates } from './desired/desired-states.ts'

export interface ApplyingOptions {
  desired: DesiredStates
  clock: Clock
  log: Log
  confirmMs: number
  /** The hub; undefined while it cannot use its journal. */
  hub: () => Pick<Hub, 'core' | 'sync' | 'controllers'> | undefined
  /** Journal and core work. */
  isReady: () => boolean
  /** Restarts the service in an orderly way. */
  restart: () => void
}

const CHECK_MS = 500
/** A longer time between two checks is a suspension of the process, and not a fault of the version. */
const SUSPENDED_MS = 10_000
/** Controllers that do not connect within this time after the start count as absent: some restart when their line opens. */
const SETTLE_MS = 30_000

/**
 * Applies the desired state (MQTT SPEC §12). A version that waits is tried by the next process, which begins when no order is in
 * progress, nothing moves and the controllers of this one have had time to connect. A version on trial is confirmed when the hub
 * is ready, welcomed by the cloud, and connected to its controllers.
 * After `confirmMs` without it the hub restarts with the former version.
 */
export function startApplying(options: ApplyingOptions): Cancel {
  const { desired, clock, log, confirmMs, hub, restart } = options
  const running = new RunningTime(clock, SUSPENDED_MS)
  const since = running.ms()
  const cancel = every(clock, CHECK_MS, () => {
    const passedMs = running.ms() - since
    desired.checkUpdate()
    const trial = desired.trial()
    if (trial) {
      const { version } = trial.desired
      const problem = problemOf(options, trial.absent)
      if (problem === undefined) {
        desired.confirm()
        hub()?.core.noteDesired()
        log.info({ version }, 'the hub works with the desired state, and keeps it')
      } else if (passedMs >= confirmMs) {
        cancel()
        log.error(
          { version, problem },
          'the hub does not work with the desired state, and returns to the former',
        )
        desired.fail(problem)
        restart()
      }
    } else if (desired.isWaiting() && mayStop(options)) {
      const isSettled = passedMs >= SETTLE_MS || absentOf(options).length === 0
      if (!isSettled || !begin(options)) return
      cancel()
      restart()
    }
  })
  return cancel
}

/** A version that an update tries must not change at the same time. */
const mayStop = ({ hub, desired }: ApplyingOptions): boolean => {
  const opened = hub()
  return opened !== undefined && opened.core.reasonToWait() === undefined && !desired.isUpdating()
}

/** The controllers that are not connected. */
const absentOf = ({ hub }: ApplyingOptions): string[] =>
  (hub()?.controllers.links() ?? []).filter(({ up }) => !up).map(({ controller }) => controller)

function begin(options: ApplyingOptions): boolean {
  const { desired, log } = options
  try {
    desired.begin(absentOf(options))
    log.info({}, 'the hub restarts to try the desired state')
    return true
  } catch (error) {
    if (!(error instanceof StorageError)) throw error
    // It waits until the card can be written.
    return false
  }
}

/** Why the version on trial cannot be confirmed yet. */
function problemOf({ hub, isReady }: ApplyingOptions, absent: readonly string[]): string | undefined {
  const opened = hub()
  if (!opened || !isReady()) return 'the hub is not ready: its journal or its core does not work'
  const { phase, reason } = opened.sync.state()
  if (phase !== 'welcomed') return `the cloud is not reached: ${reason ?? phase}`
  const silent = opened.controllers
    .links()
    .filter(({ up, controller }) => !up && !absent.includes(controller))
  return silent.length === 0
    ? undefined
    : `no answer of ${silent.map((link) => `controller ${link.controller}${link.reason == null ? '' : ` (${link.reason})`}`).join(', ')}`
}
