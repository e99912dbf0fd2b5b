import { readFileSync } from 'node:fs'
import { isAbsolute, resolve } from 'node:path'
import { z } from 'zod'
import { parseGpioAddress, type GpioAddress } from '../protocol/gpio/socket.ts'
import { serverBounds } from '../protocol/model/bound-server.ts'
import { allowInsecure, isLoopback, refusedExposures } from '../protocol/model/exposure.ts'
import { HardwareDescription } from '../protocol/model/hardware.ts'
import {
  limits,
  numberText,
  oneOf,
  optionalText,
  port,
  hostText,
  text,
  type SettingsOf,
  type SettingsTable,
} from '../protocol/model/program-settings.ts'
import { shutdownTimeout } from '../protocol/model/stopping.ts'
import type { LoadedRow } from './physics/world-state.ts'

/** `bins=unix:/tmp/bins.sock,cold=tcp:127.0.0.1:9001` */
function readBoards(text: string, ctx: z.RefinementCtx): ReadonlyMap<string, GpioAddress> {
  const boards = new Map<string, GpioAddress>()
  for (const one of text.split(',').filter((part) => part.trim() !== '')) {
    const split = one.indexOf('=')
    const id = one.slice(0, Math.max(0, split)).trim()
    const address = parseGpioAddress(one.slice(split + 1).trim())
    if (id === '' || !address)
      ctx.addIssue({ code: 'custom', message: `${one}: must be ID=unix:PATH or ID=tcp:HOST:PORT` })
    else boards.set(id, address)
  }
  return boards
}

/** Every setting of the simulator; `--help` prints this table. */
export const simulatorSettings = {
  SIMULATOR_HOST: hostText('Address that the HTTP interface listens on.', '127.0.0.1'),
  SIMULATOR_ALLOWED_HOSTS: optionalText(
    'Names, separated by commas, under which the HTTP interface answers, in addition to addresses and localhost.',
  ),
  SIMULATOR_PORT: port(8082, 'Port of the HTTP interface; 0 takes any free one.'),
  bounds: serverBounds('SIMULATOR', {
    maxConnections: 200,
    connectionsPerNetwork: 150,
    requestTimeoutMs: 20_000,
  }),
  ALLOW_INSECURE: allowInsecure(
    ['open-console'],
    'open-console: let others than this machine reach the HTTP interface, which asks for no credential. Without it SIMULATOR_HOST must be a loopback address.',
  ),
  DATA_DIR: text(
    'Folder of all data: the worlds, the memories of the controllers, and links to the serial ports if hardware.json has relative paths.',
    'data',
  ),
  HARDWARE_FILES: text(
    'Hardware description of each simulated hub; several are separated by commas.',
    'simulator/hardware/demo-hub.json',
  ),
  SHELVES_FILE: optionalText(
    "Content of the first hub's shelves at the first start: JSON, [{cabinet, shelf, row, product_id, units}]. Without it every row is full. Later starts keep the content.",
  ),
  DEMO_FILE: optionalText(
    'demo.json of the demo that this simulator is part of: scenarios reach its cloud and its hub by it. Without it they have hardware alone.',
  ),
  HUB_URL: optionalText(
    'Address of the first hub’s own page for a technician’s telephone. The console shows its login as a QR code.',
  ),
  HUB_TOKEN_FILE: optionalText("File with the token of that hub's page: <STORE>.token."),
  GPIO_SOCKET: optionalText(
    'Address of the first hub’s GPIO lines: unix:PATH or tcp:HOST:PORT. Other hubs have DATA_DIR/gpio-<hub>.sock. Default: unix:DATA_DIR/gpio-<hub>.sock',
  ),
  BOARDS: {
    schema: z.string().transform(readBoards).default(new Map()),
    describe:
      'Controllers of the first hub whose firmware is a program of yours, each with the address at which its board is served (simulator/board/SPEC.md): ID=unix:PATH or ID=tcp:HOST:PORT; several are separated by commas.',
  },
  shutdownTimeoutMs: shutdownTimeout,
  SIMULATOR_SPEED: {
    schema: z
      .string()
      .regex(/^\d+(\.\d+)?$/, 'must be a number')
      .transform(Number)
      .refine((value) => value >= 0.01 && value <= 1000, 'must be between 0.01 and 1000'),
    describe: 'Factor by which the mechanisms and the temperatures are faster than real ones.',
    standard: '1',
  },
  ...limits('Console', {
    SIMULATOR_LIVE_MS: {
      schema: numberText(20, 60_000),
      describe: 'Time between two updates of an open page, in milliseconds.',
      standard: '100',
    },
    SIMULATOR_WIRE_KEPT: {
      schema: numberText(1, 1_000_000),
      describe: 'Number of frames, edges and motions of each hub that are kept for the console.',
      standard: '20000',
    },
  }),
  SIMULATOR_SEED: {
    schema: numberText(0, 4_294_967_295).optional(),
    describe: 'Seed of the random faults. With the same seed they are the same. Default: a random seed.',
  },
  LOG_LEVEL: oneOf(
    ['debug', 'info', 'warn', 'error', 'silent'],
    'info',
    'debug, info, warn, error or silent; written to standard error.',
  ),
} satisfies SettingsTable

