import { writeSync } from 'node:fs'
import type { Log } from '../protocol/model/log.ts'
import { every, type Cancel, type Clock } from '../protocol/model/runtime.ts'

/** Notifies the service manager (`READY=1`, `WATCHDOG=1`, `STOPPING=1`; sd_notify(3)). */
export type Notify = (state: string) => void

/** The checks that must pass before the hub reports that it is alive. A failing probe throws or returns false. */
export type Probes = Readonly<Record<string, () => boolean>>

/** The names of the probes that fail now, with their reasons. */
export function failingProbes(probes: Probes): string[] {
  return Object.entries(probes).flatMap(([name, probe]) => {
    try {
      return probe() ? [] : [name]
    } catch (error) {
      return [`${name} (${String(error)})`]
    }
  })
}

export interface SupervisionOptions {
  clock: Clock
  log: Log
  notify: Notify
  /**
   * The manager restarts the service after this time without a notice; `undefined` if the manager does not
   * watch it.
   */
  watchdogMs: number | undefined
  probes: Probes
}

/**
 * Reports that the hub is ready, and then regularly that it is alive. The report needs a running event loop
 * and passing probes. So the manager restarts a hub that hangs; the journal makes the restart safe.
 */
export function superviseBy({ clock, log, notify, watchdogMs, probes }: SupervisionOptions): Cancel {
  notify('READY=1')
  if (watchdogMs === undefined) return () => notify('STOPPING=1')
  // Three notices within the time: one late notice is no reason for a restart.
  const cancel = every(clock, watchdogMs / 3, () => {
    const failing = failingProbes(probes)
    if (failing.length === 0) notify('WATCHDOG=1')
    else log.error({ failing }, 'the hub makes no progress: the watchdog is not notified')
  })
  return () => {
    cancel()
    notify('STOPPING=1')
  }
}

/** Shorter work needs no extension. */
const SHORT_MS = 5000
const usec = (ms: number): number => Math.ceil(ms * 1000)

/**
 * Requests more time from the manager before blocking work of up to `workMs`: for the start
 * (`EXTEND_TIMEOUT_USEC`) and for the watchdog. Call `restoreTimeouts` after the work.
 */
export function extendTimeouts(notify: Notify, workMs: number, watchdogMs: number | undefined): void {
  if (workMs < SHORT_MS) return
  notify(`EXTEND_TIMEOUT_USEC=${usec(workMs + 60_000)}`)
  if (watchdogMs !== undefined) notify(`WATCHDOG_USEC=${usec(workMs + watchdogMs)}`)
}

export function restoreTimeouts(notify: Notify, workMs: number, watchdogMs: number | undefined): void {
  if (workMs < SHORT_MS || watchdogMs === undefined) return
  notify(`WATCHDOG_USEC=${usec(watchdogMs)}`)
  notify('WATCHDOG=1')
}

/** The watchdog's time from the environment, as in sd_watchdog_enabled(3). */
export function watchdogMsOf(
  environment: Readonly<Record<string, string | undefined>>,
  pid: number,
): number | undefined {
  const { WATCHDOG_USEC, WATCHDOG_PID } = environment
  if (WATCHDOG_PID !== undefined && WATCHDOG_PID !== String(pid)) return undefined
  const microseconds = Number(WATCHDOG_USEC)
  return Number.isFinite(microseconds) && microseconds > 0 ? microseconds / 1000 : undefined
}

/**
 * Writes notices to the descriptor that `larder` opens (`packaging/notify-socket.pl`). Each write is a
 * datagram of this process, and systemd accepts notices only from it. Does nothing if there is no manager.
 */
export function systemdNotify(
  { NOTIFY_SOCKET, NOTIFY_FD }: Readonly<Record<string, string | undefined>>,
  log: Log,
): Notify {
  if (NOTIFY_SOCKET === undefined) return () => {}
  const descriptor = Number(NOTIFY_FD)
  return (state) => {
    try {
      if (NOTIFY_FD === undefined) throw new Error('no NOTIFY_FD: the hub was not started by `larder edge`')
      writeSync(descriptor, state)
    } catch (error) {
      log.warn({ state, error: (error as Error).message }, 'the service manager could not be notified')
    }
  }
}
