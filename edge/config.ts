import { readFileSync } from 'node:fs'
import { z } from 'zod'
import { parseGpioAddress, type GpioAddress } from '../protocol/gpio/socket.ts'
import { HardwareDescription } from '../protocol/model/hardware.ts'
import {
  helpText,
  numberText,
  readSettings,
  type SettingsOf,
  type SettingsTable,
} from '../protocol/model/program-settings.ts'
import { defaultHubSettings as standard, type HubSettings } from './settings.ts'

/** What a frame of the serial protocol can carry (SPEC §3, `max`). */
const LONGEST_MOTION_MS = 600_000

const milliseconds = (standardMs: number, describe: string, max = 24 * 3_600_000) => ({
  schema: numberText(1, max),
  standard: String(standardMs),
  describe: `${describe} Milliseconds.`,
})

const gpio = z
  .string()
  .transform((text): GpioMount | undefined => {
    if (text === 'none' || text === 'onoff') return { kind: text }
    const address = parseGpioAddress(text)
    return address && { kind: 'socket', address }
  })
  .refine((mount) => mount !== undefined, 'must be onoff, none, unix:PATH or tcp:HOST:PORT')

/** How GPIO lines are reached: sysfs through onoff, a socket, or not at all. */
export type GpioMount = { kind: 'onoff' | 'none' } | { kind: 'socket'; address: GpioAddress }

/** Every setting of the hub's service. */
export const edgeSettings = {
  HARDWARE: {
    schema: z.string().min(1),
    required: true,
    describe: "The file (JSON) that describes the hub's hardware and names the hub.",
  },
  STORE: {
    schema: z.string().min(1),
    standard: 'data/hub.sqlite',
    describe: "The hub's journal, one SQLite file. Its folder is made where it is missing.",
  },
  MQTT_URL: {
    schema: z.string().regex(/^mqtts?:\/\/\S+$/, 'must begin with mqtt:// or mqtts://'),
    standard: 'mqtt://127.0.0.1:18830',
    describe: "The cloud's broker.",
  },
  MQTT_PASSWORD: {
    schema: z.string().min(1),
    required: true,
    describe: "The hub's secret at the broker; its user name is hub-<hubId>.",
  },
  MQTT_CA: {
    schema: z.string().min(1).optional(),
    describe: "A PEM file of authorities to trust with mqtts://. The system's where it is not set.",
  },
  HOST: {
    schema: z.string().min(1),
    standard: '127.0.0.1',
    describe: 'The address at which the local API listens; 0.0.0.0 opens it to the LAN.',
  },
  PORT: {
    schema: numberText(0, 65_535),
    standard: '8081',
    describe: "The port of the local API and of the technician's page; 0 takes any.",
  },
  LOCAL_TOKEN: {
    schema: z.string().min(16, 'must have at least 16 characters').optional(),
    describe:
      'The token of the local API. Where it is not set, one is made and kept in the file <STORE>.token.',
  },
  GPIO: {
    schema: gpio,
    standard: 'onoff',
    describe:
      "Locks and door sensors: onoff (sysfs), unix:PATH or tcp:HOST:PORT (a simulator's socket), or none.",
  },
  LOG_LEVEL: {
    schema: z.enum(['debug', 'info', 'warn', 'error']),
    standard: 'info',
    describe: 'debug, info, warn or error.',
  },
  DOOR_MAX_MS: milliseconds(
    standard.core.maxMs.open_door,
    "A bin's door is switched off after this long.",
    LONGEST_MOTION_MS,
  ),
  LIFT_MAX_MS: milliseconds(
    standard.core.maxMs.raise_lift,
    "A bin's lift is switched off after this long.",
    LONGEST_MOTION_MS,
  ),
  DISPENSE_MAX_MS: milliseconds(
    standard.core.maxMs.dispense,
    "A row's motor is switched off after this long.",
    LONGEST_MOTION_MS,
  ),
  CLOSE_AFTER_EMPTY_MS: milliseconds(
    standard.core.closeAfterEmptyMs,
    "A bin's door closes when the bin has been empty for so long.",
  ),
  UNLOCK_MAX_MS: milliseconds(
    standard.core.maxUnlockMs,
    'The longest time for which a door can be unlocked.',
  ),
  MAIN_UNLOCK_MS: milliseconds(
    standard.core.mainUnlockMs,
    'For how long a command from afar unlocks the main door.',
  ),
  FRIDGE_UNLOCK_MS: milliseconds(
    standard.core.fridgeUnlockMs,
    "For how long a command from afar unlocks a fridge's door.",
  ),
  SERIAL_PING_MS: milliseconds(standard.links.pingMs, 'The heartbeat of the serial lines.'),
  SERIAL_SILENT_MS: milliseconds(
    standard.links.silentMs,
    'A serial port is opened anew when its controller has not answered for so long.',
  ),
  HEARTBEAT_MS: milliseconds(standard.sync.heartbeatMs, 'The heartbeat to the cloud.'),
} as const satisfies SettingsTable

