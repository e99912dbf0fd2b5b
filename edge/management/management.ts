import { closeSync, existsSync, fsyncSync, openSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ServiceAction, ManagementAnswer, ManagementCommand } from '../../protocol/management/command.ts'
import type { Log } from '../../protocol/model/log.ts'
import { backoffMs, type Cancel, type Runtime } from '../../protocol/model/runtime.ts'
import type { ServiceManager } from './service-manager.ts'
import { StoreError, type StoredConfig } from './stored-config.ts'

/**
 * A file that exists while this service has stopped the hub's service. If this process dies meanwhile, the
 * next one starts the hub's service.
 */
export interface PauseMark {
  set(): void
  clear(): void
  isSet(): boolean
}

export function pauseMark(path: string): PauseMark {
  return {
    set() {
      closeSync(openSync(path, 'w', 0o600))
      // The file's name must survive a power cut, because otherwise no process would start the hub
      // afterwards.
      const folder = openSync(dirname(path), 'r')
      try {
        fsyncSync(folder)
      } finally {
        closeSync(folder)
      }
    },
    clear: () => rmSync(path, { force: true }),
    isSet: () => existsSync(path),
  }
}

interface HubServiceOptions {
  manager: ServiceManager
  mark: PauseMark
  runtime: Runtime
  log: Log
  stopTimeoutMs: number
  startTimeoutMs: number
}

const retry = { firstMs: 1000, maxMs: 30_000 }

/**
 * Stops and starts the hub's service, one action at a time. A service that it stopped is started again, with
 * retries without end.
 */
class HubService {
  readonly #options: HubServiceOptions
  #last: Promise<unknown> = Promise.resolve()
  #cancelRetry: Cancel = () => {}
  /** This process has stopped the hub's service, or an earlier one has. The mark repeats it for the next process. */
  #isPaused = false

  constructor(options: HubServiceOptions) {
    this.#options = options
  }

  /** Runs `work` after all queued work has ended: two concurrent restarts would undo each other. */
  queue<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.catch(() => {})
    return result
  }

  /** Stops the service, calls `meanwhile`, and starts the service again, whatever the result. Must be queued. */
  async restart<T>(
    meanwhile: (stopped: ServiceAction) => T,
  ): Promise<{ stopped: ServiceAction; started: ServiceAction; result: T }> {
    const { manager, stopTimeoutMs } = this.#options
    this.#pause()
    this.#cancelRetry()
    const stopped = await manager.stop(stopTimeoutMs)
    const result = meanwhile(stopped)
    return { stopped, result, started: await this.#start() }
  }

  /** Starts the service again if an earlier process of this service died while it was stopped. */
  recover(): void {
    const { mark, log } = this.#options
    if (!mark.isSet()) return
    log.warn({}, 'an earlier life of this service left the hub’s service stopped')
    this.#isPaused = true
    void this.queue(() => this.#start())
  }

  /** Resolves when all queued work has ended. */
  async stop(): Promise<void> {
    this.#cancelRetry()
    await this.#last
  }

  async #start(tries = 0): Promise<ServiceAction> {
    const { manager, startTimeoutMs } = this.#options
    const started = await manager.start(startTimeoutMs)
    if (started.exit_code === 0) this.#clearMark()
    else this.#startLater(tries)
    return started
  }

  #startLater(tries: number): void {
    const { runtime, log } = this.#options
    this.#cancelRetry()
    this.#cancelRetry = runtime.clock.after(backoffMs(tries, retry, runtime.random), () => {
      void this.queue(async () => {
        if (this.#isPaused)
          log.warn({ started: await this.#start(tries + 1), tries }, 'the hub’s service is started again')
      })
    })
  }

  /** Without a mark only this process starts the service again. A full card must not prevent a restart. */
  #pause(): void {
    this.#isPaused = true
    try {
      this.#options.mark.set()
    } catch (error) {
      this.#options.log.warn({ error: String(error) }, 'the mark of the pause cannot be written')
    }
  }

  /** If the mark stays, the next process starts a running service, which has no effect. */
  #clearMark(): void {
    this.#isPaused = false
    try {
      this.#options.mark.clear()
    } catch (error) {
      this.#options.log.warn({ error: String(error) }, 'the mark of the pause cannot be removed')
    }
  }
}

