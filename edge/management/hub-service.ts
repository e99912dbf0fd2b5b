import { closeSync, existsSync, fsyncSync, openSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import type { ServiceAction } from '../../protocol/management/command.ts'
import type { Log } from '../../protocol/model/log.ts'
import { backoffMs, type Cancel, type Runtime } from '../../protocol/model/runtime.ts'
import type { ServiceManager } from './service-manager.ts'

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

export interface HubServiceOptions {
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
export class HubService {
  readonly #options: HubServiceOptions
  #last: Promise<unknown> = Promise.resolve()
  #cancelRetry: Cancel = () => {}

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
    const { manager, mark, stopTimeoutMs } = this.#options
    mark.set()
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
    const { mark, runtime, log } = this.#options
    this.#cancelRetry()
    this.#cancelRetry = runtime.clock.after(backoffMs(tries, retry, runtime.random), () => {
      void this.queue(async () => {
        if (mark.isSet())
          log.warn({ started: await this.#start(tries + 1), tries }, 'the hub’s service is started again')
      })
    })
  }

  /** If the mark stays, the next process starts a running service, which has no effect. */
  #clearMark(): void {
    try {
      this.#options.mark.clear()
    } catch (error) {
      this.#options.log.warn({ error: String(error) }, 'the mark of the pause cannot be removed')
    }
  }
}
