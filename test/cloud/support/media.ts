import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CloudContext } from '../../../cloud/context.ts'
import { folderStore } from '../../../cloud/media/folder-store.ts'
import { createMedia, type Media } from '../../../cloud/media/media.ts'
import { mediaSigner } from '../../../cloud/media/signed-address.ts'
import type { MediaStore } from '../../../cloud/media/store.ts'

export const MEDIA_SECRET = 'a secret of file addresses, for tests'

let folder: string | undefined

/** A folder for files, one for each test process; it goes with the process. */
export function mediaFolder(): string {
  if (folder === undefined) {
    const made = mkdtempSync(join(tmpdir(), 'larder-media-'))
    process.on('exit', () => rmSync(made, { recursive: true, force: true }))
    folder = made
  }
  return folder
}

/** The media of a context, in a folder. */
export const testMedia = (context: CloudContext, store: MediaStore = folderStore(mediaFolder())): Media =>
  createMedia({
    context,
    store,
    signer: mediaSigner({
      baseUrl: 'http://larder.test',
      secret: MEDIA_SECRET,
      lifetimeMs: context.settings.fileAddressMs,
      clock: context.runtime.clock,
    }),
  })
