import { z } from 'zod'
import { ServiceAction } from '../management/answer.ts'
import { Id } from './fields.ts'
import { defineRoutes, type Route } from './route.ts'

/** O §4.6: the bin's range is not stated; a bin that the hub does not have is a `validation_error`. */
const query = z.object({ bin: z.int().min(0), hub: Id })

const Done = z.object({
  status: z.literal('ok'),
  result: z.object({
    success: z.literal(true),
    hub_id: z.int(),
    bin_number: z.int(),
    /** The bin's number where it was enabled, null where it was disabled. */
    enabled_bin: z.int().nullable(),
    /** Every bin that the hub's stored configuration disables now. */
    disabled_bins: z.array(z.int()),
    stop_result: ServiceAction.nullable(),
    start_result: ServiceAction.nullable(),
  }),
})

const Failed = z.object({
  status: z.literal('error'),
  result: z.object({
    success: z.literal(false),
    error: z.string(),
    error_type: z.enum([
      'validation_error',
      'connection_error',
      'authentication_error',
      'timeout',
      'command_failed',
    ]),
    /** As sent; null where it was missing or no integer. */
    hub_id: z.int().nullable(),
    bin_number: z.int().nullable(),
  }),
})
export type SshFailure = z.infer<typeof Failed>

export const sshFailure = (
  error_type: SshFailure['result']['error_type'],
  error: string,
  place: { hub_id: number | null; bin_number: number | null },
): SshFailure => ({ status: 'error', result: { success: false, error, error_type, ...place } })

const integerOf = (text: string | undefined): number | null => {
  const value = /^\d+$/.test(text ?? '') ? Number(text) : NaN
  return Number.isSafeInteger(value) ? value : null
}

const overSsh = (name: 'enable_bin_ssh' | 'disable_bin_ssh', summary: string, enabled: boolean) =>
  ({
    method: 'POST',
    path: `/owners/controls/${name}`,
    interface: 'owner',
    auth: { kind: 'api', scope: 'controls:write' },
    rate: 'standard',
    query,
    hub: 'hub',
    response: z.discriminatedUnion('status', [Done, Failed]),
    /** O §4.6: 200 in both outcomes. */
    invalidBody: (given, message) =>
      sshFailure('validation_error', message, {
        hub_id: integerOf(given['hub']),
        bin_number: integerOf(given['bin']),
      }),
    idempotent: true,
    tag: 'Controls',
    summary,
    description:
      "Works while the hub's service hangs or its MQTT is cut: the management service on the hub, reached by SSH, stores the change and restarts the hub's service, by force where it does not end by itself. Takes as long as that does (seconds). Status 200 in both outcomes: `status` says which. `error_type`: `validation_error` (no such bin at the hub, or invalid parameters), `connection_error`, `authentication_error` (the hub refuses the cloud's key, or its host key is not the pinned one), `timeout` (nobody knows yet whether it was done), `command_failed`. `enabled_bin` is null where the bin was disabled.",
    examples: {
      response: {
        status: 'ok',
        result: {
          success: true,
          hub_id: 1,
          bin_number: 2,
          enabled_bin: enabled ? 2 : null,
          disabled_bins: enabled ? [] : [2],
          stop_result: { exit_code: 0, duration_ms: 140, output: 'the edge ended' },
          start_result: { exit_code: 0, duration_ms: 820, output: 'the edge runs as process 4711' },
        },
      },
    },
  }) as const satisfies Route

/** O §4.6, contract §6: bins over the management channel. */
export const ownerManagementRoutes = defineRoutes({
  'owner.controls.enable_bin_ssh': overSsh('enable_bin_ssh', 'Enable a bin over SSH', true),
  'owner.controls.disable_bin_ssh': overSsh('disable_bin_ssh', 'Disable a bin over SSH (maintenance)', false),
})
