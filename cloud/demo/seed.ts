import { mkdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import { helpText, readSettings, type SettingsTable } from '../../protocol/model/program-settings.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { openDatabase } from '../store/database.ts'
import { seedDemo } from './seed-database.ts'

const table = {
  DATABASE_URL: {
    schema: z.string().regex(/^(sqlite:|postgres(ql)?:)/, 'must begin with sqlite: or postgres:'),
    describe: 'The empty database to fill: sqlite:PATH or postgres://…',
    standard: 'sqlite:data/cloud/larder.sqlite',
  },
  HARDWARE: {
    schema: z.string().min(1).optional(),
    describe: "The file (JSON) that describes the hubs' hardware: their layout is made from it.",
  },
} satisfies SettingsTable

await main()

/** Fills an empty database with the demo's data and prints, as JSON, the keys and passwords that came of it. */
async function main(): Promise<void> {
  if (process.argv.includes('--help')) {
    process.stdout.write(
      helpText('Fills an empty database with the demo’s data; prints its keys as JSON.', table),
    )
    return
  }
  const read = readSettings(table, process.env)
  if (!read.ok) {
    process.stderr.write(`${read.problems.join('\n')}\n`)
    process.exitCode = 1
    return
  }
  const { DATABASE_URL: url, HARDWARE: file } = read.settings
  const hardware =
    file === undefined ? undefined : HardwareDescription.parse(JSON.parse(readFileSync(file, 'utf8')))
  if (/^sqlite:[^:]/.test(url)) mkdirSync(dirname(url.slice('sqlite:'.length)), { recursive: true })
  const db = openDatabase({ url })
  try {
    await db.migrate()
    process.stdout.write(`${JSON.stringify(await seedDemo(db, systemRuntime(), hardware), null, 2)}\n`)
  } finally {
    await db.close()
  }
}
