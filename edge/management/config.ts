import {
  helpText,
  numberText,
  readSettings,
  type SettingsOf,
  type SettingsTable,
} from '../../protocol/model/program-settings.ts'
import { z } from 'zod'
import type { HardwareDescription } from '../../protocol/model/hardware.ts'
import { readHardware, readText, type ConfigResult as Result } from '../config.ts'

/** Who starts and stops the hub's service. */
export type Manager =
  { kind: 'systemd'; unit: string } | { kind: 'supervisor'; socket: string; program: string }

/** Starting waits until the service is ready. By default stopping and starting end before the cloud gives up (40 s). */
const LONGEST_MS = 60_000

const manager = z
  .string()
  .transform((text): Manager | undefined => {
    const systemd = /^systemd:([\w@.-]+)$/.exec(text)
    if (systemd) return { kind: 'systemd', unit: systemd[1]! }
    const supervisor = /^supervisor:(.+)#([\w-]+)$/.exec(text)
    return supervisor ? { kind: 'supervisor', socket: supervisor[1]!, program: supervisor[2]! } : undefined
  })
  .refine((found) => found !== undefined, 'must be systemd:UNIT or supervisor:SOCKET#PROGRAM')

/** Every setting of the management service. */
export const managementSettings = {
  HARDWARE: {
    schema: z.string().min(1),
    required: true,
    describe: "The file (JSON) that describes the hub's hardware: the same as the hub's service has.",
  },
  STORE: {
    schema: z.string().min(1),
    standard: 'data/hub.sqlite',
    describe: "The hub's journal: the same as the hub's service has.",
  },
  AUTHORIZED_KEYS: {
    schema: z.string().min(1),
    required: true,
    describe:
      'A file of public keys that may log in, as OpenSSH writes them, one a line: ed25519, ecdsa, or rsa of 2048 bits or more. Read at each login.',
  },
  HOST_KEY: {
    schema: z.string().min(1).optional(),
    describe:
      "This service's own private key. Made at the first start, for its owner's eyes only, and kept. Default: <STORE>.host-key.",
  },
  SERVICE: {
    schema: manager,
    standard: 'systemd:larder-edge.service',
    describe:
      "What runs the hub's service: systemd:UNIT, or supervisor:SOCKET#PROGRAM for a supervisor with a local interface (the demo's).",
  },
  HOST: {
    schema: z.string().min(1),
    standard: '127.0.0.1',
    describe: 'The address at which it listens; 0.0.0.0 opens it to every network of the board.',
  },
  PORT: {
    schema: numberText(0, 65_535),
    standard: '8083',
    describe: 'The port at which it listens; 0 takes any.',
  },
  STOP_TIMEOUT_MS: {
    schema: numberText(1, LONGEST_MS),
    standard: '8000',
    describe:
      "The hub's service is killed where it has not ended so long after it was asked to. Milliseconds.",
  },
  START_TIMEOUT_MS: {
    schema: numberText(1, LONGEST_MS),
    standard: '20000',
    describe: "How long the hub's service may take until it is ready. Milliseconds.",
  },
  LOG_LEVEL: {
    schema: z.enum(['debug', 'info', 'warn', 'error']),
    standard: 'info',
    describe: 'debug, info, warn or error; every login and command is told at info.',
  },
} as const satisfies SettingsTable

export interface ManagementConfig extends Omit<
  SettingsOf<typeof managementSettings>,
  'HARDWARE' | 'SERVICE'
> {
  HOST_KEY: string
  hardware: HardwareDescription
  manager: Manager
}

export type ConfigResult =
  | Exclude<Result, { kind: 'config' }>
  | { kind: 'config'; config: ManagementConfig; task: 'serve' | 'print-host-key' }

const USAGE = `Usage: npm run management -- [--config FILE] [--host-key] [--help]

The hub's management service: an SSH server beside the hub's own service, which works while that one hangs.

  --host-key  prints, as JSON, the host key by which the cloud knows this hub; makes it where there is none yet`

/** Reads the configuration from the program's arguments and environment. */
export function readManagementConfig(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): ConfigResult {
  if (args.includes('--help')) return { kind: 'help', text: helpText(USAGE, managementSettings) }
  const [option, path, ...rest] = args.filter((arg) => arg !== '--host-key')
  if (option !== undefined && (option !== '--config' || path === undefined || rest.length > 0))
    return { kind: 'problems', problems: [`not understood: ${args.join(' ')}`, USAGE.split('\n')[0]!] }
  const problems: string[] = []
  const text = path === undefined ? undefined : readText('--config', path, problems)
  if (problems.length > 0) return { kind: 'problems', problems }
  const file = path === undefined || text === undefined ? undefined : { path, text }
  const read = readSettings(managementSettings, environment, file)
  if (!read.ok) return { kind: 'problems', problems: read.problems }
  const { HARDWARE, SERVICE, ...settings } = read.settings
  const hardware = readHardware(HARDWARE, problems)
  readText('AUTHORIZED_KEYS', settings.AUTHORIZED_KEYS, problems)
  if (!hardware || problems.length > 0) return { kind: 'problems', problems }
  const HOST_KEY = settings.HOST_KEY ?? `${settings.STORE}.host-key`
  const task = args.includes('--host-key') ? 'print-host-key' : 'serve'
  return { kind: 'config', config: { ...settings, HOST_KEY, hardware, manager: SERVICE }, task }
}
