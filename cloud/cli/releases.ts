import * as files from 'node:fs'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../protocol/model/make-folder.ts'
import { makeKeys, type ReleaseKeys } from '../operations/releases/metadata.ts'
import {
  addRelease,
  listReleases,
  removeRelease,
  signReleases,
  type SigningKeys,
} from '../operations/releases/releases.ts'
import type { CloudContext } from '../platform/context.ts'
import { createMedia, type Media } from '../platform/media/media.ts'
import { openMediaStore } from '../platform/media/open-store.ts'
import { defaultMediaUrl } from '../platform/settings/config.ts'
import { recordAct, type CommandLine, type Invocation } from './command-line.ts'
import { required } from './options.ts'

const usage = `Usage:
  larder releases keygen --to DIR
  larder releases add FILE --keys DIR
  larder releases remove VERSION --keys DIR
  larder releases sign --keys DIR
  larder releases rotate --keys DIR --to DIR
  larder releases list

Releases of the hub's service. FILE is the tarball of \`npm run package -- hub\`. keygen creates root.key, signing.key and root.json
in DIR. Keep DIR on another machine than the cloud, and root.key offline. Hubs trust root.json: a hub receives it at its
enrolment or with its first release, or reads UPDATE_ROOT. add stores FILE in the media store and signs the list of releases (TUF)
with signing.key. The signature is valid for a year. Each change of the list renews it, and sign renews it without a change. sign
also publishes a root before the first release. larder rollouts installs a release.

remove takes a version out of the list: no hub installs it any more, and no rollout of it starts. Hubs that run it keep it.

rotate creates keys in the DIR of --to that replace those of --keys. Both root keys sign the new root.json. The next add, remove
or sign with the new keys publishes it, and hubs then trust only the new keys. Rotate once before each publication.

Prints JSON. Status 1 if the keys are not the keys of the list, if the version exists (add) or does not (remove), or if a rollout
of it is open (remove).`

/** Releases of the hub's service, for operators. */
export const releaseCommands: CommandLine = {
  usage,
  subcommands: {
    keygen: {
      store: 'none',
      options: ['to'],
      // Errors reject the promise.
      run: async ({ options, runtime }) => writeKeys(required(options, 'to'), makeKeys(runtime.clock.now())),
    },
    rotate: {
      store: 'none',
      options: ['keys', 'to'],
      run: async ({ options, runtime }) => {
        const read = fileReader(options)
        const former = { 'root.key': read('root.key'), 'root.json': read('root.json') }
        return writeKeys(required(options, 'to'), makeKeys(runtime.clock.now(), former))
      },
    },
    add: {
      options: ['keys'],
      positionals: ['file'],
      store: 'creates',
      run({ settings, options, context, runtime }) {
        const added = { tarball: options['file']!, ...signingKeys(options) }
        return addRelease(context, mediaOf(context, settings), added, (tx, { file, sha256 }) =>
          recordAct(tx.q, runtime, { action: 'releases.add', object: file, detail: { sha256 } }),
        )
      },
    },
    remove: {
      options: ['keys'],
      positionals: ['version'],
      run({ settings, options, context, runtime }) {
        const version = required(options, 'version')
        const removed = { version, ...signingKeys(options) }
        return removeRelease(context, mediaOf(context, settings), removed, (tx, files) =>
          recordAct(tx.q, runtime, { action: 'releases.remove', object: version, detail: { files } }),
        )
      },
    },
    sign: {
      options: ['keys'],
      store: 'creates',
      run: ({ options, context, runtime }) =>
        signReleases(context, signingKeys(options), (tx, root) =>
          recordAct(tx.q, runtime, { action: 'releases.sign', object: root }),
        ),
    },
    list: { options: [], run: ({ q }) => listReleases(q) },
  },
}

function mediaOf(context: CloudContext, settings: Invocation['settings']): Media {
  const { MEDIA_URL, DATA_DIR, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY } = settings
  const store = openMediaStore(MEDIA_URL ?? defaultMediaUrl(DATA_DIR), {
    accessKeyId: AWS_ACCESS_KEY_ID,
    secretAccessKey: AWS_SECRET_ACCESS_KEY,
  })
  return createMedia({ context, store, signer: { addressOf: () => '', check: () => null } })
}

const fileReader =
  (options: Invocation['options']) =>
  (name: string): string =>
    readFileSync(join(required(options, 'keys'), name), 'utf8')

const signingKeys = (options: Invocation['options']): SigningKeys => {
  const read = fileReader(options)
  return { root: read('root.json'), signing: read('signing.key') }
}

function writeKeys(folder: string, made: ReleaseKeys) {
  const keys = Object.entries(made).map(([name, text]) => ({ path: join(folder, name), text }))
  // A hub that trusts a lost root cannot be updated any more.
  const known = keys.find(({ path }) => existsSync(path))
  if (known) throw new Error(`${known.path} exists: keys are created once`)
  makeFolder(files, folder, { mode: 0o700 })
  for (const { path, text } of keys) writeFileSync(path, text, { mode: 0o600, flag: 'wx' })
  const [root_key, signing_key, root] = keys.map(({ path }) => path)
  return { root_key, signing_key, root }
}