export type SimulatorSettings = SettingsOf<typeof simulatorSettings>

/** Problems of the addresses that it listens on. */
export const exposed = ({ SIMULATOR_HOST, ALLOW_INSECURE }: SimulatorSettings): string[] => {
  const problem =
    !isLoopback(SIMULATOR_HOST) &&
    `SIMULATOR_HOST: every caller who reaches ${SIMULATOR_HOST} may do anything there`
  return refusedExposures([{ name: 'open-console', problems: [problem] }], ALLOW_INSECURE)
}

/** A file that was given and cannot be used; the message names the setting. */
export class SettingError extends Error {}

/** Reads the hardware descriptions. */
export function readHardware({ HARDWARE_FILES }: SimulatorSettings): HardwareDescription[] {
  const hubs = HARDWARE_FILES.split(',').map((path) => {
    const parsed = HardwareDescription.safeParse(readJson('HARDWARE_FILES', path.trim()))
    if (parsed.success) return parsed.data
    throw new SettingError(`HARDWARE_FILES: ${path.trim()}: ${z.prettifyError(parsed.error)}`)
  })
  const ids = hubs.map(({ hubId }) => hubId)
  const twice = ids.find((id, index) => ids.indexOf(id) !== index)
  if (twice !== undefined) throw new SettingError(`HARDWARE_FILES: hub ${twice} is described twice`)
  return hubs
}

/** The boards of the first hub that are served. */
export function openBoards(
  { BOARDS }: SimulatorSettings,
  [first]: readonly HardwareDescription[],
): ReadonlyMap<string, GpioAddress> {
  const ids = first!.controllers.map(({ id }) => id)
  const foreign = [...BOARDS.keys()].find((id) => !ids.includes(id))
  if (foreign !== undefined)
    throw new SettingError(`BOARDS: ${foreign} is no controller of hub ${first!.hubId}: ${ids.join(', ')}`)
  return BOARDS
}

const Shelves = z.array(
  z.object({
    cabinet: z.int().min(1),
    shelf: z.int().min(1),
    row: z.int().min(1),
    product_id: z.int().nullable(),
    units: z.int().min(0),
  }),
)

export function readShelves({ SHELVES_FILE }: SimulatorSettings): LoadedRow[] | undefined {
  if (SHELVES_FILE === undefined) return undefined
  const parsed = Shelves.safeParse(readJson('SHELVES_FILE', SHELVES_FILE))
  if (parsed.success) return parsed.data
  throw new SettingError(`SHELVES_FILE: ${SHELVES_FILE}: ${z.prettifyError(parsed.error)}`)
}

function readJson(setting: string, path: string): unknown {
  try {
    return JSON.parse(readFileSync(path, 'utf8'))
  } catch (error) {
    throw new SettingError(`${setting}: ${path}: ${(error as Error).message}`)
  }
}

/** A controller's `port` as a path: relative ones are below the data folder. */
export const portPath = (dataDir: string, port: string): string =>
  isAbsolute(port) ? port : resolve(dataDir, port)