interface ManagementOptions extends HubServiceOptions {
  hubId: number
  /** The hub's bins, from its hardware description. */
  bins: readonly number[]
  config: StoredConfig
}

export interface Management {
  /**
   * Executes a command. A change is queued. It is dropped if the caller is no longer waiting (`isWaiting`)
   * when its turn comes.
   */
  execute(command: ManagementCommand, isWaiting: () => boolean): Promise<ManagementAnswer>
  /** Starts the hub's service again if an earlier process of this service died while it was stopped. */
  recover(): void
  /** Resolves when all running work has ended. */
  stop(): Promise<void>
}

/** Maximum number of waiting callers; others are rejected, because each change takes seconds. */
const MAX_WAITING = 3

type Failure = Extract<ManagementAnswer, { ok: false }>
type Change = { disabled: number[] | null } | { error: string }

/** The functions of the management service (SPEC §2): stop, store, start, one after the other. */
export function createManagement(options: ManagementOptions): Management {
  const { hubId, bins, config } = options
  const service = new HubService(options)
  let waiting = 0

  async function inQueue(isWaiting: () => boolean, change?: () => number[]): Promise<ManagementAnswer> {
    if (waiting >= MAX_WAITING) return failure(hubId, 'the management service is busy with other commands')
    waiting++
    try {
      return await service.queue(async () =>
        isWaiting() ? restart(service, options, change) : failure(hubId, 'its caller had disconnected'),
      )
    } finally {
      waiting--
    }
  }

  return {
    async execute(command, isWaiting) {
      switch (command.name) {
        case 'status':
          return {
            ok: true,
            hub_id: hubId,
            disabled_bins: readDisabled(options),
            service: await options.manager.state(),
            stop_result: null,
            start_result: null,
          }
        case 'restart':
          return inQueue(isWaiting)
        case 'enable-bin':
        case 'disable-bin': {
          const { name, bin } = command
          if (!bins.includes(bin))
            return failure(hubId, `the hub has no bin ${bin}`, { error_type: 'validation_error' })
          return inQueue(isWaiting, () => config.setEnabled(bin, name === 'enable-bin'))
        }
      }
    },
    recover: () => service.recover(),
    stop: () => service.stop(),
  }
}

/** Stops the service, runs `change`, and starts the service again, whatever the result of the change. */
async function restart(
  service: HubService,
  options: ManagementOptions,
  change?: () => number[],
): Promise<ManagementAnswer> {
  const { hubId, manager } = options
  const { stopped, started, result } = await service.restart((stopped) =>
    stopped.exit_code === 0 ? attempt(options, change) : { error: 'the hub’s service could not be stopped' },
  )
  const results = { stop_result: stopped, start_result: started }
  if ('error' in result) return failure(hubId, result.error, results)
  if (started.exit_code !== 0)
    return failure(hubId, 'the hub’s service did not become ready; it is started again and again', {
      ...results,
      stored: change !== undefined,
    })
  return {
    ok: true,
    hub_id: hubId,
    disabled_bins: result.disabled,
    service: await manager.state(),
    ...results,
  }
}

function attempt(options: ManagementOptions, change?: () => number[]): Change {
  try {
    return { disabled: change ? change() : readDisabled(options) }
  } catch (error) {
    // The hub must run again after any error; the caller gets the error.
    options.log.error({ err: error }, 'the configuration could not be stored')
    return { error: error instanceof StoreError ? error.message : 'the configuration could not be stored' }
  }
}

function readDisabled({ config, log }: ManagementOptions): number[] | null {
  try {
    return config.disabledBins()
  } catch (error) {
    if (!(error instanceof StoreError)) throw error
    log.warn({ error: error.message }, 'the stored configuration cannot be read')
    return null
  }
}

const failure = (hub_id: number, error: string, rest: Partial<Failure> = {}): Failure => ({
  ok: false,
  hub_id,
  error_type: 'command_failed',
  error,
  stored: false,
  stop_result: null,
  start_result: null,
  ...rest,
})
