import type { ManagementAnswer, ManagementCommand } from '../../protocol/management/command.ts'
import { HubService, type HubServiceOptions } from './hub-service.ts'
import { StoreError, type StoredConfig } from './stored-config.ts'

export interface ManagementOptions extends HubServiceOptions {
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
        isWaiting() ? restart(service, options, change) : failure(hubId, 'nobody waited for it any more'),
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
