import '../../protocol/require-node.ts'
import '../../protocol/private-files.ts'
import '../../protocol/closed-output.ts'
import '../light-zod.ts'
import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { z } from 'zod'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import { problemOf } from '../../protocol/model/system-error.ts'
import { NextCell } from '../../protocol/mqtt/session.ts'
import { enrol, makeKey, type Enrolled } from './enrol.ts'
import { prepareMove } from './move.ts'

const USAGE = `Usage: larder enroll --cloud URL --code CODE [--config FILE]

Makes this board a hub: exchanges a claim code of \`larder hubs create\` or \`hubs claim-code\` for a certificate. The key of the
board is made here and never leaves it. Afterwards start the hub's service again.

  --cloud URL     address of the cloud, such as https://larder.example
  --code CODE     claim code: 8 characters, in any case
  --config FILE   configuration of the hub's service, for STORE and HARDWARE

The files are stored beside STORE: hub.key, hub.crt, ca.crt, enrolment.json. The cloud's hardware description is stored as
HARDWARE (by default hardware.json beside STORE) if that file is absent. If the file differs, it stays, and the hub tries the
cloud's description when it runs. A damaged file, or a file of another hub, gets the ending .former. Prints JSON. Status 1 if the code is refused, the cloud is not reached, or the journal belongs
to another hub.`

class WrongUsage extends Error {}

const Settings = z.looseObject({ STORE: z.string().optional(), HARDWARE: z.string().optional() })

/** STORE and HARDWARE: from the environment, else from the configuration. */
function settingsIn(config: string | undefined) {
  const file = config === undefined ? {} : Settings.parse(JSON.parse(readFileSync(config, 'utf8')))
  const { STORE = file.STORE, HARDWARE = file.HARDWARE } = process.env
  return { store: STORE || 'data/hub.sqlite', hardware: HARDWARE || undefined }
}

function read() {
  try {
    const text = { type: 'string' } as const
    const { values } = parseArgs({ options: { cloud: text, code: text, config: text } })
    const { cloud, code, config } = values
    if (!cloud || !code) throw new Error('--cloud and --code are needed')
    if (!/^https?:\/\/[^/]/.test(cloud) || !URL.canParse(cloud))
      throw new Error('--cloud must be an http(s) address')
    return { cloud, code, config }
  } catch (error) {
    throw new WrongUsage((error as Error).message, { cause: error })
  }
}

const MoveOrder = z.object({ next: NextCell, description: HardwareDescription })

const print = (enrolled: Enrolled): void =>
  void process.stdout.write(`${JSON.stringify(enrolled, null, 2)}\n`)

try {
  if (process.argv.includes('--help')) process.stdout.write(`${USAGE}\n`)
  // The hub's service asks for the key of a renewal: a program that ends gives back the memory.
  else if (process.argv.includes('--new-key')) process.stdout.write(JSON.stringify(await makeKey()))
  // The hub's service moves to another cell, and still uses its files. A claim code must not be in the list of processes.
  else if (process.argv.includes('--move')) {
    const { next, description } = MoveOrder.parse(JSON.parse(readFileSync(0, 'utf8')))
    const { config } = parseArgs({
      options: { config: { type: 'string' }, move: { type: 'boolean' } },
      strict: false,
    }).values
    const place = settingsIn(typeof config === 'string' ? config : undefined)
    print(await prepareMove({ next, description, place, runtime: systemRuntime() }))
  } else {
    const { cloud, code, config } = read()
    print(await enrol({ cloud, code, ...settingsIn(config), runtime: systemRuntime() }))
  }
} catch (error) {
  process.stderr.write(`error: ${problemOf(error)}\n`)
  process.exitCode = error instanceof WrongUsage ? 2 : 1
}
