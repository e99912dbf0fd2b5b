/** The calls of a file system that make folders; `node:fs` has them. */
export interface FolderFiles {
  mkdirSync(folder: string, options: { mode?: number }): unknown
  statSync(path: string, options: { throwIfNoEntry: false }): { isDirectory(): boolean } | undefined
}

/**
 * Makes a folder and the folders above it. Unlike `mkdirSync` with `recursive`, it returns on file systems that answer
 * ENOENT to a new folder, such as /proc. Throws an error with the `code` of the system, ENOTSUP for such a file system.
 * An error about a part of the path that is a file (ENOTDIR) names the whole path.
 */
export function makeFolder(files: FolderFiles, path: string, options: { mode?: number } = {}): void {
  const folder = path.replace(/(?<=.)\/+$/, '')
  try {
    makeFolders(files, folder, options)
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'ENOTDIR') throw error
    throw withCode('ENOTDIR', 'not a directory', { folder, cause: error })
  }
}

function makeFolders(files: FolderFiles, folder: string, options: { mode?: number }): void {
  const isThere = (): boolean => files.statSync(folder, { throwIfNoEntry: false })?.isDirectory() === true
  if (isThere()) return
  const parent = folder.slice(0, Math.max(0, folder.lastIndexOf('/'))).replace(/(?<=.)\/+$/, '')
  if (parent !== '') makeParent(files, parent, options)
  try {
    files.mkdirSync(folder, options)
  } catch (error) {
    const { code } = error as { code?: unknown }
    // Another process may have made it in the meantime.
    if (code === 'EEXIST' && isThere()) return
    if (code !== 'ENOENT') throw error
    throw withCode('ENOTSUP', 'no folder can be made', { folder, cause: error })
  }
}

/** A parent that is a file ends with ENOTDIR. Node from 26 on reports its children as absent; older lines throw at `statSync`. */
function makeParent(files: FolderFiles, folder: string, options: { mode?: number }): void {
  try {
    makeFolders(files, folder, options)
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'EEXIST') throw error
    throw withCode('ENOTDIR', 'not a directory', { folder, cause: error })
  }
}

function withCode(code: string, what: string, { folder, cause }: { folder: string; cause: unknown }): Error {
  const error = new Error(`${code}: ${what}, mkdir '${folder}'`, { cause })
  return Object.assign(error, { code, path: folder })
}
