import { resolve } from 'node:path'
import { z } from 'zod'
import { helpText, numberText, readSettings, type SettingsOf } from '../../protocol/model/program-settings.ts'

const port = numberText(1, 65_535)

export const demoTable = {
  PORT: { schema: port, describe: "The cloud's HTTP port.", standard: '8080' },
  EDGE_PORT: { schema: port, describe: "The port of the hub's local interface.", standard: '8081' },
  SIMULATOR_PORT: { schema: port, describe: "The port of the simulator's interface.", standard: '8082' },
  MANAGEMENT_PORT: {
    schema: port,
    describe: "The port of the hub's management service (SSH).",
    standard: '8083',
  },
  MQTT_PORT: { schema: port, describe: "The port of the cloud's MQTT broker.", standard: '18830' },
  DATA_DIR: { schema: z.string().min(1), describe: 'Where everything is kept.', standard: 'data' },
  GPIO: {
    schema: z.enum(['auto', 'sysfs', 'socket']),
    describe:
      'How the hub reaches its GPIO lines: onoff on a simulated /sys/class/gpio (needs /dev/fuse and a mount namespace), or a socket. auto: the first where it can be had.',
    standard: 'auto',
  },
  GPIO_BASE: {
    schema: numberText(0, 100_000),
    describe: "The number of the first pin of the simulated chip, with GPIO 'sysfs'.",
    standard: '512',
  },
} as const

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
  helpText(usage, demoTable).replace(' or from a JSON file of the same names (--config FILE)', '')

/** What is neither development nor a test may be meant to be production. */
function refusedEnvironment(name: string | undefined): string[] {
  if (!name || name === 'development' || name === 'test') return []
  return [
    name === 'production'
      ? 'NODE_ENV: the demo is refused with production'
      : 'NODE_ENV: must be development or test',
  ]
}

/** Reads command line and environment; a list says what is wrong with them. */
export function readDemoSettings(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): { ok: true; settings: DemoSettings } | { ok: false; problems: string[] } {
  const given: Record<string, string | undefined> = { ...environment }
  // Its cloud takes play money, and anybody for whom they say they are (contract §13).
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
