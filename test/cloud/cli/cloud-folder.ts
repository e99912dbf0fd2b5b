import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { openDatabase, type CloudDatabase } from '../../../cloud/platform/store/database.ts'
import { seedHubs } from '../../world/seeds.ts'

/** A cloud's folder with a database of hubs 1 and 2, for the tests of one file. */
export async function cloudFolder(): Promise<{
  folder: string
  environment: { DATA_DIR: string }
  db: CloudDatabase
}> {
  const folder = mkdtempSync(join(tmpdir(), 'larder-cli-'))
  const db = openDatabase({ url: `sqlite:${join(folder, 'larder.sqlite')}` })
  afterAll(async () => {
    await db.close()
    rmSync(folder, { recursive: true })
  })
  await db.migrate()
  await seedHubs(db)
  return { folder, environment: { DATA_DIR: folder }, db }
}
