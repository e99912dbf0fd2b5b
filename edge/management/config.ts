import { z } from 'zod'
import type { HardwareDescription } from '../../protocol/model/hardware.ts'
import { shutdownTimeout } from '../../protocol/model/stopping.ts'
import {
  duration,
  limits,
  oneOf,
  optionalText,
  port,
  requiredText,
  hostText,
  text,
  type SettingsOf,
  type SettingsTable,
} from '../../protocol/model/program-settings.ts'
import { readHardware, readProgram, readText, type Refusal } from '../config.ts'
import { hardwareFile } from '../enrolment/enrolment.ts'

/** The program that starts and stops the hub's service. */
export type Manager =
  { kind: 'systemd'; unit: string } | { kind: 'supervisor'; socket: string; program: string }

/**
 * Starting waits until the service is ready. With the defaults, stopping and starting end before the cloud's
 * timeout (40 s).
 */
const LONGEST_MS = 60_000

const manager = z
  .string()
  .transform((value): Manager | undefined => {
    const systemd = /^systemd:([\w@.-]+)$/.exec(value)
    if (systemd) return { kind: 'systemd', unit: systemd[1]! }
    const supervisor = /^supervisor:(.+)#([\w-]+)$/.exec(value)
    return supervisor ? { kind: 'supervisor', socket: supervisor[1]!, program: supervisor[2]! } : undefined
  })
  .refine((found) => found !== undefined, 'must be systemd:UNIT or supervisor:SOCKET#PROGRAM')

/** Every setting of the management service. */
export const managementSettings = {
  HARDWARE: requiredText(
    "File (JSON) that describes the hub's hardware: the file of the hub's service. If it does not exist: hardware.json beside STORE, which an enrolment creates.",
  ),
  STORE: text("Journal of the hub: the file of the hub's service.", 'data/hub.sqlite'),
  AUTHORIZED_KEYS: requiredText(
    "File of the public keys that may log in, in OpenSSH's format, one a line: ed25519, ecdsa, or rsa of 2048 bits or more. Read at each login.",
  ),
  SERVICE: {
    schema: manager,
    standard: 'systemd:larder-edge.service',
    describe:
      "Supervisor of the hub's service: systemd:UNIT, or supervisor:SOCKET#PROGRAM for a supervisor with a local interface (the demo's).",
  },
  HOST: hostText(
    'Address that the service listens on; 0.0.0.0 opens it to every network of the board.',
    '127.0.0.1',
  ),
  PORT: port(8083, 'Port that the service listens on; 0 takes any.'),
  ...limits('Service', {
    HOST_KEY: optionalText(
      'Private key of this service. The first start makes it, readable only by its owner. Default: <STORE>.host-key.',
    ),
    STOP_TIMEOUT_MS: duration(
      8000,
      "Time after which the hub's service is killed if it has not stopped.",
      LONGEST_MS,
    ),
    START_TIMEOUT_MS: duration(20_000, "Maximum time until the hub's service is ready.", LONGEST_MS),
  }),
  shutdownTimeoutMs: shutdownTimeout,
  LOG_LEVEL: oneOf(
    ['debug', 'info', 'warn', 'error'],
    'info',
    'debug, info, warn or error; every login and command is logged at info.',
  ),
} satisfies SettingsTable

export interface ManagementConfig extends Omit<
  SettingsOf<typeof managementSettings>,
  'HARDWARE' | 'SERVICE'
> {
  HOST_KEY: string
  hardware: HardwareDescription
  manager: Manager
}

export type ConfigResult =
  { kind: 'config'; config: ManagementConfig; task: 'serve' | 'print-host-key' } | Refusal

const USAGE = `Usage: larder management [--config FILE] [--host-key] [--help [--all]]

The hub's management service: an SSH server beside the hub's own service, which works while that one hangs.

  --host-key  prints, as JSON, the host key by which the cloud knows this hub; makes it where there is none yet`

/** Reads the configuration from the program's arguments and environment. */
export function readManagementConfig(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): ConfigResult {
  const own = args.filter((arg) => arg !== '--host-key')
  const read = readProgram(managementSettings, USAGE, own, environment)
  if (read.kind !== 'settings') return read
  const { HARDWARE, SERVICE, ...settings } = read.settings
  const problems: string[] = []
  const hardware = readHardware(hardwareFile({ hardware: HARDWARE, store: settings.STORE }), problems)
  const task = own.length < args.length ? 'print-host-key' : 'serve'
  // The file needs the cloud's key, and the cloud gives its key in exchange for the host key.
  if (task === 'serve') readText('AUTHORIZED_KEYS', settings.AUTHORIZED_KEYS, problems)
  if (!hardware || problems.length > 0) return { kind: 'problems', problems }
  const HOST_KEY = settings.HOST_KEY ?? `${settings.STORE}.host-key`
  return { kind: 'config', config: { ...settings, HOST_KEY, hardware, manager: SERVICE }, task }
}
