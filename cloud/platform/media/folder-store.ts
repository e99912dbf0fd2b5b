import { once } from 'node:events'
import { createReadStream } from 'node:fs'
import { mkdir, open, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { isMediaKey, type MediaStore } from './store.ts'

/**
 * A store in a folder. An object is written to a temporary file beside its place, and renamed after its bytes are on
 * disk. `isKey` accepts the names of objects.
 */
export function folderStore(root: string, isKey = isMediaKey): MediaStore {
  function pathOf(key: string): string {
    if (!isKey(key)) throw new Error(`not a key of the media store: ${key}`)
    return join(root, key)
  }

  return {
    async write(key, _mimeType, content) {
      const path = pathOf(key)
      await mkdir(dirname(path), { recursive: true })
      // Creates the file before reading the content. A stream that opens the file itself could still create it after
      // `rm`.
      const part = await open(partOf(path), 'w', 0o640)
      try {
        try {
          await writeFile(part, content)
          await part.sync()
        } finally {
          await part.close()
        }
        await rename(partOf(path), path)
        await flushFolder(dirname(path))
      } catch (error) {
        // The disk's error is reported, even if the temporary file cannot be removed.
        await rm(partOf(path), { force: true }).catch(() => {})
        throw error
      }
    },

    async read(key, range) {
      // Not from a `FileHandle`: an abandoned stream leaves it open, and Node 26 ends the program when it collects an open one.
      const stream = createReadStream(pathOf(key), range && { start: range.first, end: range.last })
      const opened = await once(stream, 'open').catch(nullWhere('ENOENT'))
      return opened && (Readable.toWeb(stream) as ReadableStream<Uint8Array>)
    },

    async remove(key) {
      const path = pathOf(key)
      await rm(partOf(path), { force: true })
      await rm(path, { force: true })
      // The removal of a numbered object's last file also removes its folder.
      if (/\/\d+\//.test(key)) await rmdir(dirname(path)).catch(nullWhere('ENOENT', 'ENOTEMPTY', 'EEXIST'))
    },
  }
}

const partOf = (path: string): string => `${path}.part`

/** Makes a rename durable, which needs a flush of the folder. */
async function flushFolder(path: string): Promise<void> {
  const handle = await open(path)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const nullWhere =
  (...codes: string[]) =>
  (error: NodeJS.ErrnoException): null => {
    if (codes.includes(error.code ?? '')) return null
    throw error
  }
