import { resolve } from 'node:path'
import {
  helpText,
  oneOf,
  port,
  readSettings,
  text,
  wholeNumber,
  type SettingsOf,
  type SettingsTable,
} from '../../protocol/model/program-settings.ts'
import { shutdownTimeout } from '../../protocol/model/stopping.ts'

const DATA_DIR = 'data'
export const standardDataDir = resolve(DATA_DIR)

export const demoTable = {
  PORT: port(8080, 'HTTP port of the cloud.', 1),
  EDGE_PORT: port(8081, "Port of the hub's local interface.", 1),
  SIMULATOR_PORT: port(8082, "Port of the simulator's interface.", 1),
  MANAGEMENT_PORT: port(8083, "Port of the hub's management service (SSH).", 1),
  MQTT_PORT: port(18830, "Port of the cloud's MQTT broker.", 1),
  DATA_DIR: text('Folder of all data of the demo.', DATA_DIR),
  shutdownTimeoutMs: shutdownTimeout,
  GPIO: oneOf(
    ['auto', 'sysfs', 'socket'],
    'auto',
    'Access of the hub to its GPIO lines: sysfs (onoff on a simulated /sys/class/gpio, which needs /dev/fuse and a mount namespace) or socket. auto takes sysfs if it is available.',
  ),
  GPIO_BASE: wholeNumber(
    [0, 100_000],
    512,
    "Number of the first pin of the simulated chip, with GPIO 'sysfs'.",
  ),
} satisfies SettingsTable

export const demoPorts = ['PORT', 'EDGE_PORT', 'SIMULATOR_PORT', 'MANAGEMENT_PORT', 'MQTT_PORT'] as const

export interface DemoSettings extends SettingsOf<typeof demoTable> {
  /** Drop what earlier starts left. */
  fresh: boolean
}

const usage = `Starts the demo: a cloud with its broker, hub 1 and the simulator of its hardware.

  npm start [-- --fresh] [-- --gpio auto|sysfs|socket]

  --fresh    drops the data of earlier starts
  --gpio     as the setting GPIO
  --help     this text`

export const demoHelp = (): string =>
  helpText(usage, demoTable, true).replace(' or from a JSON file of the same names (--config FILE)', '')

/** Refuses every NODE_ENV but development and test, because another value may mean production. */
function refusedEnvironment(name: string | undefined): string[] {
  if (!name || name === 'development' || name === 'test') return []
  return [
    name === 'production'
      ? 'NODE_ENV: the demo is refused with production'
      : 'NODE_ENV: must be development or test',
  ]
}

/** Reads command line and environment. Returns the list of problems, if there are any. */
export function readDemoSettings(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): { ok: true; settings: DemoSettings } | { ok: false; problems: string[] } {
  const given: Record<string, string | undefined> = { ...environment }
  // Its cloud takes play money, and anybody for whom they say they are.
  const problems = refusedEnvironment(environment['NODE_ENV'])
  let fresh = false
  for (let index = 0; index < argv.length; index++) {
    const [word, value] = argv[index]!.split('=', 2)
    if (word === '--fresh' && value === undefined) fresh = true
    else if (word === '--gpio') {
      given['GPIO'] = value ?? argv[++index]
      if (!given['GPIO']) problems.push('--gpio: needs auto, sysfs or socket')
    } else if (word !== '--help') problems.push(`${argv[index]}: no such option; --help lists them`)
  }
  const read = readSettings(demoTable, given)
  if (!read.ok) return { ok: false, problems: [...problems, ...read.problems] }
  if (problems.length > 0) return { ok: false, problems }
  return { ok: true, settings: { ...read.settings, DATA_DIR: resolve(read.settings.DATA_DIR), fresh } }
}
