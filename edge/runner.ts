import type { Log } from '../protocol/model/log.ts'
import {
  backoffMs,
  type BackoffOptions,
  type Cancel,
  type Clock,
  type Runtime,
} from '../protocol/model/runtime.ts'
import { storageSentence, type StorageFault } from '../protocol/model/storage.ts'
import { StorageError } from './journal/storage-error.ts'
import type { Waiting } from './waiting.ts'

/** A hub that runs on its journal. */
export interface Running {
  /** Calls `listener` when the journal can no longer be used. */
  onLost(listener: (error: StorageError) => void): void
  /** Stops the hub and closes its journal. Never throws, even if the card fails. */
  stop(): void
}

export interface RunnerOptions<R extends Running> {
  runtime: Runtime
  log: Log
  /** The journal's file, for messages. */
  path: string
  retry: BackoffOptions
  /** Opens the journal and starts the hub on it. Throws a `StorageError` if the storage cannot be used now. */
  open: (life: Runtime) => R
  wait: (life: Runtime, fault: () => StorageFault) => Waiting
  /** Called when the hub or its stand-in takes over. */
  onChange: (phase: RunnerPhase<R>) => void
  /** The journal is readable again, but must not be used. The service must end. */
  onRefused: (error: unknown) => void
}

export type RunnerPhase<R extends Running> =
  { kind: 'running'; hub: R } | { kind: 'waiting'; waiting: Waiting; fault: StorageFault }

export type Runner<R extends Running> = ReturnType<typeof createRunner<R>>

/**
 * Runs the hub while its journal can be used. If the journal fails, at the start or later, the hub ends as in
 * a crash, and `Waiting` answers. The file is closed, so that the card can be unmounted and repaired. The
 * journal is reopened with back-off, without end. Then the hub continues as after a restart.
 */
export function createRunner<R extends Running>(options: RunnerOptions<R>) {
  const { runtime, log, path, retry, open, wait, onChange, onRefused } = options
  let phase: RunnerPhase<R> | undefined
  let life: Life | undefined
  let cancel: Cancel | undefined
  let attempts = 0
  let isStopped = false

  /** Throws any error except a storage failure. */
  function attempt(): void {
    const next = lifeOf(runtime)
    let hub: R
    try {
      hub = open(next.runtime)
    } catch (error) {
      next.end()
      if (!(error instanceof StorageError)) throw error
      return begin(error)
    }
    if (phase?.kind === 'waiting') {
      phase.waiting.stop()
      log.info({ path, attempts }, 'the storage works again: the hub goes on')
    }
    life?.end()
    life = next
    // A card that opens and then fails at once is also retried with back-off.
    next.runtime.clock.after(retry.maxMs, () => (attempts = 0))
    phase = { kind: 'running', hub }
    hub.onLost((error) => lose(error))
    onChange(phase)
  }

  /** The hub's own calls are still on the stack, so the hub is stopped after they return. */
  function lose(error: StorageError): void {
    if (phase?.kind !== 'running' || cancel) return
    cancel = runtime.clock.after(0, () => {
      cancel = undefined
      if (phase?.kind !== 'running' || isStopped) return
      life?.end()
      phase.hub.stop()
      phase = undefined
      begin(error)
    })
  }

  /** Waits, and reopens the journal later. */
  function begin(error: StorageError): void {
    const fault = error.faultOf(path)
    const isNews = phase?.kind !== 'waiting' || phase.fault.reason !== fault.reason
    if (isNews)
      log.error({ ...fault }, `the hub cannot use its journal, and waits. ${storageSentence(fault)}`)
    if (phase?.kind === 'waiting') {
      phase.fault = fault
      if (isNews) phase.waiting.changed()
    } else {
      life = lifeOf(runtime)
      const waiting = wait(life.runtime, () => (phase?.kind === 'waiting' ? phase.fault : fault))
      phase = { kind: 'waiting', fault, waiting }
      onChange(phase)
    }
    cancel = runtime.clock.after(backoffMs(attempts++, retry, runtime.random), () => {
      cancel = undefined
      if (isStopped) return
      try {
        attempt()
      } catch (refusal) {
        onRefused(refusal)
      }
    })
  }

  return {
    /** Throws if the journal belongs to another version, or another service has it. */
    start: attempt,
    /** Reports a storage failure outside of transactions: a row could not be read. */
    lose,
    phase: () => phase,
    /** Why the hub cannot use its journal; undefined unless it waits. */
    fault: (): StorageFault | undefined => (phase?.kind === 'waiting' ? phase.fault : undefined),
    stop(): void {
      isStopped = true
      cancel?.()
      if (phase?.kind === 'waiting') phase.waiting.stop()
      if (phase?.kind === 'running') phase.hub.stop()
      life?.end()
    },
  }
}

interface Life {
  runtime: Runtime
  end(): void
}

/** A runtime with timers that end together, so that a stopped hub cannot act beside the next one. */
function lifeOf({ clock, random }: Runtime): Life {
  let isOver = false
  const own: Clock = {
    now: () => clock.now(),
    monotonic: () => clock.monotonic(),
    after: (delayMs, task) =>
      clock.after(delayMs, () => {
        if (!isOver) return task()
      }),
  }
  return { runtime: { clock: own, random }, end: () => void (isOver = true) }
}
