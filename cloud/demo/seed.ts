import '../../protocol/require-node.ts'
import '../../protocol/private-files.ts'
import * as files from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { makeFolder } from '../../protocol/model/make-folder.ts'
import { HardwareDescription } from '../../protocol/model/hardware.ts'
import { helpText, readSettings, type SettingsTable } from '../../protocol/model/program-settings.ts'
import { noCheckpoint } from '../../protocol/model/checkpoint.ts'
import { silentLog } from '../../protocol/model/log.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { makeKeys } from '../operations/releases/metadata.ts'
import { defaultMediaUrl } from '../platform/settings/config.ts'
import type { CloudContext } from '../platform/context.ts'
import { createMedia, type Media } from '../platform/media/media.ts'
import { openMediaStore } from '../platform/media/open-store.ts'
import { mediaSigner } from '../platform/media/addresses.ts'
import { defaultLimits } from '../platform/settings/limits.ts'
import { openDatabase } from '../platform/store/database.ts'
import { drawProducts, seedBanners } from './pictures.ts'
import { seedDemo } from './seed-database.ts'
import { noSealer } from '../platform/store/sealer.ts'

const table = {
  DATABASE_URL: {
    schema: z.string().regex(/^(sqlite:|postgres(ql)?:)/, 'must begin with sqlite: or postgres:'),
    describe: 'The empty database to fill: sqlite:PATH or postgres://…',
    standard: 'sqlite:data/cloud/larder.sqlite',
  },
  DATA_DIR: {
    schema: z.string().min(1),
    describe: 'The folder of the cloud’s data, where it keeps images too.',
    standard: 'data/cloud',
  },
  HARDWARE: {
    schema: z.string().min(1).optional(),
    describe: "The file (JSON) that describes the hubs' hardware: their layout is made from it.",
  },
} satisfies SettingsTable

await main()

/** Fills an empty database with the demo's data and prints the resulting keys and passwords as JSON. */
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
  const { DATABASE_URL: url, DATA_DIR: dataDir, HARDWARE: file } = read.settings
  const hardware =
    file === undefined ? undefined : HardwareDescription.parse(JSON.parse(files.readFileSync(file, 'utf8')))
  if (/^sqlite:[^:]/.test(url)) makeFolder(files, dirname(url.slice('sqlite:'.length)))
  const db = openDatabase({ url }).for('background')
  try {
    await db.migrate()
    const runtime = systemRuntime()
    const context = {
      db,
      runtime,
      log: silentLog,
      checkpoint: noCheckpoint,
      settings: defaultLimits.rules,
      sealer: noSealer,
    }
    const media = mediaIn(dataDir, context)
    const data = await seedDemo(db, runtime, hardware, await drawProducts(media))
    await seedBanners(context, media, data.hubs[0]!.hub_id)
    writeReleaseKeys(join(dataDir, 'release-keys'), runtime.clock.now())
    process.stdout.write(`${JSON.stringify(data, null, 2)}\n`)
  } finally {
    await db.close()
  }
}

/** The keys of releases, as `larder releases keygen` creates them. */
function writeReleaseKeys(folder: string, now: number): void {
  makeFolder(files, folder)
  for (const [name, text] of Object.entries(makeKeys(now)))
    files.writeFileSync(join(folder, name), text, { mode: 0o600 })
}

/** The cloud's default media folder. Only the cloud itself gives out addresses; the seed needs none. */
function mediaIn(dataDir: string, context: CloudContext): Media {
  const { clock } = context.runtime
  return createMedia({
    context,
    store: openMediaStore(defaultMediaUrl(dataDir), { accessKeyId: undefined, secretAccessKey: undefined }),
    signer: mediaSigner({
      baseUrl: '',
      secret: '',
      lifetimeMs: context.settings.fileAddressMs,
      kept: 1,
      clock,
    }),
  })
}
