import { mkdtempSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CloudContext } from '../../../cloud/platform/context.ts'
import { folderStore } from '../../../cloud/platform/media/folder-store.ts'
import { createMedia, type Media } from '../../../cloud/platform/media/media.ts'
import { mediaSigner, type MediaSigner } from '../../../cloud/platform/media/addresses.ts'
import type { MediaStore } from '../../../cloud/platform/media/store.ts'

export const MEDIA_SECRET = 'a secret of file addresses, for tests'

/** An empty folder, which is deleted at the end of the run (`test/support/temporary-folder.ts`). */
export const emptyFolder = (): string => mkdtempSync(join(tmpdir(), 'larder-media-'))

let shared: string | undefined

/** A shared folder for files that no test reads. */
export const mediaFolder = (): string => (shared ??= emptyFolder())

/** Every file in a folder and its subfolders, by path. */
export const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
    .sort()

export const testSigner = ({ runtime, settings }: CloudContext): MediaSigner =>
  mediaSigner({
    baseUrl: 'http://larder.test',
    secret: MEDIA_SECRET,
    lifetimeMs: settings.fileAddressMs,
    kept: settings.fileAddressesKept,
    clock: runtime.clock,
  })

/** The media of a context, in a folder. */
export const testMedia = (context: CloudContext, store: MediaStore = folderStore(mediaFolder())): Media =>
  createMedia({ context, store, signer: testSigner(context) })
