import { mkdir, open, rename, rm, rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { isMediaKey, type MediaStore } from './store.ts'

/** A folder. An object is written beside its place, and renamed into it once its bytes are on the disk. */
export function folderStore(root: string): MediaStore {
  function pathOf(key: string): string {
    if (!isMediaKey(key)) throw new Error(`not a key of the media store: ${key}`)
    return join(root, key)
  }

  return {
    async write(key, _mimeType, content) {
      const path = pathOf(key)
      await mkdir(dirname(path), { recursive: true })
      // The file is there before its content is asked for: a stream that opens it by itself could still do so after `rm`.
      const part = await open(partOf(path), 'w', 0o640)
      try {
        await pipeline(content, part.createWriteStream({ flush: true }))
        await rename(partOf(path), path)
        await flushFolder(dirname(path))
      } catch (error) {
        // The error of the disk counts, also if it does not let go of the part.
        await rm(partOf(path), { force: true }).catch(() => {})
        throw error
      }
    },

    async read(key, range) {
      const handle = await open(pathOf(key)).catch(nullWhere('ENOENT'))
      if (!handle) return null
      const stream = handle.createReadStream(range && { start: range.first, end: range.last })
      return Readable.toWeb(stream) as ReadableStream<Uint8Array>
    },

    async remove(key) {
      const path = pathOf(key)
      await rm(partOf(path), { force: true })
      await rm(path, { force: true })
      // The last file of a numbered object takes its folder with it.
      if (/\/\d+\//.test(key)) await rmdir(dirname(path)).catch(nullWhere('ENOENT', 'ENOTEMPTY', 'EEXIST'))
    },
  }
}

const partOf = (path: string): string => `${path}.part`

/** Puts a rename on the disk: it is there once its folder is. */
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
