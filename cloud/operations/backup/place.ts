import { DAY_MS } from '../../../protocol/model/times.ts'
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs'
import * as files from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../../protocol/model/make-folder.ts'
import type { SettingsOf } from '../../../protocol/model/program-settings.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import {
  databaseUrlOf,
  defaultMediaUrl,
  managementKeyOf,
  readNamed,
  type cloudSettings,
} from '../../platform/settings/config.ts'
import { UsageError } from '../../platform/settings/usage-error.ts'

type Settings = SettingsOf<typeof cloudSettings>

/** The installation that a backup is made of, or restored into. */
export interface Installation {
  settings: Settings
  runtime: Runtime
  databaseUrl: string
  mediaUrl: string
  /** For s3: addresses of media and backups. */
  credentials: { accessKeyId: string | undefined; secretAccessKey: string | undefined }
  passphrase: string | undefined
}

export const installationOf = (settings: Settings, runtime: Runtime): Installation => ({
  settings,
  runtime,
  databaseUrl: databaseUrlOf(settings),
  mediaUrl: settings.MEDIA_URL ?? defaultMediaUrl(settings.DATA_DIR),
  credentials: { accessKeyId: settings.AWS_ACCESS_KEY_ID, secretAccessKey: settings.AWS_SECRET_ACCESS_KEY },
  passphrase: passphraseOf(settings),
})

/** Folder or bucket of backups: `--to`, else BACKUP_TO, else a folder in DATA_DIR. */
export const targetOf = ({ BACKUP_TO, DATA_DIR }: Settings, to?: string): string =>
  to ?? BACKUP_TO ?? join(DATA_DIR, 'backups')

function passphraseOf({ BACKUP_PASSPHRASE_FILE: path }: Settings): string | undefined {
  if (path === undefined) return undefined
  const text = readNamed('BACKUP_PASSPHRASE_FILE', path).trim()
  if (text === '') throw new UsageError(`BACKUP_PASSPHRASE_FILE: ${path} is empty`)
  return text
}

/** Secrets by their names in a backup and in DATA_DIR. A setting has precedence over the file. */
export function secretsOf(settings: Settings): Map<string, string> {
  const at = (name: string): string => join(settings.DATA_DIR, name)
  const stored = (path: string) => (existsSync(path) ? readFileSync(path, 'utf8') : undefined)
  const secrets: [string, string | undefined][] = [
    ['store-secret', settings.STORE_SECRET?.[0] ?? stored(at('store-secret'))],
    ['media-secret', settings.MEDIA_SECRET?.[0] ?? stored(at('media-secret'))],
    ['management-key', stored(managementKeyOf(settings))],
    ['identity-key.json', stored(at('identity-key.json'))],
  ]
  return new Map(secrets.filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** The secrets that may open the database of this installation. */
export function storeSecretsOf(settings: Settings): readonly string[] {
  const stored = secretsOf(settings).get('store-secret')
  return settings.STORE_SECRET ?? (stored === undefined ? [] : [stored])
}

/** The secret that sealed the database of a backup; undefined if no service has used that database yet. */
export const storedSecret = (folder: string): string | undefined =>
  readdirSync(folder).includes('store-secret')
    ? readFileSync(join(folder, 'store-secret'), 'utf8')
    : undefined

const DRAFT = '.backup-'

/** Gives a private folder in DATA_DIR to `work` and removes it. Also removes folders that a killed process has left. */
export async function inDraft<T>(
  { settings: { DATA_DIR: folder }, runtime: { clock } }: Installation,
  work: (draft: string) => Promise<T>,
): Promise<T> {
  makeFolder(files, folder)
  for (const name of readdirSync(folder).filter((each) => each.startsWith(DRAFT)))
    if (statSync(join(folder, name)).mtimeMs < clock.now() - DAY_MS)
      rmSync(join(folder, name), { recursive: true, force: true })
  const draft = mkdtempSync(join(folder, DRAFT))
  try {
    return await work(draft)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}
