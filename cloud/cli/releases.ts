import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { makeKeys } from '../operations/releases/metadata.ts'
import { addRelease, listReleases } from '../operations/releases/releases.ts'
import type { CloudContext } from '../platform/context.ts'
import { createMedia, type Media } from '../platform/media/media.ts'
import { openMediaStore } from '../platform/media/open-store.ts'
import { defaultMediaUrl } from '../platform/settings/config.ts'
import { contextOf, recordAct, type CommandLine, type Invocation } from './command-line.ts'
import { required } from './options.ts'

const usage = `Usage:
  larder releases keygen --to DIR
  larder releases add FILE --keys DIR
  larder releases list

Releases of the hub's service. FILE is the tarball of \`npm run package -- hub\`. keygen creates root.key, signing.key and root.json
in DIR. Keep DIR on another machine than the cloud, and root.key offline. Hubs trust root.json: a hub receives it at its
enrolment, or reads UPDATE_ROOT. add stores FILE in the media store and signs the list of releases (TUF) with signing.key. The
signature is valid for a year; each added release renews it. larder rollouts installs a release. Prints JSON. Status 1 if the keys
are not the keys of the list, or if the version exists.`

/** Releases of the hub's service, for operators. */
export const releaseCommands = (runtime: Runtime): CommandLine => ({
  usage,
  subcommands: {
    keygen: {
      store: 'none',
      options: ['to'],
      // Errors reject the promise.
      run: async ({ options }) => writeKeys(required(options, 'to'), runtime),
    },
    add: {
      options: ['keys'],
      positionals: ['file'],
      store: 'creates',
      run({ db, settings, options }) {
        const keys = required(options, 'keys')
        const read = (name: string): string => readFileSync(join(keys, name), 'utf8')
        const added = { tarball: options['file']!, root: read('root.json'), signing: read('signing.key') }
        const context = contextOf({ db, settings }, runtime)
        return addRelease(context, mediaOf(context, settings), added, (tx, { file, sha256 }) =>
          recordAct(tx.q, runtime, { action: 'releases.add', object: file, detail: { sha256 } }),
        )
      },
    },
    list: { options: [], run: ({ q }) => listReleases(q) },
  },
})

function mediaOf(context: CloudContext, settings: Invocation['settings']): Media {
  const { MEDIA_URL, DATA_DIR, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY } = settings
  const store = openMediaStore(MEDIA_URL ?? defaultMediaUrl(DATA_DIR), {
    accessKeyId: AWS_ACCESS_KEY_ID,
    secretAccessKey: AWS_SECRET_ACCESS_KEY,
  })
  return createMedia({ context, store, signer: { addressOf: () => '', check: () => null } })
}

function writeKeys(folder: string, { clock }: Runtime) {
  const keys = Object.entries(makeKeys(clock.now())).map(([name, text]) => ({
    path: join(folder, name),
    text,
  }))
  // A hub that trusts a lost root cannot be updated any more.
  const known = keys.find(({ path }) => existsSync(path))
  if (known) throw new Error(`${known.path} exists: keys are created once`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const { path, text } of keys) writeFileSync(path, text, { mode: 0o600, flag: 'wx' })
  const [root_key, signing_key, root] = keys.map(({ path }) => path)
  return { root_key, signing_key, root }
}
