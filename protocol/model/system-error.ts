/** The meanings of the operating system's error codes for a file that a person named. */
const meanings: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'this user has no right to it',
  EPERM: 'this user has no right to it',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of the path is no folder',
  EROFS: 'the disk is read-only',
  ENOSPC: 'the disk is full',
  EMFILE: 'this program has too many files open',
  ELOOP: 'its links lead in a circle',
  EEXIST: 'something else has its name',
  ENOTSUP: 'its file system takes no new folder',
  ENAMETOOLONG: 'its name is too long',
}

/** Why a file cannot be used, as a part of a sentence. For other errors their own message. */
export function fileProblem(error: unknown): string {
  const { code, message = String(error) } = error as { code?: unknown; message?: string }
  if (typeof code !== 'string') return message
  const meaning = meanings[code]
  return meaning === undefined ? message : `${meaning} (${code})`
}

/**
 * The message of an error for an operator. An error of the operating system about one file becomes a sentence with its path.
 */
export function problemOf(error: unknown): string {
  const { code, path, syscall, message = String(error) } = error as Partial<NodeJS.ErrnoException>
  // Node names both files of a call with two.
  if (code === undefined || !(code in meanings) || Object.hasOwn(Object(error) as object, 'dest'))
    return message
  // Calls on an open file do not name it.
  const file = path ?? (syscall === 'read' || syscall === 'write' ? 'a file' : undefined)
  return file === undefined ? message : `${file} cannot be used: ${fileProblem(error)}`
}

/** Whether the operating system has refused a file. */
export const isFileProblem = (error: unknown): error is Error =>
  error instanceof Error && problemOf(error) !== error.message
