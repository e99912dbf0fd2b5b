import { mkdtempSync, rmSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runCommandLine, type CommandLine } from '../../../cloud/cli/command-line.ts'
import { hubCommands } from '../../../cloud/cli/hubs.ts'
import { keyCommands } from '../../../cloud/cli/keys.ts'
import { productCommands } from '../../../cloud/cli/products.ts'
import { openDatabase } from '../../../cloud/platform/store/database.ts'
import { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { scopes } from '../../../protocol/model/scopes.ts'
import { upcCheckDigit } from '../../../protocol/model/upc.ts'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import type { SeedResult } from '../../../simulator/demo/places.ts'
import { packageRoot } from '../../support/programs.ts'

/** An operator sets up the first hub of cell 1, with the commands of the command line. Prints a `SeedResult`. */
const runtime = systemRuntime()
const environment = { ...process.env, CELL: '1', MQTT_URL: '' }

/** Number of products, each in one row of cabinet 1. */
const PRODUCTS = 4
const UNITS = 6
const OWNER = 'Lakeside Vending'

async function operator<T>(commands: CommandLine, ...args: string[]): Promise<T> {
  const { exitCode, stdout, stderr } = await runCommandLine(commands, runtime, args, environment)
  if (exitCode !== 0) throw new Error(stderr)
  return JSON.parse(stdout) as T
}

const optionsOf = (values: Readonly<Record<string, string>>): string[] =>
  Object.entries(values).map(([name, value]) => `--${name}=${value}`)

const folder = mkdtempSync(join(tmpdir(), 'larder-cell-'))
try {
  process.stdout.write(JSON.stringify(await setUp()))
} finally {
  rmSync(folder, { recursive: true })
}

async function setUp(): Promise<SeedResult> {
  const hub = await operator<{ hub_id: number; name: string; mqtt_password: string }>(
    hubCommands,
    'create',
    ...optionsOf({
      'new-owner': OWNER,
      name: 'Lakeside',
      street: '1 Shore Road',
      city: 'Duluth',
      state: 'MN',
      'postal-code': '55802',
      latitude: '46.78',
      longitude: '-92.1',
      timezone: 'America/Chicago',
    }),
  )
  await operator(hubCommands, 'set-layout', `${hub.hub_id}`, '--hardware', hardwareOf(hub.hub_id))
  const file = join(folder, 'products.json')
  const rows = Array.from({ length: PRODUCTS }, (_, index) => ({ cabinet: 1, shelf: 1, row: index + 1 }))
  writeFileSync(file, JSON.stringify(rows.map((facing, index) => productAt(facing, index))))
  await operator(productCommands, 'import', '--hub', `${hub.hub_id}`, '--file', file)
  const key = (name: string) =>
    operator<{ api_key: string }>(
      keyCommands,
      'create',
      ...optionsOf({
        owner: OWNER,
        name,
        hubs: '*',
        scopes: scopes.filter((scope) => !scope.startsWith('diag:')).join(),
      }),
    )
  const owner = await key('owner')
  return {
    owner,
    other_owner: { ...owner, hub_id: hub.hub_id },
    diag: owner,
    hubs: [{ hub_id: hub.hub_id, name: hub.name }],
    mqtt_password: hub.mqtt_password,
    shelves: await shelvesOf(hub.hub_id),
  }
}

function productAt(facing: { cabinet: number; shelf: number; row: number }, index: number) {
  const digits = String(index + 1).padStart(11, '0')
  return {
    upc: digits + upcCheckDigit(digits),
    name: `Product ${index + 1}`,
    category: 'Drinks',
    price: 250 + index,
    purchase_price: 100,
    quantity: UNITS,
    facings: [facing],
  }
}

/** The demo's hardware for this hub. Returns its file. */
function hardwareOf(hubId: number): string {
  const template = join(packageRoot(), 'simulator/hardware/demo-hub.json')
  const hardware = HardwareDescription.parse(JSON.parse(readFileSync(template, 'utf8')))
  const file = join(folder, 'hardware.json')
  writeFileSync(file, JSON.stringify({ ...hardware, hubId }))
  return file
}

async function shelvesOf(hubId: number): Promise<SeedResult['shelves']> {
  const db = openDatabase({ url: process.env['DATABASE_URL']! })
  try {
    const facings = await db.kysely.selectFrom('facings').selectAll().where('hub_id', '=', hubId).execute()
    return facings.map(({ cabinet, shelf, row, product_id }) => ({
      cabinet,
      shelf,
      row,
      product_id,
      units: UNITS,
    }))
  } finally {
    await db.close()
  }
}
