import type { ManagementAnswer, ServiceAction, ManagementCommand } from '../../protocol/management/command.ts'
import { backoffMs, type Cancel, type Runtime } from '../../protocol/model/runtime.ts'
import type { Log } from '../../protocol/model/log.ts'
import type { PauseMark } from './pause-mark.ts'
import type { ServiceManager } from './service-manager.ts'
import { StoreError, type StoredConfig } from './stored-config.ts'

export interface ManagementOptions {
  hubId: number
  /** The hub's bins, by its hardware. */
  bins: readonly number[]
  config: StoredConfig
  manager: ServiceManager
  mark: PauseMark
  runtime: Runtime
  log: Log
  stopTimeoutMs: number
  startTimeoutMs: number
}

export interface Management {
  /** Carries out a command. One that changes something waits for its turn, and is dropped where by then nobody `isWaiting`. */
  execute(command: ManagementCommand, isWaiting: () => boolean): Promise<ManagementAnswer>
  /** Starts the hub's service again where an earlier life of this one died while it was stopped. */
  recover(): void
  /** Resolves when nothing is under way any more. */
  stop(): Promise<void>
}

/** More callers than this are sent away: each turn takes seconds. */
const MAX_WAITING = 3
const retry = { firstMs: 1000, maxMs: 30_000 }

type Failure = Extract<ManagementAnswer, { ok: false }>
type Change = { disabled: number[] | null } | { error: string }

/** What the management service does (SPEC §2): stop, store, start; one after the other. */
export function createManagement(options: ManagementOptions): Management {
  const { hubId, bins, config, manager, mark, runtime, log } = options
  let last: Promise<unknown> = Promise.resolve()
  let waiting = 0
  let cancelRetry: Cancel = () => {}

  const failure = (error: string, rest: Partial<Failure> = {}): Failure => ({
    ok: false,
    hub_id: hubId,
    error_type: 'command_failed',
    error,
    stored: false,
    stop_result: null,
    start_result: null,
    ...rest,
  })

  /** In turn: two restarts at once would undo one another. */
  async function inTurn(
    work: () => Promise<ManagementAnswer>,
    isWaiting: () => boolean,
  ): Promise<ManagementAnswer> {
    if (waiting >= MAX_WAITING) return failure('the management service is busy with other commands')
    waiting++
    const turn = last.then(() => (isWaiting() ? work() : failure('nobody waited for it any more')))
    last = turn.catch(() => {})
    try {
      return await turn
    } finally {
      waiting--
    }
  }

  /** Stops the service, has `change` done meanwhile, and starts it again, whatever came of the change. */
  async function restart(change?: () => number[]): Promise<ManagementAnswer> {
    mark.set()
    cancelRetry()
    const stopped = await manager.stop(options.stopTimeoutMs)
    const outcome: Change =
      stopped.exit_code === 0
        ? attempt(change ?? readDisabled)
        : { error: 'the hub’s service could not be stopped' }
    const started = await start()
    const results = { stop_result: stopped, start_result: started }
    if ('error' in outcome) return failure(outcome.error, results)
    if (started.exit_code !== 0)
      return failure('the hub’s service did not become ready; it is started again and again', {
        ...results,
        stored: change !== undefined,
      })
    return {
      ok: true,
      hub_id: hubId,
      disabled_bins: outcome.disabled,
      service: await manager.state(),
      ...results,
    }
  }

  function attempt(change: () => number[] | null): Change {
    try {
      return { disabled: change() }
    } catch (error) {
      // Whatever it is, the hub is to run again: it is the caller who hears of it.
      log.error({ err: error }, 'the configuration could not be stored')
      return { error: error instanceof StoreError ? error.message : 'the configuration could not be stored' }
    }
  }

  async function start(): Promise<ServiceAction> {
    const started = await manager.start(options.startTimeoutMs)
    if (started.exit_code === 0) clearMark()
    else startLater(0)
    return started
  }

  /** A hub that this service has stopped must not stay so. */
  function startLater(tries: number): void {
    cancelRetry()
    cancelRetry = runtime.clock.after(backoffMs(tries, retry, runtime.random), () => {
      last = last.then(async () => {
        if (!mark.isSet()) return
        const started = await manager.start(options.startTimeoutMs)
        log.warn({ started, tries }, 'the hub’s service is started again')
        if (started.exit_code === 0) clearMark()
        else startLater(tries + 1)
      })
    })
  }

  /** One that stays makes the next life start a service that runs: nothing happens. */
  function clearMark(): void {
    try {
      mark.clear()
    } catch (error) {
      log.warn({ error: String(error) }, 'the mark of the pause cannot be removed')
    }
  }

  function readDisabled(): number[] | null {
    try {
      return config.disabledBins()
    } catch (error) {
      if (!(error instanceof StoreError)) throw error
      log.warn({ error: error.message }, 'the stored configuration cannot be read')
      return null
    }
  }

  return {
    async execute(command, isWaiting) {
      switch (command.name) {
        case 'status':
          return {
            ok: true,
            hub_id: hubId,
            disabled_bins: readDisabled(),
            service: await manager.state(),
            stop_result: null,
            start_result: null,
          }
        case 'restart':
          return inTurn(() => restart(), isWaiting)
        case 'enable-bin':
        case 'disable-bin': {
          const { name, bin } = command
          if (!bins.includes(bin))
            return failure(`the hub has no bin ${bin}`, { error_type: 'validation_error' })
          return inTurn(() => restart(() => config.setEnabled(bin, name === 'enable-bin')), isWaiting)
        }
      }
    },
    recover() {
      if (!mark.isSet()) return
      log.warn({}, 'an earlier life of this service left the hub’s service stopped')
      last = last.then(() => start())
    },
    async stop() {
      cancelRetry()
      await last
    },
  }
}
