import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { z } from 'zod'
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
  const { DATABASE_URL: url } = read.settings
  if (/^sqlite:[^:]/.test(url)) mkdirSync(dirname(url.slice('sqlite:'.length)), { recursive: true })
  const db = openDatabase({ url })
  try {
    await db.migrate()
    process.stdout.write(`${JSON.stringify(await seedDemo(db, systemRuntime()), null, 2)}\n`)
  } finally {
    await db.close()
  }
}