export interface EdgeConfig {
  hardware: HardwareDescription
  store: string
  mqtt: { url: string; password: string; ca: string | undefined }
  local: { host: string; port: number; token: string | undefined }
  gpio: GpioMount
  logLevel: 'debug' | 'info' | 'warn' | 'error'
  hub: HubSettings
}

export type ConfigResult =
  | { kind: 'config'; config: EdgeConfig }
  | { kind: 'help'; text: string }
  | { kind: 'problems'; problems: string[] }

const USAGE = 'Usage: npm run edge -- [--config FILE] [--help]'

/** Reads the configuration from the program's arguments and environment. */
export function readConfig(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): ConfigResult {
  if (args.includes('--help')) return { kind: 'help', text: helpText(USAGE, edgeSettings) }
  const [option, path, ...rest] = args
  if (option !== undefined && (option !== '--config' || path === undefined || rest.length > 0))
    return { kind: 'problems', problems: [`not understood: ${args.join(' ')}`, USAGE] }
  const problems: string[] = []
  const text = path === undefined ? undefined : readText('--config', path, problems)
  if (problems.length > 0) return { kind: 'problems', problems }
  const file = path === undefined || text === undefined ? undefined : { path, text }
  const read = readSettings(edgeSettings, environment, file)
  if (!read.ok) return { kind: 'problems', problems: read.problems }
  const { settings } = read
  const hardware = readHardware(settings.HARDWARE, problems)
  const ca = settings.MQTT_CA === undefined ? undefined : readText('MQTT_CA', settings.MQTT_CA, problems)
  if (!hardware || problems.length > 0) return { kind: 'problems', problems }
  return {
    kind: 'config',
    config: {
      hardware,
      store: settings.STORE,
      mqtt: { url: settings.MQTT_URL, password: settings.MQTT_PASSWORD, ca },
      local: { host: settings.HOST, port: settings.PORT, token: settings.LOCAL_TOKEN },
      gpio: settings.GPIO,
      logLevel: settings.LOG_LEVEL,
      hub: hubSettings(settings),
    },
  }
}

/** Reads the hardware's description from the file that `HARDWARE` names; what is wrong with it goes to `problems`. */
export function readHardware(path: string, problems: string[]): HardwareDescription | undefined {
  const text = readText('HARDWARE', path, problems)
  if (text === undefined) return undefined
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch (error) {
    problems.push(`HARDWARE: ${path} is not valid JSON (${String(error)})`)
    return undefined
  }
  const result = HardwareDescription.safeParse(json)
  if (result.success) return result.data
  for (const { path: where, message } of result.error.issues)
    problems.push(`HARDWARE: ${path}: ${where.length > 0 ? `${where.join('.')}: ` : ''}${message}`)
  return undefined
}

/** The text of the file that a setting names; `problems` says why it cannot be read. */
export function readText(setting: string, path: string, problems: string[]): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    problems.push(
      `${setting}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code ?? String(error)})`,
    )
    return undefined
  }
}

function hubSettings(settings: SettingsOf<typeof edgeSettings>): HubSettings {
  const { core, links, sync } = standard
  return {
    ...standard,
    core: {
      ...core,
      maxMs: {
        open_door: settings.DOOR_MAX_MS,
        close_door: settings.DOOR_MAX_MS,
        raise_lift: settings.LIFT_MAX_MS,
        lower_lift: settings.LIFT_MAX_MS,
        dispense: settings.DISPENSE_MAX_MS,
      },
      closeAfterEmptyMs: settings.CLOSE_AFTER_EMPTY_MS,
      maxUnlockMs: settings.UNLOCK_MAX_MS,
      mainUnlockMs: settings.MAIN_UNLOCK_MS,
      fridgeUnlockMs: settings.FRIDGE_UNLOCK_MS,
    },
    links: { ...links, pingMs: settings.SERIAL_PING_MS, silentMs: settings.SERIAL_SILENT_MS },
    sync: { ...sync, heartbeatMs: settings.HEARTBEAT_MS },
  }
}
