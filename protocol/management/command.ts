import { z } from 'zod'

/**
 * The commands of a hub's management service. Each is one SSH `exec` with the command line of `formatCommand`. There
 * are no others (SPEC §2).
 */
export type ManagementCommand =
  | { name: 'status' }
  | { name: 'restart' }
  | { name: 'enable-bin'; bin: number }
  | { name: 'disable-bin'; bin: number }

/** The user name of every caller; the keys distinguish callers. */
export const MANAGEMENT_USER = 'larder'

/** Longer command lines are refused without parsing. */
export const MAX_COMMAND_LENGTH = 64

/** The list of commands, shown after an unknown command. */
export const COMMAND_USAGE = 'status | restart | enable-bin N | disable-bin N'

export function formatCommand(command: ManagementCommand): string {
  switch (command.name) {
    case 'status':
    case 'restart':
      return command.name
    case 'enable-bin':
    case 'disable-bin':
      return `${command.name} ${command.bin}`
  }
}

/** Parses a command line; `undefined` if it is not exactly one of the commands. No text is ever passed to a shell. */
export function parseCommand(line: string): ManagementCommand | undefined {
  if (line.length > MAX_COMMAND_LENGTH) return undefined
  if (line === 'status' || line === 'restart') return { name: line }
  const match = /^(enable-bin|disable-bin) (0|[1-9]\d{0,8})$/.exec(line)
  if (!match) return undefined
  return { name: match[1] as 'enable-bin' | 'disable-bin', bin: Number(match[2]) }
}

/** One call to the manager of the hub's service. */
export const ServiceAction = z
  .object({
    exit_code: z.int().describe('Exit status of the service manager: 0 is success.'),
    duration_ms: z.int().min(0).describe('Duration in milliseconds.'),
    output: z.string().max(4000).describe('Output of the service manager, a few lines.'),
  })
  .meta({ id: 'ServiceAction', description: 'Result of one call of the service manager.' })
export type ServiceAction = z.infer<typeof ServiceAction>

export const ServiceState = z.object({
  state: z.enum(['running', 'stopped', 'unknown']),
  pid: z.int().nullable(),
})
export type ServiceState = z.infer<typeof ServiceState>

/** The standard output of the management service: one line of JSON, before it exits with `exitCodeOf` (SPEC §3). */
export const ManagementAnswer = z.discriminatedUnion('ok', [
  z.object({
    ok: z.literal(true),
    hub_id: z.int(),
    /**
     * The bins that the hub's stored configuration disables, after the command. Null before the first configuration of
     * the cloud.
     */
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
     * The new configuration is stored although the command failed, because the service did not start. The management
     * service tries to start it again without end.
     */
    stored: z.boolean(),
    stop_result: ServiceAction.nullable(),
    start_result: ServiceAction.nullable(),
  }),
])
export type ManagementAnswer = z.infer<typeof ManagementAnswer>

/** The exit status of an `exec` with this answer. For an unknown command it is `REFUSED`. */
export const exitCodeOf = (answer: ManagementAnswer): number =>
  answer.ok ? 0 : answer.error_type === 'validation_error' ? 2 : 1

/** The status of shells for an unknown command. */
export const REFUSED = 127
