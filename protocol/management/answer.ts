import { z } from 'zod'

/** One call to the manager of the hub's service (contract §6). */
export const ServiceAction = z.object({
  /** 0: it did as asked. */
  exit_code: z.int(),
  duration_ms: z.int().min(0),
  /** What the manager said, in a few lines at most. */
  output: z.string().max(4000),
})
export type ServiceAction = z.infer<typeof ServiceAction>

export const ServiceState = z.object({
  state: z.enum(['running', 'stopped', 'unknown']),
  pid: z.int().nullable(),
})
export type ServiceState = z.infer<typeof ServiceState>

/** What the management service writes to standard output, one line of JSON, before it exits with `exitCodeOf` (SPEC §3). */
export const ManagementAnswer = z.discriminatedUnion('ok', [
  z.object({
    ok: z.literal(true),
    hub_id: z.int(),
    /** The bins that the hub's stored configuration disables, after the command. Null before the cloud's first word. */
    disabled_bins: z.array(z.int()).nullable(),
    service: ServiceState,
    stop_result: ServiceAction.nullable(),
    start_result: ServiceAction.nullable(),
  }),
  z.object({
    ok: z.literal(false),
    hub_id: z.int(),
    error_type: z.enum(['validation_error', 'command_failed']),
    error: z.string(),
    /**
     * The new configuration is stored although the command failed: the service that is to read it could not be started
     * (it is tried again without end).
     */
    stored: z.boolean(),
    stop_result: ServiceAction.nullable(),
    start_result: ServiceAction.nullable(),
  }),
])
export type ManagementAnswer = z.infer<typeof ManagementAnswer>

/** The exit status of an `exec` whose answer this is; a command that is not of the set has `REFUSED`. */
export const exitCodeOf = (answer: ManagementAnswer): number =>
  answer.ok ? 0 : answer.error_type === 'validation_error' ? 2 : 1

/** As a shell says that it knows no such command. */
export const REFUSED = 127
